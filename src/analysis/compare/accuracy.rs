//! How far the outputs of a run are from those of a reference run.

use super::Side;
use serde::Serialize;

/// Numbers of classes for which an output counts as a classifier's.
const CLASSES: std::ops::RangeInclusive<usize> = 2..=100_000;
/// Number of classes from which top-5 agreement is meaningful.
const CLASSES_FOR_TOP5: usize = 10;

/// One output of one inference as real numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputValues {
    /// Index of the input set, from 0.
    pub inference: u32,
    /// Name, taken from its file.
    pub name: String,
    /// Dimensions, if the file has them.
    pub shape: Option<Vec<u64>>,
    /// The values.
    pub values: Vec<f32>,
}

/// Similarity of one output over all inferences.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutputAccuracy {
    /// Name of the output.
    pub name: String,
    /// Number of inferences.
    pub inferences: usize,
    /// Number of values per inference.
    pub elements: usize,
    /// True if all values are equal.
    pub identical: bool,
    /// Smallest cosine similarity of an inference; `None` if one of the two is all zeros.
    pub cosine: Option<f64>,
    /// Signal-to-quantisation-noise ratio over all inferences, dB; `None` without noise or signal.
    pub sqnr_db: Option<f64>,
    /// Largest absolute difference of a value.
    pub max_abs_error: f64,
    /// Share of inferences with the same top class; `None` if the output does not look like a classifier's.
    pub top1: Option<f64>,
    /// Share of the reference's top five classes that are also among this run's top five.
    pub top5: Option<f64>,
}

/// Similarity of all outputs: the worst of each figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Accuracy {
    /// True if all outputs are identical.
    pub identical: bool,
    /// Smallest cosine similarity.
    pub cosine: Option<f64>,
    /// Smallest signal-to-quantisation-noise ratio, dB.
    pub sqnr_db: Option<f64>,
    /// Largest absolute difference.
    pub max_abs_error: f64,
    /// Smallest top-1 agreement.
    pub top1: Option<f64>,
    /// Smallest top-5 agreement.
    pub top5: Option<f64>,
    /// Each output.
    pub outputs: Vec<OutputAccuracy>,
    /// Caveats about the figures, such as inputs known only by name.
    pub note: Option<String>,
}

/// Whether two runs received the same data.
///
/// # Errors
/// Why they did not, or why that is unknown. `Ok` may carry a remark.
pub fn same_inputs(reference: &Side, other: &Side) -> Result<Option<String>, String> {
    if reference.inputs.is_empty() || other.inputs.is_empty() {
        return Err("the runs' input data is unknown".to_owned());
    }
    if reference.inputs.len() != other.inputs.len() {
        return Err("the models have different numbers of inputs".to_owned());
    }
    let mut remark = None;
    for (a, b) in reference.inputs.iter().zip(&other.inputs) {
        let name = &a.name;
        match (a.source == "random", b.source == "random") {
            (true, true) => {
                if reference.seed != other.seed {
                    return Err(format!("input `{name}` had random data of different seeds"));
                }
                if a.bytes != b.bytes || a.quantization != b.quantization {
                    return Err(format!(
                        "input `{name}` had random data, which differs between types and encodings; give both runs the same \
                         file with --input"
                    ));
                }
            }
            (false, false) => match (&a.sha256, &b.sha256) {
                (Some(a), Some(b)) if a == b => {}
                (Some(_), Some(_)) => return Err(format!("input `{name}` had different data")),
                _ if a.source == b.source => {
                    remark = Some("the inputs are the same only by file name".to_owned());
                }
                _ => return Err(format!("input `{name}` came from different files")),
            },
            _ => return Err(format!("input `{name}` had random data in one run and a file in the other")),
        }
    }
    Ok(remark)
}

/// Compares the outputs of two runs, output by output: by name, or by position if no name matches.
///
/// # Errors
/// Why they cannot be compared.
pub fn accuracy(reference: &[OutputValues], other: &[OutputValues]) -> Result<Accuracy, String> {
    let (names, others) = (names(reference), names(other));
    if names.is_empty() || names.len() != others.len() {
        return Err(format!("{} outputs were saved, against {} of the reference", others.len(), names.len()));
    }
    let mut outputs = Vec::new();
    for (position, name) in names.iter().enumerate() {
        let theirs = if others.contains(name) { name } else { &others[position] };
        let of = |all: &'_ [OutputValues], name: &str| -> Vec<OutputValues> {
            let mut own: Vec<OutputValues> = all.iter().filter(|output| output.name == name).cloned().collect();
            own.sort_by_key(|output| output.inference);
            own
        };
        outputs.push(one_output(name, &of(reference, name), &of(other, theirs))?);
    }
    let least = |figure: fn(&OutputAccuracy) -> Option<f64>| outputs.iter().filter_map(figure).reduce(f64::min);
    Ok(Accuracy {
        identical: outputs.iter().all(|output| output.identical),
        cosine: least(|output| output.cosine),
        sqnr_db: least(|output| output.sqnr_db),
        max_abs_error: outputs.iter().map(|output| output.max_abs_error).fold(0.0, f64::max),
        top1: least(|output| output.top1),
        top5: least(|output| output.top5),
        outputs,
        note: None,
    })
}

fn names(outputs: &[OutputValues]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for output in outputs {
        if !names.contains(&output.name) {
            names.push(output.name.clone());
        }
    }
    names
}

fn one_output(name: &str, reference: &[OutputValues], other: &[OutputValues]) -> Result<OutputAccuracy, String> {
    if reference.len() != other.len() {
        return Err(format!(
            "output `{name}` was saved for {} inferences, against {} of the reference",
            other.len(),
            reference.len()
        ));
    }
    let (mut signal, mut noise, mut max_abs_error) = (0.0, 0.0, 0.0f64);
    let mut cosine: Option<f64> = None;
    let (mut top1, mut top5) = (Agreement::default(), Agreement::default());
    for (a, b) in reference.iter().zip(other) {
        if a.values.len() != b.values.len() {
            return Err(format!("output `{name}` has {} values, against {}", b.values.len(), a.values.len()));
        }
        if a.values.iter().chain(&b.values).any(|value| !value.is_finite()) {
            return Err(format!("output `{name}` has values that are not numbers"));
        }
        let (mut dot, mut own_a, mut own_b) = (0.0, 0.0, 0.0);
        for (&a, &b) in a.values.iter().zip(&b.values) {
            let (a, b) = (f64::from(a), f64::from(b));
            dot += a * b;
            own_a += a * a;
            own_b += b * b;
            noise += (a - b) * (a - b);
            max_abs_error = max_abs_error.max((a - b).abs());
        }
        signal += own_a;
        if own_a > 0.0 && own_b > 0.0 {
            let own = (dot / (own_a.sqrt() * own_b.sqrt())).clamp(-1.0, 1.0);
            cosine = Some(cosine.map_or(own, |least: f64| least.min(own)));
        }
        if is_classifier(a) {
            top1.add(same_best(&a.values, &b.values, 1));
            if a.values.len() >= CLASSES_FOR_TOP5 {
                top5.add(same_best(&a.values, &b.values, 5));
            }
        }
    }
    Ok(OutputAccuracy {
        name: name.to_owned(),
        inferences: reference.len(),
        elements: reference.first().map_or(0, |output| output.values.len()),
        identical: noise == 0.0,
        cosine,
        sqnr_db: (noise > 0.0 && signal > 0.0).then(|| 10.0 * (signal / noise).log10()),
        max_abs_error,
        top1: top1.mean(),
        top5: top5.mean(),
    })
}

#[derive(Default)]
struct Agreement {
    sum: f64,
    count: f64,
}

impl Agreement {
    fn add(&mut self, part: f64) {
        self.sum += part;
        self.count += 1.0;
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}

/// One dimension of classes, all others 1. A raw file without dimensions does not show this.
fn is_classifier(output: &OutputValues) -> bool {
    let Some(shape) = &output.shape else { return false };
    shape.iter().filter(|&&size| size > 1).count() == 1 && CLASSES.contains(&output.values.len())
}

/// Share of the reference's top classes that are also among the other's. Ties count, as quantised outputs
/// have them.
fn same_best(reference: &[f32], other: &[f32], best: usize) -> f64 {
    let mut order: Vec<usize> = (0..reference.len()).collect();
    order.sort_by(|a, b| reference[*b].total_cmp(&reference[*a]).then(a.cmp(b)));
    let mut values: Vec<f32> = other.to_vec();
    values.sort_by(|a, b| b.total_cmp(a));
    let least = values[best.min(values.len()) - 1];
    let same = order.iter().take(best).filter(|class| other[**class] >= least).count();
    same as f64 / best.min(reference.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(name: &str, inference: u32, values: &[f32]) -> OutputValues {
        let shape = Some(vec![1, values.len() as u64]);
        OutputValues { inference, name: name.to_owned(), shape, values: values.to_vec() }
    }

    #[test]
    fn known_figures() {
        let reference = [output("y", 0, &[3.0, 4.0]), output("y", 1, &[0.0, 2.0])];
        let other = [output("y", 1, &[0.0, 2.0]), output("y", 0, &[4.0, 3.0])];
        let all = accuracy(&reference, &other).unwrap();
        let y = &all.outputs[0];
        assert_eq!((y.inferences, y.elements, y.identical), (2, 2, false));
        assert!((y.cosine.unwrap() - 24.0 / 25.0).abs() < 1e-12);
        assert!((y.sqnr_db.unwrap() - 10.0 * (29.0f64 / 2.0).log10()).abs() < 1e-9);
        assert!((y.max_abs_error - 1.0).abs() < 1e-12);
        assert_eq!((y.top1, y.top5), (Some(0.5), None));
    }

    #[test]
    fn equal_outputs_have_no_noise() {
        let reference = [output("y", 0, &[0.0; 12])];
        let all = accuracy(&reference, &reference).unwrap();
        assert_eq!((all.identical, all.sqnr_db, all.cosine, all.max_abs_error), (true, None, None, 0.0));
        assert_eq!((all.top1, all.top5), (Some(1.0), Some(1.0)));
    }

    #[test]
    fn five_best_of_many() {
        let reference: Vec<f32> = (0..20u8).map(f32::from).collect();
        let mut other = reference.clone();
        other[19] = 0.0;
        let all = accuracy(&[output("y", 0, &reference)], &[output("y", 0, &other)]).unwrap();
        assert_eq!((all.top1, all.top5), (Some(0.0), Some(0.8)));
    }

    #[test]
    fn outputs_without_a_class_axis_are_no_classifiers() {
        let image = OutputValues { shape: Some(vec![1, 2, 2]), ..output("y", 0, &[1.0, 2.0, 3.0, 4.0]) };
        let raw = OutputValues { shape: None, ..output("y", 0, &[1.0, 2.0, 3.0, 4.0]) };
        for outputs in [[image], [raw]] {
            assert_eq!(accuracy(&outputs, &outputs).unwrap().top1, None);
        }
    }

    #[test]
    fn what_cannot_be_compared_says_why() {
        let y = [output("y", 0, &[1.0, 2.0])];
        for (other, part) in [
            (vec![], "0 outputs"),
            (vec![output("y", 0, &[1.0])], "1 values, against 2"),
            (vec![output("y", 0, &[1.0, 2.0]), output("y", 1, &[1.0, 2.0])], "2 inferences, against 1"),
            (vec![output("y", 0, &[1.0, f32::NAN])], "not numbers"),
        ] {
            let error = accuracy(&y, &other).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        // A different name at the same position is the same output of a converted model.
        assert!(accuracy(&y, &[output("y_quantised", 0, &[1.0, 2.0])]).unwrap().identical);
    }
}

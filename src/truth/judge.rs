//! Compares the outputs of a run with labels or expected outputs.

use super::expected::{self, ExpectedError};
use super::figures::{Tally, best};
use super::labels::{LabelsError, read_labels};
use crate::accuracy::{Layout, MAX_OUTPUT_BYTES, SavedOutputs, base_name, read_values, saved};
use crate::event::{JudgedOutput, OutputsJudged, TruthMetric, clean_text};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Number of classes for which an output counts as a classifier's.
const CLASSES: std::ops::RangeInclusive<usize> = 2..=100_000;
/// A value above this is inside a mask.
const IN_MASK: f64 = 0.5;

/// Ground truth that cannot be used.
#[derive(Debug, Error)]
pub enum TruthError {
    /// The labels cannot be used.
    #[error(transparent)]
    Labels(#[from] LabelsError),
    /// The expected outputs cannot be used.
    #[error(transparent)]
    Expected(#[from] ExpectedError),
    /// A metric that labels cannot provide.
    #[error(
        "--metric {0} compares values, and labels have none; use top1 or top5 with --labels, or give --expected DIR"
    )]
    Metric(TruthMetric),
}

/// Ground truth for a run's outputs.
#[derive(Debug, Clone)]
pub struct Truth {
    source: Source,
    /// Requested metrics; empty selects those that suit the outputs.
    metrics: Vec<TruthMetric>,
}

#[derive(Debug, Clone)]
enum Source {
    Labels { path: PathBuf, labels: Vec<usize> },
    Expected { folder: PathBuf, files: SavedOutputs },
}

/// One output of one inference.
struct Values {
    shape: Option<Vec<u32>>,
    values: Vec<f64>,
}

impl Values {
    fn read(path: &Path) -> Result<Self, String> {
        let (shape, values, _) = read_values(path, MAX_OUTPUT_BYTES)
            .map_err(|reason| format!("cannot read {}: {reason}", path.display()))?;
        let size = |size: u64| u32::try_from(size).unwrap_or(u32::MAX);
        Ok(Self { shape: shape.map(|shape| shape.into_iter().map(size).collect()), values })
    }

    /// Classes per row: the only dimension besides the batch that is not 1, otherwise the last one; all
    /// values if there are no dimensions.
    fn classes(&self) -> usize {
        let Some(shape) = &self.shape else { return self.values.len() };
        let mut large = shape.iter().skip(1).filter(|&&size| size > 1);
        match (large.next(), large.next()) {
            (Some(&size), None) => size as usize,
            (None, _) => self.values.len(),
            (Some(_), Some(_)) => shape.last().map_or(1, |&size| size as usize),
        }
    }

    /// True for one dimension of classes besides the batch. A raw file has no dimensions and does not
    /// qualify.
    fn is_classifier(&self) -> bool {
        let Some(shape) = &self.shape else { return false };
        let large = shape.iter().skip(usize::from(shape.len() > 1)).filter(|&&size| size > 1).count();
        large == 1 && CLASSES.contains(&self.classes())
    }
}

impl Truth {
    /// Labels from a file.
    ///
    /// # Errors
    /// The file cannot be used, or a metric needs more than labels.
    pub fn labels(path: &Path, metrics: &[TruthMetric]) -> Result<Self, TruthError> {
        if let Some(metric) = metrics.iter().find(|metric| !matches!(metric, TruthMetric::Top1 | TruthMetric::Top5)) {
            return Err(TruthError::Metric(*metric));
        }
        let source = Source::Labels { path: path.to_owned(), labels: read_labels(path)? };
        Ok(Self { source, metrics: metrics.to_vec() })
    }

    /// Expected outputs from a folder.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn expected(folder: &Path, metrics: &[TruthMetric]) -> Result<Self, TruthError> {
        let source = Source::Expected { folder: folder.to_owned(), files: expected::find(folder)? };
        Ok(Self { source, metrics: metrics.to_vec() })
    }

    /// Judges the outputs in these files, which a run wrote. The answer includes any reason why they cannot
    /// be judged.
    pub fn judge(&self, files: &[String]) -> OutputsJudged {
        let path = match &self.source {
            Source::Labels { path, .. } => path,
            Source::Expected { folder, .. } => folder,
        };
        let mut judged = OutputsJudged {
            truth: clean_text(&path.to_string_lossy()),
            inferences: 0,
            outputs: Vec::new(),
            error: None,
            notes: Vec::new(),
        };
        let found = saved(files.iter().map(Path::new));
        let result = match &self.source {
            _ if found.is_empty() => Err("the run left no outputs".to_owned()),
            Source::Labels { labels, .. } => self.by_labels(&found, labels, &mut judged),
            Source::Expected { files, .. } => self.by_values(&found, files, &mut judged),
        };
        if let Err(reason) = result {
            judged.error = Some(clean_text(&reason));
            judged.outputs.clear();
        }
        judged
    }

    fn by_labels(&self, found: &SavedOutputs, labels: &[usize], judged: &mut OutputsJudged) -> Result<(), String> {
        let inferences = inferences(found);
        let names = names(found);
        let first = *inferences.first().ok_or("the run left no outputs")?;
        let mut name = names.first().ok_or("the run left no outputs")?;
        if names.len() > 1 {
            let fits = |name: &&String| {
                let path = found.get(&(first, (*name).clone()));
                path.and_then(|path| Values::read(path).ok()).is_some_and(|values| values.is_classifier())
            };
            name = names.iter().find(fits).ok_or("no output has a single class dimension")?;
            judged.notes.push(format!("of {} outputs, `{name}` is judged: the first one with classes", names.len()));
        }
        let mut tally = Tally::default();
        let (mut next, mut elements) = (0, 0);
        for &inference in &inferences {
            let path = found.get(&(inference, name.clone()));
            let values = Values::read(path.ok_or_else(|| format!("inference {inference} left no output `{name}`"))?)?;
            let classes = values.classes().max(1);
            let rows = values.values.len() / classes;
            let own = labels.get(next..next + rows).ok_or_else(|| {
                let count = inferences.len() * rows;
                format!("there are {} labels for {count} classifications; each needs one", labels.len())
            })?;
            if let Some(beyond) = own.iter().find(|label| **label >= classes) {
                return Err(format!(
                    "label {beyond} is beyond the {classes} classes of output `{name}`, which count from 0"
                ));
            }
            tally.take_classes(inference, &values.values, own.iter().copied(), classes);
            next += rows;
            elements = values.values.len();
        }
        if next < labels.len() {
            return Err(format!("there are {} labels for {next} classifications; each needs one", labels.len()));
        }
        let usual = vec![TruthMetric::Top1, TruthMetric::Top5];
        self.put(judged, name, elements, None, &tally, usual);
        judged.inferences = count(inferences.len());
        Ok(())
    }

    fn by_values(
        &self,
        found: &SavedOutputs,
        expected: &SavedOutputs,
        judged: &mut OutputsJudged,
    ) -> Result<(), String> {
        let (own, theirs) = (inferences(found), inferences(expected));
        if let Some(missing) = own.iter().find(|inference| !theirs.contains(inference)) {
            return Err(format!(
                "inference {missing} has no expected outputs: the run has outputs of {} inferences and {} are expected",
                own.len(),
                theirs.len()
            ));
        }
        if own.len() < theirs.len() {
            judged.notes.push(format!(
                "outputs of {} inferences are expected; the run left {}",
                theirs.len(),
                own.len()
            ));
        }
        let pairs = pairs(&names(found), &names(expected))?;
        let all = names(found).len();
        if pairs.len() < all {
            judged
                .notes
                .push(format!("{} of {all} outputs are judged: the others have no expected values", pairs.len()));
        }
        for (name, other) in pairs {
            let mut tally = Tally::default();
            let (mut elements, mut moved, mut is_classifier, mut is_map) = (0, None, true, false);
            for &inference in &own {
                let file = |all: &'_ SavedOutputs, name: &String| all.get(&(inference, name.clone())).cloned();
                let y = file(found, &name).ok_or_else(|| format!("inference {inference} left no output `{name}`"))?;
                let x = file(expected, &other)
                    .ok_or_else(|| format!("output `{name}` of inference {inference} has no expected values"))?;
                let (x, y) = (Values::read(&x)?, Values::read(&y)?);
                elements = y.values.len();
                if let Some(axis) = map_axis(&x, &y) {
                    // A map of classes, not of values.
                    let ids: Vec<i64> = x.values.iter().map(|&value| whole(value)).collect();
                    tally.take_masks(inference, &ids, &winners(&y, axis), None);
                    (is_map, is_classifier) = (true, false);
                    continue;
                }
                let x = arranged(x, &y, &name, &mut moved)?;
                is_classifier &= y.is_classifier();
                tally.take_values(inference, &x.values, &y.values);
                let classes = y.classes().max(1);
                let right = x.values.chunks_exact(classes).map(|row| best(row.iter().copied()));
                tally.take_classes(inference, &y.values, right, classes);
                if self.metrics.contains(&TruthMetric::Iou) {
                    masks(&mut tally, inference, &x, &y);
                }
            }
            let mut usual = vec![TruthMetric::SqnrDb, TruthMetric::Mse, TruthMetric::PsnrDb, TruthMetric::Cosine];
            if is_map {
                usual = vec![TruthMetric::Iou];
            } else if is_classifier {
                usual.insert(0, TruthMetric::Top1);
            }
            self.put(judged, &name, elements, moved, &tally, usual);
        }
        judged.inferences = count(own.len());
        Ok(())
    }

    fn put(
        &self,
        judged: &mut OutputsJudged,
        name: &str,
        elements: usize,
        permutation: Option<String>,
        tally: &Tally,
        usual: Vec<TruthMetric>,
    ) {
        let mut metrics = if self.metrics.is_empty() { usual } else { self.metrics.clone() };
        metrics.sort_unstable();
        metrics.dedup();
        judged.outputs.push(JudgedOutput {
            name: clean_text(name),
            elements: elements as u64,
            identical: tally.is_identical(),
            not_finite: tally.not_finite,
            permutation,
            figures: metrics.into_iter().map(|metric| tally.figure(metric)).collect(),
        });
    }
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

fn inferences(outputs: &SavedOutputs) -> BTreeSet<u32> {
    outputs.keys().map(|(inference, _)| *inference).collect()
}

fn names(outputs: &SavedOutputs) -> Vec<String> {
    let names: BTreeSet<&String> = outputs.keys().map(|(_, name)| name).collect();
    names.into_iter().cloned().collect()
}

/// The expected output for each output of the run: by name, by the name that converters derive from it, or
/// because there is one of each.
fn pairs(found: &[String], expected: &[String]) -> Result<Vec<(String, String)>, String> {
    if let ([own], [other]) = (found, expected) {
        return Ok(vec![(own.clone(), other.clone())]);
    }
    let by_base: BTreeMap<&str, &String> = expected.iter().map(|name| (base_name(name), name)).collect();
    let other = |name: &String| {
        if expected.contains(name) {
            Some(name.clone())
        } else {
            by_base.get(base_name(name)).map(|&name| name.clone())
        }
    };
    let pairs: Vec<(String, String)> = found.iter().filter_map(|name| Some((name.clone(), other(name)?))).collect();
    if pairs.is_empty() {
        return Err(format!("the run has the outputs {}; expected were {}", found.join(", "), expected.join(", ")));
    }
    Ok(pairs)
}

/// The expected values in the layout of the run's.
fn arranged(x: Values, y: &Values, name: &str, moved: &mut Option<String>) -> Result<Values, String> {
    let text = |shape: &Option<Vec<u32>>, count: usize| match shape {
        Some(shape) => shape.iter().map(u32::to_string).collect::<Vec<_>>().join("x"),
        None => count.to_string(),
    };
    let other = || {
        let (own, theirs) = (text(&y.shape, y.values.len()), text(&x.shape, x.values.len()));
        format!("output `{name}` has {own} values; {theirs} were expected")
    };
    if x.values.len() != y.values.len() {
        return Err(other());
    }
    let (Some(from), Some(to)) = (&x.shape, &y.shape) else { return Ok(x) };
    let layout = Layout::between(from, to).ok_or_else(other)?;
    *moved = layout.text();
    let values = layout.arranged(x.values.clone(), from);
    Ok(Values { shape: y.shape.clone(), values })
}

/// The class axis in the run's output, if each of its elements is expected to have a class instead of a
/// value.
fn map_axis(x: &Values, y: &Values) -> Option<usize> {
    let (x, y) = (x.shape.as_ref()?, y.shape.as_ref()?);
    let large = |shape: &[u32]| shape.iter().copied().filter(|&size| size != 1).collect::<Vec<_>>();
    let fits = |axis: &usize| {
        let rest = [&y[..*axis], &y[axis + 1..]].concat();
        y[*axis] > 1 && large(&rest) == large(x)
    };
    // Only outputs with many elements per class qualify.
    let is_image = y.iter().filter(|&&size| size > 1).count() >= 3;
    [y.len().checked_sub(1)?, 1].into_iter().filter(|axis| *axis < y.len() && is_image).find(fits)
}

/// The best class of each element.
fn winners(y: &Values, axis: usize) -> Vec<i64> {
    let Some(shape) = &y.shape else { return Vec::new() };
    let size = |range: &[u32]| range.iter().map(|&size| size as usize).product::<usize>();
    let (classes, inner) = (shape[axis] as usize, size(&shape[axis + 1..]));
    let outer = size(&shape[..axis]);
    let at = |element: usize, class: usize| (element / inner * classes + class) * inner + element % inner;
    let class = |element: usize| best((0..classes).map(|class| y.values[at(element, class)]));
    (0..outer * inner).map(|element| i64::try_from(class(element)).unwrap_or(i64::MAX)).collect()
}

/// Rounds to an integer.
fn whole(value: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "saturates, and so does what it is compared with")]
    let class = value.round() as i64;
    class
}

/// Adds masks of equal size: of classes along the smaller of the two possible channel axes, of class numbers,
/// or of a single object.
fn masks(tally: &mut Tally, inference: u32, x: &Values, y: &Values) {
    let axis = y.shape.as_ref().filter(|shape| shape.len() >= 4).and_then(|shape| {
        let last = shape.len() - 1;
        let axis = if shape[1] < shape[last] { 1 } else { last };
        (shape[axis] > 1).then_some(axis)
    });
    if let Some(axis) = axis {
        return tally.take_masks(inference, &winners(x, axis), &winners(y, axis), None);
    }
    let is_numbered = x.values.iter().all(|value| value.fract() == 0.0) && x.values.iter().any(|value| *value > 1.0);
    let ids = |values: &[f64]| -> Vec<i64> {
        values.iter().map(|&value| if is_numbered { whole(value) } else { i64::from(value > IN_MASK) }).collect()
    };
    tally.take_masks(inference, &ids(&x.values), &ids(&y.values), (!is_numbered).then_some(0));
}

#[cfg(test)]
mod tests;

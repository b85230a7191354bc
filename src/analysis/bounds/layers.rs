//! What bounds individual layers.

use super::super::roofline::{Roofline, op_us};
use super::super::{Evidence, EvidencePlace, Finding, FindingKind, Severity};
use super::Bound;
use crate::store::Run;
use crate::text::{bytes_text, count_text};

/// Op types that only change the data type or layout, without computing anything.
const CONVERSIONS: [&str; 8] =
    ["Quantize", "Dequantize", "Convert", "Cast", "Transpose", "Reshape", "ExpandDims", "Squeeze"];

/// Share of the best rate seen from which an op is bound by compute or memory bandwidth.
const BOUND_FROM: f64 = 0.25;
/// If both reach this share, MACs per byte decide the bound.
const AT_THE_ROOF: f64 = 0.9;
/// Ops shorter than this and far below the best rate are mostly overhead, microseconds.
const SHORT_US: f64 = 20.0;
/// MACs per byte below which an op at the roof is bound by memory bandwidth.
const FEW_MACS_PER_BYTE: f64 = 4.0;
/// Share of the op time from which a layer is hot.
const HOT: f64 = 0.25;
/// Minimum ratio to the share of the next layer.
const HOT_FACTOR: f64 = 2.0;
/// With fewer rows, one op naturally takes much of the time.
const FEW_ROWS: usize = 4;

/// True for op types that only convert.
pub(super) fn is_conversion(op_type: &str) -> bool {
    CONVERSIONS.contains(&op_type)
}

/// What bounds each row of the op table.
pub(super) fn classified(run: &Run, roofline: &Roofline) -> Vec<Option<Bound>> {
    let one = |row: usize| {
        let op = run.op(row)?;
        if run.ops.share(row) <= 0.0 {
            return None;
        }
        if is_conversion(&op.op_type) {
            return Some(Bound::Conversions);
        }
        let figure = roofline.rows.get(row).copied().flatten()?;
        let of_best = figure.of_best?;
        let compute = figure.gmac_per_s.zip(roofline.best_gmac_per_s).map_or(0.0, |(own, best)| own / best);
        let data = figure.gb_per_s.zip(roofline.best_gb_per_s).map_or(0.0, |(own, best)| own / best);
        if of_best < BOUND_FROM {
            let short = op_us(run, row).is_some_and(|us| us < SHORT_US);
            return Some(if short { Bound::OpOverhead } else { Bound::SlowOps });
        }
        let per_byte = op.macs.unwrap_or(0) as f64 / op.bytes_moved.unwrap_or(0).max(1) as f64;
        let by_data = if compute.min(data) >= AT_THE_ROOF { per_byte < FEW_MACS_PER_BYTE } else { data > compute };
        Some(if by_data { Bound::MemoryBandwidth } else { Bound::Compute })
    };
    (0..run.ops.rows().len()).map(one).collect()
}

/// The layer that takes far more time than any other, if there is one.
pub(super) fn hottest(run: &Run, roofline: &Roofline, layers: &[Option<Bound>]) -> Option<Finding> {
    let each = || (0..run.ops.rows().len()).map(|row| run.ops.share(row));
    let (row, share) = each().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let next = each().enumerate().filter(|(other, _)| *other != row).map(|(_, share)| share).fold(0.0, f64::max);
    if share < HOT || share < HOT_FACTOR * next || each().filter(|share| *share > 0.0).count() < FEW_ROWS {
        return None;
    }
    let name = &run.ops.rows().get(row)?.name;
    let of_what = if run.plan.simulated { "the simulated cycles" } else { "the op time" };
    let mut evidence = vec![Evidence::at(
        format!("{:.0} % of {of_what}, the next layer {:.0} %", share * 100.0, next * 100.0),
        EvidencePlace::Op(row),
    )];
    if let Some(op) = run.op(row) {
        let macs = op.macs.map_or_else(|| "unknown".to_owned(), |macs| count_text(macs as f64));
        let moved = op.bytes_moved.map_or_else(|| "unknown".to_owned(), |moved| bytes_text(moved as f64));
        let input = op.inputs.first().map_or_else(String::new, |input| format!(", input {}", input.shape_text()));
        evidence
            .push(Evidence::at(format!("{}{input}: {macs} MACs, {moved} moved", op.op_type), EvidencePlace::Op(row)));
    }
    if let Some(figure) = roofline.rows.get(row).copied().flatten() {
        let rate = |value: Option<f64>, unit: &str| value.map(|value| format!("{value:.2} {unit}"));
        let rates: Vec<String> =
            rate(figure.gmac_per_s, "GMAC/s").into_iter().chain(rate(figure.gb_per_s, "GB/s")).collect();
        if let Some(of_best) = figure.of_best.filter(|_| !rates.is_empty()) {
            let text = format!("{}; {:.0} % of the best op in this run", rates.join(", "), of_best * 100.0);
            evidence.push(Evidence::at(text, EvidencePlace::Op(row)));
        }
    }
    let by = layers
        .get(row)
        .copied()
        .flatten()
        .map_or_else(String::new, |bound| format!("; it is bound by {}", bound.text()));
    let title = format!("one layer takes {:.0} % of {of_what}: {name}{by}", share * 100.0);
    let mut finding = Finding::new("bound.hot-layer", FindingKind::Bound, Severity::Info, title, evidence);
    finding.ops = vec![name.clone()];
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::super::super::roofline::roofline;
    use super::*;
    use crate::analysis::testing::{Made, only, op};
    use crate::backends::Backend;
    use crate::event::OpUnit;

    fn made(values: &[u64]) -> Made {
        let conv = || op("Conv2d", &[1, 32, 32, 16], &[3, 3, 16, 32], &[1, 32, 32, 32]);
        Made::local(Backend::Cpu)
            .graph(vec![
                conv(),
                op("FullyConnected", &[1, 1000], &[1000, 1000], &[1, 1000]),
                op("Transpose", &[1, 8000], &[], &[1, 8000]),
                op("Relu", &[1, 100], &[], &[1, 100]),
                conv(),
            ])
            .op_times(OpUnit::Us, values)
    }

    #[test]
    fn layers_are_bound_by_what_comes_nearest_to_its_best() {
        let store = made(&[100, 400, 50, 15, 900]).store();
        let run = only(&store);
        let found = classified(run, &roofline(&store, run));
        let expected =
            [Bound::Compute, Bound::MemoryBandwidth, Bound::Conversions, Bound::OpOverhead, Bound::SlowOps].map(Some);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_hot_layer_is_named_and_even_ones_are_not() {
        let hot = |values: &[u64]| {
            let store = made(values).store();
            let run = only(&store);
            let roofline = roofline(&store, run);
            hottest(run, &roofline, &classified(run, &roofline))
        };
        let finding = hot(&[100, 4000, 50, 60, 120]).unwrap();
        assert_eq!(finding.ops, ["op1"]);
        assert_eq!(finding.evidence[0].at, Some(EvidencePlace::Op(1)));
        assert!(finding.evidence[1].text.contains("1.00 M MACs"), "{finding:?}");
        assert_eq!(hot(&[100, 120, 50, 60, 120]), None);
        assert_eq!(hot(&[100, 4000, 0, 0, 120]), None, "three ops");
    }
}

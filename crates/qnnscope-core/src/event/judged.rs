//! How far the outputs of a run are from known correct ones.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A metric for judging outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruthMetric {
    /// Share of inferences whose best class is correct.
    Top1,
    /// Share of inferences with the correct class among the five best.
    Top5,
    /// Signal to noise, dB.
    SqnrDb,
    /// Mean square error.
    Mse,
    /// Peak signal to noise, dB: the peak is the span of the expected values.
    PsnrDb,
    /// Cosine similarity, the mean over inferences.
    Cosine,
    /// Intersection over union of masks, the mean over classes.
    Iou,
}

impl TruthMetric {
    /// All metrics in display order.
    pub const ALL: [Self; 7] = [Self::Top1, Self::Top5, Self::SqnrDb, Self::Mse, Self::PsnrDb, Self::Cosine, Self::Iou];

    /// The name used in documents and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Top1 => "top1",
            Self::Top5 => "top5",
            Self::SqnrDb => "sqnr_db",
            Self::Mse => "mse",
            Self::PsnrDb => "psnr_db",
            Self::Cosine => "cosine",
            Self::Iou => "iou",
        }
    }

    /// The name for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Top1 => "top-1",
            Self::Top5 => "top-5",
            Self::SqnrDb => "SQNR",
            Self::Mse => "MSE",
            Self::PsnrDb => "PSNR",
            Self::Cosine => "cosine similarity",
            Self::Iou => "IoU",
        }
    }

    /// True for shares, which are shown in per cent.
    pub fn is_share(self) -> bool {
        matches!(self, Self::Top1 | Self::Top5 | Self::Iou)
    }

    /// True if smaller is better.
    pub fn is_error(self) -> bool {
        self == Self::Mse
    }
}

impl fmt::Display for TruthMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A figure of one output.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TruthFigure {
    /// Which one.
    pub metric: TruthMetric,
    /// Over all inferences; `None` if undefined, such as the SQNR of outputs that match exactly.
    pub value: Option<f64>,
    /// The inference with the worst value, from 0.
    pub worst_inference: Option<u32>,
    /// That value.
    pub worst: Option<f64>,
}

/// One output of a run against the expected one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgedOutput {
    /// Name of the output.
    pub name: String,
    /// Values of one inference.
    pub elements: u64,
    /// True if every value is as expected; never for labels.
    pub identical: bool,
    /// Pairs of values left out because one is NaN or infinite.
    pub not_finite: u64,
    /// How the expected values were rearranged, as axes such as `0,2,3,1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permutation: Option<String>,
    /// Its figures.
    pub figures: Vec<TruthFigure>,
}

/// How far the outputs of a run are from what is known to be right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputsJudged {
    /// File of labels, or folder of expected outputs.
    pub truth: String,
    /// Judged inferences: one per input set.
    pub inferences: u32,
    /// Each output.
    pub outputs: Vec<JudgedOutput>,
    /// Why nothing was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What limits the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl OutputsJudged {
    /// The worst value of a metric among the outputs.
    pub fn worst(&self, metric: TruthMetric) -> Option<f64> {
        let figures = self.outputs.iter().flat_map(|output| &output.figures);
        let values = figures.filter(|figure| figure.metric == metric).filter_map(|figure| figure.value);
        values.reduce(if metric.is_error() { f64::max } else { f64::min })
    }

    /// True if all outputs are as expected.
    pub fn is_identical(&self) -> bool {
        !self.outputs.is_empty() && self.outputs.iter().all(|output| output.identical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_the_names_that_options_have() {
        for metric in TruthMetric::ALL {
            assert_eq!(serde_json::to_value(metric).unwrap(), metric.name());
        }
    }

    #[test]
    fn the_worst_output_counts() {
        let output = |metric, value| JudgedOutput {
            name: "y".to_owned(),
            elements: 1,
            identical: false,
            not_finite: 0,
            permutation: None,
            figures: vec![TruthFigure { metric, value: Some(value), worst_inference: None, worst: None }],
        };
        let judged = |metric| OutputsJudged {
            truth: "t".to_owned(),
            inferences: 1,
            outputs: vec![output(metric, 1.0), output(metric, 2.0)],
            error: None,
            notes: Vec::new(),
        };
        assert_eq!(judged(TruthMetric::Mse).worst(TruthMetric::Mse), Some(2.0));
        assert_eq!(judged(TruthMetric::Top1).worst(TruthMetric::Top1), Some(1.0));
        assert_eq!(judged(TruthMetric::Top1).worst(TruthMetric::Iou), None);
        assert!(!judged(TruthMetric::Top1).is_identical());
    }
}

//! Measures of one op that rules set limits on.

use super::graph::Node;
use crate::models::{DataType, Tensor, TensorKind};
use serde::Deserialize;

/// HTP's matrix unit works on blocks of this many channels ...
const CHANNEL_BLOCK: u64 = 32;
/// ... and of this many rows and columns.
const TILE: u64 = 8;
/// Depth that HTP assumes in its own estimate of an op's VTCM use.
const ESTIMATE_DEPTH: u64 = 256;

/// A measure of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Share of the op times, 0 to 1.
    Share,
    /// Rank among the ops by time, from 1.
    Place,
    /// Channels that a matrix op sums over, per group.
    ChannelsIn,
    /// Output channels.
    ChannelsOut,
    /// Share of a matrix op's work that is padding of its channels to blocks of 32, 0 to 1.
    ChannelPadding,
    /// Share of the work that is padding of height and width to tiles of 8, 0 to 1.
    MapPadding,
    /// Height times width of the largest feature map it reads or writes.
    MapSize,
    /// Elements in a convolution's window.
    Window,
    /// Highest rank of a tensor it reads or writes.
    Rank,
    /// Length of the axis that it works along.
    AxisLength,
    /// Ops that read its outputs.
    Readers,
    /// Convolutions with the same window that read the same tensor, this one included.
    Siblings,
    /// Share of weights in the bytes it moves, 0 to 1.
    WeightShare,
    /// VTCM use by HTP's own estimate, MiB.
    VtcmNeedMb,
}

impl Measure {
    /// The value; `None` if the op has no such measure.
    pub fn of(self, node: &Node<'_>) -> Option<f64> {
        match self {
            Self::Share => node.share,
            Self::Place => node.place.map(|place| place as f64),
            Self::ChannelsIn => channels(node).map(|(input, _)| input as f64),
            Self::ChannelsOut => channels(node).map(|(_, output)| output as f64),
            Self::ChannelPadding => {
                let (input, output) = channels(node)?;
                Some(1.0 - filled(input, CHANNEL_BLOCK) * filled(output, CHANNEL_BLOCK))
            }
            Self::MapPadding => {
                let (height, width) = map(node.output()?)?;
                Some(1.0 - filled(height, TILE) * filled(width, TILE))
            }
            Self::MapSize => {
                tensors(node).filter_map(map).map(|(height, width)| (height * width) as f64).reduce(f64::max)
            }
            Self::Window => node.window().map(|elements| elements as f64),
            Self::Rank => tensors(node).map(|tensor| tensor.shape.len() as f64).reduce(f64::max),
            Self::AxisLength => {
                let shape = &node.input()?.shape;
                Some(f64::from(*shape.get(axis(node)?)?))
            }
            Self::Readers => Some(node.readers.len() as f64),
            Self::Siblings => Some(node.siblings as f64),
            Self::WeightShare => {
                let moved = node.op.bytes_moved.filter(|bytes| *bytes > 0)?;
                Some((node.op.parameter_bytes as f64 / moved as f64).min(1.0))
            }
            Self::VtcmNeedMb => vtcm_need(node).map(|bytes| bytes / f64::from(1 << 20)),
        }
    }

    /// What the evidence says about it, unless the op's own description already shows it.
    pub fn note(self, value: f64) -> Option<String> {
        let percent = |part: f64| format!("{:.0} %", part * 100.0);
        Some(match self {
            Self::ChannelPadding => format!("{} of its matrix work is padding of channels to 32", percent(value)),
            Self::MapPadding => format!("{} of its work is padding of the map to 8x8 tiles", percent(value)),
            Self::Readers => format!("{value:.0} ops read it"),
            Self::Siblings => format!("one of {value:.0} such ops on the same tensor"),
            Self::WeightShare => format!("{} of the bytes it moves are weights", percent(value)),
            Self::VtcmNeedMb => format!("needs about {value:.1} MiB of VTCM at once"),
            Self::AxisLength => format!("axis of length {value:.0}"),
            Self::Window => format!("window of {value:.0} elements"),
            Self::Share | Self::Place | Self::ChannelsIn | Self::ChannelsOut | Self::MapSize | Self::Rank => {
                return None;
            }
        })
    }

    /// True for measures between 0 and 1 that a gain can be weighted by.
    #[cfg(test)]
    pub fn is_share(self) -> bool {
        matches!(self, Self::Share | Self::ChannelPadding | Self::MapPadding | Self::WeightShare)
    }
}

fn up(value: u64, unit: u64) -> u64 {
    value.div_ceil(unit).saturating_mul(unit).max(1)
}

/// Share of its blocks that `value` fills.
fn filled(value: u64, unit: u64) -> f64 {
    value as f64 / up(value, unit) as f64
}

/// Activations and outputs.
fn tensors<'a>(node: &Node<'a>) -> impl Iterator<Item = &'a Tensor> {
    node.activations().chain(node.op.outputs.iter().filter(|tensor| tensor.kind != TensorKind::Null))
}

/// Height and width of a 4-D tensor in QNN's NHWC layout.
fn map(tensor: &Tensor) -> Option<(u64, u64)> {
    match tensor.shape.as_slice() {
        [_, height, width, _] => Some((u64::from(*height), u64::from(*width))),
        _ => None,
    }
    .filter(|(height, width)| height * width > 0)
}

fn channels(node: &Node<'_>) -> Option<(u64, u64)> {
    let weights = node.op.inputs.get(1)?.shape.as_slice();
    let output = u64::from(*node.output()?.shape.last()?);
    let input = match (node.kind?.name(), weights) {
        ("Conv" | "TransposeConv", [_, .., input, _]) | ("FullyConnected", [.., input]) => u64::from(*input),
        ("MatMul", _) => {
            let shape = &node.op.inputs.first()?.shape;
            let transposed = node.op.params.get("transpose_in0").is_some_and(is_true);
            let at = shape.len().checked_sub(if transposed { 2 } else { 1 })?;
            u64::from(*shape.get(at)?)
        }
        _ => return None,
    };
    (input > 0 && output > 0).then_some((input, output))
}

fn is_true(value: &serde_json::Value) -> bool {
    value.as_bool() == Some(true) || value.as_u64() == Some(1)
}

/// The axis that the op works along.
pub fn axis(node: &Node<'_>) -> Option<usize> {
    let axis = node.op.params.get("axis")?.as_i64()?;
    let rank = node.input()?.shape.len();
    let axis = if axis < 0 { axis + i64::try_from(rank).ok()? } else { axis };
    usize::try_from(axis).ok().filter(|axis| *axis < rank)
}

/// Values of a parameter: a scalar, or the elements of a tensor.
pub fn numbers(node: &Node<'_>, param: &str) -> Option<Vec<u64>> {
    fn flat(value: &serde_json::Value, out: &mut Vec<u64>) -> Option<()> {
        match value {
            serde_json::Value::Array(values) => values.iter().try_for_each(|value| flat(value, out)),
            value => {
                out.push(value.as_u64()?);
                Some(())
            }
        }
    }
    let value = node.op.params.get(param)?;
    let mut out = Vec::new();
    flat(value.get("values").unwrap_or(value), &mut out)?;
    Some(out)
}

/// HTP's estimate for element-wise ops: width (rounded to 8 for 8-bit types, to 4 for wider ones) times 256
/// times the size of an element, for each tensor.
fn vtcm_need(node: &Node<'_>) -> Option<f64> {
    let output = node.output()?;
    let [_, _, width, _] = output.shape.as_slice() else { return None };
    let element = output.dtype.bytes().or((output.dtype == DataType::FLOAT_32).then_some(2))? as u64;
    let width = up(u64::from(*width), if element == 1 { 8 } else { 4 });
    let tensors = node.activations().count() as u64 + 1;
    Some(width as f64 * (ESTIMATE_DEPTH * element * tensors.min(3)) as f64)
}

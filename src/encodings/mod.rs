//! Quantisation encodings: of files (QNN overrides, AIMET 0.6.1, 1.0.0 and 2.0.0) and inside models, in one form; what is wrong
//! with them, how two sets differ, and each format written from any other.
//!
//! Everywhere here real = (stored + offset) x scale with stored numbers from 0 on, so offsets are 0 or negative, as in QNN's
//! unsigned types. Signed types and ONNX's zero points are turned into that on reading and back on writing.

mod diff;
mod finding;
mod lint;
mod model;
mod names;
mod onnx;
mod read;
mod write;

pub use diff::diff;
pub use finding::{EncodingsDocument, Finding, Severity, findings_text};
pub use lint::{Hardware, lint};
pub use model::from_graphs;
pub use names::Names;
pub use onnx::read_onnx;
pub use read::{EncodingError, parse, read};
pub use write::{WriteFormat, write};

/// What holds encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// QNN's overrides, without a version.
    Overrides,
    /// AIMET 0.6.1: the same with more keys.
    Aimet061,
    /// AIMET 1.0.0.
    Aimet100,
    /// AIMET 2.0.0.
    Aimet200,
    /// A model.
    Model,
}

impl Format {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overrides => "QNN overrides",
            Self::Aimet061 => "AIMET 0.6.1",
            Self::Aimet100 => "AIMET 1.0.0",
            Self::Aimet200 => "AIMET 2.0.0",
            Self::Model => "a model",
        }
    }
}

/// What a tensor is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Computed by an op, or an input.
    Activation,
    /// A constant.
    Parameter,
}

/// One slice of an encoding: the whole tensor, or one channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    /// Scale; `None` if the file has only the ends.
    pub scale: Option<f64>,
    /// Offset from the file, converted to QNN's convention.
    pub offset: Option<f64>,
    /// Smallest number, where the file says it.
    pub min: Option<f64>,
    /// Largest number, where the file says it.
    pub max: Option<f64>,
}

/// The encoding of one tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoding {
    /// Name of the tensor.
    pub name: String,
    /// Its use, if the format specifies it.
    pub used: Use,
    /// Bits.
    pub bits: u32,
    /// True for float encodings, which have neither scale nor offset.
    pub is_float: bool,
    /// What the file says of symmetry.
    pub symmetric: Option<bool>,
    /// One slice, or one for each channel.
    pub slices: Vec<Slice>,
    /// True where the file says that each channel has a slice, even if there is only one.
    pub per_channel: bool,
    /// Axis of the channels, where the format says it.
    pub axis: Option<i64>,
}

impl Encoding {
    /// Steps of the stored numbers: 255 for 8 bits.
    pub fn levels(&self) -> f64 {
        (1u64 << self.bits.min(32)) as f64 - 1.0
    }

    /// Offset of a symmetric encoding: -128 for 8 bits.
    pub fn middle(&self) -> f64 {
        -((1u64 << (self.bits.clamp(1, 32) - 1)) as f64)
    }

    /// Scale and offset of a slice, from its ends where it does not give them.
    pub fn resolved(&self, slice: &Slice) -> Option<(f64, f64)> {
        match (slice.scale, slice.offset, slice.min, slice.max) {
            (Some(scale), Some(offset), _, _) if scale != 0.0 => Some((scale, offset)),
            (Some(scale), None, Some(min), _) if scale > 0.0 => Some((scale, (min / scale).round())),
            (_, _, Some(min), Some(max)) if max > min => {
                let scale = (max - min) / self.levels();
                Some((scale, (min / scale).round()))
            }
            _ => None,
        }
    }

    /// Ends of a slice.
    pub fn ends(&self, slice: &Slice) -> Option<(f64, f64)> {
        let (scale, offset) = self.resolved(slice)?;
        Some((offset * scale, (offset + self.levels()) * scale))
    }
}

/// A set of encodings.
#[derive(Debug, Clone, PartialEq)]
pub struct Encodings {
    /// Where from.
    pub format: Format,
    /// Encodings in the order of the file.
    pub tensors: Vec<Encoding>,
    /// What was wrong with the file itself.
    pub findings: Vec<Finding>,
}

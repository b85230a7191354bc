//! Model conversions: each step runs in its own process, and its files are moved into place once complete.

mod course;
mod document;
mod error;
mod names;
mod sdk;
mod steps;
mod tflite;
mod verify;

pub use course::{Course, Step, StepProgress};
pub use document::{ConvertDocument, convert_text};
pub use error::ConvertError;
pub use names::number_ops;
pub use sdk::{SdkTarget, SdkTools};
pub use steps::{Conversion, ConvertTarget, Made, carry_out};
pub use tflite::{TfliteTools, convert_tflite, keep_names};
pub use verify::{Check, Reference, TfliteReference, inputs_of, verify, verify_files};

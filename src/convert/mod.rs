//! Conversions of models: each step in its own process, its files put in place when they are whole.

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

//! Conversions of models: each step in a process of its own, its files put in place when they are whole.

mod document;
mod error;
mod names;
mod steps;
mod tflite;
mod verify;

pub use document::{ConvertDocument, convert_text};
pub use error::ConvertError;
pub use steps::{Conversion, Made, Target, carry_out};
pub use tflite::{TfliteTools, convert_tflite};
pub use verify::{Verified, verify};

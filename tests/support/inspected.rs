//! `qnnscope inspect` on models before conversion.

use super::Qnnscope;
use super::schema::{self, fits};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The document, which matches its schema.
#[track_caller]
pub fn inspected(path: &Path, flags: &str) -> Value {
    let done = Qnnscope::without_runtime().arg("inspect").arg(path).arg("--json").flags(flags).finish().expect(0);
    let document = done.json();
    fits(&schema::read("inspect-source.schema.json"), &document);
    document
}

/// The message when the model is refused, with exit status 2.
#[track_caller]
pub fn refused(path: &Path, flags: &str) -> String {
    Qnnscope::without_runtime().arg("inspect").arg(path).flags(flags).finish().expect(2).stderr
}

/// Creates a file with this content.
pub fn written(dir: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

//! Files that are read and written: models, sessions, other tools' files, reports, datasets, schemas.

#![allow(clippy::pedantic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod convert;
mod dataset;
mod history;
mod imports;
mod inspect_contexts;
mod inspect_source;
mod outputs;
mod report;
mod schema;
mod session_files;
mod streams;

//! Rules for the source itself: the shape of the tree, licences, scripts, the release. Needs neither runtime
//! nor adb.

#![allow(clippy::pedantic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod circles;
mod dependencies;
mod release;
mod shape;
mod shell;

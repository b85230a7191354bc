//! Confirming checks: after a failure, these test the predictions of the likely causes, on the device and on
//! this machine.
//!
//! Facts are first gathered once, with our own fixed read-only scripts ([`gather`]); each check is then a pure function
//! of them ([`table`]). Nothing from a log is ever executed, and nothing on a device is changed.

mod context;
mod gather;
mod libraries;
mod other;
mod run;
mod scene;
mod settle;
mod table;
#[cfg(test)]
mod tests;
mod transport;
mod verdict;

pub use gather::gather;
pub use run::confirm;
pub use scene::{About, FileFacts, Scene};
pub use table::{Confirming, confirming};
pub use verdict::CheckVerdict;

//! Wheels with unknown checksums, and who decides about them.

use std::fmt;

use super::pins::{is_pinned_version, pinned_versions};
use super::wheel::WheelName;
use super::{Package, RuntimeError};

/// Who decides about a wheel with an unknown checksum.
pub enum Consent<'a> {
    /// Nobody: only known wheels are installed.
    PinnedOnly,
    /// The user can consent with `--yes`, and has not.
    Missing,
    /// The user has consented.
    Given,
    /// This function asks the user.
    Ask(&'a mut dyn FnMut(&Unpinned) -> bool),
}

impl fmt::Debug for Consent<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::PinnedOnly => "PinnedOnly",
            Self::Missing => "Missing",
            Self::Given => "Given",
            Self::Ask(_) => "Ask",
        })
    }
}

impl Consent<'_> {
    /// Whether the answer is no, whatever the wheel.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self, Self::PinnedOnly | Self::Missing)
    }

    /// Whether this wheel may be installed.
    pub(super) fn is_given(&mut self, unpinned: &Unpinned) -> bool {
        match self {
            Self::PinnedOnly | Self::Missing => false,
            Self::Given => true,
            Self::Ask(ask) => ask(unpinned),
        }
    }

    fn advice(&self) -> &'static str {
        match self {
            Self::PinnedOnly => "if you trust its origin, install it yourself: qnnscope runtime install --yes",
            Self::Missing | Self::Given | Self::Ask(_) => "if you trust its origin, add --yes",
        }
    }
}

/// A wheel whose checksum qnnscope does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpinned {
    /// Its file name, or package and version if not fetched yet.
    pub wheel: String,
    /// Its SHA-256, lower-case hex, once available.
    pub sha256: Option<String>,
    /// What is odd about it, as the end of a sentence.
    pub reason: String,
}

impl Unpinned {
    /// A version not fetched yet.
    pub(super) fn version(package: Package, version: &str) -> Self {
        let wheel = format!("{} {version}", package.name());
        Self { wheel, sha256: None, reason: format!("qnnscope knows only the checksums of {}", known(package)) }
    }

    /// A wheel that is on this machine.
    pub(super) fn wheel(package: Package, name: &WheelName, sha256: &str, from_file: bool) -> Self {
        let reason = if is_pinned_version(package, &name.version) {
            let source =
                if from_file { "" } else { "; pip downloaded it from another index, or the index replaced it" };
            format!("its SHA-256 is {sha256}, not one published for version {}{source}", name.version)
        } else {
            format!("its SHA-256 is {sha256}; qnnscope knows only the checksums of {}", known(package))
        };
        Self { wheel: name.file.clone(), sha256: Some(sha256.to_owned()), reason }
    }

    pub(super) fn refused(self, consent: &Consent<'_>) -> RuntimeError {
        RuntimeError::NotPinned { wheel: self.wheel, reason: self.reason, consent: consent.advice() }
    }
}

fn known(package: Package) -> String {
    let versions = pinned_versions(package);
    let word = if versions.len() == 1 { "version" } else { "versions" };
    format!("{word} {}", versions.join(" and "))
}

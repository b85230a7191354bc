//! QNN context binaries inside or beside other models.

use super::{SourceError, SourceFile, Span};
use crate::facts::build_id_in;
use crate::files::starts_context_binary;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Part of a binary that is searched for the build that made it; it stands in the first few kilobytes.
const BUILD_ID_BYTES: u64 = 64 << 10;
/// Most binaries of one model; real ones have a handful.
const MOST_CONTEXTS: usize = 4096;

/// Which field of the model holds the binary, or names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextSite {
    /// An EPContext node of ONNX Runtime.
    EpContextNode,
    /// A delegate of an ExecuTorch program.
    Delegate,
    /// A dispatch op of LiteRT.
    DispatchOp,
}

impl ContextSite {
    /// Words for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::EpContextNode => "EPContext node",
            Self::Delegate => "delegate",
            Self::DispatchOp => "dispatch op",
        }
    }
}

/// A QNN context binary that a model carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedContext {
    /// Name of the node, delegate or op.
    pub name: String,
    /// What names it.
    pub site: ContextSite,
    /// Partitions or graphs that use it, as the model calls them.
    pub partitions: Vec<String>,
    /// SDK that made it, as the model says or else the binary itself.
    pub sdk_version: Option<String>,
    /// The file that it is in: the model, or one beside it.
    pub file: PathBuf,
    /// Where it stands in that file; empty if the model was compiled without one.
    pub span: Span,
    /// True if its first bytes are those of a context binary.
    pub recognised: bool,
    /// Why it is not there, if it is not.
    pub problem: Option<String>,
}

impl EmbeddedContext {
    /// Describes what stands at `span` of `file`.
    pub fn look(
        file: &SourceFile,
        span: Span,
        name: String,
        site: ContextSite,
        partitions: Vec<String>,
        told_sdk: Option<String>,
    ) -> Result<Self, SourceError> {
        if span.at.checked_add(span.len).is_none_or(|end| end > file.size()) {
            let reason =
                format!("should end at byte {}, but {} has {}", span.end(), file.path().display(), file.size());
            return Err(SourceError::Context { path: file.path().to_owned(), name, reason });
        }
        let head = Span { at: span.at, len: span.len.min(BUILD_ID_BYTES) };
        let head = file.bytes(head, BUILD_ID_BYTES)?.unwrap_or_default();
        let sdk_version = told_sdk.or_else(|| build_id_in(&head).map(|id| id.to_string()));
        let recognised = starts_context_binary(&head);
        Ok(Self { name, site, partitions, sdk_version, file: file.path().to_owned(), span, recognised, problem: None })
    }

    /// Adds this one to those that were found, unless the same part of the same file is among them.
    pub fn add_to(self, found: &mut Vec<Self>, model: &SourceFile) -> Result<(), SourceError> {
        let is_same = |known: &&mut Self| known.file == self.file && known.span == self.span && known.problem.is_none();
        if let Some(known) = found.iter_mut().find(is_same).filter(|_| self.problem.is_none()) {
            known.partitions.extend(self.partitions);
            return Ok(());
        }
        if found.len() == MOST_CONTEXTS {
            return Err(model.damaged(0, format!("it names more than {MOST_CONTEXTS} context binaries")));
        }
        found.push(self);
        Ok(())
    }

    /// One that the model speaks of, but that is not there.
    pub fn absent(
        file: &Path,
        name: String,
        site: ContextSite,
        partitions: Vec<String>,
        sdk_version: Option<String>,
        problem: String,
    ) -> Self {
        let (span, file) = (Span { at: 0, len: 0 }, file.to_owned());
        Self { name, site, partitions, sdk_version, file, span, recognised: false, problem: Some(problem) }
    }
}

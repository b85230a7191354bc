//! QNN context binaries inside or beside other models.

use super::{SourceError, SourceFile, Span};
use crate::facts::build_id_in;
use crate::files::starts_context_binary;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Bytes of a binary that are searched for the build id of the SDK that made it; it is in the first few
/// kilobytes.
const BUILD_ID_BYTES: u64 = 64 << 10;
/// Most binaries in one model; real ones have a handful.
const MOST_CONTEXTS: usize = 4096;

/// The kind of field that contains the binary or its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextSite {
    /// An ONNX Runtime EPContext node.
    EpContextNode,
    /// A delegate in an ExecuTorch program.
    Delegate,
    /// A LiteRT dispatch op.
    DispatchOp,
}

impl ContextSite {
    /// Name for users.
    pub fn label(self) -> &'static str {
        match self {
            Self::EpContextNode => "EPContext node",
            Self::Delegate => "delegate",
            Self::DispatchOp => "dispatch op",
        }
    }
}

/// A QNN context binary that belongs to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedContext {
    /// Name of the node, delegate or op.
    pub name: String,
    /// The kind of field that refers to it.
    pub site: ContextSite,
    /// Partitions or graphs that use it, as named by the model.
    pub partitions: Vec<String>,
    /// Version of the SDK that made it, from the model or else from the binary itself.
    pub sdk_version: Option<String>,
    /// The file that contains it: the model, or one beside it.
    pub file: PathBuf,
    /// Its range in that file; empty if it is absent.
    pub span: Span,
    /// True if its first bytes are those of a context binary.
    pub recognised: bool,
    /// Why it is absent, if it is.
    pub problem: Option<String>,
}

impl EmbeddedContext {
    /// Describes the binary at `span` of `file`.
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

    /// Adds this one to those found, unless they already contain the same range of the same file.
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

    /// A binary that the model refers to but that does not exist.
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

//! Who names a runtime.

use serde::Serialize;
use std::fmt;

/// Who named a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeSource {
    /// `--runtime` on the command line.
    Option,
    /// `$QNNSCOPE_RUNTIME`.
    Variable,
    /// `$QNN_SDK_ROOT`.
    QnnSdk,
    /// `$QAIRT_SDK_ROOT`.
    QairtSdk,
    /// `qnnscope runtime install`.
    Installed,
}

impl fmt::Display for RuntimeSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Option => "--runtime",
            Self::Variable => "QNNSCOPE_RUNTIME",
            Self::QnnSdk => "QNN_SDK_ROOT",
            Self::QairtSdk => "QAIRT_SDK_ROOT",
            Self::Installed => "installed",
        })
    }
}

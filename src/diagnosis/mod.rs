//! Why it failed: a catalogue of failure modes, and how to find them in logs. Nothing here reads files or
//! runs commands.

mod answers;
mod blame;
mod cases;
mod catalogue;
mod confirmed;
mod denied;
mod diagnoser;
mod document;
mod evidence;
mod explain;
mod facts;
mod failure;
mod fault;
mod finding;
mod foreign;
pub mod learned;
mod mistakes;
mod near;
mod numbers;
mod options;
mod pattern;
mod platform;
pub mod preflight;
mod programs;
mod progress;
mod prose;
mod repeats;
mod roles;
mod rules;
mod score;
pub mod similar;
mod statements;
mod stream;
mod test_runs;
mod text;
mod trace;
mod user;
mod wanted;

pub use cases::NearCase;
#[cfg(test)]
pub use catalogue::commands_of_steps;
pub use catalogue::{Case, Cause, Check, CheckPlace, CodeNote, cause, causes, code_note};
pub use diagnoser::Diagnoser;
pub use document::{CauseRow, DiagnosisDocument, ExplainDocument};
pub use evidence::{Evidence, Sign};
pub use explain::{Answer, Explanation, Meaning, explain};
use failure::exclude_by_graphs;
pub use failure::{diagnose_failure, diagnose_run, place};
pub use fault::Fault;
pub use finding::{Diagnosis, Finding};
pub use platform::Platform;
pub use progress::Unexplained;
pub use text::{causes_text, confidence_text, diagnosis_text, explain_text};
pub use trace::{Stated, Trace};
pub use user::{UserCausesError, load_user_causes, user_causes_path};

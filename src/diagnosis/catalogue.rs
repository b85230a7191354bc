//! The catalogue of failure modes, as data: `catalogue/*.toml`, embedded.

use serde::Deserialize;
use std::sync::{LazyLock, OnceLock};
use steps::Steps;

mod steps;

/// One way in which things go wrong.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Name that stays the same over versions, such as `skel-not-found`.
    pub id: String,
    /// Other names of the same cause.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line for people.
    pub title: String,
    /// Stage of a run, as [`crate::event::Stage::name`] gives it, or `framework`, `conversion`, `unknown`.
    pub stage: String,
    /// Codes that come with it, decimal or hexadecimal as people write them.
    #[serde(default)]
    pub codes: Vec<String>,
    /// True for an answer that only says where the cause must be looked for; a specific cause displaces it.
    #[serde(default)]
    pub generic: bool,
    /// True for what makes a run slow and not fail: a remark beside a failure, whichever comes first.
    #[serde(default)]
    pub remark: bool,
    /// Why it happens.
    pub why: String,
    /// What to do.
    pub fix: String,
    /// How to make sure, in the order in which to try.
    #[serde(default)]
    pub confirm: Vec<Check>,
    /// What in a log points to it.
    #[serde(default)]
    pub(super) signal: Vec<Signal>,
}

/// A check that confirms a cause. Nothing is run here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Name, such as `skel-files`; the same check has the same name with every cause.
    pub id: String,
    /// What must be so.
    pub what: String,
    /// `device` or `host`.
    pub on: CheckPlace,
    /// The command to type there. `$DIR` is the folder of the QNN libraries, `$PID` the program's process.
    pub command: String,
}

/// Where a check is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckPlace {
    /// In a shell of the device.
    Device,
    /// On the machine at which the user sits.
    Host,
}

/// What one line must look like; the parts that are given must all hold. Literals ignore the case of ASCII letters.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Pattern {
    /// All of these.
    #[serde(default)]
    pub all: Vec<String>,
    /// One of these.
    #[serde(default)]
    pub any: Vec<String>,
    /// One of these, too.
    #[serde(default)]
    pub any_of: Vec<String>,
    /// None of these.
    #[serde(default)]
    pub not: Vec<String>,
    /// This regular expression.
    pub re: Option<String>,
    /// One of these QNN codes, in any spelling, where the line calls it an error.
    #[serde(default)]
    pub code: Vec<u64>,
    /// A statement that the line makes, in whatever words.
    pub says: Option<Says>,
}

/// What is said of what, by classes of the lexicon. Lines that only inform state nothing.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Says {
    /// One of these is said.
    pub said: Vec<String>,
    /// Of one of these.
    #[serde(default)]
    pub of: Vec<String>,
    /// And of one of these, in the same clause.
    #[serde(default)]
    pub and: Vec<String>,
    /// Of none of these.
    #[serde(default)]
    pub not_of: Vec<String>,
    /// By one of these, where the line names who speaks.
    #[serde(default)]
    pub who: Vec<String>,
}

/// A pattern (or, without one, flags alone) that points to a cause.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Signal {
    #[serde(flatten)]
    pub pattern: Pattern,
    /// Flags that the log must have.
    #[serde(default)]
    pub with: Vec<String>,
    /// Flags that it must not have.
    #[serde(default)]
    pub without: Vec<String>,
    /// Set for what any program prints: how near to QNN the line must be.
    pub near: Option<Near>,
    /// How far the signal alone carries, 0 to 1.
    pub weight: f64,
}

/// How near to QNN a line must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Near {
    /// In Android's log: of the same process or tag; elsewhere: among its lines.
    Process,
    /// Among its lines.
    Lines,
}

/// Which signals a flag excludes as `without`, by their place in the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Voids {
    /// All.
    #[default]
    All,
    /// Those after its first line.
    Later,
    /// Those before its last line.
    Earlier,
}

/// Something that a line says about the whole log.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Flag {
    pub name: String,
    #[serde(default)]
    pub voids: Voids,
    #[serde(flatten)]
    pub pattern: Pattern,
}

/// What a code says in the field, and its causes in the order of likelihood.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeNote {
    /// The codes, decimal.
    pub codes: Vec<u64>,
    /// What it really says.
    pub says: String,
    /// Ids of causes, likeliest first.
    #[serde(default)]
    pub causes: Vec<String>,
}

/// A known failure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Name that stays the same.
    pub id: String,
    /// Id of its cause.
    pub cause: String,
    /// What its failing lines state: `missing: model` or a code, `FastRPC 0x80000406`.
    pub states: Vec<String>,
    /// What solved it, or what it came down to, in a sentence.
    pub solved: String,
    /// Where it can be read.
    pub source: String,
}

/// Everything of the files.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Catalogue {
    #[serde(default)]
    pub cause: Vec<Cause>,
    #[serde(default)]
    pub flag: Vec<Flag>,
    #[serde(default)]
    pub harmless: Vec<Pattern>,
    #[serde(default)]
    pub code: Vec<CodeNote>,
    #[serde(default)]
    pub case: Vec<Case>,
    #[serde(default)]
    pub steps: Vec<Steps>,
}

const FILES: [&str; 17] = [
    include_str!("catalogue/flags.toml"),
    include_str!("catalogue/libraries.toml"),
    include_str!("catalogue/device.toml"),
    include_str!("catalogue/platform.toml"),
    include_str!("catalogue/context.toml"),
    include_str!("catalogue/graph.toml"),
    include_str!("catalogue/execute.toml"),
    include_str!("catalogue/conversion.toml"),
    include_str!("catalogue/mistakes.toml"),
    include_str!("catalogue/stacks.toml"),
    include_str!("catalogue/slow.toml"),
    include_str!("catalogue/other.toml"),
    include_str!("catalogue/codes.toml"),
    include_str!("catalogue/cases.toml"),
    include_str!("catalogue/steps/device.toml"),
    include_str!("catalogue/steps/loading.toml"),
    include_str!("catalogue/steps/models.toml"),
];

/// Flags that are not read off single lines but off the log's form, the exit status or the outputs.
pub(super) const FACTS: [&str; 10] = [
    "skel-arch-differs",
    "versions-differ",
    "many-nodes-refused",
    "few-nodes-taken",
    "ends-in-execute",
    "ends-in-finalize",
    "silent-after-start",
    "exit-sigfpe",
    "exit-timeout",
    "empty-outputs",
];

// A file that does not parse is a defect that the tests below find; at run time its causes would be missing.
static BUILTIN: LazyLock<Catalogue> = LazyLock::new(|| {
    let mut whole = Catalogue::default();
    for part in FILES.iter().filter_map(|text| toml::from_str::<Catalogue>(text).ok()) {
        whole.cause.extend(part.cause);
        whole.flag.extend(part.flag);
        whole.harmless.extend(part.harmless);
        whole.code.extend(part.code);
        whole.case.extend(part.case);
        whole.steps.extend(part.steps);
    }
    whole
});

/// The user's own entries.
static USERS: OnceLock<Catalogue> = OnceLock::new();

/// The built-in entries and the user's, which come first and replace those of the same id.
static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let mut whole = BUILTIN.clone();
    let Some(users) = USERS.get().cloned() else { return whole };
    whole.cause.retain(|cause| !users.cause.iter().any(|own| own.id == cause.id));
    whole.case.retain(|case| !users.case.iter().any(|own| own.id == case.id));
    // What the user says of a cause stands for itself.
    let is_users =
        |id: &String| users.cause.iter().any(|own| own.id == *id) || users.steps.iter().any(|own| own.cause == *id);
    whole.steps.retain(|steps| !is_users(&steps.cause));
    whole.cause.splice(0..0, users.cause);
    whole.case.splice(0..0, users.case);
    whole.flag.extend(users.flag);
    whole.harmless.extend(users.harmless);
    whole.code.extend(users.code);
    whole.steps.extend(users.steps);
    whole
});

/// Takes the user's entries; without effect once the catalogue was used.
pub(super) fn install(users: Catalogue) {
    let _ = USERS.set(users);
}

/// What is built in, without the user's entries.
pub(super) fn builtin() -> &'static Catalogue {
    &BUILTIN
}

/// True if a cause of this id or alias is built in.
pub(super) fn builtin_cause(id: &str) -> bool {
    BUILTIN.cause.iter().any(|cause| cause.id == id || cause.aliases.iter().any(|alias| alias == id))
}

pub(super) fn catalogue() -> &'static Catalogue {
    &CATALOGUE
}

/// All causes, by area.
pub fn causes() -> &'static [Cause] {
    &CATALOGUE.cause
}

/// The cause of this id or alias; an id wins over an alias.
pub fn cause(id: &str) -> Option<&'static Cause> {
    let by_alias = || causes().iter().find(|cause| cause.aliases.iter().any(|alias| alias == id));
    causes().iter().find(|cause| cause.id == id).or_else(by_alias)
}

/// What is known of a code beyond its row in the table.
pub fn code_note(code: u64) -> Option<&'static CodeNote> {
    CATALOGUE.code.iter().find(|note| note.codes.contains(&code))
}

#[cfg(test)]
pub use steps::commands_of_steps;

#[cfg(test)]
mod tests;

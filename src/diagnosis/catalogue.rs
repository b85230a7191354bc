//! The catalogue of failure modes, as data: `catalogue/*.toml`, embedded.

use serde::Deserialize;
use std::sync::{LazyLock, OnceLock};
use steps::Steps;

mod steps;

/// A failure mode.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Name that is stable across versions, such as `skel-not-found`.
    pub id: String,
    /// Other names of the same cause.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One-line title for users.
    pub title: String,
    /// Stage of a run, as [`crate::event::Stage::name`] gives it, or `framework`, `conversion`, `unknown`.
    pub stage: String,
    /// Codes that accompany it, decimal or hexadecimal as people write them.
    #[serde(default)]
    pub codes: Vec<String>,
    /// True for an answer that only says where to look for the cause; a specific cause displaces it.
    #[serde(default)]
    pub generic: bool,
    /// True for a cause that slows a run down but does not fail it: beside a failure it is only a remark,
    /// whichever comes first.
    #[serde(default)]
    pub remark: bool,
    /// Why it happens.
    pub why: String,
    /// How to fix it.
    pub fix: String,
    /// Checks that confirm it, in the order to try them.
    #[serde(default)]
    pub confirm: Vec<Check>,
    /// Flags that speak against all of its signals.
    #[serde(default)]
    pub(super) without: Vec<String>,
    /// What points to it in a log.
    #[serde(default)]
    pub(super) signal: Vec<Signal>,
}

/// A check that confirms a cause. Nothing is run here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Name, such as `skel-files`; a check has the same name under every cause.
    pub id: String,
    /// The condition that has to hold.
    pub what: String,
    /// `device` or `host`.
    pub on: CheckPlace,
    /// The command to type there. `$DIR` is the folder of the QNN libraries, `$PID` the program's process id.
    pub command: String,
}

/// Where a check runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckPlace {
    /// In a shell on the device.
    Device,
    /// On the user's machine.
    Host,
}

/// What one line has to contain; all given parts have to match. Literals ignore ASCII case.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Pattern {
    /// All of these.
    #[serde(default)]
    pub all: Vec<String>,
    /// At least one of these.
    #[serde(default)]
    pub any: Vec<String>,
    /// At least one of these as well.
    #[serde(default)]
    pub any_of: Vec<String>,
    /// None of these.
    #[serde(default)]
    pub not: Vec<String>,
    /// This regular expression.
    pub re: Option<String>,
    /// One of these QNN codes, in any spelling, if the line calls it an error.
    #[serde(default)]
    pub code: Vec<u64>,
    /// A statement that the line makes, in whatever words.
    pub says: Option<Says>,
}

/// A predicate and its objects, as classes of the lexicon. Informational lines state nothing.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Says {
    /// One of these predicates.
    pub said: Vec<String>,
    /// About one of these objects.
    #[serde(default)]
    pub of: Vec<String>,
    /// And about one of these, in the same clause.
    #[serde(default)]
    pub and: Vec<String>,
    /// About none of these.
    #[serde(default)]
    pub not_of: Vec<String>,
    /// From one of these speakers, if the line names its speaker.
    #[serde(default)]
    pub who: Vec<String>,
}

/// A pattern (or flags alone) that points to a cause.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Signal {
    #[serde(flatten)]
    pub pattern: Pattern,
    /// Flags that the log has to set.
    #[serde(default)]
    pub with: Vec<String>,
    /// Flags that it must not set.
    #[serde(default)]
    pub without: Vec<String>,
    /// Set for lines that any program may print: how close to QNN the line has to be.
    pub near: Option<Near>,
    /// Confidence that the signal gives by itself, 0 to 1.
    pub weight: f64,
    /// It counts only if all others together give no answer: words of any program that fails, not of QNN.
    #[serde(skip)]
    pub last: bool,
    /// Set for the signals that stand for messages of public programs; see [`super::programs`].
    #[serde(skip)]
    pub told: Option<Certainty>,
}

/// How surely a message of a public program means its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// Whoever sees it has this cause.
    Sure,
    /// Most likely this cause.
    Likely,
    /// Plausible, and no other cause is more so.
    Guess,
    /// Only where it comes from points to the cause.
    Hint,
    /// Its words are those of known logs of this cause; see [`super::learned`].
    Alike,
}

impl Certainty {
    const ALL: [(&str, Self, f64); 5] = [
        ("sure", Self::Sure, 0.85),
        ("likely", Self::Likely, 0.72),
        ("guess", Self::Guess, 0.55),
        ("hint", Self::Hint, 0.4),
        ("alike", Self::Alike, 0.5),
    ];

    /// By its name in the tables.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|known| known.0 == name).map(|known| known.1)
    }

    /// One signal each.
    fn signals() -> impl Iterator<Item = Signal> {
        Self::ALL.into_iter().map(|(_, told, weight)| Signal {
            pattern: Pattern::default(),
            with: Vec::new(),
            without: Vec::new(),
            near: None,
            weight,
            last: false,
            told: Some(told),
        })
    }
}

/// The place of the signal that stands for such a cause, given by its place, as indexes of cause and signal; `None` if the
/// user's own entry replaces the cause.
pub(super) fn told_signal((cause, certainty): (usize, Certainty)) -> Option<(usize, usize)> {
    let signal = causes()[cause].signal.iter().position(|signal| signal.told == Some(certainty))?;
    Some((cause, signal))
}

/// How close to QNN a line has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Near {
    /// In Android's log, from the same process or tag; elsewhere, among QNN's lines.
    Process,
    /// Among QNN's lines.
    Lines,
    /// A line of the form that failures of QNN have: an error by its own word and from the same process, or one
    /// that names QNN and claims no other level.
    Failure,
}

/// Which signals with this flag in `without` it excludes, by their position in the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Voids {
    /// All of them.
    #[default]
    All,
    /// Those after the flag's first line.
    Later,
    /// Those before the flag's last line, which takes them back: what fails again afterwards counts.
    Earlier,
    /// Those before the flag's last line, of which they are echoes. Only the first lines count.
    Echoes,
}

/// A property of the whole log that a line reveals.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Flag {
    pub name: String,
    #[serde(default)]
    pub voids: Voids,
    #[serde(flatten)]
    pub pattern: Pattern,
}

/// What a code means in practice, and its likely causes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeNote {
    /// The codes, decimal.
    pub codes: Vec<u64>,
    /// What it means in practice.
    pub says: String,
    /// Ids of causes, likeliest first.
    #[serde(default)]
    pub causes: Vec<String>,
}

/// A known failure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Stable name.
    pub id: String,
    /// Id of its cause.
    pub cause: String,
    /// What its failing lines state: `missing: model`, or a code such as `FastRPC 0x80000406`.
    pub states: Vec<String>,
    /// The fix, or what the cause turned out to be, in one sentence.
    pub solved: String,
    /// Where it was reported.
    pub source: String,
}

/// Further signals of a cause, which count only if all others give no answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Last {
    cause: String,
    signal: Vec<Signal>,
}

/// The contents of all files.
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

/// The contents of `ordinary.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ordinary {
    last: Vec<Last>,
}

const FILES: [&str; 18] = [
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
    include_str!("catalogue/frameworks.toml"),
    include_str!("catalogue/slow.toml"),
    include_str!("catalogue/other.toml"),
    include_str!("catalogue/codes.toml"),
    include_str!("catalogue/cases.toml"),
    include_str!("catalogue/steps/device.toml"),
    include_str!("catalogue/steps/loading.toml"),
    include_str!("catalogue/steps/models.toml"),
];
const ORDINARY: &str = include_str!("catalogue/ordinary.toml");

/// Flags that come not from single lines but from the form of the log, the exit status or the outputs.
pub(super) const FACTS: [&str; 17] = [
    "skel-arch-differs",
    "versions-differ",
    "many-nodes-refused",
    "few-nodes-taken",
    "ends-in-execute",
    "ends-in-finalize",
    "silent-after-start",
    "exit-sigfpe",
    "exit-timeout",
    "exit-timeout-shown",
    "empty-outputs",
    "named-model-missing",
    "named-input-missing",
    "named-config-missing",
    "named-encodings-missing",
    "named-backend-missing",
    "named-output-unusable",
];

// A file that does not parse is a bug that the tests below catch; at run time its causes would be missing.
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
    for Last { cause, signal } in toml::from_str::<Ordinary>(ORDINARY).unwrap_or_default().last {
        if let Some(cause) = whole.cause.iter_mut().find(|known| known.id == cause) {
            cause.signal.extend(signal.into_iter().map(|signal| Signal { last: true, ..signal }));
        }
    }
    for cause in &mut whole.cause {
        cause.signal.extend(Certainty::signals());
    }
    whole
});

/// The user's own entries.
static USERS: OnceLock<Catalogue> = OnceLock::new();

/// The built-in entries and the user's; the user's come first and replace built-in ones with the same id.
static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let mut whole = BUILTIN.clone();
    let Some(users) = USERS.get().cloned() else { return whole };
    whole.cause.retain(|cause| !users.cause.iter().any(|own| own.id == cause.id));
    whole.case.retain(|case| !users.case.iter().any(|own| own.id == case.id));
    // What the user says about a cause stands alone.
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

/// Installs the user's entries; has no effect once the catalogue has been used.
pub(super) fn install(users: Catalogue) {
    let _ = USERS.set(users);
}

/// The built-in entries, without the user's.
pub(super) fn builtin() -> &'static Catalogue {
    &BUILTIN
}

/// True if a cause with this id or alias is built in.
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

/// The cause with this id or alias; an id takes precedence over an alias.
pub fn cause(id: &str) -> Option<&'static Cause> {
    let by_alias = || causes().iter().find(|cause| cause.aliases.iter().any(|alias| alias == id));
    causes().iter().find(|cause| cause.id == id).or_else(by_alias)
}

/// What is known about a code beyond its row in the table.
pub fn code_note(code: u64) -> Option<&'static CodeNote> {
    CATALOGUE.code.iter().find(|note| note.codes.contains(&code))
}

#[cfg(test)]
pub use steps::commands_of_steps;

#[cfg(test)]
mod tests;

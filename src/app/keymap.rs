//! Keys as data: the embedded default file and the user's file are lists of rules; the first match wins. The footer and
//! the help pane read the same list.

use super::action::KeyAction;
use super::keys::Chord;
use super::spelling::nearest;
use crate::files::read_text_at_most;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use thiserror::Error;
use toml::Spanned;

/// Largest key file accepted.
const MAX_BYTES: u64 = 1 << 20;
const DEFAULT: &str = include_str!("keymap-default.toml");

/// The screen whose keys apply: the one with the focus.
pub const SCREENS: [&str; 16] = [
    "start",
    "picker",
    "live",
    "filter",
    "details",
    "help",
    "backends",
    "diagnosis",
    "findings",
    "outliers",
    "modes",
    "placement",
    "program",
    "compare",
    "sessions",
    "accuracy",
];
/// The panes a rule can name.
pub const PANES: [&str; 6] = ["status", "latency", "layers", "memory", "host", "log"];

/// The context that rules are matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a condition of its own, as rules name them")]
pub struct KeyContext {
    /// One of `SCREENS`.
    pub screen: &'static str,
    /// One of `PANES`.
    pub pane: &'static str,
    /// A run is in progress.
    pub running: bool,
    /// The view is frozen.
    pub paused: bool,
    /// A recording is shown.
    pub replay: bool,
    /// A text field has the focus: plain characters are input.
    pub text_input: bool,
}

/// An error in a key file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {message}")]
pub struct KeymapError {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The problem, with the nearest legal name, if any.
    pub message: String,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The keys.
    pub keys: Vec<Chord>,
    /// What they do.
    pub action: KeyAction,
    when: When,
    line: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct When {
    screens: Vec<&'static str>,
    panes: Vec<&'static str>,
    running: Option<bool>,
    paused: Option<bool>,
    replay: Option<bool>,
}

impl When {
    fn fits(&self, context: &KeyContext) -> bool {
        (self.screens.is_empty() || self.screens.contains(&context.screen))
            && (self.panes.is_empty() || self.panes.contains(&context.pane))
            && self.running.is_none_or(|running| running == context.running)
            && self.paused.is_none_or(|paused| paused == context.paused)
            && self.replay.is_none_or(|replay| replay == context.replay)
    }

    /// True if some context matches both.
    fn overlaps(&self, other: &Self) -> bool {
        let lists = |a: &[&str], b: &[&str]| a.is_empty() || b.is_empty() || a.iter().any(|name| b.contains(name));
        let flags = |a: Option<bool>, b: Option<bool>| a.is_none() || b.is_none() || a == b;
        lists(&self.screens, &other.screens)
            && lists(&self.panes, &other.panes)
            && flags(self.running, other.running)
            && flags(self.paused, other.paused)
            && flags(self.replay, other.replay)
    }
}

/// All rules, the user's first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    bind: Vec<RawRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    keys: Vec<Spanned<String>>,
    action: Spanned<String>,
    #[serde(default)]
    when: RawWhen,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawWhen {
    screen: Option<Spanned<Names>>,
    pane: Option<Spanned<Names>>,
    running: Option<bool>,
    paused: Option<bool>,
    replay: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Many(Vec<String>),
}

impl Default for Keymap {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "the embedded file is checked by a test")]
        let rules = parse(DEFAULT, "keymap-default.toml").expect("the embedded keymap is valid");
        Self { rules }
    }
}

impl Keymap {
    /// The user's file followed by the defaults. A missing file is an error, since it was requested.
    ///
    /// # Errors
    /// The file cannot be read or is invalid.
    pub fn load(file: Option<&Path>) -> Result<Self, KeymapError> {
        let Some(file) = file else { return Ok(Self::default()) };
        let name = crate::event::clean_text(&file.display().to_string());
        let text = read_text_at_most(file, MAX_BYTES).map_err(|error| KeymapError {
            file: name.clone(),
            line: 1,
            message: format!("cannot read the key file: {error}"),
        })?;
        Self::merged(&text, &name)
    }

    /// The rules of `text` followed by the defaults.
    ///
    /// # Errors
    /// An error in `text`, with its line in `file`.
    pub fn merged(text: &str, file: &str) -> Result<Self, KeymapError> {
        let mut rules = parse(text, file)?;
        rules.extend(Self::default().rules);
        Ok(Self { rules })
    }

    /// What a key does here.
    pub fn action(&self, chord: Chord, context: &KeyContext) -> Option<KeyAction> {
        let rule = self.rules.iter().find(|rule| rule.keys.contains(&chord) && rule.when.fits(context))?;
        (rule.action != KeyAction::Nothing).then_some(rule.action)
    }

    /// Actions available here with their keys, in the order of the rules.
    pub fn reachable(&self, context: &KeyContext) -> Vec<(KeyAction, Vec<Chord>)> {
        let mut found: Vec<(KeyAction, Vec<Chord>)> = Vec::new();
        for rule in self.rules.iter().filter(|rule| rule.when.fits(context)) {
            for &key in &rule.keys {
                if self.action(key, context) != Some(rule.action) || (context.text_input && key.is_text()) {
                    continue;
                }
                match found.iter_mut().find(|(action, _)| *action == rule.action) {
                    Some((_, keys)) => {
                        if !keys.contains(&key) {
                            keys.push(key);
                        }
                    }
                    None => found.push((rule.action, vec![key])),
                }
            }
        }
        found
    }
}

fn parse(text: &str, file: &str) -> Result<Vec<Rule>, KeymapError> {
    let line_of = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
    let fault = |offset: usize, message: String| KeymapError { file: file.to_owned(), line: line_of(offset), message };
    let raw: RawFile = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        fault(offset, error.message().to_owned())
    })?;
    let mut rules: Vec<Rule> = Vec::new();
    for raw_rule in raw.bind {
        let at = raw_rule.action.span().start;
        let name = raw_rule.action.get_ref();
        let action = KeyAction::by_name(name).ok_or_else(|| {
            let known = KeyAction::ALL.iter().map(|action| action.name());
            fault(at, format!("there is no action `{name}`{}", suggestion(name, known)))
        })?;
        let mut keys = Vec::new();
        for key in &raw_rule.keys {
            let chord = key.get_ref().parse::<Chord>().map_err(|message| fault(key.span().start, message))?;
            keys.push(chord);
        }
        let when = When {
            screens: names(raw_rule.when.screen, &SCREENS, "screen", &fault)?,
            panes: names(raw_rule.when.pane, &PANES, "pane", &fault)?,
            running: raw_rule.when.running,
            paused: raw_rule.when.paused,
            replay: raw_rule.when.replay,
        };
        let rule = Rule { keys, action, when, line: line_of(at) };
        if let Some((earlier, key)) = conflict(&rules, &rule) {
            let message = format!(
                "`{key}` is already bound to `{}` in line {}; one of the two needs a `when` that keeps them apart",
                earlier.action.name(),
                earlier.line
            );
            return Err(fault(at, message));
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn conflict<'a>(rules: &'a [Rule], rule: &Rule) -> Option<(&'a Rule, Chord)> {
    rules.iter().filter(|earlier| earlier.when.overlaps(&rule.when) && earlier.action != rule.action).find_map(
        |earlier| {
            let key = rule.keys.iter().copied().find(|key| earlier.keys.contains(key))?;
            Some((earlier, key))
        },
    )
}

fn names(
    raw: Option<Spanned<Names>>,
    known: &[&'static str],
    what: &str,
    fault: &dyn Fn(usize, String) -> KeymapError,
) -> Result<Vec<&'static str>, KeymapError> {
    let Some(raw) = raw else { return Ok(Vec::new()) };
    let at = raw.span().start;
    let given = match raw.into_inner() {
        Names::One(name) => vec![name],
        Names::Many(names) => names,
    };
    given
        .iter()
        .map(|name| {
            known.iter().copied().find(|known| known == name).ok_or_else(|| {
                let near = suggestion(name, known.iter().copied());
                fault(at, format!("there is no {what} `{name}`{near}"))
            })
        })
        .collect()
}

fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!("; the nearest is `{near}`"))
}

/// The default path of a user's key file, if the platform has a folder for it.
pub fn default_path() -> Option<PathBuf> {
    crate::files::config_file("keys.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live() -> KeyContext {
        KeyContext { screen: "live", pane: "layers", running: true, paused: false, replay: false, text_input: false }
    }

    fn chord(text: &str) -> Chord {
        text.parse().unwrap()
    }

    #[test]
    fn defaults_are_valid_and_reach_every_action() {
        let keymap = Keymap::default();
        for action in KeyAction::ALL {
            let bound = keymap.rules.iter().any(|rule| rule.action == *action);
            assert!(bound || *action == KeyAction::Nothing, "{} has no key", action.name());
        }
        assert_eq!(keymap.action(chord("q"), &live()), Some(KeyAction::Quit));
        assert_eq!(keymap.action(chord("space"), &live()), Some(KeyAction::Pause));
        assert_eq!(keymap.action(chord("?"), &live()), Some(KeyAction::Help));
    }

    #[test]
    fn conditions_choose() {
        let keymap = Keymap::default();
        let start = KeyContext { screen: "start", running: false, ..live() };
        assert_eq!(keymap.action(chord("r"), &live()), Some(KeyAction::RestartRun));
        assert_eq!(keymap.action(chord("r"), &start), Some(KeyAction::StartRun));
        assert_eq!(keymap.action(chord("x"), &live()), Some(KeyAction::StopRun));
        assert_eq!(keymap.action(chord("x"), &KeyContext { running: false, ..live() }), None);
    }

    #[test]
    fn a_users_rules_come_first() {
        let text = "[[bind]]\nkeys = [\"q\"]\naction = \"none\"\n[[bind]]\nkeys = [\"ctrl-q\"]\naction = \"quit\"\n";
        let keymap = Keymap::merged(text, "keys.toml").unwrap();
        assert_eq!(keymap.action(chord("q"), &live()), None);
        assert_eq!(keymap.action(chord("ctrl-q"), &live()), Some(KeyAction::Quit));
        let quit = keymap.reachable(&live()).into_iter().find(|(action, _)| *action == KeyAction::Quit);
        assert_eq!(quit, Some((KeyAction::Quit, vec![chord("ctrl-q")])));
    }

    #[test]
    fn faults_name_file_line_and_nearest_name() {
        let fault = |text: &str| Keymap::merged(text, "keys.toml").unwrap_err().to_string();
        assert_eq!(
            fault("[[bind]]\nkeys = [\"q\"]\naction = \"quitt\"\n"),
            "keys.toml:3: there is no action `quitt`; the nearest is `quit`"
        );
        assert_eq!(
            fault("[[bind]]\naction = \"quit\"\nkeys = [\"q\", \"pgupp\"]\n"),
            "keys.toml:3: there is no key `pgupp`; the nearest is `pgup`"
        );
        assert_eq!(
            fault("[[bind]]\nkeys = [\"q\"]\naction = \"quit\"\nwhen = { screen = \"liv\" }\n"),
            "keys.toml:4: there is no screen `liv`; the nearest is `live`"
        );
        assert!(fault("\n[[bnd]]\n").starts_with("keys.toml:2: unknown field `bnd`"));
    }

    #[test]
    fn two_rules_of_one_file_may_not_fight() {
        let text = "[[bind]]\nkeys = [\"w\"]\naction = \"quit\"\n[[bind]]\nkeys = [\"w\"]\naction = \"help\"\n";
        assert_eq!(
            Keymap::merged(text, "k").unwrap_err().to_string(),
            "k:6: `w` is already bound to `quit` in line 3; one of the two needs a `when` that keeps them apart"
        );
        let apart = "[[bind]]\nkeys = [\"w\"]\naction = \"quit\"\nwhen = { screen = \"start\" }\n\
                     [[bind]]\nkeys = [\"w\"]\naction = \"help\"\nwhen = { screen = \"live\" }\n";
        assert!(Keymap::merged(apart, "k").is_ok());
    }

    #[test]
    fn characters_are_no_keys_in_a_text_field() {
        let context = KeyContext { screen: "filter", text_input: true, ..live() };
        let keys = Keymap::default().reachable(&context);
        assert!(keys.iter().all(|(_, keys)| keys.iter().all(|key| !key.is_text())));
    }
}

//! The catalogue's patterns, compiled: which lines deserve a look, and what a line says.

use super::catalogue::{FACTS, Near, Pattern, Says, Signal, Voids, catalogue};
use super::denied::Denied;
use super::numbers;
use super::pattern::Deferred;
use super::progress;
use super::statements::{Statements, lexicon};
use super::wanted::Wanted;
use aho_corasick::automaton::Automaton;
use aho_corasick::dfa::DFA;
use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored as Start, MatchKind, StartKind};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What a line that fits a rule means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineMeaning {
    /// Sets a flag, given by its index in [`Rules::flags`].
    Flag(usize),
    /// The line looks bad but is harmless.
    Harmless,
    /// Signal of a cause, given by their indices in the catalogue.
    Signal { cause: usize, signal: usize, near: Option<Near> },
    /// Names a skel; see [`super::facts`].
    Skel,
    /// Names the version of a tool or library.
    Version,
    /// Reports a refused op.
    Refusal,
    /// Says how many nodes a graph has, or how many of them QNN takes.
    Nodes,
    /// A prompt to a chat model or its answer begins or ends.
    Answer,
    /// Reports that a step of a run succeeded, given by its index in [`super::progress::STEPS`].
    Progress(usize),
    /// States a failure of any kind.
    Failure,
    /// May be a message of a public program.
    Message,
}

/// Whether a literal makes a line worth reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worth {
    /// All rules that it leads to are done.
    Nothing,
    /// Worth it for statements only: lines of one form state the same, so a few of each form are enough.
    Statement,
    /// Worth it whatever the line's form.
    Line,
}

/// One compiled pattern.
#[derive(Debug)]
pub struct Rule {
    pub target: LineMeaning,
    /// The literals of which one has to be present for the rule to be tried.
    lead: Vec<usize>,
    all: Vec<usize>,
    any: Vec<usize>,
    any_of: Vec<usize>,
    not: Vec<usize>,
    re: Option<Deferred>,
    code: Vec<u64>,
    says: Option<Wanted>,
}

/// The rules that an anchor can lead to.
#[derive(Debug, Default)]
struct Anchored {
    /// Those that look for words and codes.
    plain: Vec<usize>,
    /// Those that look for a statement or a message.
    says: Vec<usize>,
}

/// All patterns and their search automata.
#[derive(Debug)]
pub struct Rules {
    pub list: Vec<Rule>,
    /// Names of the flags, followed by those of the facts.
    pub flags: Vec<String>,
    /// Per flag: which signals it excludes.
    pub voids: Vec<Voids>,
    /// Literals that make a line worth reading.
    pub anchors: Option<AhoCorasick>,
    /// The rules that each anchor can lead to, without the harmless ones.
    anchored: Vec<Anchored>,
    literals: Option<AhoCorasick>,
    /// Those literals with a digit before their first letter.
    numeric: Option<DFA>,
    /// The rules that each literal can lead to.
    candidates: Vec<Vec<usize>>,
}

static RULES: LazyLock<Rules> = LazyLock::new(Rules::compile);

/// The rules of the catalogue.
pub fn rules() -> &'static Rules {
    &RULES
}

/// Literals and their numbers.
#[derive(Default)]
struct Literals(BTreeMap<String, usize>);

impl Literals {
    fn id(&mut self, text: &str) -> usize {
        let next = self.0.len();
        *self.0.entry(text.to_ascii_lowercase()).or_insert(next)
    }

    /// The ids of texts of which one is enough, or of which none may be present.
    fn ids(&mut self, texts: &[String]) -> Vec<usize> {
        texts.iter().flat_map(|text| fastrpc_spellings(text)).map(|text| self.id(&text)).collect()
    }

    fn in_order(&self) -> Vec<&str> {
        let mut list: Vec<(&str, usize)> = self.0.iter().map(|(text, id)| (text.as_str(), *id)).collect();
        list.sort_by_key(|entry| entry.1);
        list.into_iter().map(|entry| entry.0).collect()
    }
}

impl Rules {
    fn compile() -> Self {
        let mut flags: Vec<String> = Vec::new();
        for name in catalogue().flag.iter().map(|flag| flag.name.as_str()).chain(FACTS) {
            if !flags.iter().any(|known| known == name) {
                flags.push(name.to_owned());
            }
        }
        let voids = flags.iter().map(|name| {
            let known = catalogue().flag.iter().find(|flag| flag.name == *name && flag.voids != Voids::All);
            known.map_or(Voids::All, |flag| flag.voids)
        });
        let voids = voids.collect();
        let mut literals = Literals::default();
        let mut rules = Vec::new();
        let mut leads: Vec<(Vec<usize>, bool)> = Vec::new();
        for (pattern, target) in patterns(&flags) {
            let mut rule = Rule {
                target,
                lead: Vec::new(),
                all: pattern.all.iter().map(|text| literals.id(text)).collect(),
                any: literals.ids(&pattern.any),
                any_of: literals.ids(&pattern.any_of),
                not: literals.ids(&pattern.not),
                re: pattern.re.as_deref().map(Deferred::new),
                code: pattern.code.clone(),
                says: pattern.says.as_ref().map(Wanted::of),
            };
            // The longest of `all` is the rarest; a code is rarer than a word.
            let lead = if !rule.code.is_empty() {
                let spelled = rule.code.iter().flat_map(|code| spellings(*code)).collect::<Vec<_>>();
                literals.ids(&spelled)
            } else if let Some(longest) = pattern.all.iter().max_by_key(|text| text.len()) {
                vec![literals.id(longest)]
            } else if let (true, Some(wanted)) = (rule.any.is_empty(), &rule.says) {
                lexicon().words_of(wanted.said).map(|word| literals.id(word)).collect()
            } else {
                rule.any.clone()
            };
            rule.lead.clone_from(&lead);
            leads.push((lead, target != LineMeaning::Harmless));
            rules.push(rule);
        }
        let mut candidates = vec![Vec::new(); literals.0.len()];
        for (rule, (lead, _)) in leads.iter().enumerate() {
            for &literal in lead {
                candidates[literal].push(rule);
            }
        }
        let texts = literals.in_order();
        let mut anchors = Vec::new();
        let mut anchored = Vec::new();
        for (text, rules_of_it) in texts.iter().zip(&candidates) {
            let telling = rules_of_it.iter().copied().filter(|&rule| leads[rule].1);
            let of_form = |rule: &Rule| rule.says.is_some() || rule.target == LineMeaning::Message;
            let (says, plain): (Vec<usize>, Vec<usize>) = telling.partition(|&rule| of_form(&rules[rule]));
            if !(says.is_empty() && plain.is_empty()) {
                anchors.push(*text);
                anchored.push(Anchored { plain, says });
            }
        }
        let begins = |text: &str| text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let numeric = texts.iter().copied().filter(|text| text[..begins(text)].contains(|c: char| c.is_ascii_digit()));
        Self {
            anchors: automaton(&anchors, AhoCorasickKind::DFA),
            literals: automaton(&texts, AhoCorasickKind::ContiguousNFA),
            numeric: numeric_automaton(numeric),
            list: rules,
            flags,
            voids,
            anchored,
            candidates,
        }
    }

    /// Index of a flag.
    pub fn flag(&self, name: &str) -> Option<usize> {
        self.flags.iter().position(|flag| flag == name)
    }

    /// Whether a literal of the rules overlaps the numbers at the start of a line, which end at `end`.
    pub fn touches_numbers(&self, line: &[u8], end: usize) -> bool {
        let Some(numeric) = &self.numeric else { return false };
        let Ok(begin) = numeric.start_state(Start::Yes) else { return false };
        // Most literals end with the first byte that differs, so trying each start costs less than a search.
        (0..end).any(|start| {
            let mut state = begin;
            for &byte in &line[start..] {
                state = numeric.next_state(Start::Yes, state, byte);
                if numeric.is_special(state) {
                    return numeric.is_match(state);
                }
            }
            false
        })
    }

    /// What a line with this anchor is worth, given that the rules that are `done` need no more lines.
    pub fn worth(&self, anchor: usize, done: &[bool]) -> Worth {
        let anchored = &self.anchored[anchor];
        let wanted = |rules: &[usize]| rules.iter().any(|&rule| !done[rule]);
        if wanted(&anchored.plain) {
            Worth::Line
        } else if wanted(&anchored.says) {
            Worth::Statement
        } else {
            Worth::Nothing
        }
    }

    /// Calls `hit`, in the order of the rules, for every rule that the line fits, with the position in the
    /// line that led to it. Skips rules that are done, and those that look for a statement unless
    /// `with_statements`.
    pub fn apply(
        &self,
        line: &[u8],
        done: &[bool],
        with_statements: bool,
        scratch: &mut Scratch,
        mut hit: impl FnMut(&Rule, usize, usize),
    ) {
        let skipped = |rule: usize| done[rule] || !with_statements && self.list[rule].says.is_some();
        self.fit(line, &skipped, scratch);
        let telling = |rule: &usize| {
            matches!(self.list[*rule].target, LineMeaning::Signal { .. } | LineMeaning::Flag(_) | LineMeaning::Failure)
        };
        if scratch.fitting.iter().any(telling) {
            let denied = Denied::of(line);
            if denied.is_changed() {
                self.fit(denied.line(), &skipped, scratch);
            }
        }
        for &index in &scratch.fitting {
            let rule = &self.list[index];
            let places = rule.lead.iter().filter(|&&id| scratch.present[id]).map(|&id| scratch.place[id]);
            hit(rule, index, places.min().unwrap_or_default());
        }
    }

    /// Finds the rules that the line fits.
    fn fit(&self, line: &[u8], skipped: &impl Fn(usize) -> bool, scratch: &mut Scratch) {
        scratch.fitting.clear();
        let Some(literals) = &self.literals else { return };
        scratch.present.resize(self.candidates.len(), false);
        scratch.place.resize(self.candidates.len(), 0);
        for literal in scratch.met.drain(..) {
            scratch.present[literal] = false;
        }
        scratch.rules.clear();
        for found in literals.find_overlapping_iter(line) {
            let literal = found.pattern().as_usize();
            if !scratch.present[literal] {
                scratch.present[literal] = true;
                scratch.place[literal] = found.start();
                scratch.met.push(literal);
                scratch.rules.extend(self.candidates[literal].iter().filter(|&&rule| !skipped(rule)));
            }
        }
        scratch.rules.sort_unstable();
        scratch.rules.dedup();
        let Scratch { present, rules, fitting, codes, .. } = scratch;
        // Many rules look for the codes of a line; find them only once.
        let mut are_known = false;
        let mut names = |code: &u64| {
            if !are_known {
                numbers::named(line, codes);
                are_known = true;
            }
            codes.contains(code) || numbers::has_symbol(line, *code)
        };
        let mut statements: Option<Statements> = None;
        let mut says = |wanted: &Wanted| wanted.fits(statements.get_or_insert_with(|| Statements::of(line)));
        fitting.extend(rules.iter().filter(|index| self.list[**index].fits(line, present, &mut names, &mut says)));
    }
}

/// Buffers that are reused from line to line.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    present: Vec<bool>,
    /// Per literal that is present: its first position.
    place: Vec<usize>,
    met: Vec<usize>,
    rules: Vec<usize>,
    fitting: Vec<usize>,
    /// Numbers that the line names as errors.
    codes: Vec<u64>,
}

impl Rule {
    fn fits(
        &self,
        line: &[u8],
        present: &[bool],
        names: &mut impl FnMut(&u64) -> bool,
        says: &mut impl FnMut(&Wanted) -> bool,
    ) -> bool {
        let one_of = |ids: &[usize]| ids.is_empty() || ids.iter().any(|&id| present[id]);
        self.all.iter().all(|&id| present[id])
            && one_of(&self.any)
            && one_of(&self.any_of)
            && !self.not.iter().any(|&id| present[id])
            && (self.code.is_empty() || self.code.iter().any(names))
            && self.says.as_ref().is_none_or(says)
            && self.re.as_ref().is_none_or(|re| re.is_match(line))
    }
}

/// The catalogue's line patterns and those from which the facts are read.
fn patterns(flags: &[String]) -> Vec<(Pattern, LineMeaning)> {
    let whole = catalogue();
    let mut list = Vec::new();
    for flag in &whole.flag {
        let place = flags.iter().position(|name| *name == flag.name).unwrap_or_default();
        list.push((flag.pattern.clone(), LineMeaning::Flag(place)));
    }
    list.extend(whole.harmless.iter().map(|pattern| (pattern.clone(), LineMeaning::Harmless)));
    for (cause, entry) in whole.cause.iter().enumerate() {
        for (signal, entry) in entry.signal.iter().enumerate() {
            if !entry.pattern.is_empty() {
                list.push((entry.pattern.clone(), LineMeaning::Signal { cause, signal, near: entry.near }));
            }
        }
    }
    let literals =
        |texts: &[&str]| Pattern { any: texts.iter().map(|t| (*t).to_owned()).collect(), ..Pattern::default() };
    list.push((literals(&["skel.so"]), LineMeaning::Skel));
    list.push((literals(&["build version"]), LineMeaning::Version));
    list.push((literals(&["failed to validate op", "validateopconfig failed"]), LineMeaning::Refusal));
    list.push((literals(&["nodes in the graph", "nodes supported by qnn"]), LineMeaning::Nodes));
    list.push((literals(&["[begin]:", "[end]", "[prompt]:", "[kpis]"]), LineMeaning::Answer));
    for (place, step) in progress::STEPS.iter().enumerate() {
        let not = step.not.iter().map(|text| (*text).to_owned()).collect();
        list.push((Pattern { not, ..literals(step.words) }, LineMeaning::Progress(place)));
    }
    // All bad predicates, and errors in words of their own.
    let good = ["wanted", "wrong", "lacks", "newer", "older"];
    let said = lexicon().said_names().filter(|name| !good.contains(name)).map(str::to_owned).collect();
    list.push((Pattern { says: Some(Says { said, ..Says::default() }), ..Pattern::default() }, LineMeaning::Failure));
    list.push((literals(&["[ error ]", "[error]", "<e>", "[e:onnxruntime", "error:"]), LineMeaning::Failure));
    list.push((literals(&["error", "exception", "unsupported", "fail", "cannot", "invalid"]), LineMeaning::Message));
    list
}

impl Pattern {
    /// True if it looks for nothing in a line.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.any.is_empty() && self.code.is_empty() && self.says.is_none()
    }
}

impl Signal {
    /// True for a signal that consists of flags alone.
    pub fn is_of_flags(&self) -> bool {
        self.pattern.is_empty() && self.told.is_none()
    }
}

/// The spellings of a code in logs.
fn spellings(code: u64) -> Vec<String> {
    let hex = [1, 4, 8, 16].map(|width| format!("0x{code:0width$x}"));
    let mut list = vec![code.to_string()];
    list.extend(hex);
    list.extend(numbers::symbols(code).map(str::to_owned));
    list
}

/// The other spellings of FastRPC's `0x8000....` and Windows' `0xc000....`: without `0x`, decimal, negative,
/// and widened to 64 bits.
fn fastrpc_spellings(text: &str) -> Vec<String> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 8 && digits.starts_with(['8', 'c']));
    let value = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    value.map_or_else(
        || vec![text.to_owned()],
        |value| {
            let widened = i64::from(value.cast_signed()).cast_unsigned();
            vec![format!("{value:x}"), value.to_string(), value.cast_signed().to_string(), widened.to_string()]
        },
    )
}

/// A DFA searches fastest and takes longest to build: it is for the automaton that sees all of a log.
fn automaton(texts: &[&str], kind: AhoCorasickKind) -> Option<AhoCorasick> {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(kind))
        .build(texts)
        .ok()
}

/// An automaton that is only asked what begins at a given byte.
fn numeric_automaton<'t>(texts: impl Iterator<Item = &'t str>) -> Option<DFA> {
    DFA::builder().ascii_case_insensitive(true).start_kind(StartKind::Anchored).build(texts).ok()
}

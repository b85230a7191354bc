//! Reads a log once, from first byte to last, in bounded memory.

use super::answers::Answers;
use super::catalogue::{Voids, causes};
use super::evidence::{Evidence, Seen, Shown, excerpt, excerpt_at};
use super::facts::Facts;
use super::finding::{Diagnosis, Finding};
use super::learned::Reader;
use super::near::Nearness;
use super::options;
use super::platform::Platform;
use super::programs::Tail;
use super::progress::Progress;
use super::prose::Prose;
use super::repeats::{Forms, Pace, Repeats};
use super::roles::Roles;
use super::rules::{LineMeaning, Rules, Scratch, rules};
use super::score::score;
use super::similar::{Words, closest};
use super::stream::Filter;
use super::test_runs::TestRun;
use super::trace::Trace;
use again::Looks;
use alike::Taught;
use blocks::{Reading, pieces};
use implied::Subject;
use std::collections::BTreeSet;
use told::Told;
use wrapped::Wrapped;

mod again;
mod alike;
mod blocks;
mod implied;
mod recovery;
mod told;
mod wrapped;

/// Lines that are left out in one place and still counted; no more of them are kept.
const MOST_LEFT_OUT: u64 = 1000;
/// Longer lines are read in pieces of this many bytes.
const PIECE: usize = 32 * 1024;
/// Bytes that a piece repeats from the end of the one before, so that a message across the boundary is found.
const OVERLAP: usize = 512;
/// Lines that explain earlier ones as their echoes and that are read: long logs repeat them with every model.
const ECHOED: u32 = 256;

/// Confidence that a cause needs in messages of several lines, which may not belong together.
const WELL_SAID: f64 = 0.6;
/// Lines of a text that may be all that is left of a failure, although nothing in it says so.
const FRAGMENT_LINES: u64 = 16;
/// Confidence up to which a cause of the rules is too weak to keep the tables from being asked.
const WEAK: f64 = 0.45;
/// Confidence from which a cause counts as an answer.
const ANSWERED: f64 = 0.45;

/// Finds known failures in a log.
///
/// Bytes arrive through [`Self::feed`] in pieces of any size, lines through [`Self::feed_line`]. Memory does
/// not grow with the log: at most one piece of a line and a few lines per signal of the catalogue are kept.
#[derive(Debug, Clone)]
pub struct Diagnoser {
    rules: &'static Rules,
    filter: Filter,
    facts: Facts,
    scratch: Scratch,
    repeats: Repeats,
    pace: Pace,
    forms: Forms,
    progress: Progress,
    near: Nearness,
    prose: Prose,
    subject: Subject,
    roles: Roles,
    words: Words,
    told: Told,
    tail: Tail,
    wrapped: Wrapped,
    tests: TestRun,
    answers: Answers,
    /// Index of the flag that marks the log as QNN's.
    qnn: Option<usize>,
    /// True until enough QNN lines are known.
    counting: bool,
    /// No line names QNN; only the user who brought the log ties it to QNN.
    is_tied_by_user: bool,
    /// Start of a line whose end has not arrived yet.
    line: Vec<u8>,
    /// True if the start of the current line has been read as a piece of its own.
    in_line: bool,
    lines: u64,
    /// Lines at the end that are of no log.
    unnumbered: u64,
    bytes: u64,
    /// Per rule: it needs no more lines.
    done: Vec<bool>,
    pub(super) flags: Vec<Seen>,
    pub(super) signals: Vec<Vec<Shown>>,
    looks: Looks,
    /// Lines read of flags that have echoes.
    echoed: u32,
    /// Whose reading of the last words counts.
    taught: Taught,
    /// Signals that do not count, as indices of cause and signal.
    ignored: Vec<(usize, usize)>,
    /// What the lines state, if requested.
    trace: Option<Trace>,
    last: Evidence,
}

impl Default for Diagnoser {
    fn default() -> Self {
        Self::new()
    }
}

impl Diagnoser {
    /// A diagnoser that has read nothing yet.
    pub fn new() -> Self {
        let rules = rules();
        Self {
            rules,
            filter: Filter::default(),
            facts: Facts::default(),
            scratch: Scratch::default(),
            repeats: Repeats::default(),
            pace: Pace::default(),
            forms: Forms::default(),
            progress: Progress::default(),
            near: Nearness::default(),
            prose: Prose::default(),
            subject: Subject::default(),
            words: Words::default(),
            told: Told::default(),
            tail: Tail::default(),
            wrapped: Wrapped::default(),
            tests: TestRun::default(),
            roles: Roles::default(),
            answers: Answers::default(),
            qnn: rules.flag("qnn"),
            counting: true,
            is_tied_by_user: false,
            line: Vec::new(),
            in_line: false,
            lines: 0,
            unnumbered: 0,
            bytes: 0,
            done: vec![false; rules.list.len()],
            flags: vec![None; rules.flags.len()],
            signals: causes().iter().map(|cause| vec![Shown::default(); cause.signal.len()]).collect(),
            looks: Looks::default(),
            echoed: 0,
            taught: Taught::default(),
            ignored: Vec::new(),
            trace: None,
            last: Evidence { line: 0, text: String::new() },
        }
    }

    /// Ignores signals, given by the cause's id and their index in it, to measure how well the others do
    /// without them.
    pub fn ignore(&mut self, signals: &[(&str, usize)]) {
        let place = |id: &str| causes().iter().position(|cause| cause.id == id);
        self.ignored = signals.iter().filter_map(|&(id, signal)| Some((place(id)?, signal))).collect();
    }

    /// Takes another reader of the last words, or none, to measure how well that does.
    pub fn taught_by(&mut self, reader: Option<&'static Reader>) {
        self.taught = reader.map_or(Taught::Nothing, Taught::Others);
    }

    /// Records what the lines state, as [`Diagnosis::trace`].
    pub fn keep_trace(&mut self) {
        self.trace = Some(Trace::default());
    }

    /// The diagnosis so far, as if the log ended here.
    pub fn so_far(&self) -> Diagnosis {
        self.clone().finish()
    }

    /// Exit status of the program that wrote the log, as a shell reports it: 128 plus the signal number after
    /// a signal.
    pub fn exit_status(&mut self, status: i32) {
        self.facts.exit_status(status);
    }

    /// How many of its result files are empty (0 bytes).
    pub fn empty_outputs(&mut self, count: u32) {
        self.facts.empty_outputs(count);
    }

    /// Marks the log as QNN's, whatever its lines say.
    pub(super) fn set_flag(&mut self, name: &str, text: &str) {
        if name == "qnn" {
            self.near.is_own();
        }
        if let Some(flag) = self.rules.flag(name) {
            self.flags[flag].get_or_insert_with(|| Evidence { line: 0, text: text.to_owned() });
        }
    }

    /// Feeds the next bytes of the log: text in any encoding, with or without terminal escapes, or binary
    /// data.
    pub fn feed(&mut self, data: &[u8]) {
        self.bytes += data.len() as u64;
        let mut filter = std::mem::take(&mut self.filter);
        filter.pass(data, |text| self.text(text));
        self.filter = filter;
    }

    /// Feeds one numbered line, without its line end. Not to be mixed with [`Self::feed`].
    pub fn feed_line(&mut self, number: u64, line: &[u8]) {
        self.bytes += line.len() as u64 + 1;
        let mut plain = Vec::new();
        let mut filter = Filter::lines();
        filter.pass(line, |text| plain.extend(text));
        // Lines at the end are counted from the last one: those that were left out count, and those without a number do not.
        let left_out = number.saturating_sub(self.lines + 1).min(MOST_LEFT_OUT);
        (0..left_out).for_each(|_| self.tail.pass(b"\n"));
        self.unnumbered += u64::from(number == 0);
        for part in [&plain[..], b"\n"] {
            self.facts.pass(part);
            self.tail.pass(part);
        }
        self.lines = self.lines.max(number);
        self.note_form(number, &plain);
        for piece in pieces(&plain) {
            self.read_if_wanted(number, piece);
        }
        self.note_last(number, &plain);
    }

    fn text(&mut self, mut data: &[u8]) {
        self.facts.pass(data);
        self.tail.pass(data);
        // The rest of a line that has already begun.
        if self.in_line || !self.line.is_empty() {
            let end = memchr::memchr(b'\n', data);
            let rest = &data[..end.unwrap_or(data.len())];
            self.lengthen(rest);
            let Some(end) = end else { return };
            self.end_line();
            data = &data[end + 1..];
        }
        let whole = memchr::memrchr(b'\n', data).map_or(0, |at| at + 1);
        self.block(&data[..whole]);
        self.lengthen(&data[whole..]);
    }

    fn lengthen(&mut self, mut rest: &[u8]) {
        while self.line.len() + rest.len() >= PIECE {
            let (now, later) = rest.split_at(PIECE - self.line.len());
            self.line.extend(now);
            let piece = std::mem::take(&mut self.line);
            self.read_if_wanted(self.lines + 1, &piece);
            self.note_last(self.lines + 1, &piece);
            self.line = piece;
            self.line.drain(..PIECE - OVERLAP);
            self.in_line = true;
            rest = later;
        }
        self.line.extend(rest);
    }

    fn end_line(&mut self) {
        self.lines += 1;
        let line = std::mem::take(&mut self.line);
        if !self.in_line {
            self.note_form(self.lines, &line);
        }
        self.read_if_wanted(self.lines, &line);
        self.note_last(self.lines, &line);
        self.line = line;
        self.line.clear();
        self.in_line = false;
    }

    /// Reads everything that one line, or a piece of one, says.
    fn read(&mut self, number: u64, line: &[u8]) -> Reading {
        if self.answers.covers(number, line) {
            return Reading::Telling;
        }
        if self.counting {
            self.near.note(number, line);
            if self.near.is_full() {
                self.counting = false;
                let of_qnn =
                    |target: &LineMeaning| matches!(target, LineMeaning::Flag(flag) if self.qnn == Some(*flag));
                for (done, rule) in self.done.iter_mut().zip(&self.rules.list) {
                    *done |= of_qnn(&rule.target);
                }
            }
        }
        // A line that adds nothing adds nothing under any other leading number either.
        let beyond = self.beyond_numbers(line).filter(|_| !self.counting);
        if beyond.is_some_and(|key| self.repeats.has(key)) {
            return Reading::Idle;
        }
        if self.repeats.is_known(line) {
            return Reading::Telling;
        }
        let mut hits: Vec<(LineMeaning, usize, usize)> = Vec::new();
        let mut scratch = std::mem::take(&mut self.scratch);
        let states = !self.forms.was_worn(line);
        self.rules.apply(line, &self.done, states, &mut scratch, |rule, index, at| hits.push((rule.target, index, at)));
        self.scratch = scratch;
        let harmless = hits.iter().any(|(target, ..)| *target == LineMeaning::Harmless);
        if let (Some(trace), false) = (&mut self.trace, self.wrapped.is_read) {
            trace.note(number, line, harmless);
        }
        let mut reading = if self.counting || self.trace.is_some() { Reading::Telling } else { Reading::Idle };
        let mut takes_back = false;
        for (target, index, at) in hits {
            if self.done[index] {
                continue;
            }
            // Single lines have been counted, and their failures are quoted as they stand.
            let counts = matches!(target, LineMeaning::Flag(_) | LineMeaning::Signal { .. } | LineMeaning::Message);
            if self.wrapped.is_read && !counts {
                continue;
            }
            let mut changes = true;
            match target {
                LineMeaning::Flag(flag) => {
                    if self.qnn == Some(flag) {
                        self.progress.listen(line);
                    }
                    let voids = self.rules.voids[flag];
                    let has_echoes = voids == Voids::Echoes && self.echoed < ECHOED;
                    let again = voids == Voids::Earlier || has_echoes;
                    let is_later = self.flags[flag].as_ref().is_none_or(|known| number >= known.line);
                    if self.flags[flag].is_none() || again && is_later {
                        self.flags[flag] = Some(Evidence { line: number, text: excerpt_at(line, at) });
                    }
                    // The lines that show where QNN is are counted as well.
                    self.done[index] = !again && (self.qnn != Some(flag) || !self.counting);
                    self.echoed += u32::from(has_echoes);
                    takes_back |= voids == Voids::Earlier;
                }
                LineMeaning::Signal { cause, signal, near } if !harmless => {
                    let evidence = Evidence { line: number, text: excerpt_at(line, at) };
                    let waiting = self.near.waiting();
                    if !self.near.is_all_own() && self.prose.keeps((cause, signal), &evidence, line) {
                        reading = Reading::Telling;
                        continue;
                    }
                    if near.is_none_or(|near| self.near.decide((cause, signal), near, &evidence, line)) {
                        self.see((cause, signal), evidence);
                        self.done[index] = true;
                    } else {
                        changes = self.near.waiting() > waiting;
                    }
                }
                LineMeaning::Signal { .. } | LineMeaning::Harmless => changes = false,
                LineMeaning::Answer => {}
                LineMeaning::Progress(step) => {
                    self.progress.went_well(step, Evidence { line: number, text: excerpt(line) });
                    self.done[index] = true;
                }
                LineMeaning::Failure => {
                    changes =
                        !harmless && self.progress.failed(Evidence { line: number, text: excerpt_at(line, at) }, line);
                    self.done[index] = self.progress.is_enough();
                }
                LineMeaning::Message => changes = !harmless && states && self.hear(number, line),
                LineMeaning::Skel => {
                    self.facts.skel_line(line);
                    self.done[index] = self.facts.enough_skels();
                }
                LineMeaning::Version => changes = self.facts.version_line(line),
                LineMeaning::Nodes => self.facts.nodes_line(line),
                LineMeaning::Refusal => {
                    self.facts.refusal();
                    self.done[index] = self.facts.enough_refusals();
                }
            }
            if changes {
                reading = Reading::Telling;
            }
        }
        if takes_back {
            self.look_again();
        }
        if let (Some(key), Reading::Idle) = (beyond, reading) {
            self.repeats.learn(key);
        }
        reading
    }

    /// The words by which this log, which ends here, is compared with known ones.
    pub fn terms(mut self) -> BTreeSet<String> {
        self.end();
        self.telling_words().terms()
    }

    /// The lines that may state a failure: all such lines of a short log, the failing ones that are kept of a long one.
    fn telling_words(&mut self) -> Words {
        if self.prose.is_open() { std::mem::take(&mut self.words) } else { Words::of(self.progress.failing_lines()) }
    }

    /// Reads what is left of the last line.
    fn end(&mut self) {
        let mut filter = std::mem::take(&mut self.filter);
        filter.finish(|text| self.text(text));
        if self.in_line || !self.line.is_empty() {
            self.end_line();
        }
    }

    /// True if the log shows the flag of this name.
    fn has(&self, name: &str) -> bool {
        self.rules.flag(name).is_some_and(|flag| self.flags[flag].is_some())
    }

    /// The place of a line of the tail, which is counted from the last one: its number, or a higher one if it is of no log.
    fn place(&self, from_end: usize) -> u64 {
        (self.lines + self.unnumbered).saturating_sub(from_end as u64)
    }

    /// The number of such a line; 0 if it is of no log.
    fn number(&self, from_end: usize) -> u64 {
        Some(self.place(from_end)).filter(|place| *place <= self.lines).unwrap_or_default()
    }

    /// Counts a signal (indexes of cause and signal).
    fn see(&mut self, (cause, signal): (usize, usize), evidence: Evidence) {
        self.signals[cause][signal].add(evidence);
        self.looks.note_signal();
    }

    /// Counts the waiting signals that are near enough to QNN.
    fn see_near(&mut self) {
        for (place, evidence) in self.near.at_end() {
            self.see(place, evidence);
        }
    }

    /// The system that the log comes from, if its lines reveal it.
    fn platform(&self) -> Option<Platform> {
        // A PC's log mentions what it pushes to a phone; a phone's log never mentions a PC.
        let signs = [
            (Platform::Windows, ["windows", "windows"]),
            (Platform::Android, ["android", "app"]),
            (Platform::Linux, ["linux-board", "linux-board"]),
            (Platform::Pc, ["simulator", "converter"]),
        ];
        let is = |platform: Platform, flags: [&str; 2]| {
            flags.iter().any(|flag| self.has(flag)) || platform == Platform::Android && self.near.is_logcat()
        };
        signs.into_iter().find(|(platform, flags)| is(*platform, *flags)).map(|(platform, _)| platform)
    }

    /// Counts what only the end of the log decides. True if the text is a document.
    fn note_end(&mut self) -> bool {
        let (is_document, waiting, aside) = self.prose.at_end();
        if let Some(trace) = &mut self.trace {
            for (_, evidence) in &aside {
                trace.set_aside(evidence);
            }
        }
        for ((cause, signal), evidence) in waiting {
            let near = causes()[cause].signal[signal].near;
            let counts =
                near.is_none_or(|near| self.near.decide((cause, signal), near, &evidence, evidence.text.as_bytes()));
            if counts {
                self.see((cause, signal), evidence);
            }
        }
        self.see_near();
        let last = self.last.clone();
        for (fact, text) in self.facts.at_end(self.bytes) {
            if let Some(flag) = self.rules.flag(fact) {
                self.flags[flag] = Some(text.map_or_else(|| last.clone(), |text| Evidence { line: 0, text }));
            }
        }
        if is_document {
            self.roles = Roles::default();
        }
        self.note_roles();
        is_document
    }

    /// The causes that the lines so far add up to, best first.
    fn weigh(&mut self) -> Vec<Finding> {
        if !self.is_tied_by_user {
            let causes = self.scored();
            if !causes.is_empty() {
                return causes;
            }
        }
        self.untied_causes()
    }

    /// The causes of the signals that count so far.
    fn scored(&self) -> Vec<Finding> {
        let is_last = |(cause, signal): (usize, usize)| causes()[cause].signal[signal].last;
        score(self.rules, &self.flags, &self.signals, |place| {
            self.ignored.contains(&place) || !self.told.is_last_resort && is_last(place)
        })
    }

    /// Ends the log.
    pub fn finish(mut self) -> Diagnosis {
        self.end();
        self.imply_qnn();
        let is_document = self.note_end();
        let has_passed = self.facts.status().is_none_or(|status| status == 0)
            && (self.facts.is_passed_test_run() || self.prose.is_open() && self.tests.has_passed());
        if has_passed && let Some(flag) = self.rules.flag("retry-succeeded") {
            self.flags[flag] = Some(self.last.clone());
        }
        let mut causes = self.weigh();
        if causes.is_empty() && !is_document && self.prose.is_open() && self.read_wrapped() {
            self.note_end();
            causes = self.weigh();
            causes.retain(|finding| finding.confidence >= WELL_SAID && !finding.cause.generic && !finding.cause.remark);
        }
        let is_answer = |finding: &Finding| finding.confidence >= ANSWERED && !finding.cause().generic;
        // What the rules answer is never changed by what the tables say, nor that by what any program may print.
        let is_ours = self.is_untied() || self.has("qnn") && !self.is_tied_by_user;
        // A wrapper's status may be 0 though what it ran failed.
        let exit_status = self.facts.status().filter(|status| *status != 0 || !self.tail.ends_badly());
        let may_have_failed = !is_document && !has_passed && is_ours && exit_status != Some(0);
        // Beside a vague answer of the rules only a message in words of its own says more.
        if !causes.is_empty() {
            self.told.drop_common();
            self.told.is_beside = true;
        }
        let is_firm = |finding: &Finding| finding.confidence > WEAK && !finding.cause().generic;
        for see in
            [Self::see_told, Self::see_last, Self::see_raised, Self::see_mistake, Self::see_alike, Self::see_hidden]
        {
            if may_have_failed && !causes.iter().any(is_firm) && see(&mut self) {
                causes = self.weigh();
            }
        }
        let has_recovered = !is_document && self.has_recovered(&causes);
        if has_recovered {
            causes.clear();
        }
        let has_passed = has_passed || has_recovered;
        let succeeded =
            self.rules.flag("run-succeeded").and_then(|flag| self.flags[flag].as_ref()).map(|line| line.line);
        for finding in causes.iter_mut().filter(|finding| finding.id == "option-unknown") {
            finding.remedy = finding.evidence.iter().find_map(|evidence| options::remedy(&evidence.text));
        }
        let platform = self.platform();
        let (collect, has_result) = (self.progress.collect(), self.progress.has_result());
        let is_answered = causes.iter().any(is_answer);
        let words = self.telling_words();
        let unexplained = if is_answered || has_passed {
            None
        } else {
            self.progress.at_end(!causes.is_empty(), succeeded, exit_status)
        };
        let is_open =
            causes.is_empty() && unexplained.is_none() && !has_result && succeeded.is_none() && exit_status != Some(0);
        let collect = if is_open && !has_passed && self.lines > 0 { collect } else { Vec::new() };
        let asks = unexplained.is_some() || !collect.is_empty() && self.lines <= FRAGMENT_LINES;
        let mut diagnosis = Diagnosis {
            causes,
            fault: None,
            unexplained,
            similar: if asks && !is_document { closest(&words.terms()) } else { Vec::new() },
            collect,
            trace: self.trace,
            platform,
            lines: self.lines,
            bytes: self.bytes,
        };
        diagnosis.advise();
        diagnosis
    }
}

//! Tells that a program made good what failed: it went on in another way, and ended well.

use super::Diagnoser;
use crate::diagnosis::finding::Finding;
use crate::diagnosis::foreign::{is_chatter, is_foreign, is_of_system};
use crate::diagnosis::learned::SHORTEST;
use crate::diagnosis::pattern::regex;
use crate::diagnosis::statements::{Level, level};
use crate::diagnosis::test_runs::passed_tests;
use regex::bytes::Regex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Causes that a program survives, and of which its user still wants to know: what was asked for did not happen.
const STAYS: [&str; 12] = [
    "converter-dynamic-shape",
    "cpu-fallback",
    "ep-not-in-build",
    "error-hidden-by-program",
    "op-dtype-unsupported",
    "op-rank-unsupported",
    "op-unsupported",
    "option-unknown",
    "option-unsupported",
    "quantization-overrides-unused",
    "soc-unknown-to-sdk",
    "wrong-results",
];
/// Lines of the program after a failure in which it says what it does instead.
const NEXT_LINES: usize = 3;
/// Bytes at the start of a line that may claim a level.
const HEAD: usize = 90;
/// Lines that show a log of many programs.
const SYSTEM_LINES: usize = 2;
/// Confidence from which a cause is plain.
const PLAIN: f64 = 0.85;
/// Lines of the program after a failure, fewer than which say nothing of how it went on.
const QUIET_LINES: usize = 3;
/// How likely a log that does not end badly ends as known good runs do.
const LIKE_GOOD_RUNS: f32 = 0.6;
/// A shorter name of a file may be part of another word.
const SHORTEST_NAME: usize = 6;

/// What a line of the program says.
struct Words {
    /// A count of failures that is zero.
    none: Regex,
    /// A list of providers, which always names the CPU's as well.
    providers: Regex,
    /// Times, and places of source code.
    stamps: Regex,
    /// Something is wrong.
    bad: Regex,
    /// A part of a whole: `3/9`, `3 of 9`.
    part: Regex,
    /// Something went well.
    good: Regex,
    /// Something else is done instead.
    instead: Regex,
    /// What was asked for is not done instead.
    lost: Regex,
    /// It came to nothing.
    nothing: Regex,
    /// The program's verdict on all that it did.
    verdict: Regex,
    /// A graph has been compiled.
    compiled: Regex,
    /// A run of tests begins.
    begin: Regex,
    /// The program tests itself.
    test: Regex,
    /// A warning by its own word.
    warns: Regex,
    /// A line for those who look for defects.
    noise: Regex,
    /// A service's answer to a request that was wrong.
    client: Regex,
    /// A path or the name of a file, whose words say nothing.
    path: Regex,
    /// A file that programs read or write.
    file: Regex,
}

static WORDS: LazyLock<Option<Words>> = LazyLock::new(|| {
    Some(Words {
        none: regex(concat!(
            r#"\b(0|no) (\w+ )?(errors?|failed|failures?|failing|skipped|warnings?|unexpected)\b"#,
            r#"|(errors?|failed|failures?|skipped)\w*["' ]*[:=] ?0\b|not (needed|used)|stopped cleanly|cpu time"#
        ))
        .ok()?,
        providers: regex(r"qnn\w*['\x22, ]+cpuexecutionprovider").ok()?,
        // Stamps and places of code say nothing.
        stamps: regex(r"\d{2,4}[-/]\d\d[-/]\d{2,4}|\d\d:\d\d:\d\d([.,]\d+)?|^\W*\[[\d. :]+\]|\b\w+\.(c|cc|cpp|h|hpp|rs|py|go|java):\d+").ok()?,
        bad: regex(concat!(
            r"fail|error|traceback|exception|cannot|can.?t |could not|couldn.t|unable|not found|no such|missing|invalid",
            r"|abort|killed|segmentation|giv\w+ up|denied|connection refused|refused to|timed? ?out|exit (code|status)?:? ?[1-9]|exited [1-9]",
            r"|rc=[1-9]|mismatch|wrong|differ|unsupported|unknown|usage:|\bnot |\bno |panic|fatal|core dumped|terminate called|terminated (by|with)|warn",
            r"|required|expect|nothing|: 0/|stopp|retry|tried|crash|corrupt|truncated|bad |\xe2\x9c\x97|\xe2\x9d\x8c|\bfalse\b",
            r"|\b0 (ok|inferences?|runs?|frames?|outputs?|results?|images?|inputs?|files?|samples?|rows|predictions?|records|requests|models|usable)\b|\b(runs|usable|success|healthy|passed|ok)[ =:\x22]+0\b|\b0(\.0+)? ?(ms|us)\b",
            r#"|please|^\s+at |however|\bcpu|-> ?(0x)?[1-9][0-9a-f]{2,}\b|status = 0x[0-9a-f]*[1-9a-f]|" [45]\d\d\b"#
        ))
        .ok()?,
        part: regex(r"\b(\d+) ?(?:/|of) ?(\d+)\b").ok()?,
        good: regex(concat!(
            r"\b(success\w*|succeeded|ready|saved|wrote|written|pass|passed|served|serving|results?|top-?\d|latency|p50|p95|median",
            r"|loaded|opened|created|exported|accuracy|listening|throughput|fps|outputs?|inferences?|processed|stored|verified|all good",
            r"|restored|compiled|copied|selected|chosen|answered|\d+ (ok|done)|usable|identical)\b|\xe2\x9c[\x93\x94\x85]|\x22 200\b|(: |\] ?|^)ok\b|\[ ?ok ?\]|\bok$",
            r"|\busing \S*\.(so|dll|onnx|bin|dlc)\b|-> \S+\.[a-z]\w+"
        ))
        .ok()?,
        instead: regex(concat!(
            r"retry|retri|failed \(\d+/\d+\)|try(ing)? again|again\b|fall(ing|s)? ?back|instead|trying|\bnext (try|attempt|candidate|backend|library|one|in \d)|, next$|switch(ing|ed) (to|backend)",
            r"|rebuil|regenerat|re-?creat|[,;(:] ?creating|skipp|\(ignored\)|(using|with|to) (the )?([\w-]+ )?defaults?\b|quarantin|moved to|optional|going on",
            r"|recover(ed|ing)|reconnect|using (the )?\w* ?(instead|local|cached|backup|built-in)|attempt \d+( of |/)\d|as expected|known issue|reject|replac(ing|ed) it|refused by",
            r"|re-?(export|download|compil|fetch)|will (use|try|be)|\[skip|building|compiling|halving|exporting|downloading|fetching|first run|stale"
        ))
        .ok()?,
        lost: regex(concat!(
            r"\bcpu|without (the )?(npu|htp|qnn|dsp|hexagon|accelerator|gpu)|reference kernel|software|interpreter|xnnpack",
            r"|fall ?back (engine|path)|default (engine|provider|delegate)|fall\w*\W?back.{0,40}cpu"
        ))
        .ok()?,
        nothing: regex(r"\b0 (ok|inferences?|runs?|frames?|outputs?|results?|images?|samples?|rows|predictions?|records|usable)\b|\b(written|saved|stored|processed|done|served|outputs?|results?)[:=] ?0\b").ok()?,
        verdict: regex(concat!(
            r"\d usable\b|\bcleanly\b|\bsuccess(ful(ly)?)?\b|exit(ed|s)? (with )?(code|status)[: ]*0\b|exited normally",
            r#"|\b0 (new )?(failures|failed|errors|unexpected)\b|\berrors?["']?[: =]+(0|none)\b|\ball (checks|tests|files|models|cases) (ok|pass|done)"#
        ))
        .ok()?,
        compiled: regex(r"completed stage: finalizing graph|graph_?finalize ok").ok()?,
        begin: regex(r"= test session starts =|^[.sxfe]{2,}( +\[ *\d+%\])?$|^running \d+ tests?$|^\[=+\] running \d+ test|^tap version|^test project ").ok()?,
        test: regex(r"\bself-?test|negative (test|case)|must fail|refused as expected|fails? as (expected|it should)").ok()?,
        warns: regex(r"\bwarn(ing)?\b").ok()?,
        noise: regex(r"\bdebug\b|\[i:").ok()?,
        client: regex(r#"" 4\d\d\b|\b4\d\d (bad request|unprocessable)|status["=: ]+4\d\d\b"#).ok()?,
        path: regex(r"[\w.~-]*[/\\][\w./\\~-]+|\b[\w-]+\.[a-z]\w{1,11}\b").ok()?,
        file: regex(r"[\w\-]+\.(onnx|dlc|tflite|pte|bin|so|dll|json|ya?ml|toml|ini|cfg|conf|npy|npz|raw|jpe?g|png|bmp|wav|csv|txt|pth?|ckpt|h5|pb|ort|gguf)\b")
        .ok()?,
    })
});

impl Words {
    fn is_noise(&self, line: &[u8]) -> bool {
        is_chatter(line) || self.noise.is_match(line)
    }

    fn is_own(&self, line: &[u8]) -> bool {
        !self.is_noise(line) && !is_foreign(line)
    }

    /// The line with counts of nothing as a good word, and without lists of providers.
    fn plain(&self, line: &[u8]) -> Vec<u8> {
        let line = self.providers.replace_all(line, &b" "[..]);
        let line = self.stamps.replace_all(&line, &b" "[..]);
        self.none.replace_all(&line, &b" ok "[..]).into_owned()
    }

    fn is_bad(&self, line: &[u8]) -> bool {
        let plain = self.plain(line);
        level(line) == Level::Error || self.bad.is_match(&plain) || self.is_partial(&plain)
    }

    /// True for `3 of 9 files written`, and not for a step of many.
    fn is_partial(&self, plain: &[u8]) -> bool {
        let number =
            |part: Option<regex::bytes::Match<'_>>| std::str::from_utf8(part?.as_bytes()).ok()?.parse::<u64>().ok();
        self.good.is_match(plain)
            && self
                .part
                .captures_iter(plain)
                .any(|part| number(part.get(1)).zip(number(part.get(2))).is_some_and(|(some, all)| some < all))
    }

    /// True if something went well, and nothing wrong.
    fn is_good(&self, line: &[u8]) -> bool {
        self.good.is_match(&self.plain(line)) && !self.is_bad(line)
    }

    /// The first line of success after the last line that is bad; `None` if the log does not end well.
    fn end(&self, own: &BTreeMap<u64, &[u8]>) -> Option<u64> {
        let well = own.iter().rev().take_while(|(_, line)| !self.is_bad(line));
        well.filter(|(_, line)| self.is_good(line)).map(|(number, _)| *number).last()
    }

    /// The last line, if it is the program's verdict that all went well.
    fn verdict(&self, lines: &BTreeMap<u64, &[u8]>) -> Option<u64> {
        let (number, last) = lines.iter().rev().find(|(_, line)| !self.is_noise(line))?;
        let is_well = self.is_own(last) && !self.is_bad(last) && self.verdict.is_match(&self.plain(last));
        is_well.then_some(*number)
    }

    /// True if the program says what it does instead of what failed in this line, before it ends well (`until_end` lines
    /// of its own later), only warns of it, or has done with the same file later.
    fn is_made_good(&self, failed: &[u8], after: &[&[u8]], until_end: usize) -> bool {
        let is_own = !is_foreign(failed);
        let instead = |line: &[u8]| {
            let words = self.path.replace_all(line, &b" "[..]);
            self.instead.is_match(&words) && !self.lost.is_match(&words)
        };
        let head = &failed[..failed.len().min(HEAD)];
        let names: Vec<_> = self
            .file
            .find_iter(failed)
            .map(|name| name.as_bytes())
            .filter(|name| name.len() >= SHORTEST_NAME)
            .collect();
        let has_name = |line: &[u8]| {
            self.file.find_iter(line).any(|name| names.iter().any(|known| known.eq_ignore_ascii_case(name.as_bytes())))
        };
        let answers = || after.iter().take(1).chain([&failed]).any(|line| self.client.is_match(line));
        is_own && (instead(failed) || self.warns.is_match(head) || answers())
            || after.iter().take(NEXT_LINES.min(until_end)).any(|line| instead(line))
            || after.iter().any(|line| has_name(line) && self.is_good(line))
    }
}

/// The end of a log, and where it shows the causes.
struct Course<'a> {
    words: &'a Words,
    /// All lines, and those of the program itself.
    lines: BTreeMap<u64, &'a [u8]>,
    own: BTreeMap<u64, &'a [u8]>,
    /// Numbers of the lines of each cause that can be made good.
    shown: Vec<Vec<u64>>,
}

impl Course<'_> {
    /// True if the end follows every line of the causes, and each has one.
    fn is_before(&self, end: u64) -> bool {
        self.shown
            .iter()
            .all(|shown| !shown.is_empty() && shown.iter().all(|line| *line < end && self.lines.contains_key(line)))
    }

    /// No cause shows before the line with which a run of tests begins, if it prints one.
    fn is_of_tests(&self) -> bool {
        let begin = self.lines.iter().find(|(_, line)| self.words.begin.is_match(line)).map(|(number, _)| *number);
        self.shown.iter().flatten().all(|line| begin.is_none_or(|begin| *line > begin))
    }

    /// A library calls one of the causes' lines an error.
    fn is_of_library(&self) -> bool {
        let is_error = |line: &[u8]| is_foreign(line) && level(line) == Level::Error;
        self.shown.iter().flatten().filter_map(|shown| self.lines.get(shown)).any(|line| is_error(line))
    }

    /// The program's lines after the first one that shows a cause.
    fn since(&self) -> impl Iterator<Item = &[u8]> {
        let first = self.shown.iter().flatten().min().copied().unwrap_or_default();
        self.own.range(first + 1..).map(|(_, line)| *line)
    }

    /// The last line is the program's verdict that all went well, on what was meant to fail or is its own.
    fn has_verdict(&self) -> bool {
        // What a library refused may have been all that was asked for.
        let is_own = |line: &[u8]| !is_foreign(line) || level(line) == Level::Warning;
        let is_meant = || {
            self.own.values().any(|line| self.words.test.is_match(line))
                || self.shown.iter().flatten().all(|shown| is_own(self.lines[shown]))
        };
        self.words.verdict(&self.lines).is_some_and(|end| self.is_before(end) && is_meant())
    }

    /// Another context was compiled after one was refused.
    fn is_rebuilt(&self) -> bool {
        let first = self.shown.iter().flatten().min().copied().unwrap_or_default();
        self.lines.range(first + 1..).any(|(_, line)| self.words.compiled.is_match(line))
    }

    /// The last line of the program is not bad, and it said some others after the causes.
    fn ends_quietly(&self) -> bool {
        let Some((last, line)) = self.own.last_key_value() else { return false };
        let after = self.shown.iter().flatten().max().map_or(0, |shown| self.own.range(shown + 1..).count());
        after >= QUIET_LINES && !self.words.is_bad(line) && self.is_before(*last)
    }

    /// Every cause has a line that the program made good before it ended well.
    fn is_made_good(&self, end: u64) -> bool {
        self.shown.iter().all(|shown| {
            shown.iter().any(|shown| {
                let after: Vec<&[u8]> = self.own.range(shown + 1..).map(|(_, line)| *line).collect();
                let until_end = self.own.range(shown + 1..=end).count();
                self.words.is_made_good(self.lines[shown], &after, until_end)
            })
        })
    }
}

impl Diagnoser {
    /// True if the log ends well and the program made good what these causes show.
    pub(super) fn has_recovered(&self, causes: &[Finding]) -> bool {
        let (Some(words), Some(best)) = (WORDS.as_ref(), causes.first()) else { return false };
        if self.facts.status().is_some_and(|status| status != 0) {
            return false;
        }
        let mut lines: BTreeMap<u64, &[u8]> =
            self.tail.lines().enumerate().map(|(from_end, line)| (self.place(from_end), line)).collect();
        // The first line may be the end of one.
        if self.tail.is_cut() {
            lines.pop_first();
        }
        // Where many programs write, another one ends well.
        if lines.values().filter(|line| is_of_system(line)).count() >= SYSTEM_LINES {
            return false;
        }
        let of_tests = passed_tests(lines.values().rev().copied()).map(|from_end| self.place(from_end));
        let own = lines.iter().filter(|(_, line)| words.is_own(line)).map(|(number, line)| (*number, *line)).collect();
        let numbers =
            |finding: &Finding| finding.evidence.iter().map(|line| line.line).filter(|line| *line > 0).collect();
        let mut course = Course { words, lines, own, shown: causes.iter().map(numbers).collect() };
        if of_tests.is_some_and(|end| course.is_before(end) && course.is_of_tests()) {
            return true;
        }
        // A session that was refused, and not one that fell to the CPU in silence.
        let is_refused = || best.evidence.iter().all(|line| line.text.contains("explicitly disabled"));
        if STAYS.contains(&best.id) && !is_refused() {
            return false;
        }
        let stays = |finding: &Finding| STAYS.contains(&finding.id) && finding.id != best.id;
        course.shown = causes.iter().filter(|finding| !stays(finding)).map(numbers).collect();
        if course.has_verdict() {
            return true;
        }
        if course.since().any(|line| words.nothing.is_match(&words.plain(line))) {
            return false;
        }
        // What is plain, and what a library calls an error, only the program itself makes good.
        let is_vague = best.confidence < PLAIN && !course.is_of_library();
        let is_like_good_runs = || {
            is_vague
                && !course.since().any(|line| words.lost.is_match(line))
                && self.none_likely(SHORTEST) >= LIKE_GOOD_RUNS
        };
        if course.ends_quietly() && is_like_good_runs() {
            return true;
        }
        let is_rebuilt = best.id.starts_with("context-binary") && course.is_rebuilt();
        let end = words.end(&course.own);
        end.is_some_and(|end| course.is_before(end) && (is_rebuilt || course.is_made_good(end)))
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnosis::Diagnoser;

    fn causes(log: &str, status: Option<i32>) -> Vec<&'static str> {
        let mut diagnoser = Diagnoser::new();
        if let Some(status) = status {
            diagnoser.exit_status(status);
        }
        diagnoser.feed(log.as_bytes());
        diagnoser.finish().causes.iter().map(|cause| cause.id).collect()
    }

    const START: &str = "run: QNN 2.47, libQnnHtp.so\n";
    const MISSING: &str = "WARN could not open cache/net.bin: No such file or directory\n";

    #[test]
    fn what_a_program_makes_good_before_it_ends_well_is_no_failure() {
        for good in [
            "no cached context, compiling\ngraph ready\n",
            "net.bin written\n3 results\n",
            "retry 1/3\nopened cache/net.bin\nall done\n",
            "ok\n",
        ] {
            let log = format!("{START}{MISSING}{good}");
            assert_eq!(causes(&log, None), Vec::<&str>::new(), "{log}");
            assert_ne!(causes(&log, Some(3)), Vec::<&str>::new(), "{log}");
        }
        for bad in ["", "retry 1/3\ngiving up\n", "falling back to the CPU\n1 result on cpu\n", "compiling\nError 2\n"]
        {
            let log = format!("{START}{MISSING}{bad}");
            assert_eq!(causes(&log, None).first(), Some(&"model-missing"), "{log}");
        }
    }

    #[test]
    fn a_request_that_was_answered_as_wrong_is_none_of_the_service() {
        let bad = "[E] request rejected: InvalidArgument: [ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid rank for input: x Got: 3 Expected: 4\n";
        let answer = "[I] \"POST /infer HTTP/1.1\" 400 -\n[I] \"POST /infer HTTP/1.1\" 200 -\n[I] shut down cleanly\n";
        assert_eq!(causes(&format!("[I] QNNExecutionProvider\n{bad}{answer}"), None), Vec::<&str>::new());
        let crash = answer.replace(" 400 ", " 500 ").replace("cleanly", "after a failure");
        assert_eq!(
            causes(&format!("[I] QNNExecutionProvider\n{bad}{crash}"), None).first(),
            Some(&"input-size-mismatch")
        );
    }

    #[test]
    fn a_line_that_is_of_no_log_comes_last() {
        let mut diagnoser = Diagnoser::new();
        for (number, line) in (1..).zip(format!("{START}{MISSING}retry 1/3\nopened cache/net.bin\nall done\n").lines())
        {
            diagnoser.feed_line(number, line.as_bytes());
        }
        assert_eq!(diagnoser.so_far().causes.len(), 0);
        diagnoser.feed_line(0, b"qnn graphExecute failed: error 1");
        assert_ne!(diagnoser.finish().causes.len(), 0, "the run failed after all");
    }

    #[test]
    fn a_library_that_refused_all_that_was_asked_for_is_not_made_good_by_a_verdict() {
        let refused = "2026-11-23 11:58:21.584 [E:onnxruntime:, qnn_backend_manager.h:467 LoadOpPackage] Could not open op package path. op_pack_path: /opt/a.so\n";
        assert_eq!(causes(&format!("{refused}ok\n"), None).first(), Some(&"op-package-invalid"));
    }
}

//! Tells that a program made good what failed: it went on in another way, and ended well.

use super::Diagnoser;
use crate::diagnosis::evidence::Evidence;
use crate::diagnosis::finding::Finding;
use crate::diagnosis::foreign::{is_foreign, is_of_system};
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
/// A shorter name of a file may be part of another word.
const SHORTEST_NAME: usize = 6;

/// What a line of the program says.
struct Words {
    /// A count of failures that is zero.
    none: Regex,
    /// Something is wrong.
    bad: Regex,
    /// Something went well.
    good: Regex,
    /// Something else is done instead.
    instead: Regex,
    /// The program's verdict on all that it did.
    verdict: Regex,
    /// The program tests itself.
    test: Regex,
    /// A warning by its own word.
    warns: Regex,
    /// Rules, blanks, and what the libraries print of themselves and of compilation.
    noise: Regex,
    /// A service's answer to a request that was wrong.
    client: Regex,
    file: Regex,
}

static WORDS: LazyLock<Option<Words>> = LazyLock::new(|| {
    Some(Words {
        none: regex(concat!(
            r#"\b(0|no) (\w+ )?(errors?|failed|failures?|failing|skipped|warnings?|unexpected)\b"#,
            r#"|(errors?|failed|failures?|skipped)\w*["' ]*[:=] ?0\b|not (needed|used)|stopped cleanly|qnn\w*['\x22, ]+cpuexecutionprovider"#
        ))
        .ok()?,
        bad: regex(concat!(
            r"fail|error|traceback|exception|cannot|can.?t |could not|couldn.t|unable|not found|no such|missing|invalid",
            r"|abort|killed|segmentation|giv\w+ up|denied|connection refused|refused to|timed? ?out|exit (code|status)?:? ?[1-9]|exited [1-9]",
            r"|rc=[1-9]|mismatch|wrong|differ|unsupported|unknown|usage:|not |no |panic|fatal|core dumped|terminate|warn",
            r"|required|expect|nothing|: 0/|stopp|\b0 ok|retry|tried|crash|corrupt|truncated|bad |\xe2\x9c\x97|\xe2\x9d\x8c",
            r#"|please|^\s+at |however|cpu|-> ?(0x)?[1-9][0-9a-f]{2,}\b|status = 0x[0-9a-f]*[1-9a-f]|" [45]\d\d\b"#
        ))
        .ok()?,
        good: regex(concat!(
            r"\b(ok|done|finish\w*|complet\w*|success\w*|succeeded|ready|saved|saving|wrote|written|pass|passed|served|serving",
            r"|results?|top|top-?\d|latency|mean|avg|average|p50|p95|median|bye|loaded|opened|created|exported|accuracy",
            r"|listening|elapsed|throughput|fps|ips|outputs?|out|inference|processed|stored|built|verified|healthy|all good",
            r"|recovered|restored|compiled|copied|selected|chosen|answered|shutdown complete|shutting down)\b|\xe2\x9c[\x93\x94\x85]|\d ?(ms|us|\xc2\xb5s)\b|\[[-\d. ,]+\]|\d/\d|\busing \S*\.(so|dll|onnx|bin|dlc)\b|-> \S+\.[a-z]\w+"
        ))
        .ok()?,
        instead: regex(concat!(
            r"retry|retri|\bagain\b|fall\w* ?back|instead|trying|\bnext\b|switch|rebuil|regenerat|re-?creat|[,;(:] ?creating|skip",
            r"|ignor|default|quarantin|\bmoved\b|optional|continu|going on|carry|recover|restart|reconnect|using (the )?\w* ?(default|instead|local|cached|backup|built-in)",
            r"|attempt \d+( of |/)\d|as expected|wanted|known issue|reject|re-?(export|download|compil|fetch)|will (use|try|be)|building|compiling|halving",
            r"|replac|refused by|exporting|downloading|fetching|first run|stale"
        ))
        .ok()?,
        verdict: regex(concat!(
            r"\busable\b|\bcleanly\b|\bsuccess(ful(ly)?)?\b|exit(ed|s)? (with )?(code|status)[: ]*0\b|exited normally|all good|\bhealthy\b",
            r#"|\b0 (new )?(failures|failed|errors|unexpected)\b|\berrors?["']?[: =]+(0|none)\b|\ball (checks|tests|files|models|jobs|cases)\b"#,
            r"|\brecovered\b|\d ok\b|^\W*(ok|done|success|pass|passed|finished|completed)\W*$|: (ok|done|passed|finished|completed)\b|\b(check|test|build|run|all) ok\b"
        ))
        .ok()?,
        test: regex(r"\bself-?test|negative (test|case)|must fail|refused as expected|fails? as (expected|it should)").ok()?,
        warns: regex(r"\bwarn(ing)?\b").ok()?,
        noise: regex(r"^\W*$|libnative|starting stage|completed stage|ddr bandwidth|_bytes=|\bdebug\b|\[i:")
        .ok()?,
        client: regex(r#"" 4\d\d\b|\b4\d\d (bad request|unprocessable)|status["=: ]+4\d\d\b"#).ok()?,
        file: regex(r"[\w\-]+\.[a-z]\w{1,11}\b").ok()?,
    })
});

impl Words {
    fn is_own(&self, line: &[u8]) -> bool {
        !self.noise.is_match(line) && !is_foreign(line)
    }

    fn is_bad(&self, line: &[u8]) -> bool {
        level(line) == Level::Error || self.bad.is_match(&self.none.replace_all(line, &b" ok "[..]))
    }

    /// True if something went well, and nothing wrong.
    fn is_good(&self, line: &[u8]) -> bool {
        self.good.is_match(&self.none.replace_all(line, &b" ok "[..])) && !self.is_bad(line)
    }

    /// The first line of success after the last line that is bad; `None` if the log does not end well.
    fn end(&self, own: &BTreeMap<u64, &[u8]>) -> Option<u64> {
        let well = own.iter().rev().take_while(|(_, line)| !self.is_bad(line));
        well.filter(|(_, line)| self.is_good(line)).map(|(number, _)| *number).last()
    }

    /// The last line, if it is the program's verdict that all went well.
    fn verdict(&self, lines: &BTreeMap<u64, &[u8]>) -> Option<u64> {
        let (number, last) = lines.iter().rev().find(|(_, line)| !self.noise.is_match(line))?;
        let is_well = self.is_own(last)
            && !self.is_bad(last)
            && self.verdict.is_match(&self.none.replace_all(last, &b" ok "[..]));
        is_well.then_some(*number)
    }

    /// True if the program says what it does instead of what failed in this line, only warns of it, or has done with
    /// the same file later.
    fn is_made_good(&self, failed: &[u8], after: &[&[u8]]) -> bool {
        let own = |line: &[u8]| !is_foreign(line);
        // On the CPU is not what was asked for.
        let instead = |line: &[u8]| self.instead.is_match(line) && !is_cpu(line);
        let head = &failed[..failed.len().min(HEAD)];
        let names: Vec<_> = self.file.find_iter(failed).map(|name| name.as_bytes()).collect();
        let has_name = |line: &[u8]| {
            let lower = line.to_ascii_lowercase();
            names.iter().any(|name| {
                name.len() >= SHORTEST_NAME && memchr::memmem::find(&lower, &name.to_ascii_lowercase()).is_some()
            })
        };
        own(failed) && (instead(failed) || self.warns.is_match(head))
            || own(failed) && after.iter().take(1).chain([&failed]).any(|line| self.client.is_match(line))
            || after.iter().take(NEXT_LINES).any(|line| instead(line))
            || after.iter().any(|line| has_name(line) && self.is_good(line))
    }
}

fn is_cpu(line: &[u8]) -> bool {
    memchr::memmem::find(&line.to_ascii_lowercase(), b"cpu").is_some()
}

impl Diagnoser {
    /// True if the log ends well and the program made good what these causes show.
    pub(super) fn has_recovered(&self, causes: &[Finding]) -> bool {
        let (Some(words), Some(best)) = (WORDS.as_ref(), causes.first()) else { return false };
        if self.facts.status().is_some_and(|status| status != 0) {
            return false;
        }
        let lines: BTreeMap<u64, &[u8]> =
            (0..).zip(self.tail.lines()).map(|(from_end, line)| (self.lines.saturating_sub(from_end), line)).collect();
        // Where many programs write, another one ends well.
        if lines.values().filter(|line| is_of_system(line)).count() >= SYSTEM_LINES {
            return false;
        }
        let own: BTreeMap<u64, &[u8]> =
            lines.iter().filter(|(_, line)| words.is_own(line)).map(|(number, line)| (*number, *line)).collect();
        let shown: Vec<(bool, Vec<&Evidence>)> = causes
            .iter()
            .map(|finding| {
                let lines = finding.evidence.iter().filter(|line| line.line > 0).collect();
                (STAYS.contains(&finding.id) && finding.id != best.id, lines)
            })
            .collect();
        let is_before = |end: u64, shown: &[&Evidence]| {
            !shown.is_empty() && shown.iter().all(|shown| shown.line < end && lines.contains_key(&shown.line))
        };
        let last = lines.last_key_value().map_or(0, |(number, _)| *number);
        if passed_tests(lines.values().rev().copied()) && shown.iter().all(|(_, shown)| is_before(last, shown)) {
            return true;
        }
        // A session that was refused, and not one that fell to the CPU in silence.
        let is_refused = || best.evidence.iter().all(|line| line.text.contains("explicitly disabled"));
        if STAYS.contains(&best.id) && !is_refused() {
            return false;
        }
        let shown: Vec<&Vec<&Evidence>> = shown.iter().filter(|(stays, _)| !stays).map(|(_, shown)| shown).collect();
        let is_before = |end: u64| shown.iter().all(|shown| is_before(end, shown));
        // What a library refused may have been all that was asked for.
        let is_own = |line: &[u8]| !is_foreign(line) || level(line) == Level::Warning;
        let is_meant = || {
            own.values().any(|line| words.test.is_match(line))
                || shown.iter().copied().flatten().all(|shown| is_own(lines[&shown.line]))
        };
        if words.verdict(&lines).is_some_and(|end| is_before(end) && is_meant()) {
            return true;
        }
        words.end(&own).is_some_and(|end| {
            is_before(end)
                && shown.iter().all(|shown| {
                    shown.iter().any(|shown| {
                        let after: Vec<&[u8]> = own.range(shown.line + 1..).map(|(_, line)| *line).collect();
                        words.is_made_good(lines[&shown.line], &after)
                    })
                })
        })
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
    fn a_library_that_refused_all_that_was_asked_for_is_not_made_good_by_a_verdict() {
        let refused = "2026-11-23 11:58:21.584 [E:onnxruntime:, qnn_backend_manager.h:467 LoadOpPackage] Could not open op package path. op_pack_path: /opt/a.so\n";
        assert_eq!(causes(&format!("{refused}ok\n"), None).first(), Some(&"op-package-invalid"));
    }
}

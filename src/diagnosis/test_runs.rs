//! Tells that a log is a run of tests that all passed, from its first line to its last: what failed in it was expected to.

use super::statements::{Level, level};

/// Bytes of a line that are read.
const LINE_BYTES: usize = 200;
/// Lines at the end of a log that hold the summary of its tests.
const SUMMARY_LINES: usize = 12;
/// Beginnings of lines that no run has in which all tests passed.
const BAD: [&str; 5] = ["not ok", "Bail out!", "[  FAILED  ]", "exit ", "exited "];

/// What the lines so far look like.
#[derive(Debug, Clone, Default)]
pub struct TestRun {
    lines: u32,
    /// Points of pytest's passed tests.
    dots: u32,
    /// Tests that TAP's plan or GoogleTest's first line announces.
    plan: Option<u32>,
    /// Tests that TAP reports as passed.
    passed: u32,
    /// All tests of the plan have been reported, and only comments came after them.
    is_complete: bool,
    /// The first line is GoogleTest's.
    is_google: bool,
    /// A test failed or was skipped, or something else ran.
    is_bad: bool,
    /// Lines that tell of a test that failed.
    failed: u32,
    last: String,
}

impl TestRun {
    /// Takes a line.
    pub fn note(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES)]);
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        self.lines += u32::from(!line.starts_with("TAP version"));
        if self.lines == 1 {
            let announced = line.strip_prefix("[==========] Running ");
            self.is_google = announced.is_some();
            let count = line.strip_prefix("1..").or_else(|| announced?.split(' ').next());
            self.plan = count.and_then(|count| count.parse().ok()).filter(|count| *count > 0);
        }
        self.is_bad |= line.starts_with("$ ") && self.lines > 1;
        let has_failed = line.starts_with("not ok") || line.starts_with("FAIL") || line.contains("FAILED");
        self.failed += u32::from(has_failed);
        self.is_bad |= BAD.iter().any(|start| line.starts_with(start));
        let dots = line.bytes().take_while(|byte| *byte == b'.').count();
        if !line[dots..].starts_with(['/', '\\']) {
            self.dots += u32::try_from(dots).unwrap_or(0);
        }
        // Nothing but tests is expected to fail before the first of them.
        self.is_bad |= self.dots == 0 && self.plan.is_none() && level(line.as_bytes()) == Level::Error;
        if line.starts_with("ok ") {
            self.passed += 1;
            self.is_bad |= line.contains("# SKIP");
        }
        self.is_complete =
            line.starts_with("ok ") && self.plan == Some(self.passed) || self.is_complete && line.starts_with('#');
        line.clone_into(&mut self.last);
    }

    /// True if all lines are those of such a run.
    pub fn has_passed(&self) -> bool {
        let google = self.last.strip_prefix("[  PASSED  ] ").and_then(|rest| rest.split(' ').next()?.parse().ok());
        // `4 passed in 0.09s`, with a point for each of them.
        let pytest = self.last.split_once(" passed in ").filter(|(_, time)| time.ends_with('s'));
        let pytest = pytest.and_then(|(count, _)| count.parse::<u32>().ok()).filter(|count| *count > 0);
        let all = self.is_google && google.is_some() && google == self.plan
            || !self.is_google && self.is_complete
            || pytest.is_some_and(|count| count == self.dots);
        all && !self.is_bad || self.failed == 0 && is_good_summary(&self.last)
    }
}

/// The last line of a test in which all went as it should: `6 passed, 0 failed`, `negative tests: 5 run, 0 unexpected`,
/// `check: PASS`.
fn is_good_summary(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let (name, counts) = line.rsplit_once(": ").unwrap_or(("", &line));
    let is_test = name.is_empty()
        || ["test", "check"].iter().any(|word| name.ends_with(word) || name.ends_with(&format!("{word}s")));
    let is_count = |part: &str, words: &[&str]| {
        let (number, word) = part.split_once(' ').unwrap_or_default();
        words.contains(&word) && number.parse::<u32>().is_ok()
    };
    let is_sum = counts.split_once(", ").is_some_and(|(all, bad)| {
        is_count(all, &["passed", "run", "tests", "checks"])
            && !all.starts_with("0 ")
            && bad.starts_with("0 ")
            && is_count(bad, &["failed", "failures", "errors", "unexpected"])
    });
    is_test
        && (is_sum || !name.is_empty() && ["pass", "passed", "ok", "all good"].contains(&counts.trim_end_matches('.')))
}

/// Where a log's tests end, counted from its last line, if they all passed or failed as they were expected to, by the summary in
/// its last lines (the last one first): unittest's, pytest's, Node's, GoogleTest's, CTest's, Cargo's, TAP's plan, or a self-test's
/// count. Some must have run, and no command come after them.
pub fn passed_tests<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<usize> {
    let lines: Vec<String> = lines.map(|line| String::from_utf8_lossy(line).trim().to_owned()).collect();
    let is_todo = |line: &str| line.to_ascii_uppercase().contains("# TODO");
    let is_skipped = |line: &str| line.to_ascii_uppercase().contains("# SKIP");
    let is_bad = |line: &String| line.starts_with("not ok ") && !is_todo(line) || line.starts_with("[  FAILED  ]");
    if lines.iter().any(is_bad) {
        return None;
    }
    let ends: Vec<(usize, &String)> =
        lines.iter().enumerate().filter(|(_, line)| !line.is_empty()).take(SUMMARY_LINES).collect();
    let ends = &ends[..ends.iter().position(|(_, line)| line.starts_with("$ ")).unwrap_or(ends.len())];
    // A count after these words, and its line.
    let counted = |start: &str| {
        ends.iter().find_map(|(at, line)| {
            let count = line.strip_prefix(start)?.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()?;
            Some((*at, count))
        })
    };
    let some = |start: &str| counted(start).filter(|(_, count)| *count > 0).map(|(at, _)| at);
    let (at, last) = ends.first().map(|(at, line)| (*at, line.as_str()))?;
    let number =
        |text: &str| text.rsplit(' ').next().and_then(|count| count.parse::<u32>().ok()).is_some_and(|count| count > 0);
    let unittest = some("Ran ").filter(|_| last == "OK" || last.starts_with("OK (")).map(|_| at);
    let node = some("# pass ").zip(counted("# fail ").filter(|(_, count)| *count == 0)).map(|(_, (at, _))| at);
    let google = some("[  PASSED  ] ");
    let rust = last
        .strip_prefix("test result: ok. ")
        .is_some_and(|rest| !rest.starts_with("0 ") && rest.contains(" passed; 0 failed"));
    let ctest = ends
        .iter()
        .find(|(_, line)| line.starts_with("100% tests passed") && !line.ends_with("out of 0"))
        .map(|(at, _)| *at);
    let summary = last.trim_matches('=').trim();
    let is_pytest = (last.starts_with("==") || last.ends_with('s'))
        && summary.split_once(" passed").is_some_and(|(count, _)| count.parse::<u32>().is_ok_and(|count| count > 0))
        && summary.contains(" in ")
        && !summary.split([' ', ',']).any(|word| ["failed", "error", "errors"].contains(&word));
    let plan = ends.iter().find_map(|(_, line)| line.strip_prefix("1..")?.parse::<usize>().ok());
    let results =
        || lines.iter().enumerate().filter(|(_, line)| line.starts_with("ok ") || line.starts_with("not ok "));
    let tap = plan
        .filter(|plan| *plan > 0 && results().count() == *plan && !results().all(|(_, line)| is_skipped(line)))
        .and_then(|_| results().next())
        .map(|(at, _)| at);
    let lower = last.to_ascii_lowercase();
    let is_self_test = ["selftest", "self-test", "self test", "negative test"].iter().any(|word| lower.contains(word))
        && ["0 unexpected", "0 failed", "0 failures"].iter().any(|count| lower.contains(count));
    // `# pass 8 skip 2 fail 0`
    let is_counted = last.starts_with("# pass ")
        && number(last.split(" skip").next().unwrap_or_default())
        && last.ends_with("fail 0");
    let by_last = is_counted || last == "Result: PASS" || rust || is_pytest || is_self_test;
    by_last.then_some(at).or(unittest).or(node).or(google).or(ctest).or(tap)
}

/// The first and the last line of a run of pytest or unittest, of any length, in which all tests passed.
pub fn begins_and_ends_as_passed(head: &str, tail: &str) -> bool {
    let is_run = head.trim_start().lines().next().is_some_and(|line| {
        ["pytest", "unittest", "test session starts"].iter().any(|word| line.contains(word))
            || line.starts_with("test_")
    });
    let mut ends = tail.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let (last, before) = (ends.next().unwrap_or_default(), ends.next().unwrap_or_default());
    let is_unittest = last == "OK" && before.starts_with("Ran ") && before.contains(" test");
    let summary = last.trim_matches('=').trim();
    let counts = summary.split_once(" in ").map_or("", |(counts, _)| counts);
    // `pytest -q` writes no header, and its summary without a rule.
    let is_quiet =
        head.trim_start().lines().next().is_some_and(|line| line.starts_with("$ ") && line.contains("pytest"));
    let is_pytest = (last.starts_with("==") || is_quiet)
        && counts.split(", ").enumerate().all(|(at, count)| match count.split_once(' ') {
            Some((number, "passed")) => at == 0 && number.parse::<u32>().is_ok_and(|passed| passed > 0),
            Some((_, "warning" | "warnings" | "xfailed")) => at > 0,
            _ => false,
        });
    is_run && (is_unittest || is_pytest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_passed(log: &str) -> bool {
        let mut run = TestRun::default();
        log.lines().for_each(|line| run.note(line.as_bytes()));
        run.has_passed()
    }

    #[test]
    fn the_summary_of_a_test_is_its_last_line() {
        for log in [
            "error: no backend\n6 passed, 0 failed\n",
            "no such file\nnegative tests: 5 run, 0 unexpected\n",
            "x\ncheck: PASS\n",
        ] {
            assert!(has_passed(log), "{log}");
        }
        for log in [
            "6 passed, 0 failed\nthen it stopped\n",
            "5 passed, 1 failed\n",
            "0 passed, 0 failed\n",
            "FAIL x\n6 passed, 0 failed\n",
            "status: ok\n",
            "check: 3 left\n",
        ] {
            assert!(!has_passed(log), "{log}");
        }
    }

    #[test]
    fn summaries_of_tests_end_logs_of_tests_that_passed() {
        let passed = |log: &str| passed_tests(log.lines().rev().map(str::as_bytes)).is_some();
        for log in [
            "x: no such file\nRan 5 tests in 0.1s\n\nOK (skipped=1, expected failures=1)\n",
            "# x: no such file\nok 1 - a\n1..1\n# pass 1\n# fail 0\n# skipped 0\n",
            "no such file\n[  PASSED  ] 4 tests.\n[  SKIPPED ] 1 test, listed below:\n",
            "no such file\ntest result: ok. 3 passed; 0 failed; 0 ignored\n",
            "no such file\n======= 9 passed, 2 deselected in 0.44s =======\n",
            "no such file\n100% tests passed, 0 tests failed out of 3\n",
            "no such file\nok 1\nok 2\n1..2\n",
            "no such file\nselftest finished, 0 unexpected\n",
        ] {
            assert!(passed(log), "{log}");
        }
        for log in [
            "FAILED (failures=1)\nRan 5 tests in 0.1s\n",
            "not ok 1 - a\n1..1\n# pass 1\n# fail 0\n",
            "[  FAILED  ] a.b\n[  PASSED  ] 4 tests.\n",
            "=== 1 failed, 2 passed in 0.1s ===\n",
            "ok 1\n1..2\n",
            "OK\n",
            "done\n",
            "Ran 0 tests in 0.0s\n\nOK\n",
            "[  PASSED  ] 0 tests.\n",
            "test result: ok. 0 passed; 0 failed; 7 ignored\n",
            "100% tests passed, 0 tests failed out of 0\n",
            "ok 1 - a # SKIP no device\n1..1\n",
            "ok 1 - a\n1..1\n$ ./run\nno such file\n",
        ] {
            assert!(!passed(log), "{log}");
        }
    }

    #[test]
    fn only_a_run_whose_tests_all_passed_has() {
        for log in [
            ".got the expected error: Unable to load backend\n.\n2 passed in 0.09s\n",
            "warning: x\n....        [100%]\n4 passed in 0.09s\n",
            "TAP version 13\n1..2\nok 1 - no backend\n# Unable to load backend\nok 2 - 1008\n# as expected\n",
            "[==========] Running 2 tests from 1 test suite.\nUnable to load backend\n[  PASSED  ] 2 tests.\n",
        ] {
            assert!(has_passed(log), "{log}");
        }
        for log in [
            "Unable to load backend\n2 passed in 0.09s\n",
            ".F\n1 failed, 1 passed in 0.09s\n",
            "1..2\nok 1 - no backend\nnot ok 2 - 1008\n",
            "1..3\nok 1 - no backend\n# Unable to load backend\n",
            "1..1\nok 1 - host\nphone:\nUnable to load backend\n",
            "Unable to load backend\n1..1\nok 1\n",
            "[==========] Running 2 tests\n[  FAILED  ] a.b\n[  PASSED  ] 1 test.\n",
            "[==========] Running 2 tests\nSegmentation fault\n[  PASSED  ] 1 test.\n",
            "QnnDsp <E> Unable to load backend\n..\n2 passed in 0.09s\n",
            "../lib/x.so: cannot open\n2 passed in 0.09s\n",
            "1..3\nok 3\n",
            "1..2\nok 1\nok 2 # SKIP no device\n",
            "$ ./run\nUnable to load backend\n$ pytest -q\n..\n2 passed in 0.09s\n",
            "loading\n",
        ] {
            assert!(!has_passed(log), "{log}");
        }
    }
}

//! Tells that a log is a run of tests that all passed, from its first line to its last: what failed in it was expected to.

/// What the lines so far look like.
#[derive(Debug, Clone, Default)]
pub struct TestRun {
    lines: u32,
    /// Points at the start of lines: pytest's passed tests.
    dots: u32,
    /// Tests that TAP's plan announces.
    plan: Option<u32>,
    /// The last test of the plan has been reported, and only comments came after it.
    is_complete: bool,
    /// The first line is GoogleTest's.
    is_google: bool,
    /// A test failed, or something else ran.
    is_bad: bool,
    last: String,
}

impl TestRun {
    /// Takes a line.
    pub fn note(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(&line[..line.len().min(200)]);
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        if self.lines == 0 {
            self.is_google = line.starts_with("[==========] Running ") || line.starts_with("Running main() from");
        }
        self.lines += u32::from(!line.starts_with("TAP version"));
        if self.lines == 1 {
            self.plan = line.strip_prefix("1..").and_then(|count| count.parse().ok()).filter(|count| *count > 0);
        }
        self.dots += u32::try_from(line.bytes().take_while(|byte| *byte == b'.').count()).unwrap_or(0);
        self.is_bad |= line.starts_with("$ ") && self.lines > 1;
        self.is_bad |=
            ["not ok", "Bail out!", "[  FAILED  ]", "exit ", "exited "].iter().any(|start| line.starts_with(start));
        let number = line.strip_prefix("ok ").map(|rest| rest.split(' ').next().unwrap_or_default());
        let is_last = number.is_some_and(|number| number.parse().ok() == self.plan && self.plan.is_some());
        self.is_complete = is_last || self.is_complete && line.starts_with('#');
        line.clone_into(&mut self.last);
    }

    /// True if all lines are those of such a run.
    pub fn has_passed(&self) -> bool {
        let is_google = self.is_google && self.last.starts_with("[  PASSED  ] ");
        // `4 passed in 0.09s`, with a point for each of them.
        let passed = self.last.split_once(" passed in ").filter(|(_, time)| time.ends_with('s'));
        let passed = passed.and_then(|(count, _)| count.parse::<u32>().ok()).filter(|count| *count > 0);
        !self.is_bad && (is_google || self.is_complete || passed.is_some_and(|count| count == self.dots))
    }
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
            "$ ./run\nUnable to load backend\n$ pytest -q\n..\n2 passed in 0.09s\n",
            "loading\n",
        ] {
            assert!(!has_passed(log), "{log}");
        }
    }
}

//! What the log as a whole shows: how it ends, which versions and architectures it names, how the program
//! exited.

use super::evidence::keep_end;
use super::test_runs::begins_and_ends_as_passed;
use std::collections::BTreeSet;

/// Bytes kept from the end of the log.
const TAIL_BYTES: usize = 4096;
/// Most lines of one kind that are read.
const ENOUGH: u32 = 64;
/// Number of refused ops from which the quantiser is to blame and not the model.
const MANY_REFUSALS: u32 = 20;
/// Bytes kept from the start of the log.
const HEAD_BYTES: usize = 512;
/// What comes before an exit status.
const EXIT_WORDS: [&str; 6] = ["exit", "exit code", "exit status", "exit_code", "rc", "return code"];
/// A log this short may be all that a program wrote before it died.
const SHORT_BYTES: u64 = 512;

/// Collected while the log is read.
#[derive(Debug, Default, Clone)]
pub struct Facts {
    head: Vec<u8>,
    tail: Vec<u8>,
    skels_wanted: BTreeSet<u8>,
    skels_present: BTreeSet<u8>,
    tool_versions: BTreeSet<Vec<u8>>,
    backend_versions: BTreeSet<Vec<u8>>,
    skel_lines: u32,
    refusals: u32,
    /// Nodes of the graph that was named last; the next field also holds how many of them QNN takes, if fewer
    /// than half.
    nodes: Option<u64>,
    few_taken: Option<(u64, u64)>,
    exit_status: Option<i32>,
    empty_outputs: u32,
}

impl Facts {
    /// Exit status as a shell reports it: 128 plus the signal number after a signal.
    pub fn exit_status(&mut self, status: i32) {
        self.exit_status = Some(status);
    }

    /// The exit status, if known.
    pub fn status(&self) -> Option<i32> {
        self.exit_status
    }

    /// Number of result files of 0 bytes.
    pub fn empty_outputs(&mut self, count: u32) {
        self.empty_outputs = count;
    }

    /// Feeds the next bytes of the log.
    pub fn pass(&mut self, data: &[u8]) {
        let room = HEAD_BYTES.saturating_sub(self.head.len()).min(data.len());
        self.head.extend(&data[..room]);
        keep_end(&mut self.tail, data, TAIL_BYTES);
    }

    /// A line that names a skel, either as wanted (an address with `?`, a failure) or as present (a listing).
    pub fn skel_line(&mut self, line: &[u8]) {
        if self.skel_lines >= ENOUGH {
            return;
        }
        self.skel_lines += 1;
        let line = line.to_ascii_lowercase();
        let bad = [&b"fail"[..], b"not found", b"no such", b"cannot", b"unable", b"mismatch"];
        let bad = bad.iter().any(|word| memchr::memmem::find(&line, word).is_some());
        for at in memchr::memmem::find_iter(&line, b"htpv") {
            let rest = &line[at + 4..];
            let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
            let arch = std::str::from_utf8(&rest[..digits]).ok().and_then(|text| text.parse().ok());
            let (Some(arch), Some(after)) = (arch, rest[digits..].strip_prefix(b"skel.so")) else { continue };
            if bad || after.first() == Some(&b'?') {
                self.skels_wanted.insert(arch);
            } else {
                self.skels_present.insert(arch);
            }
        }
    }

    /// A line with a build version; true if the version is new.
    pub fn version_line(&mut self, line: &[u8]) -> bool {
        let Some(at) = memchr::memmem::find(line, b"build version") else { return false };
        let tail = &line[at + b"build version".len()..];
        let Some(start) = tail.iter().position(u8::is_ascii_digit) else { return false };
        let parts: Vec<&[u8]> = tail[start..].splitn(3, |c| *c == b'.').collect();
        let [major, minor, _] = parts[..] else { return false };
        let set = if memchr::memmem::find(&line[..at], b"ackend").is_some() {
            &mut self.backend_versions
        } else {
            &mut self.tool_versions
        };
        set.len() < 4 && major.len() + minor.len() < 12 && set.insert([major, b".", minor].concat())
    }

    /// A line from ONNX Runtime with the number of nodes in the graph, of nodes that QNN takes, or both.
    pub fn nodes_line(&mut self, line: &[u8]) {
        let line = line.to_ascii_lowercase();
        if let Some(nodes) = number_after(&line, b"nodes in the graph") {
            self.nodes = Some(nodes);
        }
        let taken = number_after(&line, b"nodes supported by qnn");
        let (Some(taken), Some(nodes)) = (taken, self.nodes) else { return };
        // ONNX Runtime asks twice, before and after transforming the graph; only the last answer counts.
        self.few_taken = (taken < nodes / 2).then_some((taken, nodes));
    }

    /// A line that reports a refused op.
    pub fn refusal(&mut self) {
        self.refusals = self.refusals.saturating_add(1);
    }

    /// True if no more refusals need to be counted.
    pub fn enough_refusals(&self) -> bool {
        self.refusals > MANY_REFUSALS
    }

    /// True if no more skel lines need to be read.
    pub fn enough_skels(&self) -> bool {
        self.skel_lines >= ENOUGH
    }

    /// The facts that hold at the end, named as in [`super::catalogue::FACTS`], with a text if no line of the
    /// log shows them.
    pub fn at_end(&self, bytes: u64) -> Vec<(&'static str, Option<String>)> {
        let mut facts = Vec::new();
        let present = &self.skels_present;
        if !self.skels_wanted.is_empty() && !present.is_empty() && self.skels_wanted.is_disjoint(present) {
            let list = |set: &BTreeSet<u8>| set.iter().map(|arch| format!("v{arch}")).collect::<Vec<_>>().join(", ");
            let text = format!("wanted: {}; in the folder: {}", list(&self.skels_wanted), list(present));
            facts.push(("skel-arch-differs", Some(text)));
        }
        let (tools, backends) = (&self.tool_versions, &self.backend_versions);
        if !tools.is_empty() && !backends.is_empty() && tools.is_disjoint(backends) {
            facts.push(("versions-differ", None));
        }
        if self.refusals > MANY_REFUSALS {
            facts.push(("many-nodes-refused", Some(format!("more than {MANY_REFUSALS} ops were refused"))));
        }
        if let Some((taken, nodes)) = self.few_taken {
            facts.push(("few-nodes-taken", Some(format!("QNN takes {taken} of {nodes} nodes of the graph"))));
        }
        if self.empty_outputs > 0 {
            facts.push(("empty-outputs", Some(format!("{} result files have 0 bytes", self.empty_outputs))));
        }
        let exit = self.exit_status.map(|status| format!("the exit status is {status}"));
        match self.exit_status {
            Some(136) => facts.push(("exit-sigfpe", exit)),
            Some(124 | 137 | 143) => facts.push(("exit-timeout", exit)),
            _ => {}
        }
        if self.exit_status.is_none() && self.shows_timeout() {
            facts.push(("exit-timeout-shown", Some("a time limit, and exit status 124 at the end".to_owned())));
        }
        // A program that reports success was not interrupted.
        if self.exit_status != Some(0)
            && let Some(fact) = self.form(bytes)
        {
            facts.push((fact, None));
        }
        facts
    }

    /// A command under `timeout`, and the status by which that tells of a time limit: `exit code 124`, `rc=124`.
    fn shows_timeout(&self) -> bool {
        let tail = String::from_utf8_lossy(&self.tail).to_ascii_lowercase();
        let begins = String::from_utf8_lossy(&self.head).to_ascii_lowercase().contains("timeout ");
        let status = tail.trim_end().lines().next_back().and_then(|line| {
            let words = line.trim_end_matches(|c: char| c.is_ascii_digit());
            let names_it = EXIT_WORDS.contains(&words.trim_matches(|c: char| !c.is_ascii_alphabetic()));
            names_it.then(|| line[words.len()..].parse::<u32>().ok())?
        });
        begins && status == Some(124)
    }

    /// The whole log is a run of tests that all passed: what failed in it was expected to.
    pub fn is_passed_test_run(&self) -> bool {
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&self.tail));
        begins_and_ends_as_passed(&head, &tail)
    }

    /// Where the log of a tool like qnn-net-run stops.
    fn form(&self, bytes: u64) -> Option<&'static str> {
        let tail = self.tail.to_ascii_lowercase();
        let last = |word: &str| memchr::memmem::rfind(&tail, word.as_bytes());
        let has = |words: &[&str]| words.iter().any(|word| last(word).is_some());
        if bytes <= SHORT_BYTES {
            let lines: Vec<&[u8]> = tail.split(|c| *c == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
            let said = lines.iter().filter(|line| !line.starts_with(b"libnative")).count();
            return (said == 1 && has(&["qnn-net-run pid:"])).then_some("silent-after-start");
        }
        if has(&[
            "failure",
            "failed",
            "freeing",
            "_free",
            " free start",
            "executed graph",
            "terminat",
            "abort",
            "fault",
        ]) {
            return None;
        }
        let stage = last("starting stage:");
        if stage.is_some() && stage > last("completed stage:") {
            return Some("ends-in-finalize");
        }
        let started = last("graph_execute started").max(last("graph execute start"));
        started.is_some().then_some("ends-in-execute")
    }
}

/// The number after some words, past the rest of the last word and punctuation: `words EP: 12`.
fn number_after(line: &[u8], words: &[u8]) -> Option<u64> {
    const NEAR: usize = 8;
    let rest = &line[memchr::memmem::find(line, words)? + words.len()..];
    let start = rest.iter().take(NEAR).position(u8::is_ascii_digit)?;
    let digits = rest[start..].iter().take_while(|c| c.is_ascii_digit()).count();
    std::str::from_utf8(&rest[start..start + digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(log: &str) -> Facts {
        let mut facts = Facts::default();
        facts.pass(log.as_bytes());
        facts
    }

    #[test]
    fn a_time_limit_needs_its_command_and_its_status() {
        for (log, shown) in [
            ("$ timeout 12 python run.py\nready\nexit code 124\n", true),
            ("timeout 5 ./x; echo rc=$?\nrc=124\n\n", true),
            ("timeout 5 ./x; echo rc=$?\nrc=0\n", false),
            ("ready\nexit code: 124\n", false),
            ("timeout 5 ./x\nfound 124\n", false),
            ("timeout 5 ./x\nexit code 124\nand then it went on\n", false),
            ("timeout 5 ./x\nexit code 99999999999999\n", false),
        ] {
            assert_eq!(read(log).shows_timeout(), shown, "{log}");
        }
    }

    #[test]
    fn a_log_is_a_passed_test_run_only_from_its_first_line_to_its_last() {
        for log in [
            "$ python -m unittest -v t\nx ... ok\n\nRan 3 tests in 0.2s\n\nOK\n",
            "==== test session starts ====\n.\n=== 5 passed, 2 warnings in 2.30s ===\n",
            "$ python -m pytest -q t.py -rx\n...x\n3 passed, 1 xfailed, 1 warning in 0.44s\n",
        ] {
            assert!(read(log).is_passed_test_run(), "{log}");
        }
        for log in [
            "$ python -m unittest t\n\nRan 3 tests in 0.2s\n\nOK (skipped=3)\n",
            "$ python -m unittest t\n\nRan 3 tests in 0.2s\n\nFAILED (failures=1)\n",
            "$ python -m unittest t\n\nRan 3 tests in 0.2s\n\nOK\nthen it failed\n",
            "it failed\n$ python -m unittest t\n\nRan 3 tests in 0.2s\n\nOK\n",
            "$ pytest\n=== 1 failed, 5 passed in 2.30s ===\n",
            "$ pytest\n=== 5 passed, 1 skipped in 2.30s ===\n",
            "$ pytest -q\n.F\n1 failed, 1 passed in 0.44s\n",
            "1 passed in 0.44s\n",
            "$ pytest\n=== 0 passed in 2.30s ===\n",
        ] {
            assert!(!read(log).is_passed_test_run(), "{log}");
        }
    }
}

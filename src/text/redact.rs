//! Taking out of a text what tells about its owner and not about a failure: names of users and folders, serials, addresses, secrets.

use regex::{Captures, Regex};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What is looked for, and what stands there instead; a group named `keep` stays.
const RULES: [(&str, &str, &str); 9] = [
    (
        "secrets",
        r"(?i)(?P<keep>\b(?:password|passwd|secret|token|api[_-]?key|apikey|authorization|bearer|access[_-]?key)\b\W{1,4}(?:bearer\s+)?)[^\s,;'\x22]{6,}",
        "<secret>",
    ),
    ("tokens", r"\b(?:hf_|ghp_|gho_|github_pat_|sk-|xox[bp]-|AKIA)[A-Za-z0-9_-]{10,}", "<token>"),
    ("keys", r"\b[0-9a-fA-F]{40,}\b", "<hex>"),
    ("mail addresses", r"\b[\w.+-]+@[\w-]+\.[\w.-]*\w\b", "<mail>"),
    ("MAC addresses", r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b", "<mac>"),
    (
        "network addresses",
        r"\b(?:10|127|172|192|100|169|8[0-9]|9[0-9]|1[0-9]{2}|2[0-4][0-9])\.\d{1,3}\.\d{1,3}\.\d{1,3}(?::\d{2,5})?\b",
        "<address>",
    ),
    ("home folders", r"(?P<keep>/(?:home|Users)/)[^/\s'\x22:;,)]+", "<user>"),
    ("Windows users", r"(?i)(?P<keep>[a-z]:\\+users\\+)[^\\\s'\x22:;,)]+", "<user>"),
    (
        "serials",
        r"(?i)(?P<keep>\b(?:serial(?:\s?number|no)?|ANDROID_SERIAL|adb -s|--device|ro\.serialno\]?:)\s*[:=]?\s*\[?)[0-9A-Za-z.:-]{6,}",
        "<serial>",
    ),
];

static COMPILED: LazyLock<Vec<(&'static str, Regex, &'static str)>> = LazyLock::new(|| {
    // An expression that does not compile is a defect that the test below finds.
    let rules = RULES.iter().filter_map(|(what, re, by)| Some((*what, Regex::new(re).ok()?, *by)));
    rules.collect()
});

/// Takes things out, and counts them.
#[derive(Debug, Default)]
pub struct Redactor {
    /// Words to take out wherever they stand: the user's name, the machine's, devices' serials.
    words: Vec<(String, &'static str)>,
    counts: BTreeMap<&'static str, usize>,
}

/// Shorter names are parts of other words.
const SHORTEST_WORD: usize = 3;

impl Redactor {
    /// Takes `word` out, too, as this kind of thing.
    pub fn word(&mut self, word: &str, what: &'static str) {
        if word.len() >= SHORTEST_WORD && word != "root" {
            self.words.push((word.to_owned(), what));
        }
    }

    /// The text without them.
    pub fn redact(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (what, re, by) in COMPILED.iter() {
            let mut count = 0;
            let replaced = re.replace_all(&text, |found: &Captures<'_>| {
                count += 1;
                let kept = found.name("keep").map_or("", |kept| kept.as_str());
                format!("{kept}{by}")
            });
            if count > 0 {
                text = replaced.into_owned();
                *self.counts.entry(what).or_default() += count;
            }
        }
        for (word, what) in &self.words {
            let border = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            let mut kept = String::with_capacity(text.len());
            let mut from = 0;
            let mut count = 0;
            for (at, _) in text.match_indices(word.as_str()) {
                let (before, after) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
                if border(before) && border(after) {
                    kept.push_str(&text[from..at]);
                    kept.push('<');
                    kept.push_str(what);
                    kept.push('>');
                    from = at + word.len();
                    count += 1;
                }
            }
            if count > 0 {
                kept.push_str(&text[from..]);
                text = kept;
                *self.counts.entry(what).or_default() += count;
            }
        }
        text
    }

    /// What was taken out so far, and how often.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.counts.iter().map(|(what, count)| (*what, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_about_the_owner_goes_and_the_failure_stays() {
        assert_eq!(COMPILED.len(), RULES.len(), "an expression does not compile");
        let mut redactor = Redactor::default();
        redactor.word("annabell", "user");
        redactor.word("R58N12ABCDE", "serial");
        for (text, wanted) in [
            ("/home/anna/m.dlc: No such file", "/home/<user>/m.dlc: No such file"),
            (r"C:\Users\Anna\qnn\QnnHtp.dll not found", r"C:\Users\<user>\qnn\QnnHtp.dll not found"),
            ("by annabell on R58N12ABCDE", "by <user> on <serial>"),
            ("ro.serialno]: [abc123def", "ro.serialno]: [<serial>"),
            ("Authorization: Bearer abcdefghij", "Authorization: Bearer <secret>"),
            ("HF_TOKEN=hf_abcdefghijklmnop", "HF_TOKEN=<token>"),
            ("mail anna.b@example.org", "mail <mail>"),
            ("connect 192.168.1.20:5555", "connect <address>"),
            // Versions, codes and addresses of memory tell about the failure.
            ("build v2.47.0.260601114230, err 0x80000406, 1008", "build v2.47.0.260601114230, err 0x80000406, 1008"),
            ("Backend v2.47.0.260601 0x00007ffdaf648688", "Backend v2.47.0.260601 0x00007ffdaf648688"),
        ] {
            assert_eq!(redactor.redact(text), wanted);
        }
        assert!(redactor.counts().count() >= 6);
    }
}

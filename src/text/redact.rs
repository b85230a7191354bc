//! Removes from a text what identifies its owner and does not explain a failure: names of users, hosts and
//! folders, serials, addresses, secrets.

mod blocks;
mod rules;

use regex::Captures;
use rules::COMPILED;
use std::collections::BTreeMap;

/// Removes things and counts them.
#[derive(Debug, Default)]
pub struct Redactor {
    /// Words to remove everywhere: names of the user and the machine, serials of devices.
    words: Vec<(String, &'static str)>,
    counts: BTreeMap<&'static str, usize>,
}

/// Shorter names occur inside other words.
const SHORTEST_WORD: usize = 3;

impl Redactor {
    /// Also removes `word`, as this kind of thing.
    pub fn word(&mut self, word: &str, what: &'static str) {
        if word.len() >= SHORTEST_WORD && word != "root" {
            self.words.push((word.to_ascii_lowercase(), what));
        }
    }

    /// The redacted text.
    pub fn redact(&mut self, text: &str) -> String {
        let (kept, keys) = blocks::without_keys(text);
        let mut text = kept.into_owned();
        self.count("keys", keys);
        for (rule, expression) in COMPILED.iter() {
            let mut count = 0;
            // Two matches may share the character between them, which the first one consumes.
            for _ in 0..2 {
                let before = count;
                let replaced = expression.replace_all(&text, |found: &Captures<'_>| {
                    if !(rule.is_it)(found) {
                        return found[0].to_owned();
                    }
                    let group = |name| found.name(name).map_or("", |kept| kept.as_str());
                    let kept = format!("{}{}{}", group("keep"), rule.by, group("rest"));
                    // A replacement may look like a match.
                    count += usize::from(kept != found[0]);
                    kept
                });
                if count == before {
                    break;
                }
                text = replaced.into_owned();
            }
            self.count(rule.what, count);
        }
        let (kept, folders) = blocks::without_folders(&text);
        text = kept.into_owned();
        self.count("folders", folders);
        for (word, what) in &self.words {
            let border = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            let mut kept = String::with_capacity(text.len());
            let mut from = 0;
            let mut count = 0;
            // Host and user names ignore case. ASCII lower case keeps the position of every character.
            let lower = text.to_ascii_lowercase();
            for (at, _) in lower.match_indices(word.as_str()) {
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

    fn count(&mut self, what: &'static str, count: usize) {
        if count > 0 {
            *self.counts.entry(what).or_default() += count;
        }
    }

    /// What has been removed so far, and how often.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.counts.iter().map(|(what, count)| (*what, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_about_the_owner_goes_and_the_failure_stays() {
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
            // Versions, codes and memory addresses explain the failure.
            ("build v2.47.0.260601114230, err 0x80000406, 1008", "build v2.47.0.260601114230, err 0x80000406, 1008"),
            ("Backend v2.47.0.260601 0x00007ffdaf648688", "Backend v2.47.0.260601 0x00007ffdaf648688"),
            ("By Annabell, not annabella", "By <user>, not annabella"),
            ("key=AKIAIOSFODNN7EXAMPLE ASIAIOSFODNN7EXAMPLE", "key=<token> <token>"),
            ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "aws_secret_access_key = <secret>"),
            ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmN", "jwt <token>"),
            (r#"{"access_token":"q7GkzP0w1x"}"#, r#"{"access_token":"<secret>"}"#),
            ("curl -H 'Authorization: Basic dXNlcjpwYXNz'", "curl -H 'Authorization: Basic <secret>'"),
            ("via 2001:db8:85a3::8a2e:370:7334, fe80::1%wlan0 and ::1.", "via <address>, <address> and <address>."),
            ("from 34.120.7.9 and 203.0.113.5.", "from <address> and <address>."),
            ("IMEI: 35-209900-176148-1 and 490154203237518", "IMEI: <id> and <id>"),
            ("SSID: \"Cafe Roma\", BSSID: 00:1a:2b:3c:4d:5e", "SSID: <network>, BSSID: <mac>"),
            ("ssid=HomeNet rssi=-50", "ssid=<network> rssi=-50"),
            ("call +49 170 1234567 or phone: (555) 123-4567", "call <phone> or phone: <phone>"),
            ("jo@buildbox:~/qnn$ ls", "<user>@<host>:~/qnn$ ls"),
            ("Nov 22 10:15:00 buildbox kernel: oom", "Nov 22 10:15:00 <host> kernel: oom"),
            ("Linux buildbox 6.8.0-45-generic #45 SMP", "Linux <host> 6.8.0-45-generic #45 SMP"),
            ("GET https://jo:pw@nas.acme.corp/m/x.dlc 404", "GET https://<address> 404"),
            ("https://github.com/quic/x, file:///mnt/a/b/c.so", "https://github.com/quic/x, file:///mnt/<path>/c.so"),
            ("/mnt/acme/m.dlc", "/mnt/<path>/m.dlc"),
            (r"D:\acme\models\m.dlc", r"D:\<path>\m.dlc"),
            // What only looks similar stays.
            ("10:15:00.123 std::vector<int> qnn::op at 12:34:56", "10:15:00.123 std::vector<int> qnn::op at 12:34:56"),
            ("tokens per second: 12.345, token-rate: 128000 ms", "tokens per second: 12.345, token-rate: 128000 ms"),
            ("invalid token received; secret unavailable", "invalid token received; secret unavailable"),
            (
                "driver 2.3.0.1, t=1795342500000000 pc +12345678 (f+1234567890)",
                "driver 2.3.0.1, t=1795342500000000 pc +12345678 (f+1234567890)",
            ),
            ("backing offset +1 200 300", "backing offset +1 200 300"),
        ] {
            assert_eq!(redactor.redact(text), wanted);
        }
        assert!(redactor.counts().count() >= 6);
    }
}

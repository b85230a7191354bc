//! What to look for. A rule is an expression and, if that alone matches too much, a check of the match.

use regex::{Captures, Regex};
use std::net::Ipv6Addr;
use std::sync::LazyLock;

/// A kind of thing to remove.
pub struct Rule {
    /// Its name, for the list of what was removed.
    pub what: &'static str,
    /// Groups named `keep` (before) and `rest` (after) stay.
    expression: &'static str,
    /// The replacement.
    pub by: &'static str,
    /// Whether a match is really one.
    pub is_it: fn(&Captures<'_>) -> bool,
}

const fn rule(what: &'static str, expression: &'static str, by: &'static str) -> Rule {
    Rule { what, expression, by, is_it: |_| true }
}

/// In this order, the most certain ones first.
static RULES: [Rule; 23] = [
    rule("tokens", r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?", "<token>"),
    rule(
        "tokens",
        r"\b(?:hf_|gh[pousr]_|github_pat_|glpat-|pypi-|sk-|xox[abeprs]-|AKIA|ASIA|AIza|ya29\.)[A-Za-z0-9_-]{10,}",
        "<token>",
    ),
    Rule {
        what: "secrets",
        expression: r#"(?i)(?P<keep>[\w.-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|apikey|authorization|credentials?|access[_-]?key|private[_-]?key|cookie|psk)[\w.-]*\\?["']?\s*[:=]\s*\\?["']?(?:(?:bearer|basic)\s+)?)(?P<value>[^\s,;'"\\<]{6,})"#,
        by: "<secret>",
        is_it: |found| !is_figure(&found["value"]) && !found["value"].eq_ignore_ascii_case("bearer"),
    },
    Rule {
        what: "secrets",
        expression: r"(?i)(?P<keep>\b(?:bearer|basic|password|passwd|secret|token|api[_-]?key)\s+)(?P<value>[A-Za-z0-9+/=._~-]{8,})",
        by: "<secret>",
        // An ordinary word contains no digit.
        is_it: |found| found["value"].contains(|c: char| c.is_ascii_digit()) && !is_figure(&found["value"]),
    },
    rule("keys", r"\b[0-9a-fA-F]{40,}\b", "<hex>"),
    Rule {
        what: "URLs",
        expression: r#"(?i)(?P<keep>\b[a-z][a-z0-9+.-]*://)(?P<host>(?:[^\s/@'"]+@)?(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d+)?)(?P<path>[^\s'"<>)\]]*)"#,
        by: "<address>",
        is_it: |found| !is_public(&found["host"]) && !found["keep"].eq_ignore_ascii_case("file://"),
    },
    rule("mail addresses", r"\b[\w.+-]+@[\w-]+\.[\w.-]*[A-Za-z]\b", "<mail>"),
    // user@host:~/folder$
    rule("hosts", r"(?m)(?P<keep>^|\s)[a-z_][\w.-]*@[A-Za-z][\w.-]*(?P<rest>:[~/])", "<user>@<host>"),
    // Nov 22 10:15:00 host process[1]:
    rule(
        "hosts",
        r"(?m)(?P<keep>^(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d )[\w.-]+(?P<rest> [\w./-]+(?:\[\d+\])?:)",
        "<host>",
    ),
    rule("hosts", r"(?P<keep>\bLinux )[\w.-]+(?P<rest> \d+\.\d+[\w.+-]* #)", "<host>"),
    rule(
        "hosts",
        r#"(?i)(?P<keep>\b(?:host\s?name|host|computername|node\s?name)\\?["']?\s*[:=]\s*\\?["']?)[A-Za-z][\w.-]+"#,
        "<host>",
    ),
    rule("network names", r#"(?i)(?P<keep>\be?ssid\\?["']?\s*[:=]?\s*)(?:\\?"[^"]*"|'[^']*'|[^\s,;"']+)"#, "<network>"),
    rule("MAC addresses", r"\b(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}\b", "<mac>"),
    Rule {
        what: "network addresses",
        expression: r"(?P<keep>^|[^\w:.])(?P<value>[0-9A-Fa-f:]{2,39})(?P<scope>%\w+)?(?P<rest>$|[^\w:])",
        by: "<address>",
        is_it: |found| is_ipv6(&found["value"]),
    },
    Rule {
        what: "network addresses",
        expression: r"(?P<keep>^|[^\w.])(?P<value>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?P<port>:\d{2,5})?(?P<rest>$|[^\w.]|\.(?:\s|$))",
        by: "<address>",
        is_it: |found| is_ipv4(&found["value"], found.name("port").is_some()),
    },
    rule(
        "serials",
        r"(?i)(?P<keep>\b(?:imei\d?|imsi|iccid|meid|android_id|msisdn|line1number)\b\W{0,4})[0-9A-Fa-f](?:[ -]?[0-9A-Fa-f]){7,}\b",
        "<id>",
    ),
    Rule {
        what: "serials",
        expression: r"(?P<keep>^|[^\w.+-])(?P<value>\d{15})(?P<rest>$|[^\w.])",
        by: "<id>",
        is_it: |found| is_imei(&found["value"]),
    },
    Rule {
        what: "phone numbers",
        expression: r#"(?P<keep>^|[\s"':=(,])(?P<value>\+\d[\d ().-]{6,18}\d)(?P<rest>$|[^\w])"#,
        by: "<phone>",
        is_it: |found| is_phone(&found["value"]) && found["value"].bytes().filter(u8::is_ascii_digit).count() >= 10,
    },
    Rule {
        what: "phone numbers",
        expression: r"(?i)(?P<keep>\b(?:phone|tel|telephone|mobile|cell)(?:\s?(?:number|no))?\b\.?\s*[:=]\s*)(?P<value>[\d(][\d ().-]{5,18}\d)",
        by: "<phone>",
        is_it: |found| is_phone(&found["value"]),
    },
    rule("home folders", r"(?P<keep>/(?:home|Users)/)[^/\s'\x22:;,)]+", "<user>"),
    rule("Windows users", r"(?i)(?P<keep>[a-z]:\\+users\\+)[^\\\s'\x22:;,)]+", "<user>"),
    rule(
        "serials",
        r"(?i)(?P<keep>\b(?:serial(?:\s?number|no)?|ANDROID_SERIAL|adb -s|--device|ro\.serialno\]?:)\s*[:=]?\s*\[?)[0-9A-Za-z.:-]{6,}",
        "<serial>",
    ),
    Rule {
        what: "folders",
        // Other Windows drives.
        expression: r#"(?P<keep>\b[A-Za-z]:\\+)(?P<value>(?:[^\\\s'":;,)]+\\+)+)"#,
        by: "<path>\\",
        is_it: |found| !found["value"].starts_with(['U', 'u', 'W', 'w', 'P', 'p']),
    },
];

/// The rules with their compiled expressions.
pub static COMPILED: LazyLock<Vec<(&'static Rule, Regex)>> = LazyLock::new(|| {
    // An expression that does not compile is a bug that the test below catches.
    RULES.iter().filter_map(|rule| Some((rule, Regex::new(rule.expression).ok()?))).collect()
});

/// True for a figure such as tokens per second, which is not a secret.
fn is_figure(text: &str) -> bool {
    text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || "/%".contains(c)).parse::<f64>().is_ok()
}

/// Sites that everybody uses and that identify nobody.
fn is_public(host: &str) -> bool {
    const SITES: [&str; 9] = [
        "github.com",
        "qualcomm.com",
        "pypi.org",
        "pythonhosted.org",
        "crates.io",
        "huggingface.co",
        "onnxruntime.ai",
        "android.com",
        "localhost",
    ];
    let host = host.split(':').next().unwrap_or(host);
    SITES.iter().any(|site| host == *site || host.strip_suffix(site).is_some_and(|rest| rest.ends_with('.')))
}

/// Excludes a time of day and the name of a C++ class.
fn is_ipv6(text: &str) -> bool {
    text.matches(':').count() >= 2
        && text.contains(|c: char| c.is_ascii_digit())
        && text.trim_end_matches(':').len() + 2 >= text.len()
        && (text.parse::<Ipv6Addr>().is_ok() || text.trim_end_matches(':').parse::<Ipv6Addr>().is_ok())
}

/// Versions have four numbers too, but theirs start small.
fn is_ipv4(text: &str, has_port: bool) -> bool {
    let parts: Vec<u16> = text.split('.').filter_map(|part| part.parse().ok()).collect();
    parts.iter().all(|part| *part <= 255) && parts.first().is_some_and(|first| has_port || *first >= 10)
}

/// Fifteen digits, of which the last one is a checksum.
fn is_imei(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .zip(0..)
        .map(|(digit, at)| {
            let digit = u32::from(digit - b'0');
            if at % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 }
        })
        .sum();
    sum.is_multiple_of(10) && !digits.starts_with('0')
}

fn is_phone(text: &str) -> bool {
    (7..=15).contains(&text.bytes().filter(u8::is_ascii_digit).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_compiles() {
        assert_eq!(COMPILED.len(), RULES.len());
    }
}

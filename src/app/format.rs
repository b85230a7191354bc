//! Figures as text: few digits, one unit per column.

use super::symbols::Symbols;
use crate::event::clean_text;
use crate::text;
pub use crate::text::{bytes_text as signed_bytes, count_text as si, three_digits};

/// One unit and number of decimals for a group of times, so that they can be compared at a glance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeScale {
    /// Unit.
    pub unit: &'static str,
    divide: f64,
    decimals: usize,
}

impl TimeScale {
    /// The scale for times up to `max_us`.
    pub fn for_max(max_us: f64, symbols: &Symbols) -> Self {
        let micro = |decimals| Self { unit: symbols.micro, divide: 1.0, decimals };
        let milli = |decimals| Self { unit: "ms", divide: 1e3, decimals };
        match max_us {
            m if m < 10.0 => micro(2),
            m if m < 1e3 => micro(1),
            m if m < 1e5 => milli(3),
            m if m < 1e6 => milli(2),
            _ => Self { unit: "s", divide: 1e6, decimals: 3 },
        }
    }

    /// The number alone.
    pub fn number(&self, us: f64) -> String {
        format!("{:.*}", self.decimals, us / self.divide)
    }

    /// The number, or the symbol for a missing figure.
    pub fn or_missing(&self, us: Option<f64>, symbols: &Symbols) -> String {
        us.map_or_else(|| symbols.missing.to_owned(), |us| self.number(us))
    }
}

/// A duration in its best unit: `812 µs`, `5.21 ms`, `12.3 s`, `2 min 05 s`, `1 h 05 min`.
pub fn duration(us: f64, symbols: &Symbols) -> String {
    text::duration_with_micro(us, symbols.micro)
}

/// Bytes in binary units: `512 B`, `14.2 MiB`.
pub fn bytes(value: u64) -> String {
    signed_bytes(value as f64)
}

/// A count with thousands separators: `12,345`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A percentage for a share between 0 and 1 in a column whose largest share is `max`: `12.3`, or `0.04` if all are
/// below one per cent. A non-zero value that would round to zero is marked.
pub fn percent(share: f64, max: f64) -> String {
    let percent = share * 100.0;
    let (decimals, least) = if max < 0.01 { (2, 0.01) } else { (1, 0.1) };
    if percent > 0.0 && percent < least / 2.0 { format!("<{least}") } else { format!("{percent:.decimals$}") }
}

/// A counter's value with its unit.
pub fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "bytes" => signed_bytes(value),
        "%" => format!("{value:.1} %"),
        "MHz" => format!("{value:.0} MHz"),
        "" => three_digits(value),
        unit => format!("{} {}", three_digits(value), clean_text(unit)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::symbols::{ASCII, UNICODE};
    use super::*;

    #[test]
    fn microseconds_are_called_as_the_terminal_can_show_them() {
        assert_eq!((duration(812.0, &UNICODE), duration(812.0, &ASCII)), ("812 µs".into(), "812 us".into()));
    }

    #[test]
    fn scales_keep_one_unit() {
        let scale = TimeScale::for_max(5400.0, &UNICODE);
        assert_eq!((scale.unit, scale.number(5400.0), scale.number(12.0)), ("ms", "5.400".into(), "0.012".into()));
        let scale = TimeScale::for_max(900.0, &UNICODE);
        assert_eq!((scale.unit, scale.number(900.0), scale.number(0.25)), ("µs", "900.0".into(), "0.2".into()));
        assert_eq!(scale.or_missing(None, &UNICODE), "–");
    }

    #[test]
    fn amounts() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.00 KiB");
        assert_eq!(bytes(1024 * 1024 * 14 + 300_000), "14.3 MiB");
        assert_eq!(signed_bytes(-2048.0), "-2.00 KiB");
        assert_eq!(count(0), "0");
        assert_eq!(count(1234), "1,234");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(si(950.0), "950");
        assert_eq!(si(115_605_504.0), "116 M");
        assert_eq!(si(4.1e9), "4.10 G");
        assert_eq!(
            (percent(0.1234, 0.2), percent(0.0002, 0.2), percent(0.0, 0.2)),
            ("12.3".into(), "<0.1".into(), "0.0".into())
        );
        assert_eq!((percent(0.0004, 0.001), percent(0.000_01, 0.001)), ("0.04".into(), "<0.01".into()));
    }
}

//! Lines of the loop. Everything in them comes from the device and is untrusted.

use crate::event::Gap;
use crate::probes::clock::Stamp;

/// Separates fields.
const FIELD: u8 = 0x1f;

/// A line of the loop.
#[derive(Debug, Clone, PartialEq)]
pub enum Line<'a> {
    /// The shell is ready: whether it can wait on its input, whether it has a wall clock, and its process id.
    Hello { waits: bool, has_epoch: bool, pid: Option<u32> },
    /// A tick.
    Tick { seq: u64, stamp: Stamp, groups: &'a [u8], values: Values<'a> },
    /// The answer to a time query.
    Pong { token: u64, stamp: Stamp },
    /// CPU time of the shell and its finished processes so far, nanoseconds.
    Cost { cpu_ns: Option<u64> },
    /// A source is about to be read: during timing, on the second stream, or while a loop searches for a
    /// hanging file.
    Timing { source: usize },
    /// It has been read: the wall clock, microseconds, and the uptime from before.
    Timed { source: usize, us: Option<u64>, uptime_us: u64 },
    /// The uptime after it was read.
    TimedUptime { source: usize, uptime_us: u64 },
    /// All previous commands were executed.
    Done { token: u64 },
    /// The text of a service begins.
    TextStart { source: usize, stamp: Stamp },
    /// The text of a service ended.
    TextEnd { source: usize },
}

/// The changed sources of a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values<'a>(&'a [u8]);

impl<'a> Iterator for Values<'a> {
    type Item = (usize, Result<&'a [u8], Gap>);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.0.is_empty() {
            let end = self.0.iter().position(|byte| *byte == FIELD).unwrap_or(self.0.len());
            let field = &self.0[..end];
            self.0 = self.0.get(end + 1..).unwrap_or_default();
            let digits = field.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(field.len());
            let (Some(source), Some(sign)) = (integer(&field[..digits]), field.get(digits)) else { continue };
            let Ok(source) = usize::try_from(source) else { continue };
            let rest = &field[digits + 1..];
            match sign {
                b'=' => return Some((source, Ok(rest))),
                b'!' => return Some((source, Err(gap(rest)))),
                _ => {}
            }
        }
        None
    }
}

fn gap(kind: &[u8]) -> Gap {
    match kind {
        b"a" => Gap::Absent,
        b"d" => Gap::Refused,
        b"x" => Gap::NotANumber,
        _ => Gap::Unreadable,
    }
}

/// A line; `None` if not from the loop (a message of `su`, or the text of a service).
pub fn parse(line: &[u8]) -> Option<Line<'_>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut fields = line.splitn(6, |byte| *byte == FIELD);
    let kind = fields.next()?;
    let first = fields.next()?;
    let source = || integer(first).and_then(|index| usize::try_from(index).ok());
    Some(match kind {
        b"T" => {
            let seq = integer(first)?;
            let stamp = stamp(fields.next()?, fields.next()?)?;
            Line::Tick { seq, stamp, groups: fields.next()?, values: Values(fields.next().unwrap_or_default()) }
        }
        b"H" => Line::Hello {
            waits: first == b"y",
            has_epoch: epoch(fields.next()?).is_some(),
            pid: fields.next().and_then(integer).and_then(|pid| u32::try_from(pid).ok()),
        },
        b"Q" => Line::Pong { token: integer(first)?, stamp: stamp(fields.next()?, fields.next()?)? },
        b"U" => Line::Cost { cpu_ns: cost(fields.next()?, fields.next().unwrap_or_default()) },
        b"k" => Line::Timing { source: source()? },
        b"K" => {
            let us = epoch(fields.next()?).zip(epoch(fields.next()?)).map(|(start, end)| end.saturating_sub(start));
            Line::Timed { source: source()?, us, uptime_us: uptime(fields.next()?)? }
        }
        b"V" => Line::TimedUptime { source: source()?, uptime_us: uptime(fields.next()?)? },
        b"J" => Line::Done { token: integer(first)? },
        b"B" => Line::TextStart { source: source()?, stamp: stamp(fields.next()?, fields.next()?)? },
        b"E" => Line::TextEnd { source: source()? },
        _ => return None,
    })
}

fn integer(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// `SECONDS.FRACTION` in microseconds.
fn decimal(text: &[u8]) -> Option<u64> {
    let dot = text.iter().position(|byte| *byte == b'.')?;
    let (seconds, fraction) = (integer(&text[..dot])?, &text[dot + 1..]);
    let digits = fraction.len().min(6);
    let scale = 10_u64.checked_pow(u32::try_from(6 - digits).ok()?)?;
    seconds.checked_mul(1_000_000)?.checked_add(integer(&fraction[..digits])? * scale)
}

fn epoch(text: &[u8]) -> Option<u64> {
    // A century: larger values are not clocks.
    decimal(text).filter(|us| *us < 100 * 366 * 86_400 * 1_000_000)
}

fn uptime(text: &[u8]) -> Option<u64> {
    decimal(text).filter(|us| *us < 100 * 366 * 86_400 * 1_000_000)
}

fn stamp(epoch_text: &[u8], uptime_text: &[u8]) -> Option<Stamp> {
    Some(Stamp { epoch_us: epoch(epoch_text), uptime_us: uptime(uptime_text)? })
}

/// Nanoseconds from `/proc/self/schedstat`, or else the 10 ms ticks in `/proc/self/stat`, which also includes the
/// children.
fn cost(schedstat: &[u8], stat: &[u8]) -> Option<u64> {
    let word = |text: &[u8], index: usize| {
        let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.nth(index).and_then(integer)
    };
    let ticks = |first: usize| {
        let after = &stat[stat.iter().rposition(|byte| *byte == b')')? + 1..];
        word(after, first)?.checked_add(word(after, first + 1)?)?.checked_mul(10_000_000)
    };
    let own = word(schedstat, 0).filter(|ns| *ns > 0).or_else(|| ticks(11))?;
    own.checked_add(ticks(13).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_read() {
        let line = b"T\x1f7\x1f1700000000.123456\x1f21833.71\x1fft\x1f0=680000000\x1f3!d\x1f12=cpu  1 2 3\x1f4!a\x1fx=1\x1f5?\x1f6=";
        let Some(Line::Tick { seq, stamp, groups, values }) = parse(line) else { panic!() };
        assert_eq!((seq, groups), (7, &b"ft"[..]));
        assert_eq!(stamp, Stamp { epoch_us: Some(1_700_000_000_123_456), uptime_us: 21_833_710_000 });
        let values: Vec<_> = values.collect();
        let expected: [(usize, Result<&[u8], Gap>); 5] = [
            (0, Ok(b"680000000")),
            (3, Err(Gap::Refused)),
            (12, Ok(b"cpu  1 2 3")),
            (4, Err(Gap::Absent)),
            (6, Ok(b"")),
        ];
        assert_eq!(values, expected);
        let bare = parse(b"T\x1f7\x1f\x1f21833.71\x1ff\r");
        assert!(matches!(bare, Some(Line::Tick { stamp: Stamp { epoch_us: None, .. }, groups: b"f", .. })), "{bare:?}");
    }

    #[test]
    fn other_lines_are_read() {
        let hello = |waits, has_epoch, pid| Some(Line::Hello { waits, has_epoch, pid });
        assert_eq!(parse(b"H\x1fy\x1f1700000000.000001\x1f4711"), hello(true, true, Some(4711)));
        assert_eq!(parse(b"H\x1fn\x1f\x1f99999999999"), hello(false, false, None));
        assert_eq!(parse(b"H\x1fn\x1f"), hello(false, false, None));
        let cpu = parse(b"U\x1f9\x1f123456 7 8\x1f1 (sh) S");
        assert_eq!(cpu, Some(Line::Cost { cpu_ns: Some(123_456) }));
        let ticks = parse(b"U\x1f9\x1f\x1f1 (a) b) S 2 3 4 5 6 7 8 9 10 11 30 20 0 0 0");
        assert_eq!(ticks, Some(Line::Cost { cpu_ns: Some(500_000_000) }));
        let children = parse(b"U\x1f9\x1f123456 7 8\x1f1 (a) b) S 2 3 4 5 6 7 8 9 10 11 30 20 2 1 0");
        assert_eq!(children, Some(Line::Cost { cpu_ns: Some(30_123_456) }));
        let timed = parse(b"K\x1f3\x1f1700000000.1\x1f1700000000.2\x1f5.00");
        assert_eq!(timed, Some(Line::Timed { source: 3, us: Some(100_000), uptime_us: 5_000_000 }));
        for other in ["", "su: permission denied", "T", "T\u{1f}1", "T\u{1f}1\u{1f}\u{1f}x\u{1f}f", "J\u{1f}-1"] {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn no_line_can_do_harm(line in any::<Vec<u8>>(), cut in 0..200_usize) {
            let whole = b"T\x1f7\x1f1700000000.123456\x1f21833.71\x1ffts\x1f0=680000000\x1f3!d\x1f99999999999999999999=1";
            let mut mixed = whole[..cut.min(whole.len())].to_vec();
            mixed.extend_from_slice(&line);
            for text in [&line, &mixed] {
                if let Some(Line::Tick { values, .. }) = parse(text) {
                    prop_assert!(values.count() <= text.len());
                }
            }
        }
    }
}

//! Which sessions are requested.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Which sessions are requested; all conditions must hold. Texts match substrings, ignoring case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Part of the path of a model.
    pub model: Option<String>,
    /// Part of the id or the name of a device.
    pub device: Option<String>,
    /// A backend.
    pub backend: Option<String>,
    /// A complete tag.
    pub tag: Option<String>,
    /// Part of a name, note, id, model or error.
    pub text: Option<String>,
    /// Earliest start, microseconds since 1970-01-01 UTC.
    pub since_us: Option<u64>,
    /// Upper limit of the start (exclusive), microseconds since 1970-01-01 UTC.
    pub until_us: Option<u64>,
    /// Maximum number of sessions, newest first.
    pub limit: Option<usize>,
}

/// A point in time given by the user: a date, meaning its start in UTC, or a date and a time.
///
/// # Errors
/// It is neither.
pub fn moment_us(text: &str) -> Result<u64, String> {
    let date = text.parse::<Date>().ok().filter(|_| text.len() <= "2026-11-22".len());
    let stamp = match date {
        Some(date) => date.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp()).ok(),
        None => text.parse::<Timestamp>().ok(),
    };
    stamp
        .and_then(|stamp| u64::try_from(stamp.as_microsecond()).ok())
        .ok_or_else(|| "expected a date such as 2026-11-22, or a moment such as 2026-11-22T10:15:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_moments() {
        assert_eq!(moment_us("1970-01-02"), Ok(86_400_000_000));
        assert_eq!(moment_us("1970-01-01T00:00:01Z"), Ok(1_000_000));
        for text in ["", "yesterday", "2026-13-01", "1969-01-01", "2026-11-22T10"] {
            assert!(moment_us(text).is_err(), "{text}");
        }
    }
}

//! The cores for a runner's threads: lists of CPU cores in `taskset -c` syntax, or one core per thread.

use crate::backends::qnn::runner::Pin;

/// Maximum number of cores in a list: the size of a kernel CPU set.
const CORES: usize = 1024;

/// `0`, `0-3`, `0-3,6`, `spread`, `spread:0-3`, `free`.
pub fn pin(text: &str) -> Result<Pin, String> {
    if text.trim() == "free" {
        return Ok(Pin::Free);
    }
    match text.trim().strip_prefix("spread") {
        Some("") => Ok(Pin::Spread(Vec::new())),
        Some(rest) => cores(rest.strip_prefix(':').unwrap_or_default()).map(Pin::Spread),
        None => cores(text).map(Pin::Cores),
    }
}

/// Cores in increasing order, without duplicates.
fn cores(text: &str) -> Result<Vec<usize>, String> {
    let wrong = || "expected numbers of cores, such as 0 or 0-3,6, or spread, spread:0-3, or free".to_owned();
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|core| *core < CORES).ok_or_else(wrong);
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores() {
        let of = |text: &str| pin(text);
        assert_eq!(of("0"), Ok(Pin::Cores(vec![0])));
        assert_eq!(of("4-6, 1,5"), Ok(Pin::Cores(vec![1, 4, 5, 6])));
        assert_eq!(of("free"), Ok(Pin::Free));
        assert_eq!(of("spread"), Ok(Pin::Spread(Vec::new())));
        assert_eq!(of("spread:1,0"), Ok(Pin::Spread(vec![0, 1])));
        for bad in
            ["", "a", "3-1", "0-", "-1", "1024", "0,,1", "0-99999999999", "spread:", "spread0", "spreads", "Spread"]
        {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_shown_can_be_given_again() {
        for text in ["0", "1,4,5", "spread", "spread:0,1", "free"] {
            assert_eq!(pin(text).unwrap().to_string(), text);
        }
    }
}

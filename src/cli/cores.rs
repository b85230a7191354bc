//! Lists of processor cores, as `taskset -c` has them.

/// Most cores that a list may name: what a set of the kernel holds.
const CORES: usize = 1024;

/// Processor cores in rising order, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores(pub Vec<usize>);

/// `0`, `0-3`, `0-3,6`.
pub fn cores(text: &str) -> Result<Cores, String> {
    let wrong = || "expected numbers of cores, such as 0 or 0-3,6".to_owned();
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
    Ok(Cores(cores))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores() {
        let of = |text: &str| cores(text).map(|cores| cores.0);
        assert_eq!(of("0"), Ok(vec![0]));
        assert_eq!(of("4-6, 1,5"), Ok(vec![1, 4, 5, 6]));
        for bad in ["", "a", "3-1", "0-", "-1", "1024", "0,,1", "0-99999999999"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}

//! Sessions that have been tampered with: lines cut, duplicated, swapped and left out, numbers made huge,
//! texts made long. What is made from them (documents, reports, comparisons) may contain little, but it is
//! made, in bounded time.

use qnnscope::fuzz::session_views;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::panic::catch_unwind;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long sessions are mutated, unless `$QNNSCOPE_FUZZ_SECONDS` says otherwise; each seed at least this
/// often.
const TIME: Duration = Duration::from_secs(3);
const LEAST: u64 = 25;
/// Longest that everything may take for some kilobytes, on a machine that is also doing other things.
const LIMIT: Duration = Duration::from_secs(20);
/// What replaces a number.
const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "1",
    "18446744073709551615",
    "9223372036854775807",
    "4294967295",
    "4294967296",
    "1e308",
    "1e-320",
    "-1e308",
    "0.1",
    "1000000000000",
];

fn below(random: &mut ChaCha8Rng, bound: usize) -> usize {
    random.next_u64() as usize % bound.max(1)
}

/// The text with one of its numbers replaced.
fn renumbered(line: &str, random: &mut ChaCha8Rng) -> String {
    let starts: Vec<usize> = line
        .char_indices()
        .filter(|(at, c)| c.is_ascii_digit() && line[..*at].ends_with([':', ',', '[']))
        .map(|(at, _)| at)
        .collect();
    let Some(&start) = starts.get(below(random, starts.len())) else { return line.to_owned() };
    let rest = &line[start..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && !".eE+-".contains(c)).unwrap_or(rest.len());
    format!("{}{}{}", &line[..start], NUMBERS[below(random, NUMBERS.len())], &rest[end..])
}

/// The text with one of its words replaced.
fn reworded(line: &str, random: &mut ChaCha8Rng) -> String {
    let long = "long ".repeat(2000);
    let words = ["", "\\u0000", "<script>", "=1+1", "../../x", "\\ud83d\\ude00", "last", long.as_str()];
    let quotes: Vec<usize> = line.match_indices('"').map(|(at, _)| at).collect();
    let pairs: Vec<(usize, usize)> = quotes.chunks_exact(2).map(|pair| (pair[0] + 1, pair[1])).collect();
    let Some(&(from, to)) = pairs.get(below(random, pairs.len())) else { return line.to_owned() };
    format!("{}{}{}", &line[..from], words[below(random, words.len())], &line[to..])
}

fn changed(seed: &[String], random: &mut ChaCha8Rng) -> String {
    let mut lines = seed.to_vec();
    for _ in 0..=below(random, 8) {
        let (at, other) = (below(random, lines.len()), below(random, lines.len()));
        match below(random, 9) {
            0 => lines.swap(at, other),
            1 => {
                let line = lines[at].clone();
                lines.insert(other, line);
            }
            2 if lines.len() > 2 => drop(lines.remove(at)),
            3 => {
                let cut = below(random, lines[at].len());
                let cut = (0..=cut).rev().find(|cut| lines[at].is_char_boundary(*cut)).unwrap();
                lines[at].truncate(cut);
            }
            4 => lines.truncate(at + 1),
            5 => {
                let part: Vec<String> = lines[at.min(other)..=at.max(other)].to_vec();
                lines.extend(part);
            }
            6 => lines[at] = reworded(&lines[at], random),
            _ => lines[at] = renumbered(&lines[at], random),
        }
        lines.truncate(4000);
    }
    lines.join("\n") + "\n"
}

fn seed(path: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn whatever_is_done_to_a_session_something_is_made_of_it() {
    let seconds = std::env::var("QNNSCOPE_FUZZ_SECONDS").ok();
    let time = seconds.map_or(TIME, |text| Duration::from_secs_f64(text.parse().expect("a number of seconds")));
    let seeds = ["tests/data/fuzz/session_views/one-run", "tests/data/sessions/quiet-cpu-int8.jsonl"].map(seed);
    for (number, seed) in (0..).zip(&seeds) {
        session_views((seed.join("\n") + "\n").as_bytes());
        let mut random = ChaCha8Rng::seed_from_u64(number);
        let begun = Instant::now();
        let mut count = 0;
        while count < LEAST || begun.elapsed() < time {
            let input = changed(seed, &mut random);
            let began = Instant::now();
            let outcome = catch_unwind(|| session_views(input.as_bytes()));
            if outcome.is_err() || began.elapsed() > LIMIT {
                let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutated-session.jsonl");
                std::fs::write(&kept, &input).unwrap();
                panic!(
                    "after {count} others: panics or takes {:?}; the session is in {}",
                    began.elapsed(),
                    kept.display()
                );
            }
            count += 1;
        }
        println!("{count} changed sessions");
    }
}

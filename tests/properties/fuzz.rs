//! The targets of `fuzz/` on their kept corpus and on mutations of it: no panic, no endless loop, with a
//! stable compiler and without a fuzzing engine. To keep an input that a fuzzer has found, put it into
//! `tests/data/fuzz/TARGET/`.

use qnnscope::fuzz::{FuzzTarget, TARGETS};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time for each target's mutated inputs, unless `$QNNSCOPE_FUZZ_SECONDS` says otherwise.
const TIME: Duration = Duration::from_millis(1500);
/// Longest that any parser may take for some kilobytes, on a machine that is also doing other things.
const LIMIT: Duration = Duration::from_secs(10);
/// Minimum number of mutated inputs for every target, however slow the machine is.
const LEAST: u64 = 50;
/// Largest input generated.
const MOST_BYTES: usize = 64 << 10;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fuzz").join(name);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("every target has a corpus: {}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let inputs: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(inputs.iter().any(|input| !input.is_empty()), "{} has nothing in it", folder.display());
    inputs
}

/// Changes some bytes; truncates, duplicates or joins parts; or inserts numbers where lengths and offsets may
/// be.
fn changed(seeds: &[Vec<u8>], random: &mut ChaCha8Rng) -> Vec<u8> {
    const WORDS: [u32; 10] = [0, 1, 4, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0x8000_0000, u32::MAX];
    let below = |random: &mut ChaCha8Rng, bound: usize| random.next_u64() as usize % bound.max(1);
    let mut input = seeds[below(random, seeds.len())].clone();
    for _ in 0..=below(random, 6) {
        let at = below(random, input.len());
        match below(random, 6) {
            0 if !input.is_empty() => input[at] = random.next_u32() as u8,
            1 => {
                let word = WORDS[below(random, WORDS.len())].to_le_bytes();
                let end = (at + 4).min(input.len());
                input[at..end].copy_from_slice(&word[..end - at]);
            }
            2 => input.truncate(at),
            3 => {
                let end = (at + below(random, 64)).min(input.len());
                let part = input[at..end].to_vec();
                input.splice(at..at, part);
            }
            4 => {
                let other = &seeds[below(random, seeds.len())];
                let from = below(random, other.len());
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => {
                let text: &[&[u8]] =
                    &[b"\xff", b"\0", b"-1", b"1e999", b"99999999999999999999", b"\n", b"\"", b"{", b"["];
                input.splice(at..at, text[below(random, text.len())].iter().copied());
            }
        }
    }
    input.truncate(MOST_BYTES);
    input
}

/// Runs the target; keeps an input that it does not survive, and prints how to examine it.
fn swallow((name, read): FuzzTarget, input: &[u8]) {
    let begun = Instant::now();
    let outcome = catch_unwind(|| read(input));
    let took = begun.elapsed();
    if outcome.is_ok() && took < LIMIT {
        return;
    }
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}"));
    std::fs::write(&kept, input).unwrap();
    let what = if outcome.is_err() { "panics".to_owned() } else { format!("takes {took:?}") };
    panic!("{name} {what}; the input is in {}, move it to tests/data/fuzz/{name}/ to keep it", kept.display());
}

#[test]
fn every_target_survives_its_corpus_and_changes_of_it() {
    let seconds = std::env::var("QNNSCOPE_FUZZ_SECONDS").ok();
    let time = seconds.map_or(TIME, |text| Duration::from_secs_f64(text.parse().expect("a number of seconds")));
    for (number, target) in (0..).zip(TARGETS) {
        let seeds = corpus(target.0);
        swallow(target, b"");
        seeds.iter().for_each(|seed| swallow(target, seed));
        // The same inputs in the same order everywhere; how many of them depends on the machine.
        let mut random = ChaCha8Rng::seed_from_u64(number);
        let begun = Instant::now();
        let mut count = 0;
        while count < LEAST || begun.elapsed() < time {
            swallow(target, &changed(&seeds, &mut random));
            count += 1;
        }
        println!("{}: {} kept, {count} changed inputs", target.0, seeds.len());
    }
}

#[test]
fn fuzz_has_the_same_targets() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let names: BTreeSet<&str> = TARGETS.iter().map(|target| target.0).collect();
    assert_eq!(names.len(), TARGETS.len());
    let manifest: toml::Table = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
    let listed: BTreeSet<&str> =
        manifest["bin"].as_array().unwrap().iter().map(|bin| bin["name"].as_str().unwrap()).collect();
    assert_eq!(listed, names);
    for name in names {
        let text = std::fs::read_to_string(folder.join("fuzz_targets").join(format!("{name}.rs"))).unwrap();
        assert!(text.contains(&format!("qnnscope::fuzz::{name}(")), "{name} calls something else: {text}");
    }
    assert!(manifest.contains_key("workspace"), "it must not be built with everything else");
}

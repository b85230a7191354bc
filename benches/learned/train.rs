//! Learns which words go with which cause: a logistic regression per cause, by stochastic gradient descent with a penalty on
//! the squares of the weights. The same logs give the same weights.

use crate::examples::Example;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Penalty on the squares of the weights.
const PENALTY: f64 = 3e-6;
/// Times that every log is read.
const ROUNDS: usize = 15;
/// How much slower the base of a cause is learned than the weights of its words.
const BASE_RATE: f64 = 0.01;
/// Logs that show a word; one of a single log says nothing of another.
const SHARED: usize = 2;
/// Smaller weights are left out.
const LEAST: f64 = 0.7;

/// Words, each with its rarity, and the examples as amounts of them.
struct Matrix<'a> {
    words: Vec<(&'a str, f64)>,
    rows: Vec<Vec<(u32, f64)>>,
}

impl<'a> Matrix<'a> {
    fn of(examples: &[&'a Example]) -> Self {
        let mut having: BTreeMap<&str, usize> = BTreeMap::new();
        examples.iter().flat_map(|example| example.words.keys()).for_each(|word| *having.entry(word).or_default() += 1);
        let all = examples.len() as f64;
        let rarity =
            |count: usize| (((1.0 + all) / (1.0 + count as f64)).ln() + 1.0).mul_add(100.0, 0.5).floor() / 100.0;
        let words: Vec<(&str, f64)> =
            having.into_iter().filter(|known| known.1 >= SHARED).map(|(word, count)| (word, rarity(count))).collect();
        let places: BTreeMap<&str, u32> = (0..).zip(&words).map(|(place, word)| (word.0, place)).collect();
        let row = |example: &&Example| {
            let amount = |(word, count): (&String, &u32)| {
                let place = *places.get(word.as_str())?;
                Some((place, (1.0 + f64::from(*count).ln()) * words[place as usize].1))
            };
            let mut row: Vec<(u32, f64)> = example.words.iter().filter_map(amount).collect();
            let length = row.iter().map(|(_, amount)| amount * amount).sum::<f64>().sqrt().max(f64::EPSILON);
            row.iter_mut().for_each(|(_, amount)| *amount /= length);
            row
        };
        let rows = examples.iter().map(row).collect();
        Self { words, rows }
    }
}

/// The weights of the words for one cause, and its base.
fn learn(matrix: &Matrix, is_it: &[bool], orders: &[Vec<u32>]) -> (Vec<f64>, f64) {
    let typical = (1.0 / PENALTY.sqrt()).sqrt();
    let first_rate = typical / (1.0f64).max(1.0 / (1.0 + (-typical).exp()));
    let start = 1.0 / (first_rate * PENALTY);
    let (mut weights, mut scale, mut base, mut step) = (vec![0.0; matrix.words.len()], 1.0, 0.0, 0.0);
    for order in orders {
        for &at in order {
            let (row, is_it) = (&matrix.rows[at as usize], is_it[at as usize]);
            let score = row.iter().map(|(word, amount)| weights[*word as usize] * amount).sum::<f64>() * scale + base;
            let rate = 1.0 / (PENALTY * (start + step));
            step += 1.0;
            let sign = if is_it { 1.0 } else { -1.0 };
            let slope = -sign / (1.0 + (sign * score).exp());
            scale *= 1.0 - (rate * PENALTY).min(0.5);
            for (word, amount) in row {
                weights[*word as usize] -= rate * slope * amount / scale;
            }
            base -= rate * slope * BASE_RATE;
            if scale < 1e-9 {
                weights.iter_mut().for_each(|weight| *weight *= scale);
                scale = 1.0;
            }
        }
    }
    weights.iter_mut().for_each(|weight| *weight *= scale);
    (weights, base)
}

/// The text of what these examples teach.
pub fn train(examples: &[&Example]) -> String {
    let matrix = Matrix::of(examples);
    let mut causes: Vec<&str> = examples.iter().map(|example| example.cause.as_str()).collect();
    causes.sort_unstable();
    causes.dedup();
    let mut numbers = ChaCha8Rng::seed_from_u64(1);
    let mut order: Vec<u32> = (0..).take(examples.len()).collect();
    let orders: Vec<Vec<u32>> = (0..ROUNDS)
        .map(|_| {
            for at in (1..order.len()).rev() {
                order.swap(at, (numbers.next_u64() % (at as u64 + 1)) as usize);
            }
            order.clone()
        })
        .collect();
    let of = |cause: &&str| {
        let is_it: Vec<bool> = examples.iter().map(|example| example.cause == *cause).collect();
        learn(&matrix, &is_it, &orders)
    };
    let half = causes.len() / 2;
    let learned: Vec<(Vec<f64>, f64)> = std::thread::scope(|scope| {
        let other = scope.spawn(|| causes[half..].iter().map(of).collect::<Vec<_>>());
        let mut learned: Vec<_> = causes[..half].iter().map(of).collect();
        learned.extend(other.join().expect("the other half is learned"));
        learned
    });
    let mut text = causes.join("\t") + "\n";
    let bases: Vec<String> = learned.iter().map(|(_, base)| format!("{:.0}", base * 100.0)).collect();
    writeln!(text, "{}", bases.join("\t")).expect("text takes lines");
    for (place, (word, rarity)) in matrix.words.iter().enumerate() {
        let known = learned.iter().enumerate().filter(|(_, (weights, _))| weights[place].abs() >= LEAST);
        let weights: Vec<String> =
            known.map(|(cause, (weights, _))| format!("\t{cause} {:.0}", weights[place] * 100.0)).collect();
        // A word without weights still counts for the length.
        writeln!(text, "{word}\t{:.0}{}", rarity * 100.0, weights.concat()).expect("text takes lines");
    }
    text
}

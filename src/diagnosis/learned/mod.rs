//! A reader that has learned from known logs which words go with which cause. It answers where no rule does, and says so: a
//! cause of its own has little confidence. What it knows is in `weights.tsv`, which `benches/learned.rs` writes from the kept
//! logs. [`Reader`] and [`Diagnoser::closing_words`](super::Diagnoser::closing_words) are public for that.

mod terms;

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

pub(super) use terms::{count, is_code, telling};

/// Word, its rarity, and for each cause that it speaks for or against its weight, in hundredths.
const WEIGHTS: &str = include_str!("weights.tsv");
/// Logs that are no failure of QNN, or of a kind that the catalogue lacks.
pub const NONE: &str = "-";
/// Lines of an end that may look like that of a good run.
pub(super) const SHORTEST: usize = 4;
/// How much likelier than the next one a cause has to be, in an end of many lines, and in one of few.
const AHEAD: [f32; 2] = [3.0, 5.0];
/// Lines of an end from which they are many, and fewer than which say nothing.
const MANY: usize = 5;
const FEWEST: usize = 3;
/// Parts of the weights that are written.
const PER_WEIGHT: f32 = 100.0;

/// What was learned.
#[derive(Debug)]
pub struct Reader {
    causes: Vec<&'static str>,
    base: Vec<f32>,
    words: HashMap<&'static str, Word>,
}

#[derive(Debug)]
struct Word {
    rarity: f32,
    /// Causes, by their place, with the word's weight.
    weights: Vec<(u16, f32)>,
}

/// A cause that words of a log go with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Likely {
    /// Its place among the reader's causes.
    place: usize,
    /// Id in the catalogue, or [`NONE`].
    pub cause: &'static str,
    /// 0 to 1.
    pub probability: f32,
}

static READER: LazyLock<Option<Reader>> = LazyLock::new(|| Reader::of(WEIGHTS));

/// The reader that learned from the kept logs.
pub fn reader() -> Option<&'static Reader> {
    READER.as_ref()
}

impl Reader {
    /// A reader of such weights: a line of causes, one of what each starts with, and a line per word.
    pub fn of(text: &'static str) -> Option<Self> {
        let mut lines = text.lines().skip_while(|line| line.starts_with('#'));
        let causes: Vec<&'static str> = lines.next()?.split('\t').collect();
        let base: Vec<f32> = lines.next()?.split('\t').map(hundredths).collect::<Option<_>>()?;
        let word = |line: &'static str| {
            let mut fields = line.split('\t');
            let (word, rarity) = (fields.next()?, hundredths(fields.next()?)?);
            let weight = |field: &str| {
                let (place, weight) = field.split_once(' ')?;
                Some((place.parse().ok()?, hundredths(weight)?))
            };
            let weights = fields.map(weight).collect::<Option<Vec<(u16, f32)>>>()?;
            Some((word, Word { rarity, weights }))
        };
        let words: HashMap<_, _> = lines.map(word).collect::<Option<_>>()?;
        let is_whole = base.len() == causes.len()
            && words.values().flat_map(|word| &word.weights).all(|(place, _)| usize::from(*place) < causes.len());
        is_whole.then_some(Self { causes, base, words })
    }

    /// The words that it has learned of, with their counts.
    fn known(&self, counts: &BTreeMap<String, u32>) -> impl Iterator<Item = (&Word, u32)> {
        counts.iter().filter_map(|(word, count)| Some((self.words.get(word.as_str())?, *count)))
    }

    /// The causes that words go with, the likeliest first.
    pub fn read(&self, counts: &BTreeMap<String, u32>) -> Vec<Likely> {
        let mut scores = self.base.clone();
        let length = self
            .known(counts)
            .map(|(word, count)| amount(count, word.rarity).powi(2))
            .sum::<f32>()
            .sqrt()
            .max(f32::EPSILON);
        for (word, count) in self.known(counts) {
            let amount = amount(count, word.rarity) / length;
            for (place, weight) in &word.weights {
                scores[usize::from(*place)] += amount * weight;
            }
        }
        let chances: Vec<f32> = scores.iter().map(|score| 1.0 / (1.0 + (-score).exp())).collect();
        let sum: f32 = chances.iter().sum();
        let mut likely: Vec<Likely> = chances
            .iter()
            .zip(&self.causes)
            .enumerate()
            .map(|(place, (chance, cause))| Likely { place, cause, probability: chance / sum.max(f32::EPSILON) })
            .collect();
        likely.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        likely
    }

    /// The cause that words of so many lines go with, if it is much likelier than any other.
    pub fn answer(&self, counts: &BTreeMap<String, u32>, lines: usize) -> Option<Likely> {
        let likely = self.read(counts);
        let [best, next, ..] = &likely[..] else { return None };
        let ahead = AHEAD[usize::from(lines < MANY)];
        let is_clear = lines >= FEWEST && best.cause != NONE && best.probability >= next.probability * ahead;
        is_clear.then_some(*best)
    }

    /// How much words speak for a cause.
    pub fn support(&self, likely: &Likely, counts: &BTreeMap<String, u32>) -> f32 {
        let weight = |word: &Word| {
            word.weights.iter().find(|(place, _)| usize::from(*place) == likely.place).map(|known| known.1)
        };
        self.known(counts).filter_map(|(word, count)| Some(amount(count, word.rarity) * weight(word)?)).sum()
    }
}

/// What a word counts that a log has so often.
fn amount(count: u32, rarity: f32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "a few words of a few lines")]
    let count = count as f32;
    (1.0 + count.ln()) * rarity
}

fn hundredths(text: &str) -> Option<f32> {
    text.parse::<f32>().ok().map(|value| value / PER_WEIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# 3 logs, 00\n-\tdisk-full\tinput-missing\n-200\t-300\t-300\nspace\t300\t1 900\ngone\t300\t2 900\nready\t300\t0 900\nnothing\t100\n";

    fn counts(words: &[&str]) -> BTreeMap<String, u32> {
        words.iter().map(|word| ((*word).to_owned(), 1)).collect()
    }

    #[test]
    fn words_lead_to_the_cause_whose_logs_have_them() {
        let reader = Reader::of(TEXT).unwrap();
        let answer = |words: &[&str], lines| reader.answer(&counts(words), lines).map(|likely| likely.cause);
        assert_eq!(answer(&["space", "zebra"], 9), Some("disk-full"));
        assert_eq!(answer(&["gone"], 3), Some("input-missing"));
        assert_eq!(answer(&["gone"], 2), None, "two lines are no end of a log");
        assert_eq!(answer(&["ready"], 9), None, "a good run");
        assert_eq!(answer(&["gone", "space"], 9), None, "two causes are as likely");
        assert_eq!(answer(&["zebra"], 9), None);
        assert_eq!(answer(&[], 9), None);
        let likely = reader.answer(&counts(&["space"]), 9).unwrap();
        assert!(reader.support(&likely, &counts(&["space"])) > reader.support(&likely, &counts(&["nothing"])));
    }

    #[test]
    fn broken_weights_are_refused() {
        for broken in ["", "-\tdisk-full\n0\n", "-\n0\nword\tx\n", "-\n0\nword\t1\t1 5\n", "-\n0\nword\t1\t0\n"] {
            assert!(Reader::of(broken).is_none(), "{broken}");
        }
        assert!(reader().is_some());
    }
}

//! Simulated machines whose launches are known to the last digit, with which the statistics of launches are
//! compared.

use qnnscope::analysis::launches::{Difference, InTime, MANY_LAUNCHES, MOST_LAUNCHES, Spread, difference, needs_more};
use std::time::Duration;

/// Inferences of a launch, and of one that only settles a disagreement.
pub const INFERENCES: [usize; 2] = [100, 50];
/// Duration of a simulated launch: about that of a 2 ms model on the CPU.
const LAUNCH: Duration = Duration::from_millis(500);
/// The same for a launch without layers and with half of the inferences.
const WITHOUT_LAYERS: Duration = Duration::from_millis(300);
/// Launches whose geometric mean counts as the truth.
const MANY: usize = 4000;
/// Noise of single inferences, as a fraction.
const NOISE: f64 = 0.05;

/// How a machine's launches vary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Machine {
    /// Normally distributed around the machine's level, with this standard deviation as a fraction of it.
    Normal(f64),
    /// The same, with lognormal noise of single inferences and a long tail (half of them are 40 % off).
    Lognormal(f64),
    /// The same, with one inference in ten slower by a factor that has a tail of power 2.5.
    HeavyTails(f64),
    /// Twice as slow in this fraction of the launches.
    TwoLevels(f64),
    /// Twice as slow in this fraction of the launches, at random in each; sides take turns.
    Levels(f64),
    /// Normally distributed, and slower by this fraction from the first launch to the tenth; sides take
    /// turns.
    Drift(f64, f64),
    /// Normally distributed, and slower by this factor during spells of three turns, which begin at one turn
    /// in six; sides take turns.
    Spells(f64, f64),
}

/// The figures of a launch that the tests check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    P50,
    P95,
    Mean,
}

pub const FIGURES: [Figure; 3] = [Figure::P50, Figure::P95, Figure::Mean];

/// Uniform and normal random numbers that are the same everywhere (splitmix64).
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    /// Uniform in 0..1, never 0.
    pub fn even(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.even().ln()).sqrt() * (std::f64::consts::TAU * self.even()).cos()
    }
}

impl Machine {
    fn level(self, draws: &mut Draws, index: usize) -> f64 {
        match self {
            Self::Normal(deviation) | Self::Lognormal(deviation) | Self::HeavyTails(deviation) => {
                (deviation * draws.normal()).exp()
            }
            Self::TwoLevels(share) | Self::Levels(share) => {
                (if draws.even() < share { 2.0 } else { 1.0 }) * (0.01 * draws.normal()).exp()
            }
            Self::Drift(deviation, rise) => (deviation * draws.normal() + rise * index as f64 / 9.0).exp(),
            Self::Spells(deviation, _) => (deviation * draws.normal()).exp(),
        }
    }

    fn in_time(self) -> InTime {
        if matches!(self, Self::Drift(..) | Self::Spells(..) | Self::Levels(_)) {
            InTime::InTurns
        } else {
            InTime::Apart
        }
    }

    /// What affects all launches of each turn, as factors.
    fn turns(self, draws: &mut Draws) -> Vec<f64> {
        let mut left = 0;
        let mut turn = |factor: f64| {
            left = if draws.even() < 1.0 / 6.0 { 3 } else { left - i32::from(left > 0) };
            if left > 0 { factor } else { 1.0 }
        };
        match self {
            Self::Spells(_, factor) => (0..MANY_LAUNCHES).map(|_| turn(factor)).collect(),
            _ => vec![1.0; MANY_LAUNCHES],
        }
    }

    /// Latencies of a launch, microseconds around 1,000 times `factor`.
    pub fn launch(self, draws: &mut Draws, index: usize, factor: f64) -> Vec<f64> {
        let level = 1000.0 * factor * self.level(draws, index);
        let inference = |draws: &mut Draws| {
            let noise = if matches!(self, Self::Lognormal(_)) { 0.5 } else { NOISE };
            let usual = (noise * draws.normal()).exp();
            let tail = matches!(self, Self::HeavyTails(_)) && draws.even() < 0.1;
            level * usual * if tail { draws.even().powf(-1.0 / 2.5) } else { 1.0 }
        };
        let inferences = INFERENCES[usize::from(index >= MOST_LAUNCHES)];
        (0..inferences).map(|_| inference(draws)).collect()
    }

    /// The geometric mean of the figure over very many launches of this machine.
    pub fn truth(self, figure: Figure) -> f64 {
        let mut draws = Draws::new(99);
        let steady = match self {
            Self::Normal(_) | Self::Drift(..) | Self::Spells(..) => Self::Normal(0.0),
            Self::Lognormal(_) => Self::Lognormal(0.0),
            Self::HeavyTails(_) => Self::HeavyTails(0.0),
            Self::TwoLevels(_) | Self::Levels(_) => Self::TwoLevels(0.0),
        };
        let logs: f64 = (0..MANY).map(|_| value(&mut steady.launch(&mut draws, 0, 1.0), figure).ln()).sum();
        let slow = if let Self::TwoLevels(share) | Self::Levels(share) = self { share * 2f64.ln() } else { 0.0 };
        (logs / MANY as f64 + slow).exp()
    }
}

/// A figure of a launch's latencies.
pub fn value(latencies: &mut [f64], figure: Figure) -> f64 {
    let quantile = match figure {
        Figure::Mean => return latencies.iter().sum::<f64>() / latencies.len() as f64,
        Figure::P50 => 0.5,
        Figure::P95 => 0.95,
    };
    latencies.sort_by(f64::total_cmp);
    let at = (latencies.len() as f64 + 1.0 / 3.0) * quantile + 1.0 / 3.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank of a hundred")]
    let rank = at as usize;
    let (low, high) = (latencies[rank - 1], latencies[rank.min(latencies.len() - 1)]);
    low + (at - rank as f64) * (high - low)
}

/// Each launch's figures in a run that continues as real runs do: until its launches agree.
pub struct Run {
    /// By figure, in the order of [`FIGURES`].
    pub values: [Vec<f64>; 3],
}

impl Run {
    pub fn new(machine: Machine, draws: &mut Draws, factor: f64) -> Self {
        let [run] = Self::sides(machine, draws, [factor]);
        run
    }

    /// Runs that continue until all of them have enough launches, like runs that take turns.
    pub fn sides<const N: usize>(machine: Machine, draws: &mut Draws, factors: [f64; N]) -> [Self; N] {
        let turns = machine.turns(draws);
        let mut sides = factors.map(|_| Self { values: Default::default() });
        loop {
            let made = sides[0].values[0].len();
            let time = |at: usize| if at < MOST_LAUNCHES { LAUNCH } else { WITHOUT_LAYERS };
            let spent = (0..made).map(time).sum();
            if sides.iter().all(|side| needs_more(&side.values[0], spent).is_none()) {
                return sides;
            }
            for (side, factor) in sides.iter_mut().zip(factors) {
                let mut latencies = machine.launch(draws, made, factor * turns[made]);
                for (values, figure) in side.values.iter_mut().zip(FIGURES) {
                    values.push(value(&mut latencies, figure));
                }
            }
        }
    }

    /// How this run differs from another in a figure.
    pub fn against(&self, base: &Self, figure: usize, machine: Machine) -> Difference {
        difference(&base.values[figure], &self.values[figure], machine.in_time()).expect("every run has three launches")
    }
}

/// How often statements about a machine are true, per cent of the attempts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rates {
    /// Mean number of launches in a run.
    pub launches: f64,
    /// Intervals of one run that contain the truth, by figure.
    pub covered: [f64; 3],
    /// Intervals of a 10 % difference that contain it, by figure.
    pub difference_covered: [f64; 3],
    /// Medians of equal sides that are called different.
    pub called_different: f64,
    /// Medians that are called slower when the other side is 10 % slower.
    pub found_10: f64,
    /// The same for 30 %.
    pub found_30: f64,
}

/// Simulates pairs of runs.
pub fn rates(machine: Machine, pairs: u32, seed: u64) -> Rates {
    let mut draws = Draws::new(seed);
    let truth = FIGURES.map(|figure| machine.truth(figure));
    let mut rates = Rates::default();
    let share = 100.0 / f64::from(pairs);
    let count = |yes: bool| if yes { share } else { 0.0 };
    for _ in 0..pairs {
        let [one, two, ten, thirty] = match machine.in_time() {
            InTime::Apart => [1.0, 1.0, 1.1, 1.3].map(|factor| Run::new(machine, &mut draws, factor)),
            InTime::InTurns => Run::sides(machine, &mut draws, [1.0, 1.0, 1.1, 1.3]),
        };
        rates.launches += one.values[0].len() as f64 * share / 100.0;
        for (figure, &truth) in truth.iter().enumerate() {
            let [low, high] = Spread::of(&one.values[figure]).expect("three launches").interval();
            rates.covered[figure] += count(low <= truth && truth <= high);
            let [low, high] = ten.against(&one, figure, machine).interval;
            rates.difference_covered[figure] += count(low <= 0.1 && 0.1 <= high);
        }
        rates.called_different += count(two.against(&one, 0, machine).told);
        let found = |run: &Run| run.against(&one, 0, machine).told && run.against(&one, 0, machine).relative > 0.0;
        rates.found_10 += count(found(&ten));
        rates.found_30 += count(found(&thirty));
    }
    rates
}

/// For machines with eight equal runs each: the mean number of their 28 pairs that are called different, and
/// the percentage of machines where it is more than two.
pub fn eight_runs(machine: Machine, machines: u32, seed: u64) -> (f64, f64) {
    let mut draws = Draws::new(seed);
    let (mut pairs, mut many) = (0.0, 0.0);
    for _ in 0..machines {
        let runs: Vec<Run> = (0..8).map(|_| Run::new(machine, &mut draws, 1.0)).collect();
        let told =
            |(at, run): (usize, &Run)| runs[..at].iter().filter(|base| run.against(base, 0, machine).told).count();
        let different: usize = runs.iter().enumerate().map(told).sum();
        pairs += different as f64 / f64::from(machines);
        many += if different > 2 { 100.0 / f64::from(machines) } else { 0.0 };
    }
    (pairs, many)
}

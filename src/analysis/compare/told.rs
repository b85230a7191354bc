//! Whether a difference exceeds the variation between launches.

use super::between::{Between, Tested};
use super::bootstrap::{MIN_VALUES, Statistic, relative_interval};
use super::rows::{Rows, Test};
use super::{Side, SideLatency, SideLaunch};
use crate::analysis::launches::{self, InTime};

/// Share of the time that inferences must fill for their mean to represent the throughput.
const BUSY_SHARE: f64 = 0.9;

/// Maximum ratio of the upper to the lower quartile of launches if other processes kept the CPU busy.
const SCATTER: f64 = 1.2;

impl Rows<'_> {
    /// Tests the difference of a figure between two columns; `figures` are its values.
    pub(super) fn tested(&self, test: Test, base: usize, column: usize, figures: (f64, f64)) -> Tested {
        let none = |reason: &str| Tested { between: Err(reason.to_owned()), within: None };
        let statistic = match test {
            Test::None(reason) => return none(reason),
            Test::Exact => return none("it is computed from saved outputs"),
            Test::Fastest => {
                let between = self.fastest(base, column);
                return Tested {
                    between: between.map(|between| between.with(figures.1 / figures.0 - 1.0)),
                    within: None,
                };
            }
            Test::Latency(statistic) => statistic,
            Test::Throughput => Statistic::Mean,
        };
        let turned = |interval: [f64; 2]| match test {
            Test::Throughput => self.turned(base, column, figures, interval),
            _ => Some(interval),
        };
        if matches!(test, Test::Throughput) && [base, column].iter().any(|column| self.busy_mean(*column).is_none()) {
            return none("inferences did not run back to back, so latencies do not give it");
        }
        let between = self.between(statistic, base, column).and_then(|between| {
            let interval = turned(between.interval).ok_or("the figures allow no ratio")?;
            let [relative, _] = turned([between.relative; 2]).ok_or("the figures allow no ratio")?;
            let between = Between { interval, relative, ..between };
            Ok(if figures.0 > 0.0 { between.with(figures.1 / figures.0 - 1.0) } else { between })
        });
        let within = between.is_err().then(|| self.within(test, statistic, base, column, figures)).flatten();
        Tested { between, within: within.and_then(turned) }
    }

    fn between(&self, statistic: Statistic, base: usize, column: usize) -> Result<Between, String> {
        let (one, two) = (self.values(statistic, base)?, self.values(statistic, column)?);
        let in_time = self.in_time(base, column, [one.len(), two.len()]);
        if in_time == InTime::Apart {
            self.held_up(base, &one)?;
            self.held_up(column, &two)?;
        }
        Self::apart(&one, &two, in_time)
    }

    /// Whether the launches of two columns alternated, given how many have the figure.
    fn in_time(&self, base: usize, column: usize, with_figure: [usize; 2]) -> InTime {
        let [one, two] = [base, column].map(|column| &self.sides[column]);
        let made = |side: &Side| side.latency.as_ref().map_or(0, |latency| latency.launches.len());
        // The seed of their order is the time when the runs were requested.
        let seeds = [one, two].map(|side| side.mode.launches.seed);
        let same_order = seeds[0] != 0 && seeds[0] == seeds[1] && one.device == two.device;
        // A launch without the figure would shift all later ones.
        if same_order && [made(one), made(two)] == with_figure { InTime::InTurns } else { InTime::Apart }
    }

    /// By the fastest inference of each launch: the model's time without interruption.
    fn fastest(&self, base: usize, column: usize) -> Result<Between, String> {
        let [one, two] = [base, column].map(|column| {
            let launches = self.sides[column].latency.as_ref().map(SideLatency::launches).unwrap_or_default();
            let usual = launches.iter().map(|launch| launch.samples).max().unwrap_or(0);
            (launches.iter().filter_map(|launch| launch.min).collect::<Vec<f64>>(), usual)
        });
        for (number, (values, _)) in [(base + 1, &one), (column + 1, &two)] {
            if values.len() < 2 {
                return Err(format!("{number} has one launch, which cannot show the variation between launches"));
            }
        }
        let (fewer, more) = (one.1.min(two.1), one.1.max(two.1));
        if more > fewer.saturating_mul(2) {
            return Err(format!("the fastest of {more} inferences is always at least as fast as that of {fewer}"));
        }
        let in_time = self.in_time(base, column, [one.0.len(), two.0.len()]);
        if in_time == InTime::Apart {
            self.held_up(base, &one.0)?;
            self.held_up(column, &two.0)?;
        }
        Self::apart(&one.0, &two.0, in_time)
    }

    fn apart(one: &[f64], two: &[f64], in_time: InTime) -> Result<Between, String> {
        let told = launches::difference(one, two, in_time).ok_or("the figures allow no ratio")?;
        let more = || launches::launches_to_tell(one, two, told.relative, in_time);
        let launches_to_tell = if told.told { None } else { more() };
        let launches::Difference { relative, interval, told, by_pairs } = told;
        Ok(Between { interval, relative, by_pairs, told, launches_to_tell })
    }

    /// Launches that differ because of other processes change from one minute to the next, so a run's
    /// launches do not measure that variation; without other load, or on one core, they do.
    fn held_up(&self, column: usize, values: &[f64]) -> Result<(), String> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let part = sorted.len() / 4;
        let (low, high) = (sorted[part], sorted[sorted.len() - 1 - part]);
        match &self.sides[column].crowded {
            Some(crowded) if high > low * SCATTER => Err(format!(
                "{crowded} in {}, and the middle half of its launches differs by a factor of {:.1}: the load of others changes \
                 from minute to minute; measure when they are done, or on one core (--pin 0)",
                column + 1,
                high / low
            )),
            _ => Ok(()),
        }
    }

    /// The figure of each launch of a column with at least two.
    fn values(&self, statistic: Statistic, column: usize) -> Result<Vec<f64>, String> {
        let number = column + 1;
        let latency = self.sides[column].latency.as_ref().ok_or_else(|| format!("{number} has no latencies"))?;
        let all = latency.launches();
        if all.len() < 2 {
            return Err(format!("{number} has one launch, which cannot show the variation between launches"));
        }
        let values: Vec<f64> = all.iter().filter_map(|launch: &SideLaunch| launch.value(statistic)).collect();
        if values.len() < 2 {
            let most = all.iter().map(|launch| launch.samples).max().unwrap_or(0);
            return Err(format!("launches of {number} have up to {most} inferences, too few for this figure of each"));
        }
        Ok(values)
    }

    /// The interval within the launches, by resampling latencies; `None` if there are too few.
    fn within(
        &self,
        test: Test,
        statistic: Statistic,
        base: usize,
        column: usize,
        (from, to): (f64, f64),
    ) -> Option<[f64; 2]> {
        let (one, two) = (self.resampled[base].as_ref()?, self.resampled[column].as_ref()?);
        let figures = match test {
            Test::Throughput => (self.busy_mean(base)?, self.busy_mean(column)?),
            _ => (from, to),
        };
        let enough = one.values.min(two.values) >= MIN_VALUES;
        relative_interval(statistic, (one, figures.0), (two, figures.1)).filter(|_| enough)
    }

    /// The mean of a run whose inferences follow each other immediately.
    fn busy_mean(&self, column: usize) -> Option<f64> {
        let side: &Side = &self.sides[column];
        // A growing queue also fills the time.
        if side.mode.rate_hz.is_some() {
            return None;
        }
        let mean = side.latency.as_ref()?.mean?;
        (mean * side.throughput_ips? / 1e6 >= BUSY_SHARE).then_some(mean)
    }

    /// One is time per inference, the other inferences per second: the ratio is inverted and shifted to that
    /// of the figures.
    fn turned(&self, base: usize, column: usize, (from, to): (f64, f64), [low, high]: [f64; 2]) -> Option<[f64; 2]> {
        let scale = (to / from) * (self.busy_mean(column)? / self.busy_mean(base)?);
        let interval = [scale / (1.0 + high) - 1.0, scale / (1.0 + low) - 1.0];
        interval.iter().all(|bound| bound.is_finite()).then_some(interval)
    }
}

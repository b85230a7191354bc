//! Figures of several runs side by side: the best of each row, and differences with their intervals.

use super::accuracy::Accuracy;
use super::between::Between;
use super::bootstrap::{Resampled, Statistic};
use super::{Side, resampled, schedules_differ};
use crate::event::{Stage, TruthMetric};
use serde::Serialize;

/// Untested values that differ by at most this fraction are not ranked.
const ALIKE: f64 = 0.01;

/// Which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Small values.
    Lower,
    /// Large values.
    Higher,
    /// Neither by itself.
    Neither,
}

/// The verdict on a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceVerdict {
    /// Better than the baseline, beyond the variation between launches.
    Better,
    /// Worse than the baseline, beyond the variation between launches.
    Worse,
    /// Within the variation between launches: not distinguishable.
    WithinNoise,
    /// Not tested, so the variation between launches is unknown: there is one launch, or the figure is
    /// measured only once.
    Unknown,
    /// One of the two is simulated, so the difference says nothing about hardware.
    NotComparable,
}

/// A difference from the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Value minus the baseline's, in the row's unit.
    pub absolute: f64,
    /// The same as a fraction of the baseline's value; `None` if that is not above 0.
    pub relative: Option<f64>,
    /// The relative difference shown by the launches of both: the median over their pairs, or that of their
    /// means if there are few.
    pub of_launches: Option<f64>,
    /// Its 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// The verdict on it.
    pub verdict: DifferenceVerdict,
    /// Why there is no interval.
    pub no_interval: Option<String>,
    /// If one of the two has one launch: the interval within these launches, from resampled latencies. It
    /// does not include the variation between launches.
    pub within_ci95: Option<[f64; 2]>,
    /// If not distinguishable: the largest difference that the launches leave possible, as a fraction.
    pub up_to: Option<f64>,
    /// If not distinguishable: launches per side that would detect the observed difference nine times in ten;
    /// `None` if more than a hundred.
    pub launches_to_tell: Option<usize>,
}

impl Difference {
    /// The relative difference to show: that of the figures, unless launches show a different one. In that
    /// case launches fall on levels, which figures over all inferences mix.
    pub fn shown(&self) -> Option<f64> {
        let relative = self.relative?;
        let mixed = self.ci95.is_some_and(|[low, high]| relative < low || high < relative);
        Some(self.of_launches.filter(|_| mixed).unwrap_or(relative))
    }
}

/// One figure of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cell {
    /// The value in the row's unit; `None` if not measured.
    pub value: Option<f64>,
    /// True for the best of the row, and for any indistinguishable from it.
    pub best: bool,
    /// Difference from the baseline; `None` for the baseline itself, and if one of the two is missing.
    pub difference: Option<Difference>,
}

/// One figure of all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Stable id: `p50_us`, `memory_peak_bytes`, `counter.host.cpu.busy`.
    pub id: String,
    /// Human-readable name.
    pub label: String,
    /// Unit: `us`, `bytes`, `ips`, `%`, `mJ`, `W`, `dB`, `MHz`, `°C`, or empty.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// One cell per column.
    pub cells: Vec<Cell>,
}

/// How a row is tested.
#[derive(Clone, Copy)]
pub(super) enum Test {
    /// By resampling latencies.
    Latency(Statistic),
    /// By resampling latencies, for back-to-back inferences.
    Throughput,
    /// By the fastest inference of each launch.
    Fastest,
    /// Not at all, for this reason.
    None(&'static str),
    /// Not at all: it is computed from saved outputs, which a simulator produces just as a device does.
    Exact,
}

const ONCE: Test = Test::None("it is measured once per run");
const EXTREME: Test = Test::None("the maximum has no interval: it grows with the number of inferences");
const MEAN_OF_READINGS: Test = Test::None("it is the mean of few readings");

type Figure = (&'static str, &'static str, &'static str, Better, Test, fn(&Side) -> Option<f64>);

fn stages(side: &Side, wanted: &[Stage]) -> Option<f64> {
    let mut times = side.stages_us.iter().filter(|(stage, _)| wanted.contains(stage)).peekable();
    times.peek()?;
    Some(times.map(|(_, us)| us).sum())
}

const LOADING: [Stage; 5] =
    [Stage::LibraryLoad, Stage::BackendCreate, Stage::DeviceCreate, Stage::ContextCreate, Stage::Compose];

const FIGURES: [Figure; 15] = [
    ("load_us", "load", "us", Better::Lower, ONCE, |side| stages(side, &LOADING)),
    ("finalize_us", "finalize", "us", Better::Lower, ONCE, |side| stages(side, &[Stage::Finalize])),
    ("first_inference_us", "first inference", "us", Better::Lower, ONCE, |side| side.first_us),
    ("fastest_us", "fastest", "us", Better::Lower, Test::Fastest, |side| side.latency.as_ref()?.fastest_us()),
    ("p50_us", "p50", "us", Better::Lower, Test::Latency(Statistic::P50), |side| side.latency.as_ref()?.p50),
    ("p95_us", "p95", "us", Better::Lower, Test::Latency(Statistic::P95), |side| side.latency.as_ref()?.p95),
    ("p99_us", "p99", "us", Better::Lower, Test::Latency(Statistic::P99), |side| side.latency.as_ref()?.p99),
    ("max_us", "max", "us", Better::Lower, EXTREME, |side| side.latency.as_ref()?.max),
    ("jitter_us", "jitter (stddev)", "us", Better::Lower, Test::Latency(Statistic::Stddev), |side| {
        side.latency.as_ref()?.stddev
    }),
    ("throughput_ips", "throughput", "ips", Better::Higher, Test::Throughput, |side| side.throughput_ips),
    ("memory_peak_bytes", "memory peak", "bytes", Better::Lower, ONCE, |side| side.memory_peak),
    ("memory_delta_bytes", "memory by loading", "bytes", Better::Lower, ONCE, |side| side.memory_delta),
    ("cpu_percent", "CPU (of a core)", "%", Better::Lower, ONCE, |side| side.cpu_percent),
    ("energy_mj", "energy/inference", "mJ", Better::Lower, MEAN_OF_READINGS, |side| side.energy_mj),
    ("power_w", "power", "W", Better::Lower, MEAN_OF_READINGS, |side| side.power_w),
];

type AccuracyFigure = (&'static str, &'static str, &'static str, Better, fn(&Accuracy) -> Option<f64>);

const ACCURACY: [AccuracyFigure; 5] = [
    ("cosine", "cosine similarity", "", Better::Higher, |accuracy| accuracy.cosine),
    ("sqnr_db", "SQNR", "dB", Better::Higher, |accuracy| accuracy.sqnr_db),
    ("max_abs_error", "max abs error", "", Better::Lower, |accuracy| Some(accuracy.max_abs_error)),
    ("top1_agreement", "top-1 agreement", "%", Better::Higher, |accuracy| accuracy.top1.map(|part| 100.0 * part)),
    ("top5_agreement", "top-5 agreement", "%", Better::Higher, |accuracy| accuracy.top5.map(|part| 100.0 * part)),
];

/// One figure of a run by the id of its row, such as `p50_us`.
pub fn figure(id: &str, side: &Side) -> Option<f64> {
    FIGURES.iter().find(|figure| figure.0 == id).and_then(|figure| figure.5(side))
}

/// How every run differs from the run `from` in one figure, as a row with that id compares runs with the
/// baseline. `None` for that run itself, and if one of the two lacks the figure.
pub fn differences(id: &str, sides: &[Side], from: usize) -> Vec<Option<Difference>> {
    let Some(&(_, _, _, better, test, figure)) = FIGURES.iter().find(|figure| figure.0 == id) else {
        return vec![None; sides.len()];
    };
    let values: Vec<Option<f64>> = sides.iter().map(figure).collect();
    let resampled = if matches!(test, Test::None(_)) { vec![None; sides.len()] } else { resampled(sides) };
    let rows = Rows { sides, baseline: from, resampled };
    let against = |column: usize| rows.difference(better, test, &values, from, column).filter(|_| column != from);
    (0..sides.len()).map(against).collect()
}

/// Builds all rows that have a value.
pub struct Rows<'a> {
    /// The runs.
    pub sides: &'a [Side],
    /// Column that the others are compared with.
    pub baseline: usize,
    /// Resamples of each run's latencies.
    pub resampled: Vec<Option<Resampled>>,
}

impl Rows<'_> {
    /// The rows in display order.
    pub fn all(&self, accuracy: &[Option<Accuracy>]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (id, label, unit, better, test, figure) in FIGURES {
            let values: Vec<Option<f64>> = self.sides.iter().map(figure).collect();
            rows.extend(self.row((id, label, unit), better, test, &values));
        }
        rows.extend(self.truth());
        rows.extend(self.counters());
        for (id, label, unit, better, figure) in ACCURACY {
            let values: Vec<Option<f64>> =
                (0..self.sides.len()).map(|at| accuracy.get(at)?.as_ref().and_then(figure)).collect();
            // A reference run has no accuracy of its own, so there is no baseline.
            rows.extend(self.row((id, label, unit), better, Test::Exact, &values).map(|mut row| {
                row.cells.iter_mut().for_each(|cell| cell.difference = None);
                row
            }));
        }
        rows
    }

    /// Outputs compared with known correct ones, the worst output of each run.
    fn truth(&self) -> Vec<Row> {
        let row = |metric: TruthMetric| {
            let factor = if metric.is_share() { 100.0 } else { 1.0 };
            let value = |side: &Side| Some(factor * side.judged.as_ref()?.worst(metric)?);
            let values: Vec<Option<f64>> = self.sides.iter().map(value).collect();
            let unit = match metric {
                TruthMetric::SqnrDb | TruthMetric::PsnrDb => "dB",
                _ if metric.is_share() => "%",
                _ => "",
            };
            let better = if metric.is_error() { Better::Lower } else { Better::Higher };
            let (id, label) = (format!("truth.{metric}"), format!("{} to truth", metric.label()));
            let mut row = self.row((&id, &label, unit), better, Test::Exact, &values)?;
            // Launches do not affect them, so there is nothing to test.
            row.cells.iter_mut().for_each(|cell| cell.difference = None);
            Some(row)
        };
        TruthMetric::ALL.into_iter().filter_map(row).collect()
    }

    fn counters(&self) -> Vec<Row> {
        let mut ids: Vec<(&str, &str)> = Vec::new();
        for counter in self.sides.iter().flat_map(|side| &side.counters) {
            if !ids.contains(&(&counter.id, &counter.unit)) {
                ids.push((&counter.id, &counter.unit));
            }
        }
        let row = |(id, unit): (&str, &str)| {
            let value = |side: &Side| side.counters.iter().find(|counter| counter.id == id).map(|counter| counter.mean);
            let values: Vec<Option<f64>> = self.sides.iter().map(value).collect();
            self.row((&format!("counter.{id}"), id, unit), Better::Neither, MEAN_OF_READINGS, &values)
        };
        ids.into_iter().filter_map(row).collect()
    }

    /// A row, unless no run has the figure.
    fn row(
        &self,
        (id, label, unit): (&str, &str, &str),
        better: Better,
        test: Test,
        values: &[Option<f64>],
    ) -> Option<Row> {
        values.iter().flatten().next()?;
        let mut cells: Vec<Cell> = values.iter().map(|value| Cell { value: *value, ..Cell::default() }).collect();
        for column in (0..cells.len()).filter(|column| *column != self.baseline) {
            cells[column].difference = self.difference(better, test, values, self.baseline, column);
        }
        self.mark_best(better, test, values, &mut cells);
        Some(Row { id: id.to_owned(), label: label.to_owned(), unit: unit.to_owned(), better, cells })
    }

    /// Simulated runs cannot win on time or memory if there is a real one; if all are alike, none is best.
    fn mark_best(&self, better: Better, test: Test, values: &[Option<f64>], cells: &mut [Cell]) {
        // A paced run's throughput is that of its schedule.
        if matches!(test, Test::Throughput) && schedules_differ(self.sides) {
            return;
        }
        let real = self.sides.iter().any(|side| !side.simulated && side.is_measured());
        let runs = |column: usize| matches!(test, Test::Exact) || !(real && self.sides[column].simulated);
        let known: Vec<(usize, f64)> = values
            .iter()
            .enumerate()
            .filter(|(column, _)| runs(*column) && self.sides[*column].failure.is_none())
            .filter_map(|(column, value)| Some((column, (*value)?)))
            .collect();
        let best = match better {
            Better::Lower => known.iter().min_by(|a, b| a.1.total_cmp(&b.1)),
            Better::Higher => known.iter().max_by(|a, b| a.1.total_cmp(&b.1)),
            Better::Neither => None,
        };
        let Some(&(mut best, mut value)) = best.filter(|_| known.len() > 1) else { return };
        // If figures over all inferences mix the levels of launches, the launches may show a different one to
        // be better.
        let surpasses = |own: usize, best: usize| {
            self.difference(better, test, values, best, own)
                .is_some_and(|found| found.verdict == DifferenceVerdict::Better)
        };
        for &(column, own) in &known {
            if column != best && surpasses(column, best) {
                (best, value) = (column, own);
            }
        }
        let alike = |&(column, own): &(usize, f64)| {
            let difference = || self.difference(better, test, values, best, column);
            let same = match test {
                Test::Exact => own.total_cmp(&value).is_eq(),
                _ => difference().is_some_and(|known| match known.verdict {
                    DifferenceVerdict::WithinNoise => true,
                    DifferenceVerdict::Unknown => (own - value).abs() <= ALIKE * value.abs(),
                    _ => false,
                }),
            };
            column == best || same
        };
        let marked: Vec<usize> = known.iter().filter(|known| alike(known)).map(|(column, _)| *column).collect();
        if marked.len() < known.len() {
            for column in marked {
                cells[column].best = true;
            }
        }
    }

    fn difference(
        &self,
        better: Better,
        test: Test,
        values: &[Option<f64>],
        base: usize,
        column: usize,
    ) -> Option<Difference> {
        let (from, to) = (values[base]?, values[column]?);
        let tested = self.tested(test, base, column, (from, to));
        let simulated = self.sides[base].simulated != self.sides[column].simulated;
        let verdict = match &tested.between {
            _ if simulated && !matches!(test, Test::Exact) => DifferenceVerdict::NotComparable,
            Ok(between) if !between.told => DifferenceVerdict::WithinNoise,
            Ok(between) if (between.interval[0] > 0.0) == (better == Better::Higher) => DifferenceVerdict::Better,
            Ok(_) => DifferenceVerdict::Worse,
            Err(_) => DifferenceVerdict::Unknown,
        };
        let alike = tested.between.as_ref().ok().filter(|_| verdict == DifferenceVerdict::WithinNoise);
        Some(Difference {
            absolute: to - from,
            relative: (from > 0.0).then(|| to / from - 1.0),
            of_launches: tested.between.as_ref().ok().map(|between| between.relative),
            ci95: tested.between.as_ref().ok().map(|between| between.interval),
            verdict,
            up_to: alike.map(Between::up_to),
            launches_to_tell: alike.and_then(|between| between.launches_to_tell),
            no_interval: tested.between.as_ref().err().cloned(),
            within_ci95: tested.within,
        })
    }
}

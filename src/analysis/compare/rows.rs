//! Figures of several runs side by side: the best of each row, and differences with their intervals.

use super::accuracy::Accuracy;
use super::bootstrap::{Resampled, Statistic, relative_interval};
use super::{Side, resampled, schedules_differ};
use crate::event::Stage;
use serde::Serialize;

/// Wall time that the inferences must fill for their mean to stand for the throughput.
const BUSY_SHARE: f64 = 0.9;

/// Values without an interval that differ by no more than this are not ranked.
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

/// What a difference comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better than the baseline, beyond the noise.
    Better,
    /// Worse than the baseline, beyond the noise.
    Worse,
    /// The interval holds no difference, too.
    WithinNoise,
    /// No interval, so it is not known whether this is noise.
    Unknown,
    /// One of the two is simulated, so that the difference says nothing about hardware.
    NotComparable,
}

/// A difference from the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Value minus the baseline's, in the row's unit.
    pub absolute: f64,
    /// The same as a part of the baseline's value; `None` where that is not above 0.
    pub relative: Option<f64>,
    /// 95 % interval of the relative difference.
    pub ci95: Option<[f64; 2]>,
    /// What it comes to.
    pub verdict: Verdict,
    /// Why there is no interval.
    pub no_interval: Option<String>,
}

/// One figure of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cell {
    /// The value in the row's unit; `None` where it was not measured.
    pub value: Option<f64>,
    /// True for the best of the row, and for those that cannot be told from it.
    pub best: bool,
    /// Difference from the baseline; `None` for the baseline itself and where one of the two is missing.
    pub difference: Option<Difference>,
}

/// One figure of all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Stable id: `p50_us`, `memory_peak_bytes`, `counter.host.cpu.busy`.
    pub id: String,
    /// Words for people.
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
enum Test {
    /// By resampling latencies.
    Latency(Statistic),
    /// By resampling latencies where inferences follow each other at once.
    Throughput,
    /// Not at all, for this reason.
    None(&'static str),
    /// Not at all: it is computed from saved outputs, which a simulator makes as a device does.
    Exact,
}

const ONCE: Test = Test::None("it is measured once a run");
const EXTREME: Test = Test::None("the largest value has no interval: it grows with the number of inferences");
const MEAN_OF_READINGS: Test = Test::None("it is a mean of few readings");

type Figure = (&'static str, &'static str, &'static str, Better, Test, fn(&Side) -> Option<f64>);

fn stages(side: &Side, wanted: &[Stage]) -> Option<f64> {
    let mut times = side.stages_us.iter().filter(|(stage, _)| wanted.contains(stage)).peekable();
    times.peek()?;
    Some(times.map(|(_, us)| us).sum())
}

const LOADING: [Stage; 5] =
    [Stage::LibraryLoad, Stage::BackendCreate, Stage::DeviceCreate, Stage::ContextCreate, Stage::Compose];

const FIGURES: [Figure; 14] = [
    ("load_us", "load", "us", Better::Lower, ONCE, |side| stages(side, &LOADING)),
    ("finalize_us", "finalize", "us", Better::Lower, ONCE, |side| stages(side, &[Stage::Finalize])),
    ("first_inference_us", "first inference", "us", Better::Lower, ONCE, |side| side.first_us),
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

/// How every run differs from the run `from` in one figure, as a row of that id tells it of the baseline. `None` for that run
/// itself, and where one of the two lacks the figure.
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
    /// Column that differences are taken from.
    pub baseline: usize,
    /// Resamples of each run's latencies.
    pub resampled: Vec<Option<Resampled>>,
}

impl Rows<'_> {
    /// The rows, in the order in which they are shown.
    pub fn all(&self, accuracy: &[Option<Accuracy>]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (id, label, unit, better, test, figure) in FIGURES {
            let values: Vec<Option<f64>> = self.sides.iter().map(figure).collect();
            rows.extend(self.row((id, label, unit), better, test, &values));
        }
        rows.extend(self.counters());
        for (id, label, unit, better, figure) in ACCURACY {
            let values: Vec<Option<f64>> =
                (0..self.sides.len()).map(|at| accuracy.get(at)?.as_ref().and_then(figure)).collect();
            // A reference run has no accuracy of its own, so there is nothing to take differences from.
            rows.extend(self.row((id, label, unit), better, Test::Exact, &values).map(|mut row| {
                row.cells.iter_mut().for_each(|cell| cell.difference = None);
                row
            }));
        }
        rows
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

    /// Simulated runs win nothing by times or memory as long as a real one is there; where all are alike, none is best.
    fn mark_best(&self, better: Better, test: Test, values: &[Option<f64>], cells: &mut [Cell]) {
        // Of a paced run the throughput is its schedule's.
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
        let Some(&(best, value)) = best.filter(|_| known.len() > 1) else { return };
        let alike = |&(column, own): &(usize, f64)| {
            let difference = || self.difference(better, test, values, best, column);
            let same = match test {
                Test::Exact => own.total_cmp(&value).is_eq(),
                _ => difference().is_some_and(|known| match known.verdict {
                    Verdict::WithinNoise => true,
                    Verdict::Unknown => (own - value).abs() <= ALIKE * value.abs(),
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
        let interval = self.interval(test, base, column, (from, to));
        let simulated = self.sides[base].simulated != self.sides[column].simulated;
        let verdict = match interval {
            _ if simulated && !matches!(test, Test::Exact) => Verdict::NotComparable,
            Ok([low, high]) if low <= 0.0 && high >= 0.0 => Verdict::WithinNoise,
            Ok([low, _]) if (low > 0.0) == (better == Better::Higher) => Verdict::Better,
            Ok(_) => Verdict::Worse,
            Err(_) => Verdict::Unknown,
        };
        Some(Difference {
            absolute: to - from,
            relative: (from > 0.0).then(|| to / from - 1.0),
            ci95: interval.as_ref().ok().copied(),
            verdict,
            no_interval: interval.err(),
        })
    }

    fn interval(&self, test: Test, base: usize, column: usize, (from, to): (f64, f64)) -> Result<[f64; 2], String> {
        let statistic = match test {
            Test::None(reason) => return Err(reason.to_owned()),
            Test::Exact => return Err("it is computed from saved outputs".to_owned()),
            Test::Latency(statistic) => statistic,
            Test::Throughput => Statistic::Mean,
        };
        let resampled = |column: usize| {
            let resampled = self.resampled[column].as_ref().ok_or_else(|| self.no_values(column))?;
            if resampled.supports(statistic) {
                return Ok(resampled);
            }
            let (values, needed) = (resampled.values, statistic.values_needed());
            Err(format!("{} has {values} latencies and an interval of this figure needs {needed}", column + 1))
        };
        let (one, two) = (resampled(base)?, resampled(column)?);
        let none = || "the figures leave no ratio".to_owned();
        if !matches!(test, Test::Throughput) {
            return relative_interval(statistic, (one, from), (two, to)).ok_or_else(none);
        }
        let mean = |column: usize| {
            let side = &self.sides[column];
            // A queue that grows fills the time, too.
            if side.mode.rate_hz.is_some() {
                return None;
            }
            let mean = side.latency.as_ref()?.mean?;
            (mean * side.throughput_ips? / 1e6 >= BUSY_SHARE).then_some(mean)
        };
        let waits = || "inferences did not follow each other at once, so latencies do not tell it".to_owned();
        let means = mean(base).zip(mean(column)).ok_or_else(waits)?;
        let [low, high] = relative_interval(statistic, (one, means.0), (two, means.1)).ok_or_else(none)?;
        // Of one inference the time is told, of a second the number: the ratio is turned over, and moved to the figures'.
        let scale = (to / from) * (means.1 / means.0);
        Ok([scale / (1.0 + high) - 1.0, scale / (1.0 + low) - 1.0])
    }

    fn no_values(&self, column: usize) -> String {
        match self.sides[column].latency.as_ref() {
            Some(latency) if latency.series.is_none() => {
                format!("the file of {} keeps no single latencies (it is of an older version)", column + 1)
            }
            Some(latency) => {
                let needed = super::bootstrap::MIN_VALUES;
                format!("{} has {} latencies and an interval needs {needed}", column + 1, latency.count)
            }
            None => format!("{} has no latencies", column + 1),
        }
    }
}

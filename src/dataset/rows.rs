//! Converts events to rows.

use super::DatasetError;
use super::table::{Cell, Table, TableWriter};
use crate::event::{
    CounterInfo, CounterSample, DeviceInfo, Event, InferenceBatch, OpRow, OpSample, OpUnit, Record, RunId, RunStatus,
    SessionStarted, Stage,
};
use crate::store::{Run, Store, StoreDigest};
use std::collections::BTreeMap;

/// What is known about the session so far.
pub struct Rows {
    session: Cell,
    /// Wall time minus the session's clock, microseconds.
    wall_us: i64,
    /// The session's clock at its start, microseconds.
    began_us: u64,
    tool_version: Cell,
    host: Cell,
    store: Store,
    launches: BTreeMap<RunId, i64>,
    ops: BTreeMap<RunId, Vec<Op>>,
    counters: BTreeMap<u32, Vec<[Cell; 3]>>,
}

/// The cells of an op that stay the same across inferences.
struct Op {
    index: Cell,
    name: Cell,
    kind: Cell,
    unit: Cell,
}

impl Rows {
    /// Rows of a session with this header.
    pub fn new(key: &str, started: &SessionStarted) -> Self {
        let signed = |us: u64| i64::try_from(us).unwrap_or(i64::MAX);
        Self {
            session: Cell::text(key),
            wall_us: signed(started.epoch_us).saturating_sub(signed(started.monotonic_us)),
            began_us: started.monotonic_us,
            tool_version: Cell::text(&started.tool_version),
            host: Cell::text(&started.host),
            store: Store::new(),
            launches: BTreeMap::new(),
            ops: BTreeMap::new(),
            counters: BTreeMap::new(),
        }
    }

    /// Processes a record and writes its rows.
    pub fn take(&mut self, record: &Record, writers: &mut [TableWriter]) -> Result<(), DatasetError> {
        self.store.apply(record);
        match (&record.event, record.run) {
            (Event::LaunchStarted { index, .. }, Some(run)) => {
                self.launches.insert(run, i64::from(*index));
            }
            (Event::OpsDeclared(rows), Some(run)) => {
                let ops = rows.iter().map(|row| self.op(run, row)).collect();
                self.ops.insert(run, ops);
            }
            (Event::Inferences(batch), Some(run)) => self.inferences(run, batch, of(writers, Table::Inferences))?,
            (Event::OpTimes(sample), Some(run)) => self.op_times(run, sample, of(writers, Table::Ops))?,
            (Event::CountersDeclared(counters), _) => self.declare(0, "host", counters),
            (Event::CounterSetDeclared(set), _) => self.declare(set.set, &set.device, &set.counters),
            (Event::Counters(sample), _) => self.counters(sample, of(writers, Table::Counters))?,
            // Run data that belongs to no run goes into no table.
            (event, run) => {
                debug_assert!(run.is_none() || matches!(event, Event::Metrics(_)) || !StoreDigest::stands_for(event));
            }
        }
        Ok(())
    }

    /// Writes the runs.
    pub fn finish(self, writers: &mut [TableWriter]) -> Result<(), DatasetError> {
        let writer = of(writers, Table::Runs);
        for (number, run) in (1..).zip(self.store.runs()) {
            writer.row(self.run(number, run))?;
        }
        Ok(())
    }

    fn run_cells(&self, run: RunId) -> [Cell; 3] {
        let number = self.store.run_number(run).and_then(|number| i64::try_from(number).ok());
        let launch = self.launches.get(&run).copied().unwrap_or(0);
        [self.session.clone(), number.map_or(Cell::Null, Cell::Int), Cell::Int(launch)]
    }

    /// Time since the session's start.
    fn since_start(&self, t_us: u64) -> Cell {
        let (t_us, began_us) = (i128::from(t_us), i128::from(self.began_us));
        i64::try_from(t_us - began_us).map_or(Cell::Null, Cell::Int)
    }

    fn inferences(&self, run: RunId, batch: &InferenceBatch, writer: &mut TableWriter) -> Result<(), DatasetError> {
        let [session, number, launch] = self.run_cells(run);
        let phase = Cell::text(batch.phase.name());
        for (at, (&start_us, &latency_ns)) in batch.start_us.iter().zip(&batch.latency_ns).enumerate() {
            let late_us = batch.late_ns.get(at).map(|ns| *ns as f64 / 1e3);
            writer.row([
                session.clone(),
                number.clone(),
                launch.clone(),
                phase.clone(),
                Cell::count(batch.first_index + at as u64),
                self.since_start(start_us),
                Cell::Real(latency_ns as f64 / 1e3),
                Cell::real(late_us),
            ])?;
        }
        Ok(())
    }

    fn op(&self, run: RunId, row: &OpRow) -> Op {
        let graph = self.store.run(run).and_then(Run::graph);
        let op = row.op.and_then(|index| graph?.ops.get(index as usize));
        Op {
            index: row.op.map_or(Cell::Null, |index| Cell::Int(i64::from(index))),
            name: Cell::text(&row.name),
            kind: Cell::some(op.map(|op| op.op_type.as_str())),
            unit: Cell::text(match row.unit {
                OpUnit::Us => "us",
                OpUnit::Cycles => "cycles",
            }),
        }
    }

    fn op_times(&self, run: RunId, sample: &OpSample, writer: &mut TableWriter) -> Result<(), DatasetError> {
        let [session, number, launch] = self.run_cells(run);
        let inference = Cell::count(sample.inference);
        for (op, &value) in self.ops.get(&run).into_iter().flatten().zip(&sample.values) {
            writer.row([
                session.clone(),
                number.clone(),
                launch.clone(),
                inference.clone(),
                op.index.clone(),
                op.name.clone(),
                op.kind.clone(),
                op.unit.clone(),
                Cell::count(value),
            ])?;
        }
        Ok(())
    }

    fn declare(&mut self, set: u32, device: &str, counters: &[CounterInfo]) {
        let device = Cell::text(device);
        let cells = |counter: &CounterInfo| [device.clone(), Cell::text(&counter.id), Cell::text(&counter.unit)];
        self.counters.insert(set, counters.iter().map(cells).collect());
    }

    fn counters(&self, sample: &CounterSample, writer: &mut TableWriter) -> Result<(), DatasetError> {
        let known = self.counters.get(&sample.set).into_iter().flatten();
        for ([device, counter, unit], value) in known.zip(&sample.values) {
            // A gap is not a reading.
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            writer.row([
                self.session.clone(),
                device.clone(),
                counter.clone(),
                unit.clone(),
                self.since_start(sample.t_us),
                Cell::Real(value),
            ])?;
        }
        Ok(())
    }

    fn run(&self, number: i64, run: &Run) -> Vec<Cell> {
        let device: Option<&DeviceInfo> = self.store.device(&run.plan.device);
        let graph = run.graph();
        let failure = run.failure.as_ref();
        let (status, cut_in) = match run.status() {
            Some(RunStatus::Ok) => ("ok", None),
            Some(RunStatus::Stopped) => ("stopped", None),
            Some(RunStatus::Failed) => ("failed", None),
            None => ("unfinished", Some(run.last_stage())),
        };
        let percentile = |percent: f64| Cell::real(run.clean.percentile_us(percent));
        let started = i64::try_from(run.started_us).map_or(Cell::Null, |us| Cell::Int(us.saturating_add(self.wall_us)));
        vec![
            self.session.clone(),
            Cell::Int(number),
            started,
            self.tool_version.clone(),
            self.host.clone(),
            Cell::text(&run.plan.model),
            Cell::some(run.model.as_ref().map(|model| model.sha256.as_str())),
            Cell::some(graph.map(|graph| graph.name.as_str())),
            graph.map_or(Cell::Null, |graph| Cell::count(graph.ops.len() as u64)),
            graph.map_or(Cell::Null, |graph| Cell::count(graph.macs())),
            graph.map_or(Cell::Null, |graph| Cell::count(graph.parameter_bytes)),
            Cell::text(run.plan.backend.name()),
            Cell::some(run.runtime.as_ref().and_then(|runtime| runtime.build_id.as_deref())),
            Cell::text(&run.plan.device),
            Cell::some(device.and_then(|device| device.model.as_deref())),
            Cell::some(device.and_then(|device| device.soc.as_deref())),
            Cell::some(device.and_then(|device| device.hexagon_arch.as_deref())),
            Cell::Flag(run.plan.simulated),
            Cell::text(run.plan.driver.label()),
            Cell::real(run.plan.mode.rate_hz),
            Cell::count(run.launches.len() as u64),
            Cell::text(status),
            Cell::some(failure.map(|failure| failure.stage).or(cut_in).map(Stage::name)),
            failure.and_then(|failure| failure.code).map_or(Cell::Null, Cell::count),
            Cell::some(failure.map(|failure| failure.message.as_str())),
            Cell::count(run.clean.count()),
            Cell::real(run.first_us()),
            Cell::real(run.clean.mean_us()),
            percentile(50.0),
            percentile(90.0),
            percentile(95.0),
            percentile(99.0),
            Cell::real(run.clean.max_us()),
            Cell::real(run.throughput_ips()),
            run.memory.rss_peak.map_or(Cell::Null, Cell::count),
            Cell::real(run.cpu_utilization_percent()),
        ]
    }
}

/// The writer of a table; each table has one.
fn of(writers: &mut [TableWriter], table: Table) -> &mut TableWriter {
    let at = Table::ALL.iter().position(|known| *known == table).unwrap_or(0);
    &mut writers[at]
}

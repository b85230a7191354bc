//! The second session: with a verbose log for the reasons, and with profiles for the times.

use super::load::{Loaded, Workspace};
use super::model::Described;
use super::{Overheard, at};
use crate::backends::Backend;
use crate::backends::onnx::placement::{Known, node_of};
use crate::backends::onnx::times::Execution;
use crate::backends::onnx::{PlacementLog, Times, place};
use crate::backends::profile_log::Unit;
use crate::backends::qnn::onnx::{Assignment, OnnxSession, PROVIDER};
use crate::backends::qnn::runner::child::failed::Failed;
use crate::backends::qnn::runner::child::inputs::InputSet;
use crate::backends::qnn::runner::child::measure::{self, Loop};
use crate::backends::qnn::runner::child::run::Stages;
use crate::backends::qnn::runner::protocol::SAVE_PROFILE_LOG;
use crate::backends::qnn::runner::run_task::RunTask;
use crate::event::{
    Budget, Event, LogLevel, Metric, MetricSample, NodesPlaced, OpRow, OpSample, OpUnit, Phase, Setting,
    SettingOutcome, Stage, clean_text,
};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Uncounted inferences at the start of the second session: the first one runs cold.
const LEAD: usize = 1;
/// Largest ONNX Runtime profile that is read.
const MAX_PROFILE_BYTES: u64 = 1 << 30;

impl Stages<'_> {
    /// The placement with its reasons, from a session created for them; nothing if that fails.
    pub(super) fn reasons(&self, task: &RunTask, loaded: &Loaded, model: &Described) -> Option<NodesPlaced> {
        let overheard = Overheard::default();
        let sink = overheard.sink(self.shared, task.log_level);
        let session = loaded.runtime.session(&loaded.model, &loaded.spec(sink, LogLevel::Verbose)).ok()?;
        let assignment = session.assignment().ok()?;
        drop(session);
        Some(
            overheard.with(|log| {
                place(Known { assignment: &assignment, log: Some(log), provider: PROVIDER, ..model.known() })
            }),
        )
    }

    /// Reasons, and, if there is a budget, the times of that many inferences under profiling.
    #[expect(clippy::too_many_arguments, reason = "everything that the first session had, again")]
    pub(super) fn detail(
        &mut self,
        task: &RunTask,
        loaded: &Loaded,
        model: &Described,
        shapes: &[Vec<u64>],
        sets: &[InputSet],
        stop: &AtomicBool,
        budget: Option<Budget>,
    ) -> Result<(), Failed> {
        let lost = |error: std::io::Error| {
            Failed::lost(Stage::Execute, "profile", format!("cannot make a folder for profiles: {error}"))
        };
        let workspace = Workspace::new().map_err(lost)?;
        let csv = workspace.path().join("qnn-profile.csv");
        let overheard = Overheard::default();
        let mut spec = loaded.spec(overheard.sink(self.shared, task.log_level), LogLevel::Verbose);
        if budget.is_some() {
            spec.provider_options.push(("profiling_level".to_owned(), "detailed".to_owned()));
            spec.provider_options.push(("profiling_file_path".to_owned(), csv.to_string_lossy().into_owned()));
            spec.profile = Some(workspace.path().join("onnxruntime"));
        }
        let session = loaded.runtime.session(&loaded.model, &spec).map_err(at(Stage::Execute))?;
        let assignment = session.assignment().map_err(at(Stage::Execute))?;
        let times = match budget {
            Some(budget) => {
                let profile = self.profiled(session, shapes, sets, stop, budget)?;
                self.keep_log(task, &csv);
                read_times(&csv, profile.as_deref(), task.backend)
            }
            None => None,
        };
        overheard.with(|log| self.tell(&assignment, log, times.as_ref(), model));
        Ok(())
    }

    /// Runs the inferences; returns ONNX Runtime's profile.
    fn profiled(
        &mut self,
        mut session: OnnxSession,
        shapes: &[Vec<u64>],
        sets: &[InputSet],
        stop: &AtomicBool,
        budget: Budget,
    ) -> Result<Option<std::path::PathBuf>, Failed> {
        let failed = at(Stage::Execute);
        session.allocate(shapes).map_err(&failed)?;
        if let Some(set) = sets.first() {
            measure::load(&mut session, set);
        }
        for _ in 0..LEAD {
            session.run().map_err(&failed)?;
        }
        let mut measuring = Loop { emitter: self.emitter, execution: &mut session, sets, stop, rate_hz: None };
        self.inferences += measuring.run(Phase::Detailed, 0, budget, None, |_, _| {}).map_err(&failed)?;
        // The plug-in's log is complete once its session is gone.
        Ok(session.end_profiling().ok())
    }

    /// Copies the plug-in's log to where the user wants it.
    fn keep_log(&self, task: &RunTask, csv: &Path) {
        let Some(path) = &task.profile_log else { return };
        let copied = std::fs::copy(log_beside(csv), path);
        let outcome =
            copied.map_or_else(|error| SettingOutcome::Refused(error.to_string()), |_| SettingOutcome::Applied);
        let value = clean_text(&path.to_string_lossy());
        self.settle(&[Setting { key: SAVE_PROFILE_LOG.to_owned(), value, outcome }]);
    }

    /// Puts rows, times, figures and the placement on the stream.
    fn tell(&self, assignment: &[Assignment], log: &PlacementLog, times: Option<&Times>, model: &Described) {
        let placed = place(Known { assignment, log: Some(log), times, provider: PROVIDER, ..model.known() });
        if let Some(times) = times {
            self.op_times(times, &placed, log, model);
        }
        self.emitter.event(Event::NodesPlaced(Box::new(placed)));
    }

    fn op_times(&self, times: &Times, placed: &NodesPlaced, log: &PlacementLog, model: &Described) {
        let inferences = times.by_inference();
        let in_cycles = times.executions.iter().any(|one| one.ops.iter().any(|op| op.is_cycles));
        let Some(rows) = Rows::new(times, placed, log, model, in_cycles) else { return };
        self.emitter.event(Event::OpsDeclared(rows.declared.clone()));
        let count = inferences.len().max(times.runs.len());
        for index in LEAD..count {
            let inference = (index - LEAD) as u64;
            let executions = inferences.get(index).map(Vec::as_slice).unwrap_or_default();
            let values = rows.values(executions, times.runs.get(index).map(Vec::as_slice).unwrap_or_default());
            self.emitter.event(Event::OpTimes(OpSample { inference, values }));
            let metrics = figures(executions);
            if !metrics.is_empty() {
                self.emitter.event(Event::Metrics(MetricSample { phase: Phase::Detailed, inference, metrics }));
            }
        }
    }
}

/// The rows of op times: QNN's ops of all partitions, and, in microseconds, the nodes on the CPU and the borders.
struct Rows {
    declared: Vec<OpRow>,
    ops: HashMap<(String, String), usize>,
    nodes: HashMap<String, usize>,
    borders: HashMap<String, usize>,
}

impl Rows {
    fn new(
        times: &Times,
        placed: &NodesPlaced,
        log: &PlacementLog,
        model: &Described,
        in_cycles: bool,
    ) -> Option<Self> {
        let unit = if in_cycles { OpUnit::Cycles } else { OpUnit::Us };
        let mut rows =
            Self { declared: Vec::new(), ops: HashMap::new(), nodes: HashMap::new(), borders: HashMap::new() };
        let by_name: HashMap<&str, usize> =
            model.graph.ops.iter().enumerate().map(|(at, op)| (op.name.as_str(), at)).collect();
        let mut taken = std::collections::HashSet::new();
        // A graph op has one row, the first; others of the same node get separate rows.
        let mut op = |name: &str| {
            let at = *by_name.get(name)?;
            taken.insert(at).then(|| u32::try_from(at).ok()).flatten()
        };
        for execution in &times.executions {
            for timed in &execution.ops {
                let key = (execution.graph.clone(), timed.name.clone());
                if rows.ops.contains_key(&key) {
                    continue;
                }
                let node = node_of(&timed.name, Some(log), &by_name);
                rows.ops.insert(key, rows.declared.len());
                rows.declared.push(OpRow {
                    name: timed.name.clone(),
                    op: node.and_then(&mut op),
                    unit,
                    htp_op: timed.htp_op,
                });
            }
        }
        if !in_cycles {
            for node in times.runs.iter().flatten() {
                if node.is_qnn {
                    let place = placed.partitions.iter().position(|partition| partition.name == node.name);
                    let Some(place) = place.filter(|_| !rows.borders.contains_key(&node.name)) else { continue };
                    rows.borders.insert(node.name.clone(), rows.declared.len());
                    let name = format!("[partition {place}: copies and binding]");
                    rows.declared.push(OpRow { name, op: None, unit, htp_op: None });
                } else if !rows.nodes.contains_key(&node.name) {
                    rows.nodes.insert(node.name.clone(), rows.declared.len());
                    rows.declared.push(OpRow { name: node.name.clone(), op: op(&node.name), unit, htp_op: None });
                }
            }
        }
        (!rows.declared.is_empty()).then_some(rows)
    }

    fn values(&self, executions: &[&Execution], run: &[crate::backends::onnx::times::NodeTime]) -> Vec<u64> {
        let mut values = vec![0u64; self.declared.len()];
        for execution in executions {
            for op in &execution.ops {
                if let Some(at) = self.ops.get(&(execution.graph.clone(), op.name.clone())) {
                    values[*at] += op.value;
                }
            }
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and 0 for less")]
        let whole = |us: f64| us.round() as u64;
        for node in run {
            if let Some(at) = self.nodes.get(&node.name) {
                values[*at] += whole(node.us);
            } else if let Some(at) = self.borders.get(&node.name) {
                let ops: u64 = executions
                    .iter()
                    .filter(|execution| execution.graph == node.name)
                    .flat_map(|execution| &execution.ops)
                    .map(|op| op.value)
                    .sum();
                values[*at] += whole(node.us).saturating_sub(ops);
            }
        }
        values
    }
}

/// The figures of an inference over all partitions: times and cycles add up, for counts the largest applies.
fn figures(executions: &[&Execution]) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    for figure in executions.iter().flat_map(|execution| &execution.figures) {
        let unit = figure.unit.name().unwrap_or_default();
        match metrics.iter_mut().find(|known| known.name == figure.name && known.unit == unit) {
            Some(known) if matches!(figure.unit, Unit::Microseconds | Unit::Cycles) => known.value += figure.value,
            Some(known) => known.value = known.value.max(figure.value),
            None => metrics.push(Metric { name: figure.name.clone(), unit: unit.to_owned(), value: figure.value }),
        }
    }
    metrics
}

/// `X_qnn.log`, written by the plug-in beside `X.csv`.
fn log_beside(csv: &Path) -> std::path::PathBuf {
    let mut name = csv.file_stem().unwrap_or_default().to_owned();
    name.push("_qnn.log");
    csv.with_file_name(name)
}

/// The measurements; nothing if neither file exists.
fn read_times(csv: &Path, profile: Option<&Path>, backend: Backend) -> Option<Times> {
    let profile = profile.and_then(|path| crate::files::read_at_most(path, MAX_PROFILE_BYTES).ok()).unwrap_or_default();
    let log = File::open(log_beside(csv)).ok();
    Times::read(log, &profile, backend == Backend::Cpu).ok().filter(|times| *times != Times::default())
}

//! What is known about a run, gathered once and used by all rules.

use super::figure::Figure;
use super::graph::Nodes;
use crate::backends::settings;
use crate::devices::{Soc, soc_by_part, socs_by_model};
use crate::event::{DeviceFacts, DeviceKind, SettingOutcome};
use crate::models::{ContextBinaryInfo, ContextGraphInfo, DataType, ModelFormat};
use crate::store::{Run, Store};
use std::collections::BTreeMap;

/// Facts about one run.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The whole store.
    pub store: &'a Store,
    /// The run.
    pub run: &'a Run,
    /// Its graph with op times.
    pub nodes: Nodes<'a>,
    /// The SoC that it runs on, or was simulated for; `None` if unknown.
    pub soc: Option<&'static Soc>,
    /// Data type that most of its ops output; `None` for a graph without ops.
    pub main_type: Option<DataType>,
    figures: BTreeMap<Figure, f64>,
}

impl<'a> Facts<'a> {
    /// Gathers everything but the figures.
    pub fn of(store: &'a Store, run: &'a Run) -> Self {
        let nodes = Nodes::of(run);
        let main_type = main_type(&nodes);
        let mut facts = Self { store, run, nodes, soc: None, main_type, figures: BTreeMap::new() };
        facts.soc = facts.find_soc();
        facts
    }

    /// Adds the figures, which are derived from the other facts.
    pub fn with_figures(self, figures: BTreeMap<Figure, f64>) -> Self {
        Self { figures, ..self }
    }

    /// A figure, if it is known.
    pub fn figure(&self, figure: Figure) -> Option<f64> {
        self.figures.get(&figure).copied()
    }

    /// Median latency of the clean inferences without queueing delay, microseconds; gains are shares of it.
    pub fn latency_us(&self) -> Option<f64> {
        self.run.service().percentile_us(50.0).or(self.run.service().mean_us()).filter(|us| *us > 0.0)
    }

    /// The part of the latency that the ops can account for, microseconds: on an accelerator, its own share
    /// of the call.
    pub fn op_time_us(&self) -> Option<f64> {
        let metric = |name: &str| Some(self.run.metric(name)?.mean()).filter(|mean| *mean > 0.0);
        let part = match (metric("Accelerator (execute) time"), metric("QNN (execute) time")) {
            (Some(accelerator), Some(call)) => (accelerator / call).min(1.0),
            _ => 1.0,
        };
        Some(self.latency_us()? * part)
    }

    /// Value of an applied setting, by its canonical name.
    pub fn setting(&self, name: &str) -> Option<&'a str> {
        let applied = self.run.settings.iter().rev().filter(|setting| setting.outcome == SettingOutcome::Applied);
        applied
            .filter(|setting| settings::setting_name(&setting.key) == name)
            .map(|setting| setting.value.as_str())
            .next()
    }

    /// What is known about the device.
    pub fn device(&self) -> Option<&'a DeviceFacts> {
        self.store.device_facts(&self.run.plan.device)
    }

    /// True on a phone or board behind adb.
    pub fn is_on_a_device(&self) -> bool {
        let kind = self.store.device(&self.run.plan.device).map(|device| device.kind);
        kind == Some(DeviceKind::Adb) || !self.run.plan.is_here()
    }

    /// What the context binary says about itself.
    pub fn binary(&self) -> Option<&'a ContextBinaryInfo> {
        self.run.model.as_ref()?.context_binary.as_ref()
    }

    /// What it says about the graph that runs.
    pub fn binary_graph(&self) -> Option<&'a ContextGraphInfo> {
        let graphs = &self.binary()?.graphs;
        let name = self.run.graph().map(|graph| graph.name.as_str());
        graphs.iter().find(|graph| Some(graph.name.as_str()) == name).or(graphs.first())
    }

    /// True if the graph is compiled when it is loaded.
    pub fn is_compiled_online(&self) -> bool {
        let format = self.run.model.as_ref().map(|model| model.format);
        matches!(format, Some(ModelFormat::Dlc | ModelFormat::ModelLibrary))
    }

    fn find_soc(&self) -> Option<&'static Soc> {
        let numbers = |number: u32| {
            let mut found = socs_by_model(number);
            found.next().filter(|_| found.next().is_none())
        };
        if self.is_on_a_device() {
            let told = self.device().and_then(|facts| facts.soc.part.as_deref());
            return told.or(self.store.device(&self.run.plan.device)?.soc.as_deref()).and_then(soc_by_part);
        }
        self.setting("soc_model").and_then(|text| text.parse().ok()).and_then(numbers)
    }
}

/// The type that most ops output; `None` for a graph without ops.
fn main_type(nodes: &Nodes<'_>) -> Option<DataType> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for node in &nodes.list {
        if let Some(output) = node.output() {
            *counts.entry(output.dtype.0).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(dtype, _)| DataType(dtype))
}

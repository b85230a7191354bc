//! Backends, contexts and graphs of a process, from their creation on.

use super::start::{StageTime, Start};
use crate::backends::Backend;
use crate::backends::qnn::api::ProfileEvent;
use crate::event::{GraphOrigin, Stage, TapSeen};
use crate::models::{Graph, Op, Tensor};
use qnnscope_core::tap::{Call, FlatEvent, Provider};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Maximum number of graphs, contexts and providers tracked; a program that creates more without freeing any is not
/// followed further.
const MOST: usize = 65_536;
/// Graphs remembered after they are freed.
const MOST_FREED: usize = 1024;
/// Maximum number of ops kept of a graph before its op count is known.
const MOST_OPS: usize = 1 << 20;
/// Maximum depth of a tree of events.
const MOST_DEPTH: u32 = 16;

/// What is known about a graph.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    name: Option<String>,
    provider: Option<u32>,
    context: Option<u32>,
    origin: Option<GraphOrigin>,
    /// Its backend and context; kept here because a fork gets only the graph.
    library: Option<Arc<Provider>>,
    around: Vec<Call>,
    created: Option<Call>,
    finalized: Option<Call>,
    op_count: usize,
    /// Ops received during composition.
    early_ops: Vec<Op>,
    graph: Option<Arc<Graph>>,
    events: Vec<(String, Vec<ProfileEvent>)>,
    bound: Option<TapSeen>,
    freed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Graphs {
    providers: HashMap<u32, Arc<Provider>>,
    /// The latest calls that created a provider's backend and device.
    made: HashMap<(u32, &'static str), Call>,
    contexts: HashMap<u32, Call>,
    all: HashMap<u32, Known>,
    /// Graphs that have been freed, oldest first.
    freed: VecDeque<u32>,
}

impl Graphs {
    pub fn add_provider(&mut self, provider: Provider) {
        if self.providers.len() < MOST {
            self.providers.insert(provider.provider, Arc::new(provider));
        }
    }

    pub fn library(&self, provider: u32) -> Option<String> {
        self.providers.get(&provider).map(|provider| provider.library.clone())
    }

    /// Records a call that returned.
    pub fn called(&mut self, call: &Call) {
        let ok = call.code == 0;
        match (call.call.as_str(), call.context, call.graph) {
            ("backendCreate", ..) if ok => drop(self.made.insert((call.provider, "backendCreate"), call.clone())),
            ("deviceCreate", ..) if ok => drop(self.made.insert((call.provider, "deviceCreate"), call.clone())),
            ("contextFree", Some(context), _) => {
                self.contexts.remove(&context);
                self.free(|known| known.context == Some(context));
            }
            ("backendFree", ..) => self.free(|known| known.provider == Some(call.provider)),
            (name, Some(context), None) if ok && name.starts_with("contextCreate") && self.contexts.len() < MOST => {
                self.contexts.insert(context, call.clone());
            }
            ("graphCreate" | "graphRetrieve", _, Some(graph)) if ok => {
                let origin = if call.call == "graphCreate" { GraphOrigin::Composed } else { GraphOrigin::Binary };
                let around = ["backendCreate", "deviceCreate"].map(|made| self.made.get(&(call.provider, made)));
                let context = call.context.and_then(|context| self.contexts.get(&context));
                let around = around.into_iter().chain([context]).flatten().cloned().collect();
                let library = self.providers.get(&call.provider).cloned();
                let Some(known) = self.entry(graph) else { return };
                // A composed graph may be requested by name afterwards.
                if known.origin == Some(GraphOrigin::Composed) && origin == GraphOrigin::Binary {
                    return;
                }
                known.name = call.name.clone().or(known.name.take());
                known.provider = Some(call.provider);
                known.library = library;
                known.context = call.context;
                known.origin = Some(origin);
                known.around = around;
                known.created = Some(call.clone());
            }
            ("graphFinalize", _, Some(graph)) => {
                if let Some(known) = self.entry(graph) {
                    known.name = known.name.take().or_else(|| call.name.clone());
                    known.provider = known.provider.or(Some(call.provider));
                    known.finalized = Some(call.clone());
                }
                self.fill_library(graph);
            }
            _ => {}
        }
    }

    /// Removes graphs that were freed. Their last executions may still be in transit, so they are dropped
    /// later.
    fn free(&mut self, is_gone: impl Fn(&Known) -> bool) {
        for (id, known) in self.all.iter_mut().filter(|(_, known)| !known.freed && is_gone(known)) {
            known.freed = true;
            self.freed.push_back(*id);
        }
        while self.freed.len() > MOST_FREED {
            let gone = self.freed.pop_front();
            gone.and_then(|gone| self.all.remove(&gone));
        }
    }

    fn entry(&mut self, graph: u32) -> Option<&mut Known> {
        let room = self.all.len() < MOST || self.all.contains_key(&graph);
        room.then(|| self.all.entry(graph).or_default())
    }

    fn fill_library(&mut self, graph: u32) {
        if let Some(known) = self.all.get_mut(&graph).filter(|known| known.library.is_none()) {
            known.library = known.provider.and_then(|provider| self.providers.get(&provider).cloned());
        }
    }

    pub fn composed(&mut self, graph: u32, op_count: u32, mut head: Graph) {
        if let Some(known) = self.entry(graph) {
            known.name.get_or_insert_with(|| head.name.clone());
            known.op_count = op_count as usize;
            head.ops = std::mem::take(&mut known.early_ops);
            head.ops.truncate(known.op_count);
            known.graph = Some(Arc::new(head));
        }
    }

    pub fn ops(&mut self, graph: u32, ops: Vec<Op>) {
        let Some(known) = self.all.get_mut(&graph) else { return };
        let Some(graph) = &mut known.graph else {
            let room = MOST_OPS.saturating_sub(known.early_ops.len());
            known.early_ops.extend(ops.into_iter().take(room));
            return;
        };
        let room = known.op_count.saturating_sub(graph.ops.len());
        Arc::make_mut(graph).ops.extend(ops.into_iter().take(room));
    }

    /// Inputs and outputs of a graph not composed here.
    pub fn bound(&mut self, graph: u32, inputs: Vec<Tensor>, outputs: Vec<Tensor>) {
        let Some(known) = self.entry(graph).filter(|known| known.graph.is_none()) else { return };
        let name = known.name.clone().unwrap_or_default();
        known.graph = Some(Arc::new(Graph { name, inputs, outputs, ops: Vec::new(), parameter_bytes: 0 }));
    }

    pub fn keep_bound(&mut self, graph: u32, seen: TapSeen) {
        if let Some(known) = self.entry(graph) {
            known.bound = Some(seen);
        }
    }

    pub fn take_bound(&mut self, graph: u32) -> Option<TapSeen> {
        self.all.get_mut(&graph)?.bound.take()
    }

    pub fn keep_events(&mut self, graph: u32, call: &str, events: Vec<ProfileEvent>) {
        if let Some(known) = self.all.get_mut(&graph).filter(|known| known.events.len() < 8) {
            known.events.push((call.to_owned(), events));
        }
    }

    pub fn take_events(&mut self, graph: u32) -> Vec<(String, Vec<ProfileEvent>)> {
        self.all.get_mut(&graph).map(|known| std::mem::take(&mut known.events)).unwrap_or_default()
    }

    pub fn is_composed(&self, graph: u32) -> bool {
        self.all.get(&graph).is_some_and(|known| known.library.is_some() && known.graph.is_some())
    }

    pub fn is_alive(&self, graph: u32) -> bool {
        self.all.get(&graph).is_some_and(|known| !known.freed)
    }

    /// What a fork knows about a graph.
    pub fn lend(&self, graph: u32) -> Option<Known> {
        self.all.get(&graph).filter(|known| known.library.is_some()).cloned()
    }

    pub fn inherit(&mut self, graph: u32, known: Known) {
        if let Some(entry) = self.entry(graph) {
            *entry = known;
        }
    }

    /// The graph, with its ops only if all of them have arrived: their indices are positions in the list.
    pub fn graph(&self, graph: u32) -> Option<Arc<Graph>> {
        let known = self.all.get(&graph)?;
        let graph = known.graph.clone()?;
        let whole =
            graph.ops.len() == known.op_count && graph.ops.iter().enumerate().all(|(at, op)| op.index as usize == at);
        Some(if whole { graph } else { Arc::new(Graph { ops: Vec::new(), ..(*graph).clone() }) })
    }

    /// How the run of a graph starts; `None` if its backend is unknown, or is not one that has runs.
    pub fn start(&self, graph: u32, arch: &str, device: &str, profiled: bool) -> Option<Start> {
        let known = self.all.get(&graph)?;
        let library = known.library.as_ref()?;
        let backend = backend(library.backend_id)?;
        let mut stages = Vec::new();
        let mut calls: Vec<&Call> = known.around.iter().collect();
        for call in &known.around {
            let stage = match call.call.as_str() {
                "backendCreate" => Stage::BackendCreate,
                "deviceCreate" => Stage::DeviceCreate,
                _ => Stage::ContextCreate,
            };
            stages.push(StageTime::of(stage, call));
        }
        if let (Some(created), Some(finalized), Some(GraphOrigin::Composed)) =
            (&known.created, &known.finalized, known.origin)
        {
            stages.push(StageTime {
                stage: Stage::Compose,
                start_ns: created.start_ns,
                duration_ns: finalized.start_ns.saturating_sub(created.start_ns),
                rss_before: created.rss_before,
                rss_after: finalized.rss_before,
            });
        }
        calls.extend(&known.created);
        calls.extend(&known.finalized);
        let finalized = known.finalized.as_ref().filter(|call| call.code == 0);
        stages.extend(finalized.map(|call| StageTime::of(Stage::Finalize, call)));
        let name = known.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| format!("graph {graph}"));
        Some(Start {
            provider: library.provider,
            origin: known.origin.unwrap_or(GraphOrigin::Composed),
            context: known.context,
            began_ns: calls.iter().map(|call| call.start_ns).min().unwrap_or(library.t_ns),
            plan: Start::plan(device, backend, &name, backend == Backend::Htp && arch != "aarch64", profiled),
            runtime: Start::runtime(library),
            settings: calls.iter().flat_map(|call| Start::settings(call)).collect(),
            stages,
            name,
        })
    }
}

/// The backends that have runs, by QNN's numbers.
fn backend(id: u32) -> Option<Backend> {
    match id {
        3 => Some(Backend::Cpu),
        4 => Some(Backend::Gpu),
        6 => Some(Backend::Htp),
        _ => None,
    }
}

/// Rebuilds a tree from a depth-first list. Depths that skip a level attach to the last event.
pub(super) fn tree(flat: &[FlatEvent]) -> Vec<ProfileEvent> {
    fn level(flat: &[FlatEvent], at: &mut usize, depth: u32) -> Vec<ProfileEvent> {
        let mut events = Vec::new();
        while let Some(event) = flat.get(*at).filter(|event| event.depth >= depth) {
            *at += 1;
            let children = if depth < MOST_DEPTH { level(flat, at, depth + 1) } else { Vec::new() };
            events.push(ProfileEvent {
                kind: event.kind,
                unit: event.unit,
                value: event.value,
                identifier: event.identifier.clone(),
                children,
            });
        }
        events
    }
    level(flat, &mut 0, 0)
}

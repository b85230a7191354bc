//! The table of ops and backends.

use super::reason::reason;
use super::remedies::remedy;
use super::{BackendAnswer, Target};
use crate::backends::errors;
use crate::backends::qnn::runner::{Asked, OpVerdict};
use crate::models::{DataType, Graph, Op, Quantization};
use serde::Serialize;
use std::collections::BTreeMap;

/// One op and what each backend says about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpRow {
    /// Its graph.
    pub graph: String,
    /// Position in its graph.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Op type.
    #[serde(rename = "type")]
    pub op_type: String,
    /// Node of the model before its conversion that the op comes from, if known.
    pub source_node: Option<String>,
    /// Answers by backend; a backend that could not be asked has none.
    pub results: BTreeMap<&'static str, OpResult>,
}

/// What a backend says about an op.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpResult {
    /// Whether it supports the op on all requested hardware.
    pub ok: bool,
    /// Code that it returned; 0 if it supports the op.
    pub code: u64,
    /// Symbol of the code.
    pub symbol: Option<&'static str>,
    /// Why it refuses.
    pub reason: Option<String>,
    /// The offending tensor.
    pub tensor: Option<TensorRow>,
    /// How to fix it.
    pub remedy: Option<String>,
    /// Hardware for which it refuses the op, named as in the backend rows.
    pub refused_on: Vec<String>,
}

/// A tensor as used by an op.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TensorRow {
    /// Name.
    pub name: String,
    /// `input` or `output`.
    pub role: &'static str,
    /// Its index among the op's inputs or outputs.
    pub slot: usize,
    /// Data type.
    pub dtype: DataType,
    /// Dimensions.
    pub shape: Vec<u32>,
    /// Encoding.
    pub quantization: Option<Quantization>,
}

impl TensorRow {
    /// The tensor at this index among an op's inputs and outputs.
    pub(in crate::diagnosis) fn at(op: &Op, place: usize) -> Option<Self> {
        let inputs = op.inputs.len();
        let (role, slot, tensor) = match op.inputs.get(place) {
            Some(tensor) => ("input", place, tensor),
            None => ("output", place - inputs, op.outputs.get(place - inputs)?),
        };
        Some(Self {
            name: tensor.name.clone(),
            role,
            slot,
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            quantization: tensor.quantization.clone(),
        })
    }
}

/// The table: the ops of `graphs`, as the first backend composed them, with the answers of all backends.
pub fn table(graphs: &[Graph], answers: &[BackendAnswer]) -> Vec<OpRow> {
    let mut rows: Vec<OpRow> = graphs
        .iter()
        .flat_map(|graph| {
            graph.ops.iter().map(|op| OpRow {
                graph: graph.name.clone(),
                index: op.index,
                name: op.name.clone(),
                op_type: op.op_type.clone(),
                source_node: None,
                results: BTreeMap::new(),
            })
        })
        .collect();
    for answer in answers {
        let Ok(asked) = &answer.answer else { continue };
        let mut places = Places::new(graphs);
        for verdict in &asked.verdicts {
            let Some(graph) = asked.graphs.get(verdict.graph) else { continue };
            let Some(op) = graph.ops.get(verdict.op) else { continue };
            if let Some(row) = places.of(graph, op).and_then(|place| rows.get_mut(place)) {
                add(row, answer, op, verdict);
            }
        }
    }
    rows
}

/// Finds the ops of one composition in another: by position if the names agree, as they normally do,
/// otherwise by name.
struct Places<'a> {
    graphs: &'a [Graph],
    starts: Vec<usize>,
}

impl<'a> Places<'a> {
    fn new(graphs: &'a [Graph]) -> Self {
        let starts = graphs.iter().scan(0, |next, graph| {
            let start = *next;
            *next += graph.ops.len();
            Some(start)
        });
        Self { graphs, starts: starts.collect() }
    }

    fn of(&mut self, graph: &Graph, op: &Op) -> Option<usize> {
        let at = self.graphs.iter().position(|known| known.name == graph.name)?;
        let ops = &self.graphs[at].ops;
        let same = |place: &usize| ops.get(*place).is_some_and(|known| known.name == op.name);
        let place = Some(op.index as usize).filter(same);
        Some(self.starts[at] + place.or_else(|| ops.iter().position(|known| known.name == op.name))?)
    }
}

/// Adds an answer. Of several refusals (for several SoCs), it keeps the first one's reason.
fn add(row: &mut OpRow, answer: &BackendAnswer, op: &Op, verdict: &OpVerdict) {
    let result = row.results.entry(answer.backend.name()).or_insert(OpResult {
        ok: true,
        code: 0,
        symbol: None,
        reason: None,
        tensor: None,
        remedy: None,
        refused_on: Vec::new(),
    });
    if verdict.code == 0 {
        return;
    }
    result
        .refused_on
        .push(answer.target.as_ref().map_or_else(|| "this machine".to_owned(), |t: &Target| t.label.clone()));
    if !result.ok {
        return;
    }
    let found = reason(op, verdict.code, &verdict.log, &verdict.tensor_ids);
    *result = OpResult {
        ok: false,
        code: verdict.code,
        symbol: errors::lookup(verdict.code, "backendValidateOpConfig").map(|row| row.symbol),
        tensor: found.tensor.and_then(|place| TensorRow::at(op, place)),
        remedy: remedy(answer.backend, op, &found),
        reason: Some(found.text),
        refused_on: std::mem::take(&mut result.refused_on),
    };
}

/// Number of ops that a backend refused.
pub fn refused(asked: &Asked) -> usize {
    asked.verdicts.iter().filter(|verdict| verdict.code != 0).count()
}

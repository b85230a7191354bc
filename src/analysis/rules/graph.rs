//! The graph of a run with its op times: what each op is, and which ops read which.

use super::kind::Kind;
use crate::models::{Op, Tensor, TensorKind};
use crate::store::Run;
use std::collections::HashMap;

/// One op with its place in the graph and its time.
#[derive(Debug)]
pub struct Node<'a> {
    /// The op.
    pub op: &'a Op,
    /// Its kind.
    pub kind: Option<Kind>,
    /// Index of its row in the op table.
    pub row: Option<usize>,
    /// Share of the op times, 0 to 1; `None` if the backend reported no separate time for the op.
    pub share: Option<f64>,
    /// Rank among the ops by time, from 1.
    pub place: Option<usize>,
    /// Ops whose outputs it reads.
    pub producers: Vec<usize>,
    /// Ops that read its outputs.
    pub readers: Vec<usize>,
    /// Matrix ops of the same kind and window that read the same tensor, this one included.
    pub siblings: usize,
}

/// All ops of the graph that runs.
#[derive(Debug, Default)]
pub struct Nodes<'a> {
    /// In the order of composition.
    pub list: Vec<Node<'a>>,
    by_kind: HashMap<Kind, Vec<usize>>,
    /// True once op times were measured.
    pub timed: bool,
}

impl<'a> Nodes<'a> {
    /// The ops of a run's graph; none if nothing is composed yet.
    pub fn of(run: &'a Run) -> Self {
        let Some(graph) = run.graph() else { return Self::default() };
        let mut list: Vec<Node<'a>> = graph
            .ops
            .iter()
            .map(|op| Node {
                op,
                kind: Kind::of(op),
                row: None,
                share: None,
                place: None,
                producers: Vec::new(),
                readers: Vec::new(),
                siblings: 1,
            })
            .collect();
        let timed = run.ops.mean_total().is_some_and(|total| total > 0.0);
        if timed {
            set_times(&mut list, run);
        }
        connect(&mut list);
        count_siblings(&mut list);
        let mut by_kind: HashMap<Kind, Vec<usize>> = HashMap::new();
        for (index, node) in list.iter().enumerate() {
            if let Some(kind) = node.kind {
                by_kind.entry(kind).or_default().push(index);
            }
        }
        Self { list, by_kind, timed }
    }

    /// Ops of these kinds, or all ops if none is given, in order.
    pub fn candidates(&self, kinds: &[Kind]) -> Vec<usize> {
        if kinds.is_empty() {
            return (0..self.list.len()).collect();
        }
        let mut found: Vec<usize> = kinds.iter().filter_map(|kind| self.by_kind.get(kind)).flatten().copied().collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Share of the op times taken by these ops, 0 to 1.
    pub fn share(&self, ops: &[usize]) -> f64 {
        ops.iter().filter_map(|&index| self.list.get(index)?.share).fold(0.0, |sum, share| sum + share).min(1.0)
    }
}

impl<'a> Node<'a> {
    /// Inputs that are neither constant nor absent.
    pub fn activations(&self) -> impl Iterator<Item = &'a Tensor> + use<'a> {
        self.op.inputs.iter().filter(|tensor| !matches!(tensor.kind, TensorKind::Static | TensorKind::Null))
    }

    /// The weights of an op that has any: its second input, if that is constant.
    pub fn weights(&self) -> Option<&'a Tensor> {
        self.op.inputs.get(1).filter(|tensor| tensor.kind == TensorKind::Static)
    }

    /// First activation it reads.
    pub fn input(&self) -> Option<&'a Tensor> {
        self.activations().next()
    }

    /// First output.
    pub fn output(&self) -> Option<&'a Tensor> {
        self.op.outputs.first()
    }

    /// Elements in the window of a convolution, from its weights `[..., in, out]`.
    pub fn window(&self) -> Option<u64> {
        let is_conv = self.kind.is_some_and(|kind| matches!(kind.name(), "Conv" | "DepthWiseConv" | "TransposeConv"));
        let shape = &self.op.inputs.get(1).filter(|_| is_conv)?.shape;
        let window = shape.get(..shape.len().checked_sub(2)?)?;
        window.iter().try_fold(1u64, |product, &d| product.checked_mul(u64::from(d)))
    }
}

fn set_times(list: &mut [Node<'_>], run: &Run) {
    for (row, declared) in run.ops.rows().iter().enumerate() {
        let Some(node) = declared.op.and_then(|index| list.get_mut(index as usize)) else { continue };
        node.share = Some(node.share.unwrap_or(0.0) + run.ops.share(row));
        node.row = node.row.or(Some(row));
    }
    let mut order: Vec<usize> = (0..list.len()).filter(|&index| list[index].share.is_some()).collect();
    order.sort_by(|&a, &b| list[b].share.unwrap_or(0.0).total_cmp(&list[a].share.unwrap_or(0.0)));
    for (place, index) in order.into_iter().enumerate() {
        list[index].place = Some(place + 1);
    }
}

fn connect(list: &mut [Node<'_>]) {
    let mut producer: HashMap<&str, usize> = HashMap::new();
    for (index, node) in list.iter().enumerate() {
        for tensor in &node.op.outputs {
            producer.insert(&tensor.name, index);
        }
    }
    let mut edges: Vec<(usize, usize)> = Vec::new();
    for (index, node) in list.iter().enumerate() {
        edges.extend(node.activations().filter_map(|tensor| Some((*producer.get(tensor.name.as_str())?, index))));
    }
    for (from, to) in edges {
        // An op may read one tensor twice, as x * x does; it still counts as one reader.
        if from != to && list[to].producers.last() != Some(&from) && !list[to].producers.contains(&from) {
            list[to].producers.push(from);
            list[from].readers.push(to);
        }
    }
}

fn count_siblings(list: &mut [Node<'_>]) {
    let mut alike: HashMap<(Kind, u64, &str), usize> = HashMap::new();
    let key = |node: &Node<'_>| Some((node.kind?, node.window()?));
    for node in list.iter() {
        if let (Some((kind, window)), Some(input)) = (key(node), node.input()) {
            *alike.entry((kind, window, &input.name)).or_default() += 1;
        }
    }
    for node in list.iter_mut() {
        if let (Some((kind, window)), Some(input)) = (key(node), node.input()) {
            node.siblings = alike.get(&(kind, window, input.name.as_str())).copied().unwrap_or(1);
        }
    }
}

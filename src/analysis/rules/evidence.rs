//! Evidence of a rule, in words.

use super::facts::Facts;
use super::graph::Node;
use super::rule::{OpTest, Others, Rule};
use crate::analysis::{Evidence, EvidencePlace};
use crate::event::OpUnit;
use crate::models::Tensor;
use crate::text::share_text;

/// Layers that are described; the rest are only counted.
const DESCRIBED: usize = 3;

/// The title with its figures filled in.
pub fn title(rule: &Rule, facts: &Facts<'_>, layers: &[usize]) -> String {
    (rule.title)
        .replace("{share}", &share(facts, facts.nodes.share(layers)))
        .replace("{layers}", &number_of_layers(layers.len()))
}

fn number_of_layers(count: usize) -> String {
    if count == 1 { "1 layer".to_owned() } else { format!("{count} layers") }
}

/// `23 % of the simulated cycles`.
fn share(facts: &Facts<'_>, share: f64) -> String {
    let of = match facts.run.ops.unit() {
        Some(OpUnit::Cycles) if facts.run.plan.simulated => "the simulated cycles",
        Some(OpUnit::Cycles) => "the accelerator's cycles",
        _ => "the op time",
    };
    format!("{} of {of}", share_text(share))
}

/// The worst layers one by one, and all of them together.
pub fn of_layers(rule: &Rule, facts: &Facts<'_>, layers: &[usize]) -> Vec<Evidence> {
    let mut all = Vec::new();
    if layers.len() > 1 {
        let sum = share(facts, facts.nodes.share(layers));
        all.push(Evidence::new(format!("{} layers take {sum} together", layers.len())));
    }
    for &index in layers.iter().take(DESCRIBED) {
        let Some(node) = facts.nodes.list.get(index) else { continue };
        let took = node.share.map_or_else(|| "no time of its own".to_owned(), |part| share(facts, part));
        let mut text = format!("`{}` ({}) {took}", node.op.name, describe(node));
        for note in notes(rule, node) {
            text.push_str("; ");
            text.push_str(&note);
        }
        all.push(match node.row {
            Some(row) => Evidence::at(text, EvidencePlace::Op(row)),
            None => Evidence::new(text),
        });
    }
    all
}

/// Other layers that a rule considers: `the matrix ops (12) take 61 % of the op time`.
pub fn others(others: &Others, facts: &Facts<'_>, count: usize, part: f64) -> String {
    if count == 0 {
        return format!("there are no {}", others.called);
    }
    let number = number_of_layers(count);
    if facts.nodes.timed {
        format!("{}: {number}, {}", others.called, share(facts, part))
    } else {
        format!("{}: {number}", others.called)
    }
}

/// `Conv2d, 1x64x64x32 to 1x64x64x64, ufixed8, weights 3x3x32x64`.
fn describe(node: &Node<'_>) -> String {
    let mut parts = vec![match node.kind {
        Some(kind) if node.op.op_type.starts_with("ElementWise") => kind.name().to_owned(),
        _ => node.op.op_type.clone(),
    }];
    let mut change = |show: &dyn Fn(&Tensor) -> String| match (node.input().map(show), node.output().map(show)) {
        (Some(input), Some(output)) if input != output => parts.push(format!("{input} to {output}")),
        (_, Some(output)) => parts.push(output),
        _ => {}
    };
    change(&Tensor::shape_text);
    change(&|tensor| tensor.dtype.name());
    if let Some(weights) = node.weights().filter(|_| node.window().is_some()) {
        parts.push(format!("weights {}", weights.shape_text()));
    }
    parts.join(", ")
}

/// What the rule measured on this op.
fn notes(rule: &Rule, node: &Node<'_>) -> Vec<String> {
    let mut measures = Vec::new();
    let tests = rule.layers.iter().filter(|test| is_of(node, test));
    for measure in tests.flat_map(|test| test.measure.keys()).copied().chain(rule.gain.and_then(|gain| gain.by)) {
        if !measures.contains(&measure) {
            measures.push(measure);
        }
    }
    measures.into_iter().filter_map(|measure| measure.note(measure.of(node)?)).collect()
}

fn is_of(node: &Node<'_>, test: &OpTest) -> bool {
    test.kind.0.is_empty() || node.kind.is_some_and(|kind| test.kind.0.contains(&kind))
}

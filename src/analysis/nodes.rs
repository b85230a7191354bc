//! Placement of an ONNX model's nodes: whether QNN ran the model at all, and what the nodes on the CPU cost.

use super::{Advice, Effort, Evidence, Finding, FindingKind, Severity};
use crate::event::{NodePlacement, NodeProvider, NodesPlaced};
use crate::store::Run;
use crate::text::duration_text;

/// Nodes named in a finding.
const NAMED: usize = 5;
/// Share of an inference above which partition borders are reported.
const MUCH: f64 = 0.1;

/// Findings about a run's placement.
pub fn findings(run: &Run) -> Vec<Finding> {
    let Some(placed) = run.nodes.as_ref().filter(|placed| !placed.nodes.is_empty()) else { return Vec::new() };
    if placed.is_all_cpu() {
        return vec![nothing_on_qnn(run, placed)];
    }
    [fallback(run, placed), borders(run, placed)].into_iter().flatten().collect()
}

/// Mean times per inference from ONNX Runtime's own profile, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeTimes {
    /// Nodes on the CPU.
    pub cpu_us: f64,
    /// Partition borders.
    pub borders_us: f64,
    /// The whole inference.
    pub all_us: f64,
}

/// The times behind a placement; `None` if the run was not profiled.
pub fn node_times(placed: &NodesPlaced) -> Option<NodeTimes> {
    let cpu = placed.nodes.iter().filter(|node| node.provider == NodeProvider::Cpu);
    let cpu_us: f64 = cpu.filter_map(|node| node.time_us).sum();
    let partitions_us: f64 = placed.partitions.iter().filter_map(|partition| partition.node_us).sum();
    let borders_us = placed.partitions.iter().filter_map(crate::event::NodePartition::boundary_us).sum();
    let all_us = cpu_us + partitions_us;
    (all_us > 0.0).then_some(NodeTimes { cpu_us, borders_us, all_us })
}

fn on_cpu(placed: &NodesPlaced) -> Vec<&NodePlacement> {
    let mut nodes: Vec<&NodePlacement> =
        placed.nodes.iter().filter(|node| node.provider == NodeProvider::Cpu).collect();
    nodes.sort_by(|a, b| b.time_us.unwrap_or(0.0).total_cmp(&a.time_us.unwrap_or(0.0)));
    nodes
}

/// Reasons with their nodes, the most frequent first.
fn reasons(nodes: &[&NodePlacement]) -> Vec<(String, Vec<String>)> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for node in nodes {
        let Some(reason) = &node.reason else { continue };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(node.node.clone()),
            None => reasons.push((reason.clone(), vec![node.node.clone()])),
        }
    }
    reasons.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    reasons
}

fn named(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(NAMED);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

fn advice(nodes: &[&NodePlacement]) -> Option<Advice> {
    let node = nodes.iter().find(|node| node.remedy.is_some())?;
    let action = node.remedy.clone()?;
    let is_setting = ["give every free dimension", "--ep-option", "mend the backend"];
    let effort = if is_setting.iter().any(|start| action.starts_with(start)) { Effort::Setting } else { Effort::Model };
    let why = "every node that QNN does not run costs CPU time and two partition borders to copy across".to_owned();
    Some(Advice { action, why, effort, snippets: Vec::new() })
}

fn nothing_on_qnn(run: &Run, placed: &NodesPlaced) -> Finding {
    let nodes = on_cpu(placed);
    let title = format!(
        "nothing ran on {}: ONNX Runtime ran all {} nodes on the CPU, and every figure of this run is the CPU's",
        run.plan.backend,
        nodes.len()
    );
    let mut evidence: Vec<Evidence> = Vec::new();
    evidence
        .extend(placed.problem.as_ref().map(|problem| Evidence::new(format!("the backend did not start: {problem}"))));
    if evidence.is_empty() {
        evidence.extend(
            reasons(&nodes)
                .iter()
                .take(NAMED)
                .map(|(reason, names)| Evidence::new(format!("{}: {reason}", named(names)))),
        );
    }
    if evidence.is_empty() {
        evidence.push(Evidence::new("ONNX Runtime's assignment record lists no QNN node"));
    }
    let mut finding = Finding::new("placement.all-cpu", FindingKind::Placement, Severity::Problem, title, evidence);
    finding.ops = nodes.iter().map(|node| node.node.clone()).collect();
    finding.suggestion = advice(&nodes);
    finding
}

fn fallback(run: &Run, placed: &NodesPlaced) -> Option<Finding> {
    let nodes = on_cpu(placed);
    if nodes.is_empty() {
        return None;
    }
    let all = placed.nodes.iter().filter(|node| node.provider != NodeProvider::None).count();
    let times = node_times(placed).filter(|_| !run.plan.simulated);
    let share = times.map(|times| times.cpu_us / times.all_us);
    let cost = share.map_or_else(String::new, |share| {
        let percent = 100.0 * share;
        if percent < 1.0 {
            ", less than 1 % of an inference".to_owned()
        } else {
            format!(", {percent:.0} % of an inference")
        }
    });
    let parts = placed.partitions.len();
    let split = if parts > 1 { format!(", which split the model into {parts} QNN graphs") } else { String::new() };
    let title = format!("{} of {all} nodes fell back to the CPU{cost}{split}", nodes.len());
    let evidence = if nodes.len() <= NAMED {
        nodes
            .iter()
            .map(|node| {
                let time = node.time_us.map_or_else(String::new, |us| format!(", {}", duration_text(us)));
                let reason = node.reason.as_deref().unwrap_or("the reason is unknown");
                Evidence::new(format!("`{}` ({}{time}): {reason}", node.node, node.op_type))
            })
            .collect()
    } else {
        let grouped = reasons(&nodes);
        let mut told: Vec<Evidence> = grouped
            .iter()
            .take(NAMED)
            .map(|(reason, names)| Evidence::new(format!("{}: {reason}", named(names))))
            .collect();
        if told.is_empty() {
            told.push(Evidence::new(named(&nodes.iter().map(|node| node.node.clone()).collect::<Vec<_>>())));
        }
        told
    };
    let severity =
        if share.is_none_or(|share| share >= MUCH) || parts > 1 { Severity::Warning } else { Severity::Info };
    let mut finding = Finding::new("placement.fallback", FindingKind::Placement, severity, title, evidence);
    finding.ops = nodes.iter().map(|node| node.node.clone()).collect();
    finding.suggestion = advice(&nodes);
    // At most their own time plus the borders between partitions, one of which would remain. How long QNN
    // would take for these nodes is unknown.
    if let Some((times, mean_us)) = times.zip(run.service().mean_us()) {
        let kept = times.borders_us / parts.max(1) as f64;
        let high = ((times.cpu_us + times.borders_us - kept) / times.all_us).clamp(0.0, 1.0);
        finding.expected_gain_share = Some([0.0, high]);
        finding.expected_gain_us = Some([0.0, high * mean_us]);
    }
    Some(finding)
}

fn borders(run: &Run, placed: &NodesPlaced) -> Option<Finding> {
    let times = node_times(placed).filter(|times| !run.plan.simulated && times.borders_us / times.all_us >= MUCH)?;
    let percent = 100.0 * times.borders_us / times.all_us;
    let title = format!(
        "{percent:.0} % of an inference is spent at the borders of QNN's graphs: copying, binding, quantising ({})",
        duration_text(times.borders_us)
    );
    let evidence = placed
        .partitions
        .iter()
        .filter_map(|partition| {
            let text = format!(
                "{}: {} in ONNX Runtime, {} of it in QNN",
                partition.name,
                duration_text(partition.node_us?),
                duration_text(partition.qnn_us?)
            );
            Some(Evidence::new(text))
        })
        .take(NAMED)
        .collect::<Vec<_>>();
    (!evidence.is_empty())
        .then(|| Finding::new("placement.borders", FindingKind::Placement, Severity::Info, title, evidence))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Made, only, steady};
    use super::*;
    use crate::backends::Backend;
    use crate::event::{Event, NodePartition, RunId};
    use crate::store::Store;

    fn node(name: &str, provider: NodeProvider, time_us: f64) -> NodePlacement {
        NodePlacement {
            node: name.to_owned(),
            op_type: "Hardmax".to_owned(),
            provider,
            partition: (provider == NodeProvider::Qnn).then_some(0),
            qnn_ops: Vec::new(),
            time_us: Some(time_us),
            time_derived: false,
            code: None,
            reason: (provider == NodeProvider::Cpu).then(|| "no translation".to_owned()),
            remedy: (provider == NodeProvider::Cpu).then(|| "replace it".to_owned()),
            inserted: false,
        }
    }

    fn told(nodes: Vec<NodePlacement>, partitions: Vec<NodePartition>, problem: Option<&str>) -> Vec<Finding> {
        let mut store: Store = Made::on_phone(Backend::Htp).clean(steady(1000.0, 5.0, 500)).store();
        let placed = NodesPlaced { nodes, partitions, problem: problem.map(ToOwned::to_owned) };
        let event = Event::NodesPlaced(Box::new(placed));
        store.apply(&crate::event::Record { seq: 0, t_us: 0, run: Some(RunId(0)), event });
        findings(only(&store))
    }

    #[test]
    fn a_model_that_qnn_did_not_run_is_a_problem_with_its_cause() {
        let cpu = || vec![node("a", NodeProvider::Cpu, 1.0), node("b", NodeProvider::Cpu, 2.0)];
        let found = told(cpu(), vec![], Some("no such file"));
        assert_eq!((found[0].id, found[0].severity), ("placement.all-cpu", Severity::Problem));
        assert!(found[0].title.contains("nothing ran on htp") && found[0].evidence[0].text.contains("no such file"));
        let found = told(cpu(), vec![], None);
        assert_eq!(found[0].evidence[0].text, "`b`, `a`: no translation");
    }

    #[test]
    fn a_fallback_costs_its_time_and_the_borders_it_makes() {
        let part = |name: &str, node_us, qnn_us| NodePartition {
            name: name.to_owned(),
            nodes: 1,
            node_us: Some(node_us),
            qnn_us: Some(qnn_us),
        };
        let nodes = vec![node("q", NodeProvider::Qnn, 400.0), node("h", NodeProvider::Cpu, 200.0)];
        let found = told(nodes, vec![part("p", 400.0, 350.0), part("r", 400.0, 250.0)], None);
        // 200 of 1000 us on the CPU, and 200 us at two borders, one of which remains: at most 300 of 1000 us.
        let fallback = found.iter().find(|finding| finding.id == "placement.fallback").unwrap();
        assert!(
            fallback.title.starts_with("1 of 2 nodes fell back to the CPU, 20 % of an inference"),
            "{}",
            fallback.title
        );
        let [low, high] = fallback.expected_gain_share.unwrap();
        assert!(low == 0.0 && (high - 0.3).abs() < 1e-9, "{high}");
        assert_eq!(fallback.suggestion.as_ref().unwrap().action, "replace it");
        let borders = found.iter().find(|finding| finding.id == "placement.borders").unwrap();
        assert!(borders.title.starts_with("20 % of an inference"), "{}", borders.title);
        assert!(told(vec![node("q", NodeProvider::Qnn, 4.0)], vec![], None).is_empty());
    }
}

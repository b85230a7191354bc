//! How a program executes one graph.

use super::super::{Advice, Effort, Evidence, Finding, FindingKind, Severity};
use crate::backends::{Backend, errors};
use crate::store::{Run, TappedGraph};
use crate::text::{bytes_text, counted, share_text};

/// Input bytes from which a copy deserves a warning.
const LARGE_BYTES: u64 = 64 << 10;

pub(super) fn findings(run: &Run, graph: &TappedGraph) -> Vec<Finding> {
    [failed(graph), profiled(run, graph), copied(run, graph), float(run, graph)].into_iter().flatten().collect()
}

fn failed(graph: &TappedGraph) -> Option<Finding> {
    let code = graph.failed_code?;
    let row = errors::lookup(code, "graphExecute");
    let name = row.map_or_else(String::new, |row| format!(" ({}: {})", row.symbol, row.meaning));
    let title = format!(
        "{} of {} failed; they are excluded from all figures",
        counted(graph.failed, "execution"),
        graph.executions
    );
    let text = format!("the first with {}{name}", code & 0xffff);
    Some(Finding::new("tap.failed-executions", FindingKind::Trust, Severity::Problem, title, vec![Evidence::new(text)]))
}

fn profiled(run: &Run, graph: &TappedGraph) -> Option<Finding> {
    if graph.host_profiled == 0 {
        return None;
    }
    let part = graph.host_profiled as f64 / graph.executions.max(1) as f64;
    let text = format!("{} of its executions use the program's own profile handle", share_text(part));
    let always = run.plan.profiling != crate::backends::ProfilingLevel::Detailed;
    let (title, severity) = if always {
        (
            "the program profiles its executions itself: the latencies are measured under its profiling",
            Severity::Warning,
        )
    } else {
        ("the program profiles some executions itself: they count as detailed", Severity::Info)
    };
    let mut finding =
        Finding::new("tap.host-profiled", FindingKind::Trust, severity, title.to_owned(), vec![Evidence::new(text)]);
    finding.suggestion = always.then(|| Advice {
        action: "turn off the program's profiling to see its latency: profiling_level=off in ONNX Runtime".to_owned(),
        why: "per-op profiling makes an inference longer".to_owned(),
        effort: Effort::Setting,
        snippets: Vec::new(),
    });
    Some(finding)
}

fn copied(run: &Run, graph: &TappedGraph) -> Option<Finding> {
    if run.plan.backend == Backend::Cpu {
        return None;
    }
    let inputs: Vec<_> = graph.inputs.iter().filter(|input| !input.shared).collect();
    let bytes: u64 = inputs.iter().filter_map(|input| input.bytes).fold(0, u64::saturating_add);
    if graph.copied == 0 && inputs.is_empty() {
        return None;
    }
    let size = if bytes > 0 { format!(", {} each time", bytes_text(bytes as f64)) } else { String::new() };
    let title = format!("inputs are copied instead of shared with the backend{size}");
    let mut evidence = vec![Evidence::new(format!(
        "{} of {} passed an input in the program's own memory",
        graph.copied,
        counted(graph.executions, "execution")
    ))];
    evidence.extend(inputs.iter().take(3).map(|input| {
        let bytes = input.bytes.map_or_else(|| "of unknown size".to_owned(), |bytes| bytes_text(bytes as f64));
        Evidence::new(format!("`{}`, {bytes}", input.name))
    }));
    let notable = bytes >= LARGE_BYTES && !run.plan.simulated;
    let severity = if notable { Severity::Warning } else { Severity::Info };
    let mut finding = Finding::new("tap.copied-inputs", FindingKind::Suggestion, severity, title, evidence);
    finding.suggestion = Some(Advice {
        action: "register the buffers once and pass them shared: enable_htp_shared_memory_allocator=1 in ONNX Runtime, shared \
                 buffers in ExecuTorch"
            .to_owned(),
        why: "shared memory is not copied for every execution".to_owned(),
        effort: Effort::Setting,
        snippets: Vec::new(),
    });
    Some(finding)
}

fn float(run: &Run, graph: &TappedGraph) -> Option<Finding> {
    if run.plan.backend != Backend::Htp {
        return None;
    }
    let composed = run.graph().filter(|graph| !graph.ops.is_empty());
    let (floats, all, what) = match (composed, graph.floats) {
        (Some(graph), _) => {
            let is_float = |op: &&crate::models::Op| op.outputs.iter().any(|tensor| tensor.dtype.is_float());
            (graph.ops.iter().filter(is_float).count(), graph.ops.len(), "ops make floats")
        }
        (None, Some((floats, all))) => (floats as usize, all as usize, "inputs and outputs are floats"),
        (None, None) => return None,
    };
    if all == 0 || floats * 2 <= all {
        return None;
    }
    let title =
        "a float graph runs on the NPU: it computes in fp16, slower and at higher power than integers".to_owned();
    let text = format!("{floats} of {all} {what}");
    let mut finding =
        Finding::new("tap.float-graph", FindingKind::Suggestion, Severity::Warning, title, vec![Evidence::new(text)]);
    finding.suggestion = Some(Advice {
        action: "quantise the model to 8 or 16 bits".to_owned(),
        why: "the NPU's matrix units are built for integers".to_owned(),
        effort: Effort::Reconvert,
        snippets: Vec::new(),
    });
    Some(finding)
}

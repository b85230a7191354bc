//! Where the time of an inference goes, by part.

use super::super::window::counter;
use super::super::{Evidence, EvidencePlace, Finding, FindingKind, Severity};
use super::Bound;
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{OpUnit, Phase};
use crate::store::{MetricStats, Run, Store};
use crate::text::{bytes_text, duration_text};
use serde::Serialize;

/// Share of an inference from which a part bounds it.
const MAIN: f64 = 0.35;
/// Share of op time from which conversions are too expensive.
const CONVERSIONS_MATTER: f64 = 0.25;
/// Share from which the call and host processing matter.
const AROUND_MATTERS: f64 = 0.3;
/// Share of all traffic from which spill and fill matter.
const SPILL_MATTERS: f64 = 0.25;
/// Spill and fill below this are negligible, bytes.
const SPILL_MIN: f64 = 1024.0 * 1024.0;
/// Ops that a finding names.
const NAMED: usize = 5;

/// A part of an inference's time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// What the time goes into.
    pub bound: Bound,
    /// Share of the time, 0 to 1.
    pub share: f64,
}

/// The parts, and what data would show more.
pub(super) fn account(run: &Run, layers: &[Option<Bound>]) -> (Vec<Share>, Vec<String>) {
    let mut would_tell = Vec::new();
    if run.clean.is_empty() && run.detailed.is_empty() {
        return (Vec::new(), would_tell);
    }
    if run.plan.simulated {
        would_tell.push(format!("run it on a device: this {} is simulated", run.plan.backend));
        return (Vec::new(), would_tell);
    }
    let has_ops = run.ops.inferences() > 0 && run.ops.mean_total().is_some_and(|total| total > 0.0);
    if !has_ops {
        would_tell.push("run with --profiling detailed: no layer times were taken".to_owned());
    }
    let accelerator = us(run, "Accelerator (execute) time");
    let graph = us(run, "GRAPH_EXECUTE").or_else(|| us(run, "QNN (execute) time"));
    let Some(inner) = accelerator.or(graph) else { return (Vec::new(), would_tell) };
    let Some(wall_us) = wall_us(run, inner).filter(|wall_us| *wall_us > 0.0) else { return (Vec::new(), would_tell) };
    let inner_us = inner.mean().min(wall_us);
    let mut parts: Vec<Share> = Vec::new();
    let mut add = |bound: Bound, share: f64| match parts.iter_mut().find(|part| part.bound == bound) {
        Some(part) => part.share += share,
        None if share > 0.0 => parts.push(Share { bound, share }),
        None => {}
    };
    // Around the accelerator: the host's own work, and the round trip.
    let around_us = wall_us - inner_us;
    let host_us = match (us(run, "QNN (execute) time"), us(run, "RPC (execute) time")) {
        (Some(qnn), Some(rpc)) => (qnn.mean() - rpc.mean()).clamp(0.0, around_us),
        _ => 0.0,
    };
    add(Bound::HostProcessing, host_us / wall_us);
    add(Bound::CallOverhead, (around_us - host_us) / wall_us);
    if accelerator.is_some() && us(run, "RPC (execute) time").is_none() {
        would_tell.push(
            "the backend's RPC time (HTP on a device reports it) would separate transport from host work".to_owned(),
        );
    }
    if has_ops {
        // Op cycles are shares of the accelerator's time; microseconds exclude the time between ops.
        let ops_us = match run.ops.unit() {
            Some(OpUnit::Us) => run.ops.mean_total().unwrap_or(0.0).min(inner_us),
            _ => inner_us,
        };
        add(Bound::OpOverhead, (inner_us - ops_us) / wall_us);
        for (row, bound) in layers.iter().enumerate() {
            add(bound.unwrap_or(Bound::Unknown), run.ops.share(row) * ops_us / wall_us);
        }
    } else {
        add(Bound::Unknown, inner_us / wall_us);
    }
    if parts.iter().any(|part| part.bound == Bound::SlowOps && part.share >= MAIN) {
        let why = "ops far below the best rate seen fit this backend or their data type poorly";
        would_tell.push(format!("run it on another backend or in another data type and compare: {why}"));
    }
    let asked = |key: &str| run.settings.iter().any(|setting| setting.key.ends_with(key));
    if run.plan.backend == Backend::Htp && !asked("perf_profile") {
        would_tell.push("run with --perf-profile burst: the clocks were left to the backend's default".to_owned());
    }
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    (parts, would_tell)
}

/// The largest part, if it is large enough.
pub(super) fn main(shares: &[Share]) -> Option<Bound> {
    let first = shares.first().filter(|first| first.share >= MAIN)?;
    (first.bound != Bound::Unknown).then_some(first.bound)
}

fn us<'a>(run: &'a Run, name: &str) -> Option<&'a MetricStats> {
    run.metric(name).filter(|metric| metric.unit == "us" && metric.count > 0)
}

/// Mean wall time of the inferences for which the metric was reported.
fn wall_us(run: &Run, told: &MetricStats) -> Option<f64> {
    let clean = run.plan.clean_profiling() == ProfilingLevel::Basic;
    let phases = [(Phase::Clean, clean), (Phase::Detailed, true)].into_iter().filter(|(_, told)| *told);
    let (mut sum, mut count) = (0.0, 0u64);
    for (phase, _) in phases {
        let stats = run.latency(phase);
        sum += stats.mean_us().unwrap_or(0.0) * stats.count() as f64;
        count += stats.count();
    }
    (count > 0 && told.count > 0).then(|| sum / count as f64)
}

/// What bounds the run, with the parts in words.
pub(super) fn finding(run: &Run, shares: &[Share], main: Option<Bound>) -> Option<Finding> {
    let known: f64 = shares.iter().filter(|part| part.bound != Bound::Unknown).map(|part| part.share).sum();
    if known < MAIN {
        return None;
    }
    let listed: Vec<String> = shares
        .iter()
        .filter(|part| part.share >= 0.05)
        .map(|part| format!("{} {:.0} %", part.bound.text(), part.share * 100.0))
        .collect();
    let mut evidence = vec![Evidence::new(format!("of an inference with profiling: {}", listed.join(", ")))];
    let share = shares.first().map_or(0.0, |part| part.share);
    let (id, severity, title) = match main {
        None => ("bound.mixed", Severity::Info, "no single bound dominates".to_owned()),
        Some(Bound::Compute) => {
            ("bound.compute", Severity::Info, format!("compute-bound ({:.0} % of the time)", share * 100.0))
        }
        Some(Bound::MemoryBandwidth) => {
            ("bound.memory-bandwidth", Severity::Info, format!("memory-bound ({:.0} % of the time)", share * 100.0))
        }
        Some(Bound::OpOverhead) => (
            "bound.op-overhead",
            Severity::Info,
            format!("bound by op overhead: {:.0} % of the time is between ops or in very short ops", share * 100.0),
        ),
        Some(Bound::SlowOps) => (
            "bound.slow-ops",
            Severity::Info,
            format!(
                "{:.0} % of the time is in ops that run far below the best rate seen on this backend",
                share * 100.0
            ),
        ),
        // Reported with its ops.
        Some(Bound::Conversions) => return None,
        Some(bound) => around(run, bound, share, &mut evidence),
    };
    if matches!(main, Some(Bound::Compute | Bound::MemoryBandwidth | Bound::SlowOps)) {
        evidence.extend(top_row(run));
    }
    Some(Finding::new(id, FindingKind::Bound, severity, title, evidence))
}

/// The time around the accelerator's work.
fn around(run: &Run, bound: Bound, share: f64, evidence: &mut Vec<Evidence>) -> (&'static str, Severity, String) {
    let names = ["QNN (execute) time", "RPC (execute) time", "Accelerator (execute) time"];
    let times: Vec<String> = names
        .iter()
        .filter_map(|name| us(run, name).map(|metric| format!("{name} {}", duration_text(metric.mean()))))
        .collect();
    if !times.is_empty() {
        evidence.push(Evidence::new(format!("mean {}", times.join(", "))));
    }
    let severity = if share >= AROUND_MATTERS { Severity::Warning } else { Severity::Info };
    match bound {
        Bound::HostProcessing => (
            "bound.host-processing",
            severity,
            format!(
                "bound by the CPU: {:.0} % of an inference is before and after the accelerator call",
                share * 100.0
            ),
        ),
        _ => {
            for name in ["Time for initial VTCM acquire", "Time for HVX + HMX power on and acquire"] {
                if let Some(metric) = us(run, name).filter(|metric| metric.mean() > 0.0) {
                    evidence.push(Evidence::new(format!("{name}: mean {}", duration_text(metric.mean()))));
                }
            }
            (
                "bound.call-overhead",
                severity,
                format!(
                    "bound by the call: {:.0} % of an inference is transport to the accelerator and back",
                    share * 100.0
                ),
            )
        }
    }
}

fn top_row(run: &Run) -> Option<Evidence> {
    let (row, share) =
        (0..run.ops.rows().len()).map(|row| (row, run.ops.share(row))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let name = &run.ops.rows().get(row)?.name;
    Some(Evidence::at(
        format!("the slowest layer is {name} with {:.0} % of the op time", share * 100.0),
        EvidencePlace::Op(row),
    ))
}

/// Conversions that take much of the op time; also for a simulated run, whose compiler inserts the same ones.
pub(super) fn conversions(run: &Run, layers: &[Option<Bound>], main: Option<Bound>) -> Option<Finding> {
    let mut rows: Vec<(usize, f64)> = layers
        .iter()
        .enumerate()
        .filter(|(_, bound)| **bound == Some(Bound::Conversions))
        .map(|(row, _)| (row, run.ops.share(row)))
        .collect();
    let share: f64 = rows.iter().map(|row| row.1).sum();
    if share < CONVERSIONS_MATTER && main != Some(Bound::Conversions) {
        return None;
    }
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    let of_what = if run.plan.simulated { "the simulated cycles" } else { "the op time" };
    let row_text = |&(row, share): &(usize, f64)| {
        let op_type = run.op(row).map_or("", |op| op.op_type.as_str());
        let name = run.ops.rows().get(row).map_or("", |row| row.name.as_str());
        Evidence::at(format!("{name} ({op_type}) {:.1} % of {of_what}", share * 100.0), EvidencePlace::Op(row))
    };
    let evidence = rows.iter().take(NAMED).map(row_text).collect();
    let title = format!("type and layout conversions take {:.0} % of {of_what} ({} ops)", share * 100.0, rows.len());
    let mut finding = Finding::new("bound.conversions", FindingKind::Bound, Severity::Warning, title, evidence);
    finding.ops = rows.iter().filter_map(|(row, _)| Some(run.ops.rows().get(*row)?.name.clone())).collect();
    Some(finding)
}

/// DDR traffic that the HTP compiler plans for spill and fill: activations that did not fit into VTCM.
pub(super) fn ddr(store: &Store, run: &Run) -> Option<Finding> {
    if run.plan.backend != Backend::Htp {
        return None;
    }
    let bytes = |word: &str| {
        let named = |metric: &&MetricStats| metric.unit == "bytes" && metric.name.to_lowercase().contains(word);
        run.metrics.iter().find(named).map(MetricStats::mean)
    };
    let (spill, fill, read, write) = (bytes("spill")?, bytes("fill")?, bytes("read")?, bytes("write")?);
    let share = (spill + fill) / (read + write).max(1.0);
    if share < SPILL_MATTERS || spill + fill < SPILL_MIN {
        return None;
    }
    let mut evidence = vec![Evidence::new(format!(
        "the compiler plans {} of spill and {} of fill, out of {} read and {} written",
        bytes_text(spill),
        bytes_text(fill),
        bytes_text(read),
        bytes_text(write)
    ))];
    let macs = run.graph().map_or(0, crate::models::Graph::macs);
    if macs > 0 {
        evidence
            .push(Evidence::new(format!("{:.1} MACs per byte of that traffic", macs as f64 / (read + write).max(1.0))));
    }
    if let Some(accelerator) = us(run, "Accelerator (execute) time").filter(|_| !run.plan.simulated) {
        let rate = (read + write) / accelerator.mean() / 1000.0;
        evidence.push(Evidence::new(format!(
            "{rate:.1} GB/s over the accelerator's {}",
            duration_text(accelerator.mean())
        )));
    }
    if let Some(clock) = counter(store, run, "bus.freq.DDR") {
        let values = clock.values_in(run.clean.windows_us());
        let top = clock.info().maximum.or_else(|| clock.series.summary().map(|(_, _, max)| max));
        if let Some(top) = top.filter(|_| !values.is_empty()) {
            let at_top = values.iter().filter(|(_, value)| *value >= top * 0.99).count();
            let text = format!(
                "the CPU's DDR clock vote is at its maximum ({top:.0} MHz) in {:.0} % of the readings; the NPU's own votes are not visible",
                100.0 * at_top as f64 / values.len() as f64
            );
            evidence.push(Evidence::at(text, clock.place()));
        }
    }
    let title = format!("activations do not fit in VTCM: {:.0} % of the DDR traffic is spill and fill", share * 100.0);
    Some(Finding::new("bound.ddr-spill", FindingKind::Bound, Severity::Warning, title, evidence))
}

#[cfg(test)]
mod tests {
    use super::super::super::roofline::roofline;
    use super::super::{Bound, Bounds, bounds};
    use crate::analysis::Severity;
    use crate::analysis::testing::{Made, only, op, steady};
    use crate::backends::Backend;
    use crate::event::OpUnit;
    use crate::models::Op;
    use crate::store::Store;

    fn judged(store: &Store) -> Bounds {
        let run = only(store);
        bounds(store, run, &roofline(store, run))
    }

    fn ids(bounds: &Bounds) -> Vec<&'static str> {
        bounds.findings.iter().map(|finding| finding.id).collect()
    }

    fn ops() -> Vec<Op> {
        vec![
            op("Conv2d", &[1, 32, 32, 16], &[3, 3, 16, 32], &[1, 32, 32, 32]),
            op("FullyConnected", &[1, 1000], &[1000, 1000], &[1, 1000]),
            op("Transpose", &[1, 8000], &[], &[1, 8000]),
            op("Relu", &[1, 100], &[], &[1, 100]),
            op("Conv2d", &[1, 32, 32, 16], &[3, 3, 16, 32], &[1, 32, 32, 32]),
        ]
    }

    /// On the CPU: times of the ops given above, and of the whole graph.
    fn on_cpu(values: &[u64], graph_us: f64, wall_us: f64) -> Bounds {
        let made = Made::local(Backend::Cpu).graph(ops()).op_times(OpUnit::Us, values);
        let made = made.metric("GRAPH_EXECUTE", "us", graph_us).clean(steady(wall_us, 2.0, 200));
        judged(&made.detailed(&[wall_us; 10]).store())
    }

    /// On the phone's HTP: times of the call, the RPC and the accelerator.
    fn on_htp(wall_us: f64, rpc_us: f64, accelerator_us: f64) -> Bounds {
        let made = Made::on_phone(Backend::Htp).graph(ops()).op_times(OpUnit::Cycles, &[90, 9, 2, 2, 97]);
        let made = made
            .metric("QNN (execute) time", "us", wall_us - 5.0)
            .metric("RPC (execute) time", "us", rpc_us)
            .metric("Accelerator (execute) time", "us", accelerator_us);
        judged(&made.clean(steady(wall_us, 2.0, 200)).detailed(&[wall_us; 10]).store())
    }

    #[test]
    fn computing_moving_and_ops_of_their_own_are_told_apart() {
        let compute = on_cpu(&[5000, 400, 50, 60, 5000], 10_510.0, 10_600.0);
        assert_eq!((compute.main, ids(&compute)), (Some(Bound::Compute), vec!["bound.compute"]));
        let memory = on_cpu(&[100, 4000, 50, 60, 100], 4310.0, 4400.0);
        assert_eq!(memory.main, Some(Bound::MemoryBandwidth));
        let overhead = on_cpu(&[100, 400, 50, 60, 100], 3000.0, 3010.0);
        assert_eq!(
            (overhead.main, ids(&overhead)),
            (Some(Bound::OpOverhead), vec!["bound.op-overhead", "bound.hot-layer"])
        );
        let sum: f64 = compute.shares.iter().map(|part| part.share).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    }

    #[test]
    fn conversions_are_named_with_their_ops() {
        let found = on_cpu(&[100, 400, 3000, 60, 100], 3660.0, 3700.0);
        assert_eq!(found.main, Some(Bound::Conversions));
        let finding = found.findings.iter().find(|finding| finding.id == "bound.conversions").unwrap();
        assert_eq!((finding.severity, finding.ops.as_slice()), (Severity::Warning, &["op2".to_owned()][..]));
        assert!(!ids(&on_cpu(&[1000, 400, 300, 60, 1000], 2760.0, 2800.0)).contains(&"bound.conversions"));
    }

    #[test]
    fn conversions_of_a_simulated_run_are_told_of_its_cycles_and_nothing_else_is() {
        let made =
            Made::local(Backend::Htp).simulated().graph(ops()).op_times(OpUnit::Cycles, &[100, 400, 3000, 60, 90]);
        let found = judged(&made.clean(steady(1000.0, 2.0, 200)).store());
        assert_eq!((found.main, ids(&found)), (None, vec!["bound.conversions", "bound.hot-layer"]));
        assert!(found.findings[0].title.contains("simulated cycles"));
        assert!(found.shares.is_empty() && found.would_tell[0].contains("on a device"), "{:?}", found.would_tell);
    }

    #[test]
    fn the_call_and_the_processors_part_are_what_is_around_the_accelerator() {
        let call = on_htp(2000.0, 1900.0, 900.0);
        assert_eq!((call.main, ids(&call)[0]), (Some(Bound::CallOverhead), "bound.call-overhead"));
        assert_eq!(call.findings[0].severity, Severity::Warning);
        let host = on_htp(2000.0, 1000.0, 900.0);
        assert_eq!((host.main, ids(&host)[0]), (Some(Bound::HostProcessing), "bound.host-processing"));
        let accelerator = on_htp(2000.0, 1950.0, 1900.0);
        assert_eq!(accelerator.main, Some(Bound::Compute));
    }

    #[test]
    fn without_op_times_it_is_said_what_would_tell() {
        let made = Made::local(Backend::Cpu).metric("GRAPH_EXECUTE", "us", 900.0);
        let found = judged(&made.clean(steady(1000.0, 2.0, 200)).store());
        assert_eq!(found.main, None);
        assert!(found.would_tell[0].contains("--profiling detailed"), "{:?}", found.would_tell);
    }

    #[test]
    fn spill_counts_where_it_is_much_of_the_traffic() {
        let made = |spill: f64| {
            let made = Made::local(Backend::Htp).simulated().graph(ops()).clean(steady(1000.0, 2.0, 50));
            let made = made.sub_stage("DDR spill", spill, "bytes").sub_stage("DDR fill", spill, "bytes");
            let store =
                made.sub_stage("DDR write total", 9e6, "bytes").sub_stage("DDR read total", 9e6, "bytes").store();
            ids(&judged(&store))
        };
        assert_eq!(made(4e6), ["bound.ddr-spill"]);
        assert!(made(1e6).is_empty() && made(0.0).is_empty());
    }
}

//! The top of a report: what was measured, the results, and the conditions.

use super::{Block, Material, Section, Table};
use crate::analysis::{findings, summary, trust, verdicts};
use crate::event::RunStatus;
use crate::store::{Run, Store};
use crate::text::{bytes_text, duration_text};

/// Maximum number of names in a title.
const NAMED: usize = 3;

fn model_name(run: &Run) -> &str {
    run.plan.model.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).unwrap_or(&run.plan.model)
}

pub fn title(material: &Material<'_>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (_, _, run) in material.runs() {
        if !names.contains(&model_name(run)) {
            names.push(model_name(run));
        }
    }
    // Without runs, the models that were compared layer by layer.
    let compared = if names.is_empty() { material.accuracy } else { &[] };
    for (_, document) in compared {
        let model = document.test.model.as_str();
        names.push(model.rsplit(['/', '\\']).next().unwrap_or(model));
    }
    let more = if names.len() > NAMED { format!(" and {} more", names.len() - NAMED) } else { String::new() };
    let first: Vec<String> = names.iter().take(NAMED).map(|name| material.mask.name(name).into_owned()).collect();
    if first.is_empty() { "No run".to_owned() } else { format!("{}{more}", first.join(", ")) }
}

pub fn subtitle(material: &Material<'_>) -> String {
    let started = material.parts.iter().filter_map(|part| started(part.store)).min();
    let runs = material.runs().count();
    if runs == 0 && !material.accuracy.is_empty() {
        return format!("accuracy layer by layer, qnnscope {}", env!("CARGO_PKG_VERSION"));
    }
    let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
    let date = started.map_or_else(String::new, |started| format!("{started}, "));
    format!("{date}{runs}, qnnscope {}", env!("CARGO_PKG_VERSION"))
}

/// When a session began, RFC 3339 in UTC, to the second.
pub fn started(store: &Store) -> Option<String> {
    let epoch_us = store.session()?.epoch_us;
    let seconds = i64::try_from(epoch_us / 1_000_000).ok().filter(|seconds| *seconds > 0)?;
    jiff::Timestamp::from_second(seconds).ok().map(|moment| moment.to_string())
}

/// Human-readable name of a run: backend and device.
pub fn run_name(run: &Run) -> String {
    let simulated = if run.plan.simulated { " [simulated]" } else { "" };
    let origin = run.plan.mode.origin.as_ref().map_or_else(String::new, |origin| format!(" ({})", origin.label));
    format!("{} on {}{simulated}{origin}", run.plan.backend, run.plan.device)
}

fn status(run: &Run) -> &'static str {
    match run.status() {
        Some(RunStatus::Ok) => "ok",
        Some(RunStatus::Stopped) => "stopped early",
        Some(RunStatus::Failed) => "failed",
        None => "unfinished",
    }
}

pub fn dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "–".to_owned())
}

pub fn sections(material: &Material<'_>) -> Vec<Section> {
    let mut table = Table::new(
        &[
            "#run",
            "model",
            "backend, device",
            "status",
            "#p50",
            "#p95",
            "#p99",
            "#mean",
            "#per second",
            "#memory peak",
            "figures are",
        ],
        20,
    );
    let mut texts = Vec::new();
    for (number, store, run) in material.runs() {
        let clean = &run.clean;
        let percentile = |percent| dash(clean.percentile_us(percent).map(duration_text));
        let trust = trust(store, run).map(|trust| trust.verdict.text().to_owned());
        table.rows.push(vec![
            number.to_string(),
            model_name(run).to_owned(),
            run_name(run),
            status(run).to_owned(),
            percentile(50.0),
            percentile(95.0),
            percentile(99.0),
            dash(clean.mean_us().map(duration_text)),
            dash(run.throughput_ips().map(|ips| format!("{ips:.1}"))),
            dash(run.memory.rss_peak.map(|bytes| bytes_text(bytes as f64))),
            dash(trust),
        ]);
        let found = findings(store, run);
        if let Some(text) = summary(run, &verdicts(store, run), &found) {
            texts.push(Block::Text(text));
        }
    }
    let mut blocks = Vec::new();
    if material.runs().any(|(_, _, run)| run.plan.simulated) {
        blocks
            .push(Block::Warning("HTP was simulated on the host: its times and cycles predict no device.".to_owned()));
    }
    for part in &material.parts {
        blocks.extend(part.notes.iter().map(|note| {
            let from = if part.shown.is_empty() { String::new() } else { format!("{}: ", part.shown) };
            Block::Warning(format!("{from}{note}"))
        }));
    }
    blocks.push(Block::Table(table));
    blocks.extend(texts);
    vec![
        Section { title: "Summary".to_owned(), is_sub: false, blocks },
        Section { title: "Environment".to_owned(), is_sub: false, blocks: environment(material) },
    ]
}

fn environment(material: &Material<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for part in &material.parts {
        let mut facts: Vec<(String, String)> = Vec::new();
        let mut fact = |name: &str, value: Option<String>| {
            facts.extend(value.filter(|value| !value.is_empty()).map(|value| (name.to_owned(), value)));
        };
        fact("file", Some(part.shown.to_owned()));
        fact("started", started(part.store));
        let session = part.store.session();
        fact("host", session.map(|session| session.host.clone()));
        let origin = part.store.runs().iter().find_map(|run| run.plan.mode.origin.as_ref());
        let recorded = session.map(|session| format!("qnnscope {}", session.tool_version));
        match origin {
            Some(origin) => fact("read from", Some(origin.label.clone())),
            None => fact("recorded by", recorded),
        }
        for device in part.store.devices() {
            if !part.store.runs().iter().any(|run| run.plan.device == device.id) {
                continue;
            }
            let known = part.store.device_facts(&device.id);
            let soc = known.and_then(|known| known.soc.part.clone()).or_else(|| device.soc.clone());
            let hexagon =
                known.and_then(|known| known.soc.hexagon_arch.clone()).or_else(|| device.hexagon_arch.clone());
            let model = known.and_then(|known| known.model.clone()).or_else(|| device.model.clone());
            let os = known.map_or_else(|| device.os.clone(), |known| known.os.clone());
            let parts = [model, soc, hexagon.map(|arch| format!("Hexagon {arch}")), Some(os), Some(device.abi.clone())];
            let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
            fact(&format!("device {}", material.mask.name(&device.id)), Some(parts.join(", ")));
        }
        let mut builds: Vec<String> = Vec::new();
        for run in part.store.runs() {
            let build = run.runtime.as_ref().and_then(|runtime| runtime.build_id.clone());
            builds.extend(build.filter(|build| !builds.contains(build)));
        }
        fact("QNN build", Some(builds.join(", ")));
        if !facts.is_empty() {
            blocks.push(Block::Facts(facts));
        }
    }
    blocks
}

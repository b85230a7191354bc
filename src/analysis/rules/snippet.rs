//! Commands and parts of configuration files, filled in with the run's own names.

use super::facts::Facts;
use crate::devices::quote;
use crate::event::clean_text;

/// The text with its placeholders filled in; `None` if one of them is unknown.
pub fn fill(text: &str, facts: &Facts<'_>) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // A single pass: inserted text may look like a placeholder but is not one.
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let end = from.find('}').unwrap_or(0);
        let name = from.get(1..end).unwrap_or("");
        if !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
            out.push_str(&value(name, facts)?);
            rest = &from[end + 1..];
        } else {
            out.push('{');
            rest = &from[1..];
        }
    }
    out.push_str(rest);
    Some(out)
}

/// The value of a placeholder. Commands are quoted for a shell, names in JSON are escaped as JSON.
fn value(name: &str, facts: &Facts<'_>) -> Option<String> {
    let plan = &facts.run.plan;
    let model = || quote(&clean_text(&plan.model));
    match name {
        "model" => Some(model()),
        "run" => {
            let mut command = format!("qnnscope run {} -b {}{}", model(), plan.backend, device(facts));
            if let Some(number) = facts.setting("soc_model") {
                command.push_str(" --soc-model ");
                command.push_str(&quote(&clean_text(number)));
            }
            Some(command)
        }
        "device" => Some(device(facts)),
        "graph" => serde_json::to_string(&facts.run.graph()?.name).ok(),
        "soc_model" => Some(facts.soc?.soc_model?.to_string()),
        "hvx_threads" => Some(facts.soc?.hvx_threads?.to_string()),
        "big_cores" => {
            let fastest = facts.device()?.clusters.iter().max_by_key(|cluster| cluster.max_freq_hz)?;
            // A mask holds at most 64 cores.
            let mask = fastest.cpus.iter().try_fold(0u64, |mask, &cpu| Some(mask | 1u64.checked_shl(cpu)?))?;
            Some(format!("{mask:x}"))
        }
        _ => None,
    }
}

/// The flag that names the device, preceded by a space; empty for this machine.
fn device(facts: &Facts<'_>) -> String {
    let id = || quote(&clean_text(&facts.run.plan.device));
    if facts.is_on_a_device() { format!(" --device {}", id()) } else { String::new() }
}

//! Commands and parts of configuration files with the run's own names in them.

use super::facts::Facts;
use crate::devices::quote;
use crate::event::clean_text;

/// The text with its placeholders filled; `None` if one of them is not known.
pub fn fill(text: &str, facts: &Facts<'_>, layers: &[usize]) -> Option<String> {
    let plan = &facts.run.plan;
    let mut out = text.to_owned();
    let mut put = |name: &str, value: &dyn Fn() -> Option<String>| {
        if out.contains(name) {
            out = out.replace(name, &value()?);
        }
        Some(())
    };
    put("{model}", &|| Some(quote(&clean_text(&plan.model))))?;
    put("{run}", &|| {
        // What makes the run what it is, so that only the change differs.
        let mut command = format!("qnnscope run {} -b {}", quote(&clean_text(&plan.model)), plan.backend);
        if facts.is_on_a_device() {
            command.push_str(&format!(" --device {}", quote(&clean_text(&plan.device))));
        }
        Some(command)
    })?;
    put("{graph}", &|| serde_json::to_string(&facts.run.graph()?.name).ok())?;
    put("{soc_model}", &|| Some(facts.soc?.soc_model?.to_string()))?;
    put("{arch}", &|| Some(serde_json::to_string(&facts.soc?.arch_name()?).ok()?))?;
    put("{hvx_threads}", &|| Some(facts.soc?.hvx_threads?.to_string()))?;
    put("{op}", &|| Some(facts.nodes.list.get(*layers.first()?)?.op.name.clone()))?;
    put("{big_cores}", &|| {
        let clusters = &facts.device()?.clusters;
        let fastest = clusters.iter().max_by_key(|cluster| cluster.max_freq_hz)?;
        // Above 64 cores a mask does not fit.
        let mask = fastest.cpus.iter().try_fold(0u64, |mask, &cpu| Some(mask | 1u64.checked_shl(cpu)?))?;
        Some(format!("{mask:x}"))
    })?;
    Some(out)
}

//! `qnnscope recommend`.

use super::headless::{print, print_json};
use super::options;
use super::patience::Patience;
use super::wishes::Wishes;
use super::{CliError, Global, OK, inspect};
use crate::analysis::compare::graph_facts;
use crate::analysis::recommend::{RecommendTarget, Support, expected};
use crate::backends::Backend;
use crate::backends::qnn::runner::Asked;
use crate::devices::{Soc, soc_by_part, socs_by_model};
use crate::diagnosis::preflight;
use crate::models::ModelFormat;
use crate::report::{RecommendDocument, recommend_text};
use crate::run::Preflight;
use std::cell::RefCell;
use std::path::PathBuf;

/// Arguments of `qnnscope recommend`.
#[derive(Debug, clap::Args)]
pub struct RecommendArgs {
    /// DLC or model library (.so)
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Graph, if the model has several
    #[arg(long, value_name = "NAME")]
    graph: Option<String>,
    /// Target SoC: a part such as SM8650, or QNN's number for it
    #[arg(long, value_name = "SOC", value_parser = soc)]
    soc: Option<&'static str>,
    #[command(flatten)]
    wishes: Wishes,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    patience: Patience,
}

/// Reports which backend suits the graph and the SoC, without running anything.
pub fn recommend(args: &RecommendArgs, global: &Global) -> Result<u8, CliError> {
    let (model, graphs, _) = inspect::read(&args.model, args.patience, global)?;
    let graph = match &args.graph {
        Some(name) => graphs.iter().find(|graph| graph.name == *name),
        None => graphs.first(),
    };
    let graph = graph.ok_or_else(|| {
        let names: Vec<&str> = graphs.iter().map(|graph| graph.name.as_str()).collect();
        CliError::Usage(format!("the model has no such graph; its graphs are {}", names.join(", ")))
    })?;
    if graph.ops.is_empty() {
        return Err(CliError::Usage(format!(
            "{} does not list its ops, so backends cannot be judged; a context binary runs only on the backend it was made for",
            model.path
        )));
    }
    let soc = args.soc.and_then(soc_by_part);
    let facts = graph_facts(graph);
    let support = match model.format {
        ModelFormat::ContextBinary => Vec::new(),
        _ => support(args, global)?,
    };
    let recommendation = expected(&facts, RecommendTarget { soc }, &support, &args.wishes.constraints());
    let document = RecommendDocument::new(&model.path, facts, soc.map(|soc| soc.part), recommendation);
    if args.json {
        print_json(&document)?;
    } else {
        print(&recommend_text(&document))?;
    }
    Ok(OK)
}

/// This machine's backends' verdict on each op; empty without libraries.
fn support(args: &RecommendArgs, global: &Global) -> Result<Vec<Support>, CliError> {
    let Ok(runtime) = options::runtime(global) else { return Ok(Vec::new()) };
    let target = match args.soc {
        Some(soc) => preflight::Target::from_soc(soc),
        None => preflight::Target::fallback(),
    };
    // A SoC without an HTP yields no target: the other backends are still asked.
    let targets: Vec<preflight::Target> = target.into_iter().collect();
    let wanted = [Backend::Htp, Backend::Cpu, Backend::Gpu].into_iter();
    let preflight = Preflight {
        runtime_dir: runtime.path,
        model: args.model.clone(),
        backends: wanted
            .filter(|b| *b != Backend::Htp || !targets.is_empty())
            .map(|backend| (backend, false))
            .collect(),
        targets,
        vtcm_mb: None,
        compile: false,
        binary: false,
        allow_unknown_runtime: global.allow_unknown_runtime,
        limits: args.patience.limits(),
    };
    let asked = RefCell::new("the backends".to_owned());
    let ask = preflight.ask(|question, _, _| question.clone_into(&mut asked.borrow_mut()));
    let answers = args.patience.wait(|| asked.borrow().clone(), ask)?;
    let said = answers.backends.iter().filter_map(|answer| Some((answer, answer.answer.as_ref().ok()?)));
    Ok(said
        .map(|(answer, asked)| Support {
            backend: answer.backend,
            asked: asked.verdicts.len(),
            refused: refused(asked),
            soc: answer.target.as_ref().map(|target| target.label.clone()),
        })
        .collect())
}

/// Names of the ops that were refused.
fn refused(asked: &Asked) -> Vec<String> {
    let no = asked.verdicts.iter().filter(|verdict| verdict.code != 0);
    no.filter_map(|verdict| Some(asked.graphs.get(verdict.graph)?.ops.get(verdict.op)?.name.clone())).collect()
}

fn soc(text: &str) -> Result<&'static str, String> {
    if let Ok(number) = text.parse::<u32>() {
        let found: Vec<&Soc> = socs_by_model(number).collect();
        return match found.as_slice() {
            [soc] => Ok(soc.part),
            [] => Err(format!("no SoC with the number {number} is known")),
            many => {
                let names: Vec<&str> = many.iter().map(|soc| soc.part).collect();
                Err(format!("several SoCs have the number {number}: {}; give one by name", names.join(", ")))
            }
        };
    }
    soc_by_part(text).map(|soc| soc.part).ok_or_else(|| "unknown SoC; expected a name such as SM8650".to_owned())
}

//! `qnnscope compare`.

use super::headless::{print, print_json};
use super::modes::percent;
use super::wishes::{RECOMMENDATION, Wishes};
use super::{CliError, OK, setup};
use crate::analysis::compare::{LayerSort, pool_rounds, pool_same};
use crate::analysis::recommend::Constraints;
use crate::history;
use crate::report::comparison::{
    CompareDocument, ComparisonOptions, ComparisonReport, Named, comparison_text, load, with_history,
};
use std::path::PathBuf;

/// Default number of layers in the text.
const LAYERS: usize = 15;

/// Arguments of `qnnscope compare`.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// Session and result files, files of other tools (docs/imports.md), @ID or @last of the history; FILE#2 or FILE#htp picks runs of
    /// one; otherwise all are compared
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Number of the run to compare against [default: the first with latencies]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    baseline: Option<u16>,
    /// Number of the run whose saved outputs are the reference [default: the baseline]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    reference: Option<u16>,
    /// Order of the layers: difference, winners, losers, time, order or name
    #[arg(long, value_name = "BY", default_value = "difference", value_parser = sort)]
    sort: LayerSort,
    /// Layers to list [default: 15, and all with --json]
    #[arg(long, value_name = "N")]
    layers: Option<usize>,
    /// Count runs of the same thing (model, backend, device, build, settings, inputs) as launches of one run
    #[arg(long)]
    pool: bool,
    /// Count the history's runs of the same thing (model, backend, device, build, settings, inputs) as launches, too
    #[arg(long)]
    history: bool,
    #[command(flatten)]
    wishes: Wishes,
    /// Percentile that must meet the budget [default: the highest up to p99 that the samples support]
    #[arg(
        long,
        value_name = "P",
        value_parser = percent,
        requires = "latency_budget_ms",
        help_heading = RECOMMENDATION
    )]
    latency_percentile: Option<f64>,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Compares the runs in files.
pub fn compare(args: &CompareArgs) -> Result<u8, CliError> {
    let files: Vec<PathBuf> = args.files.iter().map(|file| history::resolve(file)).collect::<Result<_, _>>()?;
    let files: Vec<Named> = files.iter().map(|file| Named::new(file)).collect::<Result<_, _>>()?;
    let mut sides = Vec::new();
    for file in &files {
        sides.extend(load(file)?);
    }
    sides = pool_rounds(&sides);
    if args.pool {
        sides = pool_same(&sides);
    }
    if args.history {
        sides = with_history(sides, &files, &setup::history()?)?;
    }
    if sides.len() < 2 {
        return Err(CliError::Usage(
            "a comparison needs two runs: name another file, or one with several runs (rounds of --interleave, and with --pool \
             all runs of the same thing, count as launches of one run)"
                .to_owned(),
        ));
    }
    let column = |flag: &str, number: Option<u16>| match number.map(usize::from) {
        Some(number) if number > sides.len() => {
            Err(CliError::Usage(format!("{flag} {number}: there are {} runs", sides.len())))
        }
        number => Ok(number.map(|number| number - 1)),
    };
    let asked = ComparisonOptions {
        baseline: column("--baseline", args.baseline)?,
        reference: column("--reference", args.reference)?,
        sort: args.sort,
        layers: args.layers.or((!args.json).then_some(LAYERS)),
        constraints: Constraints { latency_percent: args.latency_percentile, ..args.wishes.constraints() },
    };
    let report = ComparisonReport::new(sides, &asked);
    if args.json {
        print_json(&CompareDocument::new(&report))?;
    } else {
        print(&comparison_text(&report))?;
    }
    Ok(OK)
}

fn sort(text: &str) -> Result<LayerSort, String> {
    match text {
        "difference" => Ok(LayerSort::Difference),
        "winners" => Ok(LayerSort::Winners),
        "losers" => Ok(LayerSort::Losers),
        "time" => Ok(LayerSort::Time),
        "order" => Ok(LayerSort::Order),
        "name" => Ok(LayerSort::Name),
        _ => Err("known orders are difference, winners, losers, time, order, name".to_owned()),
    }
}

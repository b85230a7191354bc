//! `qnnscope bench-check`.

use super::headless::{Measured, measure, print, print_json};
use super::options::{OutputOptions, RunOptions, backend, seconds};
use super::{CliError, FAILED, Global, INTERRUPTED, OK, demo, headless, say, setup, start, target};
use crate::backends::{Backend, ProfilingLevel};
use crate::event::LOCAL_DEVICE;
use crate::models::identify;
use crate::report::{BenchCheckDocument, FEWEST_LAUNCHES, bench_check_text};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum number of launches: by then their variation is known well enough.
const LAUNCHES: u32 = 40;

/// Arguments of `qnnscope bench-check`.
#[derive(Debug, Clone, clap::Args)]
pub struct BenchCheckArgs {
    /// DLC, model library (.so) or context binary [default: the bundled model]
    #[arg(value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Backend
    #[arg(short, long, default_value = "cpu", value_parser = backend)]
    backend: Backend,
    /// Inferences per launch; the default is that of `qnnscope run`
    #[arg(short = 'n', long, value_name = "N", default_value_t = 34, value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    iterations: u64,
    /// Time limit (30s, 5m)
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = seconds)]
    time: f64,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
    /// Write the session to this file as it happens
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Do not keep the session in the history
    #[arg(long)]
    no_history: bool,
    /// Overwrite a file that qnnscope did not write; never one the command reads
    #[arg(long)]
    force: bool,
}

/// Measures the same model launch after launch, and reports which differences can be resolved.
pub fn bench_check(args: &BenchCheckArgs, global: &Global) -> Result<u8, CliError> {
    let device = target::named(global);
    target::refuse_runner_here(&device, global)?;
    let model = match &args.model {
        Some(model) => model.clone(),
        None => demo::unpack()?,
    };
    if device == LOCAL_DEVICE {
        identify(&model)?;
    }
    let output = OutputOptions {
        record: args.record.clone(),
        no_history: args.no_history,
        force: args.force,
        ..OutputOptions::default()
    };
    let mut options = RunOptions {
        beside: output.beside(),
        backend: vec![args.backend],
        iterations: Some(args.iterations * u64::from(LAUNCHES)),
        profiling: ProfilingLevel::Off,
        ..start::default_options()?
    };
    options.modes.launches = Some(LAUNCHES);
    let site = setup::block_on(target::site(&device, &options, global))??;
    let requests = options.requests(std::slice::from_ref(&model), &site, global)?;
    let limit = Duration::from_secs_f64(args.time);
    let measured = setup::block_on(measure(&requests, options.limits(), &output, Some(limit)))??;
    let Measured { store, interrupted, record_error } = measured;
    let status = headless::exit_status(&store);
    if status != OK {
        return Ok(status);
    }
    match BenchCheckDocument::new(&store) {
        Some(document) if args.json => print_json(&document)?,
        Some(document) => print(&bench_check_text(&document))?,
        None if interrupted => {}
        None => {
            say(&format!(
                "error: fewer than {FEWEST_LAUNCHES} launches ended in {} s: this model takes long to load or to run\n  next: give \
                 it more time with --time, or fewer inferences with -n",
                args.time
            ));
            return Ok(FAILED);
        }
    }
    if let Some(error) = record_error {
        say(CliError::from(error).render().trim_end());
        return Ok(FAILED);
    }
    Ok(if interrupted { INTERRUPTED } else { OK })
}

//! `qnnscope ranges`.

use super::compute::{ComputeOptions, DataOptions, HardwareOptions, bar, device, model_on, runtime_here, show};
use super::encodings::put;
use super::headless::{print, print_json};
use super::patience::Patience;
use super::{CliError, Global, OK, say, target};
use crate::accuracy::{Progress, Side};
use crate::backends::Backend;
use crate::encodings::{WriteFormat, read, write};
use crate::event::LOCAL_DEVICE;
use crate::files::{Guard, Kind};
use crate::ranges::{Collection, Method, RangesDocument, collect, encodings_of, ranges_text, weights};
use std::path::PathBuf;

/// Arguments of `qnnscope ranges`.
#[derive(Debug, clap::Args)]
pub struct RangesArgs {
    /// DLC or model library, usually the float one; MODEL@BACKEND says where it is computed [default: cpu]
    #[arg(value_name = "MODEL")]
    model: String,
    #[command(flatten)]
    data: DataOptions,
    #[command(flatten)]
    hardware: HardwareOptions,
    /// How to choose encodings: min-max, percentile, mse, entropy
    #[arg(long, value_name = "METHOD", default_value = "min-max", value_parser = |text: &str| text.parse::<Method>())]
    method: Method,
    /// Percentage of values that must fit, for --method percentile
    #[arg(long, value_name = "PERCENT", default_value_t = 99.99, value_parser = percent)]
    percentile: f64,
    /// Bits of the encodings
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(4..=16))]
    bits: u32,
    /// Bits of the weight encodings: symmetric, one scale per output channel of convolutions
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(4..=16))]
    weight_bits: u32,
    /// Write the encodings of activations and weights to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of --output: overrides, aimet-0.6.1, aimet-1.0.0, aimet-2.0.0
    #[arg(long, value_name = "FORMAT", default_value = "overrides", value_parser = |text: &str| text.parse::<WriteFormat>())]
    to: WriteFormat,
    /// Encodings to check: what each loses on this data, and what 16 bits would
    #[arg(long, value_name = "FILE")]
    validate: Option<PathBuf>,
    /// Keep the collected ranges in this file and continue from it next time
    #[arg(long, value_name = "FILE", conflicts_with = "validate")]
    state: Option<PathBuf>,
    /// Overwrite files that qnnscope did not write; never those the command reads
    #[arg(long)]
    force: bool,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    compute: ComputeOptions,
}

fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.trim_end_matches('%').parse().map_err(|_| format!("`{text}` is not a percentage"))?;
    if value > 50.0 && value <= 100.0 { Ok(value) } else { Err(format!("`{text}` is not between 50 and 100")) }
}

/// Computes the model on the data and prints the ranges of its tensors.
pub fn ranges(args: &RangesArgs, global: &Global) -> Result<u8, CliError> {
    let (model, named) = model_on(&args.model);
    let there = device(global).filter(|name| name != LOCAL_DEVICE);
    target::refuse_runner_here(there.as_deref().unwrap_or(LOCAL_DEVICE), global)?;
    let runtime_dir = match there {
        // The model is for the device and is examined there.
        Some(_) => PathBuf::new(),
        None => {
            crate::models::identify(&model)?;
            runtime_here(None, global)?.path
        }
    };
    let given = args.validate.as_deref().map(read).transpose()?;
    let mut guard = Guard::new(args.force);
    guard.reads("the model", &model);
    args.data.guard(&mut guard);
    if let Some(path) = &args.validate {
        guard.reads("the encodings", path);
    }
    if let Some(path) = &args.state {
        guard.claim("--state", path, Kind::RangesState)?;
    }
    if let Some(path) = &args.output {
        // Checked before the work, not after it.
        guard.claim("--output", path, Kind::Encodings)?;
    }
    let backend = named.unwrap_or(Backend::Cpu);
    let settings = args.hardware.settings(backend, &[])?;
    let bar = bar();
    let tell = |progress: &Progress| show(bar.as_ref(), progress);
    let waited_for = || if bar.is_none() { "the model".to_owned() } else { String::new() };
    let found = Patience::of(args.compute.timeout).wait(waited_for, async {
        let collection = Collection {
            side: Side {
                model: model.clone(),
                backend,
                runtime_dir,
                place: args.compute.place(there.as_deref(), global).await?,
                sha256: None,
                graph: args.compute.graph.clone(),
                onnx: None,
                settings,
                allow_unknown_runtime: global.allow_unknown_runtime,
                limits: args.compute.limits(),
            },
            inputs: args.data.inputs(),
            tensor_bytes: args.compute.tensor_bytes(),
            given: given.as_ref(),
            state: args.state.as_deref(),
        };
        let found = collect(&collection, &tell).await?;
        if args.output.is_none() && !args.json {
            return Ok((found, Vec::new()));
        }
        tell(&Progress { step: "reading the weights".to_owned(), done: 0, of: 0 });
        let weights = weights(&collection.side).await?;
        Ok::<_, CliError>((found, weights))
    });
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let (found, weights) = found?;
    let share = args.percentile / 100.0;
    if let Some(path) = &args.output {
        let (text, left_out) =
            write(&encodings_of(&found, args.method, args.bits, share, (&weights, args.weight_bits)), args.to);
        let reads: Vec<&std::path::Path> = std::iter::once(model.as_path()).chain(args.validate.as_deref()).collect();
        put(&text, Some(path), args.force, &reads)?;
        if !left_out.is_empty() {
            say(&format!("note: left out, without usable numbers: {}", left_out.join(", ")));
        }
    }
    if args.json {
        print_json(&RangesDocument::new(&found, args.bits, share, (&weights, args.weight_bits)))?;
    } else {
        print(&ranges_text(&found, args.method, args.bits, share))?;
    }
    Ok(OK)
}

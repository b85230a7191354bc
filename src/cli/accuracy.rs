//! `qnnscope accuracy`.

use super::accuracy_sides::{SideRequest, asked};
use super::compute::{ComputeOptions, DataOptions, DimensionOptions, HardwareOptions, bar, show};
use super::diagnose::text_width;
use super::headless::{print, print_json};
use super::patience::Patience;
use super::{CliError, FAILED, Global, OK, open, options};
use crate::accuracy::{AccuracyDocument, Comparison, DOCUMENT, Inputs, Progress, accuracy_text, compare};
use crate::backends::Backend;
use crate::files::{Guard, Kind, make_output_folder, write_whole};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Arguments of `qnnscope accuracy`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct AccuracyArgs {
    /// Reference, such as the float model; MODEL@BACKEND picks the backend that computes it [default: cpu]. Also a run
    /// (session, result, @last), an earlier comparison, or a folder of tensors
    #[arg(value_name = "REFERENCE")]
    pub(super) reference: String,
    /// Model under test, such as the quantised one; MODEL@BACKEND picks the backend that computes it [default: htp]. Also a
    /// run, an earlier comparison, or a folder of tensors
    #[arg(value_name = "TEST")]
    pub(super) test: String,
    /// Backend of the reference, instead of REFERENCE@BACKEND
    #[arg(long, value_name = "BACKEND", value_parser = options::backend)]
    pub(super) reference_backend: Option<Backend>,
    /// Backend of the test, instead of TEST@BACKEND
    #[arg(long, value_name = "BACKEND", value_parser = options::backend)]
    pub(super) test_backend: Option<Backend>,
    /// Folder with the reference's QNN libraries, if they differ from the test's
    #[arg(long, value_name = "DIR")]
    pub(super) reference_runtime: Option<PathBuf>,
    /// Device that computes the reference; --device computes the test [default: local]
    #[arg(long, value_name = "SERIAL", conflicts_with_all = ["reference_runtime", "reference_tensors"])]
    pub(super) reference_device: Option<String>,
    /// Folder with the reference's tensors of these inputs, computed elsewhere: Result_<i>/NAME.raw, as qnn-net-run --debug leaves them
    #[arg(long, value_name = "DIR")]
    pub(super) reference_tensors: Option<PathBuf>,
    /// Folder with the test's tensors of these inputs, computed elsewhere, such as on a device
    #[arg(long, value_name = "DIR")]
    pub(super) test_tensors: Option<PathBuf>,
    #[command(flatten)]
    data: DataOptions,
    #[command(flatten)]
    pub(super) dimensions: DimensionOptions,
    #[command(flatten)]
    pub(super) hardware: HardwareOptions,
    /// SQNR in dB below which a layer counts as diverging
    #[arg(long, value_name = "DB", default_value_t = 20.0, value_parser = options::decibels)]
    min_sqnr_db: f64,
    /// Find the first diverging layer by bisection, instead of reading all layers
    #[arg(long)]
    bisect: bool,
    /// Keep both sides' tensors in this folder (.npy in the test's layout) with inputs and document, for later comparisons
    #[arg(long, value_name = "DIR")]
    save_tensors: Option<PathBuf>,
    /// Let --save-tensors overwrite files that qnnscope did not write; never those the command reads
    #[arg(long, requires = "save_tensors")]
    force: bool,
    /// List every layer, and how each pair of tensors was found
    #[arg(long)]
    all: bool,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
    /// Show the layers in the live view instead of printing them
    #[arg(long, conflicts_with = "json")]
    view: bool,
    #[command(flatten)]
    pub(super) compute: ComputeOptions,
}

/// Compares the two models layer by layer; 1 if a layer diverges.
pub fn accuracy(args: &AccuracyArgs, global: &Global) -> Result<u8, CliError> {
    if args.view && !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        let text = "--view needs a terminal; without it the layers are printed, and --json makes a document for `qnnscope open`";
        return Err(CliError::Usage(text.to_owned()));
    }
    let sides = asked(args, global)?;
    let inputs = inputs(args, &sides)?;
    if let Some(folder) = &args.save_tensors {
        claim(args, &sides, folder)?;
    }
    let [reference, test] = sides;
    let bar = bar();
    let tell = |progress: &Progress| show(bar.as_ref(), progress);
    let waited_for = || if bar.is_none() { "the two models".to_owned() } else { String::new() };
    let outcome = Patience::of(args.compute.timeout).wait(waited_for, async {
        let comparison = Comparison {
            reference: reference.side(args, global).await?,
            test: test.side(args, global).await?,
            inputs,
            min_sqnr_db: args.min_sqnr_db,
            bisect: args.bisect,
            tensor_bytes: args.compute.tensor_bytes(),
            save_tensors: args.save_tensors.clone(),
        };
        Ok::<_, CliError>(compare(&comparison, &tell).await?)
    });
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let outcome = outcome?;
    let document = AccuracyDocument::new(&outcome);
    if let Some(folder) = &args.save_tensors {
        let path = folder.join(DOCUMENT);
        let written = serde_json::to_vec(&document).map_err(std::io::Error::other);
        written
            .and_then(|bytes| write_whole(&path, &bytes))
            .map_err(|source| CliError::Io { action: format!("write {}", path.display()), source })?;
    }
    if args.view {
        open::view_accuracy(document, global)?;
    } else if args.json {
        print_json(&document)?;
    } else {
        print(&accuracy_text(&outcome, text_width(), args.all))?;
    }
    Ok(if outcome.first.is_some() { FAILED } else { OK })
}

/// The data named by the user, else that of a record.
fn inputs(args: &AccuracyArgs, sides: &[SideRequest; 2]) -> Result<Inputs, CliError> {
    let own = sides.iter().find(|side| side.has_own_data());
    if let (Some(flag), Some(_)) = (args.data.given(), own) {
        let text = format!("{flag} cannot be given: kept tensors belong to the inputs kept with them");
        return Err(CliError::Usage(text));
    }
    let recorded = own.into_iter().chain(sides).find_map(|side| side.record.as_ref()?.inputs.clone());
    Ok(match (args.data.given(), recorded) {
        (None, Some(recorded)) => recorded,
        _ => args.data.inputs(),
    })
}

/// Creates the folder for tensors, if it contains neither input files nor foreign ones.
fn claim(args: &AccuracyArgs, sides: &[SideRequest; 2], folder: &Path) -> Result<(), CliError> {
    let mut guard = Guard::new(args.force);
    for side in sides {
        side.guard(&mut guard);
    }
    args.data.guard(&mut guard);
    guard.check_folder("--save-tensors", folder)?;
    // The document represents all of it: tensors being read must not be replaced.
    let document = folder.join(DOCUMENT);
    if document.exists() {
        guard.claim("--save-tensors", &document, Kind::Accuracy)?;
    }
    make_output_folder(folder).map_err(|source| CliError::Io { action: format!("make {}", folder.display()), source })
}

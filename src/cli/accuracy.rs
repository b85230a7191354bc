//! `qnnscope accuracy`.

use super::accuracy_args::AccuracyArgs;
use super::accuracy_sides::{SideRequest, asked};
use super::compute::{bar, show};
use super::headless::{print, print_json};
use super::patience::Patience;
use super::width::text_width;
use super::{CliError, FAILED, Global, OK, open};
use crate::accuracy::{AccuracyDocument, Comparison, DOCUMENT, Inputs, Progress, accuracy_text, compare};
use crate::files::{Guard, Kind, make_output_folder, write_whole};
use std::io::IsTerminal;
use std::path::Path;

/// Compares the two models layer by layer; returns 1 if a layer diverges.
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

/// The user's data, or else that of a record.
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

/// Creates the folder for tensors, unless it contains input files or files of other programs.
fn claim(args: &AccuracyArgs, sides: &[SideRequest; 2], folder: &Path) -> Result<(), CliError> {
    let mut guard = Guard::new(args.force);
    for side in sides {
        side.guard(&mut guard);
    }
    args.data.guard(&mut guard);
    guard.check_folder("--save-tensors", folder)?;
    // The document stands for the whole folder: tensors that are being read must not be replaced.
    let document = folder.join(DOCUMENT);
    if document.exists() {
        guard.claim("--save-tensors", &document, Kind::Accuracy)?;
    }
    make_output_folder(folder).map_err(|source| CliError::Io { action: format!("make {}", folder.display()), source })
}

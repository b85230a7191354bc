//! `qnnscope diagnose`.

use super::headless::{print, print_json};
use super::patience::Patience;
use super::width::text_width;
use super::{CliError, Global, OK, bundle, target, watch};
use crate::checks::{About, confirm};
use crate::diagnosis::{Diagnoser, Diagnosis, DiagnosisDocument, Platform, diagnosis_text, load_user_causes};
use crate::event::{CheckResult, DeviceKind, clean_text};
use crate::files::open_input;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes per read.
const CHUNK: usize = 256 * 1024;
/// Maximum number of files examined in an output folder.
const MOST_OUTPUTS: usize = 100_000;
/// Maximum folder depth examined.
const MOST_LEVELS: usize = 4;

/// Arguments of `qnnscope diagnose`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct DiagnoseArgs {
    /// The log, or - for standard input; with --watch also logcat for the log of the device
    #[arg(value_name = "FILE")]
    log: PathBuf,
    /// Exit status of the program that wrote the log (128 and the signal for a signal)
    #[arg(long, value_name = "STATUS", allow_negative_numbers = true)]
    exit_code: Option<i32>,
    /// Folder with the results of the program that wrote the log; empty files count as evidence
    #[arg(long, value_name = "DIR")]
    outputs: Option<PathBuf>,
    /// System to advise for: android, linux, windows, pc [default: taken from the log]
    #[arg(long, value_name = "SYSTEM", value_parser = str::parse::<Platform>)]
    platform: Option<Platform>,
    /// Look for the likely causes on the device that --device names, or on this machine; only reads
    #[arg(long)]
    check: bool,
    /// With --check: folder with the program's QNN libraries, there
    #[arg(long, value_name = "DIR", requires = "check")]
    files: Option<String>,
    /// With --check: the model that the program ran, a file of this machine
    #[arg(long, value_name = "FILE", requires = "check")]
    model: Option<PathBuf>,
    /// Diagnose lines as they arrive, until Ctrl-C
    #[arg(long, conflicts_with_all = ["check", "bundle", "explain"])]
    watch: bool,
    /// Write a shareable report (log, diagnosis, doctor, versions) without names, serials and secrets; shows it and asks first
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// With --bundle: write without asking
    #[arg(long, requires = "bundle")]
    yes: bool,
    /// With --bundle: overwrite a file that qnnscope did not write
    #[arg(long, requires = "bundle")]
    force: bool,
    /// Show what each line states and how each cause got its confidence
    #[arg(long)]
    explain: bool,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    patience: Patience,
}

/// Reads the log once and prints signs of known failures. Succeeds whether or not it finds any.
pub fn diagnose(args: &DiagnoseArgs, global: &Global) -> Result<u8, CliError> {
    load_user_causes()?;
    let mut diagnoser = Diagnoser::new();
    if args.explain {
        diagnoser.keep_trace();
    }
    if let Some(status) = args.exit_code {
        diagnoser.exit_status(status);
    }
    if let Some(outputs) = &args.outputs {
        diagnoser.empty_outputs(empty_files(outputs)?);
    }
    if args.watch {
        return watch::watch(&args.log, args.json, args.platform, diagnoser, global);
    }
    if args.bundle.is_some() && args.log.as_os_str() == "-" {
        return Err(CliError::Usage("--bundle needs the log as a file, not standard input".to_owned()));
    }
    if args.bundle.is_some() && args.log.exists() && !args.log.is_file() {
        let text = format!(
            "--bundle reads the log twice and {} is not a regular file: save it to a file first",
            args.log.display()
        );
        return Err(CliError::Usage(text));
    }
    let diagnosis = if args.log.as_os_str() == "-" {
        read(std::io::stdin().lock(), diagnoser)
    } else {
        open_input(&args.log).and_then(|file| read(file, diagnoser))
    };
    let mut diagnosis = diagnosis.map_err(|source| unreadable(&args.log, &source))?;
    if let Some(platform) = args.platform {
        diagnosis.set_platform(platform);
    }
    if args.check {
        let waited_for = || format!("the checks on {}", clean_text(&target::named(global)));
        let (results, system) = args.patience.wait(waited_for, checks(&diagnosis, args, global))?;
        diagnosis.take_checks(&results);
        // The checked device is known for certain; a log only hints at its system.
        if let (None, Some(system)) = (args.platform, system) {
            diagnosis.set_platform(system);
        }
    }
    if args.json {
        print_json(&DiagnosisDocument::new(&diagnosis))?;
    } else {
        print(&diagnosis_text(&diagnosis, text_width()))?;
    }
    if let Some(file) = &args.bundle {
        let wish = bundle::Wish { yes: args.yes, force: args.force };
        bundle::bundle(&diagnosis, &args.log, file, wish, args.patience, global)?;
    }
    Ok(OK)
}

/// Runs the checks that need no information about the run that wrote the log; also returns the device's system.
async fn checks(
    diagnosis: &Diagnosis,
    args: &DiagnoseArgs,
    global: &Global,
) -> Result<(Vec<CheckResult>, Option<Platform>), CliError> {
    if let Some(model) = &args.model {
        open_input(model).map_err(|source| unreadable(model, &source))?;
    }
    let device = target::find(&target::named(global), global).await?;
    let is_here = device.kind() == DeviceKind::Local;
    // On this machine the user gives the folder, possibly relative to the working directory.
    let absolute = |dir: &String| {
        let path = std::path::absolute(dir).unwrap_or_else(|_| dir.into());
        path.to_string_lossy().into_owned()
    };
    let folder = args.files.as_ref().map(|dir| if is_here { absolute(dir) } else { dir.clone() });
    let variable = |name: &str| std::env::var(name).ok().filter(|value| is_here && !value.is_empty());
    let searched = variable("LD_LIBRARY_PATH").unwrap_or_default();
    let searched = searched.split(':').filter(|folder| !folder.is_empty()).map(ToOwned::to_owned);
    let facts = if diagnosis.causes.is_empty() { None } else { device.describe().await.ok() };
    let system = facts.as_ref().and_then(|facts| Platform::of_device(&device.identity(facts)));
    let about = About {
        is_here,
        facts,
        library_folders: folder.iter().cloned().chain(searched).collect(),
        dsp_path: variable("ADSP_LIBRARY_PATH"),
        folder,
        model_path: args.model.as_ref().map(|path| path.to_string_lossy().into_owned()),
        ..About::default()
    };
    // A PC reads the logs of other machines, too.
    Ok((confirm(diagnosis, about, &device).await, system.filter(|system| *system != Platform::Pc)))
}

fn unreadable(path: &Path, source: &std::io::Error) -> CliError {
    CliError::Usage(format!("cannot read {}: {source}", path.display()))
}

fn read(mut log: impl Read, mut diagnoser: Diagnoser) -> std::io::Result<Diagnosis> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match log.read(&mut chunk) {
            Ok(0) => return Ok(diagnoser.finish()),
            Ok(count) => diagnoser.feed(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Number of files below `dir` with 0 bytes. Symbolic links are not followed.
fn empty_files(dir: &Path) -> Result<u32, CliError> {
    let mut folders = vec![(dir.to_owned(), 0)];
    let (mut seen, mut empty) = (0, 0);
    while let Some((folder, level)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|source| unreadable(&folder, &source))? {
            let entry = entry.map_err(|source| unreadable(&folder, &source))?;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && level < MOST_LEVELS {
                folders.push((entry.path(), level + 1));
            } else if kind.is_file() && entry.metadata().is_ok_and(|meta| meta.len() == 0) {
                empty += 1;
            }
            seen += 1;
            if seen >= MOST_OUTPUTS {
                return Ok(empty);
            }
        }
    }
    Ok(empty)
}

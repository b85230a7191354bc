//! `qnnscope runtime`: installs the QNN libraries and lists existing ones.

use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::headless::print_json;
use super::patience::Patience;
use super::setup::{check_descriptors, termination};
use super::{CliError, Global, onnx_install, runtime_list, runtime_verify};
use crate::backends::runtime::{
    self, Consent, DEFAULT_WHEEL_VERSION, Env, InstallProgress, InstallRequest, Installed, Package, Unpinned,
};

/// Arguments of `qnnscope runtime`.
#[derive(Debug, Args)]
pub struct RuntimeArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: RuntimeCommand,
}

/// What `qnnscope runtime` can do.
#[derive(Debug, Subcommand)]
pub enum RuntimeCommand {
    /// Download the QNN libraries with pip and keep them in the data folder
    Install(InstallArgs),
    /// List the runtimes of this machine, the one in use first
    List(ListArgs),
    /// Check installed files against the manifest: size and SHA-256 of each
    Verify(VerifyArgs),
}

/// Arguments of `qnnscope runtime install`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct InstallArgs {
    /// Version of the onnxruntime-qnn wheel
    #[arg(long, value_name = "V", default_value = DEFAULT_WHEEL_VERSION, conflicts_with = "wheel")]
    pub version: String,
    /// Install from this wheel instead of downloading one
    #[arg(long, value_name = "FILE")]
    pub wheel: Option<PathBuf>,
    /// Reinstall even if it is there
    #[arg(long)]
    pub force: bool,
    /// Install a wheel whose checksum qnnscope does not know: another version, another index, or your own
    #[arg(short, long)]
    pub yes: bool,
    /// Install ONNX Runtime, which runs ONNX models, and reinstall QNN's libraries if they lack its plug-in
    #[arg(long, conflicts_with = "version")]
    pub onnx: bool,
    /// Print the result as JSON on stdout
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `qnnscope runtime verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Print the result as JSON on stdout
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `qnnscope runtime list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print the list as JSON on stdout
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    patience: Patience,
}

/// Carries `qnnscope runtime` out.
pub fn runtime(args: &RuntimeArgs, global: &Global) -> Result<u8, CliError> {
    match &args.command {
        RuntimeCommand::Install(args) => {
            if args.onnx {
                onnx_install::install(args, Policy::Asking, global)?;
            } else {
                install(args, Policy::Asking)?;
            }
            Ok(super::OK)
        }
        RuntimeCommand::Verify(args) => runtime_verify::verify(args.json, global),
        RuntimeCommand::List(args) => runtime_list::list(args.json, args.patience, global),
    }
}

/// Which wheels an install may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Those with a checksum known to qnnscope.
    PinnedOnly,
    /// Others too, if `--yes` is given or the user agrees on the terminal.
    Asking,
}

/// Installs a runtime with progress on stderr, and reports its location and licence.
pub fn install(args: &InstallArgs, policy: Policy) -> Result<(), CliError> {
    let mut request = InstallRequest::new(Env::from_process());
    request.version.clone_from(&args.version);
    carry_out(request, args, policy)
}

/// Carries an install out.
pub(super) fn carry_out(mut request: InstallRequest, args: &InstallArgs, policy: Policy) -> Result<(), CliError> {
    request.wheel_file.clone_from(&args.wheel);
    request.force = args.force;
    let package = request.package;
    check_descriptors()?;
    stop_on_signal(Arc::clone(&request.cancel));

    let mut steps = Steps::new(io::stderr().is_terminal());
    let bar = steps.bar.clone();
    let mut ask = |unpinned: &Unpinned| bar.suspend(|| confirm(unpinned));
    let consent = match policy {
        Policy::PinnedOnly => Consent::PinnedOnly,
        Policy::Asking if args.yes => Consent::Given,
        Policy::Asking if io::stdin().is_terminal() && io::stderr().is_terminal() => Consent::Ask(&mut ask),
        Policy::Asking => Consent::Missing,
    };
    let installed = runtime::install(&request, consent, &mut |step| steps.show(&step));
    steps.finish();
    report(&installed?, package, args.json)
}

/// Asks on the terminal whether a wheel with an unknown checksum is to be installed.
fn confirm(unpinned: &Unpinned) -> bool {
    let text = format!("{}: {}.\nInstall it anyway? [y/N] ", unpinned.wheel, unpinned.reason);
    // A terminal that cannot be written to or read from counts as no.
    if io::stderr().write_all(text.as_bytes()).is_err() {
        return false;
    }
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Reports what was installed, as text or as JSON on stdout.
fn report(installed: &Installed, package: Package, json: bool) -> Result<(), CliError> {
    let mib = installed.bytes.div_ceil(1 << 20);
    let dir = installed.dir.display();
    let (what, whose) = match package {
        Package::Qnn => ("QNN runtime", "Qualcomm's licence applies to these libraries: "),
        Package::OnnxRuntime => ("ONNX Runtime", "Its authors' licence applies: "),
    };
    let verb = if installed.already_installed { "is already installed" } else { "installed" };
    let mut text = format!("{what} {} {verb} in {dir} ({} files, {mib} MiB)\n", installed.version, installed.files);
    if !installed.pinned {
        let _ = writeln!(text, "qnnscope does not know its checksum: you vouched for {}", installed.wheel);
    }
    if let Some(licence) = &installed.licence {
        text.push_str(whose);
        text.push_str(&licence.display().to_string());
        text.push('\n');
    }
    // The install is done; a closed terminal does not undo it.
    let _ = io::stderr().write_all(text.as_bytes());
    if json {
        print_json(installed)?;
    }
    Ok(())
}

/// Lets SIGINT, SIGTERM and SIGHUP stop the install, which then cleans up. If the signals cannot be handled they end
/// the process as usual, and the next install cleans up.
fn stop_on_signal(cancel: Arc<AtomicBool>) {
    thread::spawn(move || {
        let Ok(events) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        if events.block_on(termination()).is_ok() {
            cancel.store(true, Ordering::Relaxed);
        }
    });
}

/// Shows progress on stderr: one moving line on a terminal, else one line per step.
struct Steps {
    bar: ProgressBar,
    terminal: bool,
    /// The step that was last begun.
    step: String,
}

impl Steps {
    fn new(terminal: bool) -> Self {
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self { bar: ProgressBar::with_draw_target(None, target), terminal, step: String::new() }
    }

    fn show(&mut self, progress: &InstallProgress) {
        let (step, done, total) = match progress {
            InstallProgress::Waiting { lock } => {
                let folder = lock.parent().unwrap_or(lock).display();
                (format!("waiting for another install into {folder}"), 0, None)
            }
            InstallProgress::Asking { requirement } => (format!("asking pip for {requirement}"), 0, None),
            InstallProgress::Downloading { wheel: None, .. } => return,
            InstallProgress::Downloading { wheel: Some(wheel), done, total } => {
                // Name and version: the rest, for which Python and machine, would push the figures off the line.
                let short: Vec<&str> = wheel.splitn(3, '-').take(2).collect();
                (format!("downloading {}", short.join(" ")), *done, *total)
            }
            InstallProgress::Hashing { done, total } => ("checking the wheel".to_owned(), *done, Some(*total)),
            InstallProgress::Unpacking { done, total } => ("unpacking".to_owned(), *done, Some(*total)),
        };
        if step != self.step {
            self.begin(step, total);
        }
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.set_position(done);
    }

    fn begin(&mut self, step: String, total: Option<u64>) {
        if !self.terminal {
            // Progress is a courtesy: a closed stderr does not stop the install.
            let _ = writeln!(io::stderr(), "{step}");
        }
        let template = if total.is_some() { "{msg:!40} {bar:20} {bytes}/{total_bytes}" } else { "{spinner} {msg}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.set_message(step.clone());
        self.bar.enable_steady_tick(Duration::from_millis(120));
        self.step = step;
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

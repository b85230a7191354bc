//! `qnnscope runtime install`: QNN's libraries from a wheel, with progress on stderr.

use super::CliError;
use super::headless::print_json;
use super::setup::{check_descriptors, termination};
use crate::backends::runtime::{
    self, Consent, DEFAULT_WHEEL_VERSION, Env, InstallProgress, InstallRequest, Installed, Package, Unpinned,
};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

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

/// Which wheels an install may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Those whose checksum qnnscope knows.
    PinnedOnly,
    /// Others too, if `--yes` is given or the user agrees on the terminal.
    Asking,
}

/// Installs a runtime, shows progress on stderr, and reports its location and licence.
pub fn install(args: &InstallArgs, policy: Policy) -> Result<(), CliError> {
    let mut request = InstallRequest::new(Env::from_process());
    request.version.clone_from(&args.version);
    carry_out(request, args, policy)
}

/// Performs an install.
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

/// Asks on the terminal whether to install a wheel with an unknown checksum.
fn confirm(unpinned: &Unpinned) -> bool {
    let text = format!("{}: {}.\nInstall it anyway? [y/N] ", unpinned.wheel, unpinned.reason);
    // A terminal that cannot be written to or read from does not count as a yes.
    if io::stderr().write_all(text.as_bytes()).is_err() {
        return false;
    }
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Reports what was installed: as text for people, or as JSON on stdout for programs.
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
    // The install is complete; a closed terminal does not undo it.
    let _ = io::stderr().write_all(text.as_bytes());
    if json {
        print_json(installed)?;
    }
    Ok(())
}

/// Lets SIGINT, SIGTERM and SIGHUP stop the install, which then cleans up. If the signals cannot be watched,
/// they end the process as usual, and the next install cleans up.
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

/// Shows progress on stderr: one updating line on a terminal, otherwise one line per step.
struct Steps {
    bar: ProgressBar,
    terminal: bool,
    /// The latest step.
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
                // Name and version only: the Python and platform tags would push the figures off the line.
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

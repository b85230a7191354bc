//! The shell scripts that start a runner on a device and follow its printed output.

use crate::backends::on_device::environment::{library_paths, priority};
use crate::backends::on_device::names::PID_MARK;
use crate::devices::{Root, quote};

/// Name of the runner in the folder of a run.
pub const RUNNER: &str = "qnnscope-runner";
/// File for library output; frames need the stream for themselves, since it has no second channel.
pub const CONSOLE: &str = "console.txt";

/// How to start a runner.
#[derive(Debug, Clone)]
pub struct Start {
    /// Folder of the run on the device; holds the runner, the libraries and the model.
    pub folder: String,
    /// The way to root, for the priority.
    pub root: Root,
    /// Whether the system's own library folders are searched too.
    pub vendor_libraries: bool,
}

impl Start {
    /// Prints the runner's process id, then becomes the runner, with the stream as its input and output. When the
    /// stream breaks, its input ends, and with it the runner.
    pub fn script(&self) -> String {
        let inner = format!(
            "{priority}cd {folder} && exec 2>>{CONSOLE} && export {paths} || exit 125\necho {PID_MARK}$$\nexec ./{RUNNER} {subcommand}",
            priority = priority(self.root),
            folder = quote(&self.folder),
            paths = library_paths(&self.folder, self.vendor_libraries),
            subcommand = crate::RUNNER_SUBCOMMAND,
        );
        // Some shells report a killed child; only the runner may write to the stream.
        format!("exec 2>/dev/null\nsh -c {}", quote(&inner))
    }

    fn console(&self) -> String {
        quote(&format!("{}/{CONSOLE}", self.folder))
    }

    /// Outputs printed text as it arrives. It ends with the stream: a shell waiting for input ends `tail`, which itself
    /// would notice only at the next line it cannot write. A shell's child that has not become `tail` yet may lose any
    /// other signal.
    pub fn follow(&self) -> String {
        let console = self.console();
        let inner = format!(
            "trap '' HUP\n: >>{console}\ntail -c +1 -f {console} 2>/dev/null &\np=$!\nread -r x\nkill -KILL $p 2>/dev/null"
        );
        format!("sh -c {}", quote(&inner))
    }

    /// Outputs what is printed after the first `bytes`, at most `limit` bytes.
    pub fn rest(&self, bytes: u64, limit: u64) -> String {
        format!("tail -c +{} {} 2>/dev/null | head -c {limit}", bytes + 1, self.console())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runner_has_its_libraries_and_its_console() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(RUNNER);
        let program = "#!/bin/sh\necho \"$1 $$ $LD_LIBRARY_PATH\"; echo aside >&2; read -r line; echo \"got $line\"\n";
        std::fs::write(&path, program).unwrap();
        std::process::Command::new("chmod").arg("755").arg(&path).status().unwrap();
        let folder = folder.path().to_str().unwrap().to_owned();
        let start = Start { folder: folder.clone(), root: Root::None, vendor_libraries: false };
        let script = format!("printf 'a task\\n' | ({})", start.script());
        let output = std::process::Command::new("sh").arg("-c").arg(&script).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let pid = text.lines().next().unwrap().strip_prefix(PID_MARK).unwrap();
        assert_eq!(text.lines().nth(1).unwrap(), format!("__runner {pid} {folder}"), "the shell became the runner");
        assert_eq!(text.lines().nth(2).unwrap(), "got a task");
        assert_eq!(std::fs::read_to_string(format!("{folder}/{CONSOLE}")).unwrap(), "aside\n");
        let rest = std::process::Command::new("sh").arg("-c").arg(start.rest(2, 3)).output().unwrap();
        assert_eq!(rest.stdout, b"ide");
    }
}

//! The shell script of one round.

use crate::backends::Backend;
use crate::backends::on_device::TOOL;
use crate::backends::on_device::environment::{library_paths, priority};
use crate::backends::on_device::kit::DLC_LIBRARY;
use crate::backends::on_device::names::{INPUT_LIST, PID_MARK, model_name};
use crate::devices::{Root, quote};
use crate::event::LogLevel;
use crate::models::ModelFormat;

/// Names in the folder of a run.
pub const OUTPUT: &str = "out";
/// qnn-net-run's profiling detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Times of whole inferences.
    Basic,
    /// Times of every op.
    Detailed,
}

/// A round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round<'a> {
    /// Folder of the run on the device.
    pub folder: &'a str,
    /// Backend.
    pub backend: Backend,
    /// Format of the model, stored in the folder as [`model_name`].
    pub format: ModelFormat,
    /// Number of the round: each has its own output folder, so that logs of rounds never mix.
    pub number: u64,
    /// Inferences.
    pub inferences: u64,
    /// Profiling detail.
    pub level: Level,
    /// Number of inferences whose outputs are kept.
    pub keep_outputs: u64,
    /// True if there is a configuration file.
    pub configured: bool,
    /// Performance profile, for backends without a configuration file.
    pub perf_profile: Option<&'a str>,
    /// Detail of the tool's log.
    pub log_level: LogLevel,
    /// The way to root, for the priority.
    pub root: Root,
    /// Whether to search the system's own library folders too; some firmware breaks with them.
    pub vendor_libraries: bool,
}

impl Round<'_> {
    /// Folder of the round's outputs, in the folder of the run.
    pub fn output(&self) -> String {
        format!("{OUTPUT}-{}", self.number)
    }

    /// The profile log on the device.
    pub fn log_path(&self) -> String {
        format!("{}/{}/qnn-profiling-data_0.log", self.folder, self.output())
    }

    /// The script. It prints the tool's process id first, and ends the tool when it reads a line or its input closes:
    /// neither Ctrl-C, a killed qnnscope nor a pulled cable leaves the tool running.
    pub fn script(&self) -> String {
        let inner = format!(
            "{priority}cd {folder} && export {environment} || exit 126\nexec 3<&0\n{command} 3<&- &\np=$!\necho {PID_MARK}$p\n\
             (read -r x <&3; kill -TERM $p; sleep 1; kill -KILL $p) >/dev/null 2>&1 &\nw=$!\nexec 3<&-\nwait $p\ns=$?\n\
             kill $w 2>/dev/null\nexit $s",
            priority = priority(self.root),
            folder = quote(self.folder),
            environment = library_paths(self.folder, self.vendor_libraries),
            command = self.command()
        );
        format!("sh -c {}", quote(&inner))
    }

    fn command(&self) -> String {
        let model = model_name(self.format);
        let mut words: Vec<String> = vec![format!("./{TOOL}")];
        match self.format {
            ModelFormat::Dlc => words.extend([format!("--model {DLC_LIBRARY}"), format!("--dlc_path {model}")]),
            ModelFormat::ModelLibrary => words.push(format!("--model {model}")),
            ModelFormat::ContextBinary => words.push(format!("--retrieve_context {model}")),
            // Converted before this point: qnn-net-run does not read it.
            ModelFormat::Onnx => {}
        }
        words.push(format!("--backend {}", self.backend.library()));
        words.push(format!("--input_list {INPUT_LIST} --use_native_input_files"));
        words.push(format!("--output_dir {}", self.output()));
        words.push(format!("--num_inferences {} --keep_num_outputs {}", self.inferences, self.keep_outputs));
        let level = match self.level {
            Level::Basic => "basic",
            Level::Detailed => "detailed",
        };
        words.push(format!("--profiling_level {level}"));
        if self.configured {
            words.push(format!("--config_file {}", super::config::OUTER));
        } else if let Some(profile) = self.perf_profile {
            words.push(format!("--perf_profile {}", quote(profile)));
        }
        let log_level = match self.log_level {
            LogLevel::Error => "error",
            LogLevel::Warning => "warn",
            LogLevel::Info => "info",
            LogLevel::Verbose | LogLevel::Debug => "verbose",
        };
        words.push(format!("--log_level {log_level}"));
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round() -> Round<'static> {
        Round {
            folder: "/data/local/tmp/qnnscope/run-1",
            backend: Backend::Htp,
            format: ModelFormat::Dlc,
            number: 3,
            inferences: 100,
            level: Level::Detailed,
            keep_outputs: 0,
            configured: true,
            perf_profile: Some("burst"),
            log_level: LogLevel::Warning,
            root: Root::None,
            vendor_libraries: true,
        }
    }

    #[test]
    fn the_dsp_path_is_split_by_semicolons_and_reaches_the_tool_whole() {
        let script =
            round().script().replace("./qnn-net-run", "printenv ADSP_LIBRARY_PATH; : ").replace("cd ", "cd /; : ");
        let output = std::process::Command::new("sh").arg("-c").arg(&script).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let path = text.lines().find(|line| line.starts_with('/')).unwrap();
        let folders: Vec<&str> = path.split(';').collect();
        assert_eq!(folders[0], "/data/local/tmp/qnnscope/run-1");
        assert!(folders.contains(&"/vendor/dsp/cdsp") && folders.iter().all(|folder| !folder.contains(':')), "{path}");
    }

    #[test]
    fn each_format_has_its_option() {
        let with = |format| Round { format, ..round() }.command();
        assert!(with(ModelFormat::Dlc).contains("--model libQnnModelDlc.so --dlc_path model.dlc"));
        assert!(with(ModelFormat::ModelLibrary).contains("--model libmodel.so "));
        let context = with(ModelFormat::ContextBinary);
        assert!(context.contains("--retrieve_context model.bin") && !context.contains("--model"));
    }

    #[test]
    fn a_profile_goes_by_flag_only_without_a_configuration() {
        assert!(!round().command().contains("--perf_profile"));
        assert!(Round { configured: false, ..round() }.command().contains("--perf_profile burst"));
    }
}

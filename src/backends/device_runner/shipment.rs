//! What a run needs on the device and leaves there: the user's files under our names.

use super::DeviceRunnerError;
use super::script::RUNNER;
use super::translate::Names;
use crate::backends::on_device::kit::Kit;
use crate::backends::on_device::names::{INPUT_LIST, model_name};
use crate::backends::qnn::runner::RunTask;
use crate::event::clean_text;
use crate::files::read_text_at_most;
use crate::models::ModelFormat;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Names in the folder of a run.
pub const OUTPUTS: &str = "outputs";
/// The compiled context.
pub const CONTEXT: &str = "context.bin";
/// The profile log.
pub const PROFILE_LOG: &str = "profile.log";

/// Largest input list.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// The user's files and their names on the device.
#[derive(Debug)]
pub struct Shipment {
    /// Files to send, by their names there.
    pub files: Kit,
    model: &'static str,
    inputs: BTreeMap<PathBuf, String>,
    /// The input list with the names there; kept until sent.
    list: Option<NamedTempFile>,
}

impl Shipment {
    /// Collects what to send.
    ///
    /// # Errors
    /// A file that cannot be sent, or a place that cannot be written to: better to report this before the run
    /// than after it.
    pub fn new(task: &RunTask, runner: &Path, format: ModelFormat) -> Result<Self, DeviceRunnerError> {
        let model = model_name(format);
        let mut shipment = Self {
            files: Kit::from([(RUNNER.to_owned(), runner.to_owned()), (model.to_owned(), task.model.clone())]),
            model,
            inputs: BTreeMap::new(),
            list: None,
        };
        for input in &task.inputs {
            shipment.add_input(&input.path)?;
        }
        if let Some(path) = &task.input_list {
            shipment.add_list(path)?;
        }
        for path in [&task.save_context, &task.profile_log].into_iter().flatten() {
            check_place(path)?;
        }
        Ok(shipment)
    }

    fn add_input(&mut self, path: &Path) -> Result<String, DeviceRunnerError> {
        if let Some(name) = self.inputs.get(path) {
            return Ok(name.clone());
        }
        let refused = |reason: &str| {
            DeviceRunnerError::Input(format!("cannot read {}: {reason}", clean_text(&path.to_string_lossy())))
        };
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => return Err(refused("only files can be sent to a device")),
            Err(error) => return Err(refused(&error.to_string())),
        }
        let name = format!("in-{}.raw", self.inputs.len());
        self.inputs.insert(path.to_owned(), name.clone());
        self.files.insert(name.clone(), path.to_owned());
        Ok(name)
    }

    /// The list with the names on the device. Line numbers stay the same, since messages refer to them.
    fn add_list(&mut self, path: &Path) -> Result<(), DeviceRunnerError> {
        let text = read_text_at_most(path, MAX_LIST_BYTES).map_err(|error| {
            DeviceRunnerError::Input(format!("cannot read {}: {error}", clean_text(&path.to_string_lossy())))
        })?;
        let mut list = String::with_capacity(text.len());
        for line in text.lines() {
            if !line.trim_start().starts_with(['#', '%']) {
                for (index, cell) in line.split_whitespace().enumerate() {
                    let (tensor, file) = match cell.split_once(":=") {
                        Some((tensor, file)) => (format!("{tensor}:="), file),
                        None => (String::new(), cell),
                    };
                    let name = self.add_input(Path::new(file))?;
                    let space = if index == 0 { "" } else { " " };
                    // Relative to the run's folder, where the runner starts, so that the list is always the same.
                    let _ = write!(list, "{space}{tensor}./{name}");
                }
            }
            list.push('\n');
        }
        let io = |source| DeviceRunnerError::Io { action: "write a temporary file".to_owned(), source };
        let file = NamedTempFile::new().map_err(io)?;
        std::fs::write(file.path(), list).map_err(io)?;
        self.files.insert(INPUT_LIST.to_owned(), file.path().to_owned());
        self.list = Some(file);
        Ok(())
    }

    /// The task as the runner in `folder` gets it.
    pub fn task(&self, task: &RunTask, folder: &str) -> RunTask {
        let there = |name: &str| PathBuf::from(format!("{folder}/{name}"));
        let mut sent = task.clone();
        sent.runtime_dir = PathBuf::from(folder);
        sent.model = there(self.model);
        for input in &mut sent.inputs {
            if let Some(name) = self.inputs.get(&input.path) {
                input.path = there(name);
            }
        }
        sent.input_list = task.input_list.as_ref().map(|_| there(INPUT_LIST));
        sent.save_outputs = task.save_outputs.as_ref().map(|_| there(OUTPUTS));
        sent.save_context = task.save_context.as_ref().map(|_| there(CONTEXT));
        sent.profile_log = task.profile_log.as_ref().map(|_| there(PROFILE_LOG));
        // These are files of this machine.
        sent.protected.clear();
        sent
    }

    /// Maps the names there to the user's names.
    pub fn names(&self, task: &RunTask, folder: &str) -> Names {
        let mut names = Names::default();
        names.add(format!("{folder}/{}", self.model), &task.model);
        for (path, name) in &self.inputs {
            names.add(format!("{folder}/{name}"), path);
            names.add(format!("./{name}"), path);
        }
        if let Some(path) = &task.input_list {
            names.add(format!("{folder}/{INPUT_LIST}"), path);
        }
        if let Some(path) = &task.profile_log {
            names.add_result(format!("{folder}/{PROFILE_LOG}"), path);
        }
        names
    }
}

/// Checks that a file can be put there in the end.
fn check_place(path: &Path) -> Result<(), DeviceRunnerError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let refused = |reason: String| {
        let path = clean_text(&path.to_string_lossy());
        Err(DeviceRunnerError::Input(format!("cannot write {path}: {reason}")))
    };
    match std::fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() && !path.is_dir() => Ok(()),
        Ok(_) => refused("it is a folder, or its parent folder is missing".to_owned()),
        Err(error) => refused(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::qnn::runner::{InputFile, Pin};
    use crate::backends::{Backend, ProfilingLevel};
    use crate::event::{Budget, LogLevel};

    fn task(model: &Path) -> RunTask {
        RunTask {
            runtime_dir: PathBuf::new(),
            backend: Backend::Cpu,
            model: model.to_owned(),
            graph: None,
            inputs: Vec::new(),
            input_list: None,
            native_input: false,
            seed: 1,
            save_outputs: None,
            save_context: None,
            staged_context: None,
            profile_log: None,
            straight: None,
            warmup: 0,
            budget: Budget::Iterations(1),
            rate_hz: None,
            profiling: ProfilingLevel::Off,
            profiling_budget: Budget::Iterations(1),
            settings: Vec::new(),
            log_level: LogLevel::Error,
            allow_unknown_runtime: false,
            slow_load: None,
            pin: Pin::Unset,
            onnx: None,
            overwrite: false,
            protected: Vec::new(),
        }
    }

    #[test]
    fn a_list_keeps_its_lines_and_each_file_is_sent_once() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a $(x).raw"), folder.path().join("b.raw"));
        let b_text = b.to_str().unwrap();
        std::fs::write(&b, "b").unwrap();
        std::fs::write(&a, "a").unwrap();
        let list = folder.path().join("list");
        std::fs::write(&list, format!("# two inputs\n\nx:={b_text} y:={b_text}\n  {b_text}\n")).unwrap();
        let mut task = task(Path::new("/m.dlc"));
        task.inputs = vec![InputFile { name: "x".into(), path: a.clone() }];
        task.input_list = Some(list);
        let shipment = Shipment::new(&task, Path::new("/runner"), ModelFormat::Dlc).unwrap();
        let text = std::fs::read_to_string(&shipment.files[INPUT_LIST]).unwrap();
        assert_eq!(text, "\n\nx:=./in-1.raw y:=./in-1.raw\n./in-1.raw\n");
        let names: Vec<&str> = shipment.files.keys().map(String::as_str).collect();
        assert_eq!(names, ["in-0.raw", "in-1.raw", "inputs.txt", "model.dlc", RUNNER]);
        let sent = shipment.task(&task, "/d");
        assert_eq!(sent.inputs[0].path, Path::new("/d/in-0.raw"));
        assert_eq!((sent.model, sent.runtime_dir), (PathBuf::from("/d/model.dlc"), PathBuf::from("/d")));
    }

    #[test]
    fn what_cannot_be_read_or_written_is_told_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |task: &RunTask| match Shipment::new(task, Path::new("/r"), ModelFormat::Dlc) {
            Err(error) if error.is_bad_input() => error.to_string(),
            other => panic!("{other:?}"),
        };
        let mut absent = task(Path::new("/m"));
        absent.inputs = vec![InputFile { name: "x".into(), path: "/no/file".into() }];
        assert!(refused(&absent).starts_with("cannot read /no/file"));
        absent.inputs[0].path = "/dev/zero".into();
        assert!(refused(&absent).contains("only files"));
        for place in [folder.path().join("none/file"), folder.path().to_owned()] {
            let nowhere = RunTask { save_context: Some(place), ..task(Path::new("/m")) };
            assert!(refused(&nowhere).starts_with("cannot write"));
        }
    }
}

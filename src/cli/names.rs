//! Names of files written by several runs.

use super::modes::Slot;
use std::path::{Path, PathBuf};

/// The runs of a command, which must not overwrite each other's files.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// The runs.
    pub slots: &'a [Slot],
    /// The models they run.
    pub models: &'a [PathBuf],
    /// A short name for the device, if there are several.
    pub place: Option<&'a str>,
}

impl Names<'_> {
    /// One folder per run if there are several: `cpu`, `htp`, `cpu-2`; with several models `old-cpu`,
    /// `new-cpu`.
    pub fn output_dir(&self, dir: &Path, index: usize) -> PathBuf {
        if self.is_alone() { dir.to_owned() } else { dir.join(self.run_name(index)) }
    }

    /// Likewise for a file: `out.log` becomes `out-cpu.log`, `out-htp.log`, `out-cpu-2.log`.
    pub fn log_file(&self, file: &Path, index: usize) -> PathBuf {
        if self.is_alone() { file.to_owned() } else { named_after(file, &self.run_name(index)) }
    }

    /// One context per model and backend if there are several: `out.bin` becomes `out-cpu.bin`,
    /// `out-htp.bin`.
    pub fn context_file(&self, file: &Path, index: usize) -> PathBuf {
        let slot = &self.slots[index];
        let is_one = self.place.is_none();
        if is_one && self.slots.iter().all(|other| (other.backend, other.model) == (slot.backend, slot.model)) {
            file.to_owned()
        } else {
            named_after(file, &self.side_name(slot))
        }
    }

    /// True if there is only one run.
    fn is_alone(&self) -> bool {
        self.slots.len() == 1 && self.place.is_none()
    }

    /// The device and the model, if there are several, and the backend.
    fn side_name(&self, slot: &Slot) -> String {
        let backend = match self.place {
            Some(place) => format!("{place}-{}", slot.backend),
            None => slot.backend.name().to_owned(),
        };
        if self.models.len() < 2 {
            return backend;
        }
        let stem = |model: usize| self.models[model].file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let own = stem(slot.model);
        // Equal names from different folders get a number.
        match (0..slot.model).filter(|earlier| stem(*earlier) == own).count() {
            0 => format!("{own}-{backend}"),
            earlier => format!("{own}.{}-{backend}", earlier + 1),
        }
    }

    /// The name of a run's side, numbered from its second run on.
    fn run_name(&self, index: usize) -> String {
        let side = self.side_name(&self.slots[index]);
        match self.slots[..index].iter().filter(|earlier| self.side_name(earlier) == side).count() {
            0 => side,
            earlier => format!("{side}-{}", earlier + 1),
        }
    }
}

fn named_after(file: &Path, word: &str) -> PathBuf {
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{word}"));
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    file.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::Backend;
    use crate::cli::modes::ModeOptions;

    #[test]
    fn no_run_writes_over_another_one() {
        let models = ["old/net.dlc", "new/net.dlc", "b.dlc"].map(PathBuf::from);
        let options = ModeOptions { interleave: Some(2), ..ModeOptions::default() };
        let slots = options.slots(&[Backend::Cpu, Backend::Htp], models.len());
        let names = Names { slots: &slots, models: &models, place: None };
        let mut logs: Vec<PathBuf> = (0..slots.len()).map(|at| names.log_file(Path::new("x.log"), at)).collect();
        assert_eq!(logs[..3], ["x-net-cpu.log", "x-net.2-cpu.log", "x-b-cpu.log"].map(PathBuf::from));
        assert_eq!(logs[6..8], ["x-net-cpu-2.log", "x-net.2-cpu-2.log"].map(PathBuf::from));
        logs.sort();
        logs.dedup();
        assert_eq!(logs.len(), 12);
        // Rounds of one side write the same context.
        assert_eq!(names.context_file(Path::new("c.bin"), 1), names.context_file(Path::new("c.bin"), 7));

        let one = ModeOptions::default().slots(&[Backend::Cpu], 1);
        let names = Names { slots: &one, models: &models[..1], place: None };
        assert_eq!(names.context_file(Path::new("c.bin"), 0), Path::new("c.bin"));
        assert_eq!(names.output_dir(Path::new("out"), 0), Path::new("out"));
        let names = Names { place: Some("phone"), ..names };
        assert_eq!(names.context_file(Path::new("c.bin"), 0), Path::new("c-phone-cpu.bin"));
        assert_eq!(names.log_file(Path::new("x.log"), 0), Path::new("x-phone-cpu.log"));
        assert_eq!(names.output_dir(Path::new("out"), 0), Path::new("out/phone-cpu"));
    }
}

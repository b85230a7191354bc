//! The parts of an examination.

use crate::event::{LOCAL_DEVICE, clean_text};
use serde::Serialize;

/// The state of a part. Only what blocks every intended run is a problem, so that the text and the exit
/// status agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be, or not needed.
    Ok,
    /// Something is missing, odd or broken; everything that does not need it works.
    Warning,
    /// It does not work, and nothing can run.
    Problem,
}

/// One part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Name, stable across versions and unique in its section.
    pub id: String,
    /// Id of its section.
    pub section: String,
    /// Its state.
    pub status: Status,
    /// What was examined.
    pub what: String,
    /// What was found.
    pub detail: String,
    /// What to do about it; `None` if nothing needs doing.
    pub fix: Option<String>,
}

impl Item {
    /// It is as it should be.
    pub fn ok(id: &str, what: &str, detail: impl AsRef<str>) -> Self {
        Self::new(id, Status::Ok, what, detail, None)
    }

    /// It is missing or odd.
    pub fn warning(id: &str, what: &str, detail: impl AsRef<str>, fix: impl AsRef<str>) -> Self {
        Self::new(id, Status::Warning, what, detail, Some(fix.as_ref()))
    }

    /// It does not work.
    pub fn problem(id: &str, what: &str, detail: impl AsRef<str>, fix: impl AsRef<str>) -> Self {
        Self::new(id, Status::Problem, what, detail, Some(fix.as_ref()))
    }

    fn new(id: &str, status: Status, what: &str, detail: impl AsRef<str>, fix: Option<&str>) -> Self {
        Self {
            id: clean_text(id),
            section: String::new(),
            status,
            what: clean_text(what),
            detail: clean_text(detail.as_ref()),
            fix: fix.map(clean_text).filter(|fix| !fix.is_empty()),
        }
    }
}

/// Parts that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its name: `sdk`, `environment`, `build`, `runtime`, `adb`, `device:SERIAL`.
    pub id: String,
    /// Human-readable title.
    pub title: String,
    /// The device it concerns.
    pub device: Option<String>,
    /// The parts.
    pub items: Vec<Item>,
}

impl Section {
    /// A section with its items.
    pub fn new(id: &str, title: &str, device: Option<&str>, mut items: Vec<Item>) -> Self {
        let id = clean_text(id);
        for item in &mut items {
            item.section.clone_from(&id);
        }
        Self { id, title: clean_text(title), device: device.map(clean_text), items }
    }
}

/// Everything that was examined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    /// The device that was requested; `None` for this machine and all attached devices.
    pub asked: Option<String>,
    /// The parts.
    pub sections: Vec<Section>,
    /// Backends that load on this machine.
    pub backends_here: Vec<&'static str>,
    /// Devices that are ready and have tools, or a runner and libraries for them.
    pub devices: Vec<String>,
}

impl Examination {
    /// Downgrades problems to warnings if something can run regardless.
    #[must_use]
    pub fn settled(mut self) -> Self {
        if self.can_run() {
            let items = self.sections.iter_mut().flat_map(|section| &mut section.items);
            for item in items.filter(|item| item.status == Status::Problem) {
                item.status = Status::Warning;
            }
        }
        self
    }

    /// Whether anything can run where requested: a backend on this machine, or a run on a device.
    pub fn can_run(&self) -> bool {
        match self.asked.as_deref() {
            Some(LOCAL_DEVICE) => !self.backends_here.is_empty(),
            Some(_) => !self.devices.is_empty(),
            None => !self.backends_here.is_empty() || !self.devices.is_empty(),
        }
    }
}

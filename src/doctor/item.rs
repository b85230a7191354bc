//! What the examination consists of.

use crate::event::{LOCAL_DEVICE, clean_text};
use serde::Serialize;

/// The state of a part. Only something that blocks every intended run is a problem, so that the text and the exit
/// status agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be, or not needed.
    Ok,
    /// Something is missing, odd or broken; whatever does not need it works.
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
    /// How it is.
    pub status: Status,
    /// What was looked at.
    pub what: String,
    /// What was seen.
    pub detail: String,
    /// What to do about it; `None` if nothing needs doing.
    pub fix: Option<String>,
}

impl Item {
    /// As it should be.
    pub fn ok(id: &str, what: &str, detail: impl AsRef<str>) -> Self {
        Self::new(id, Status::Ok, what, detail, None)
    }

    /// Missing or odd.
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
    /// Words for people.
    pub title: String,
    /// The device it is about.
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

/// Everything that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    /// The device that was requested; `None`: this machine and all that are attached.
    pub asked: Option<String>,
    /// The parts.
    pub sections: Vec<Section>,
    /// Backends that load on this machine.
    pub backends_here: Vec<&'static str>,
    /// Devices that are ready, with tools or a runner and libraries for them.
    pub devices: Vec<String>,
}

impl Examination {
    /// With what does not stand in the way, since something can run, as warnings.
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

    /// Whether anything can run where it was requested: a backend on this machine, or a run on a device.
    pub fn can_run(&self) -> bool {
        match self.asked.as_deref() {
            Some(LOCAL_DEVICE) => !self.backends_here.is_empty(),
            Some(_) => !self.devices.is_empty(),
            None => !self.backends_here.is_empty() || !self.devices.is_empty(),
        }
    }
}

//! The start screen's state: device, model and backends of the next run.

use super::{BackendAvailability, Request};
use crate::backends::Backend;
use crate::devices::DeviceState;
use crate::event::LOCAL_DEVICE;
use crate::store::Store;
use std::path::PathBuf;

/// A row that can be selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A device by id.
    Device(String),
    /// A model in the list.
    Model(usize),
    /// Opens the file picker.
    Browse,
    /// A backend in the list.
    Backend(usize),
    /// Starts the run.
    Run,
}

impl Item {
    /// Number of its section: device, model, backends, run.
    pub fn section(&self) -> usize {
        match self {
            Self::Device(_) => 0,
            Self::Model(_) | Self::Browse => 1,
            Self::Backend(_) => 2,
            Self::Run => 3,
        }
    }
}

/// The form.
#[derive(Debug, Clone)]
pub struct StartForm {
    /// Chosen device.
    pub device: String,
    /// Models to choose from, newest first; a file from the picker is prepended.
    pub models: Vec<PathBuf>,
    /// The chosen one.
    pub model: Option<usize>,
    /// Backends and whether they can be used.
    pub backends: Vec<BackendAvailability>,
    /// Which of them are selected.
    pub ticked: Vec<bool>,
    /// Selected item; stays the same when devices come and go and rows move.
    pub selected: Item,
}

impl StartForm {
    /// A form with recent models. Without a list of backends all are offered; a run reports what is missing.
    pub fn new(models: Vec<PathBuf>, backends: Vec<BackendAvailability>) -> Self {
        let backends = if backends.is_empty() {
            Backend::ALL.map(|backend| BackendAvailability { backend, available: Ok(()) }).to_vec()
        } else {
            backends
        };
        // The first usable one: most users want a single run.
        let first = backends.iter().position(|backend| backend.available.is_ok());
        let ticked = (0..backends.len()).map(|i| Some(i) == first).collect();
        let model = (!models.is_empty()).then_some(0);
        let selected = if model.is_some() { Item::Model(0) } else { Item::Browse };
        Self { device: LOCAL_DEVICE.to_owned(), models, model, backends, ticked, selected }
    }

    /// All rows in order.
    pub fn items(&self, store: &Store) -> Vec<Item> {
        let mut items: Vec<Item> = devices(store).into_iter().map(|device| Item::Device(device.id)).collect();
        items.extend((0..self.models.len()).map(Item::Model));
        items.push(Item::Browse);
        items.extend((0..self.backends.len()).map(Item::Backend));
        items.push(Item::Run);
        items
    }

    /// The selected item; if its device is gone, the first item of its section.
    pub fn item(&self, store: &Store) -> Item {
        let items = self.items(store);
        if items.contains(&self.selected) {
            return self.selected.clone();
        }
        let section = self.selected.section();
        items.into_iter().find(|item| item.section() == section).unwrap_or(Item::Run)
    }

    /// Moves the selection, stopping at the ends.
    pub fn step(&mut self, store: &Store, step: isize) {
        let items = self.items(store);
        let at = items.iter().position(|item| *item == self.item(store)).unwrap_or(0);
        let to = at.saturating_add_signed(step).min(items.len() - 1);
        self.selected = items[to].clone();
    }

    /// Moves the selection to the next or previous section, wrapping at the ends.
    pub fn step_section(&mut self, store: &Store, forward: bool) {
        let items = self.items(store);
        let section = (self.item(store).section() + if forward { 1 } else { 3 }) % 4;
        let chosen = |item: &Item| match item {
            Item::Device(id) => *id == self.device,
            Item::Model(i) => self.model == Some(*i),
            _ => false,
        };
        let inside = |item: &&Item| item.section() == section;
        let target = items.iter().filter(inside).find(|item| chosen(item)).or_else(|| items.iter().find(inside));
        self.selected = target.cloned().unwrap_or(Item::Run);
    }

    /// Prepends a model and chooses it; the selection moves to the backends.
    pub fn choose_model(&mut self, path: PathBuf) {
        self.models.retain(|known| *known != path);
        self.models.insert(0, path);
        self.model = Some(0);
        self.selected = Item::Backend(0);
    }

    /// Selects or deselects a backend.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn toggle(&mut self, index: usize) -> Result<(), String> {
        let elsewhere = self.device != LOCAL_DEVICE;
        let (Some(backend), Some(ticked)) = (self.backends.get(index), self.ticked.get_mut(index)) else {
            return Ok(());
        };
        // This machine's backends say nothing about another one's: a run there reports what is missing.
        if let (Err(reason), false) = (&backend.available, elsewhere) {
            return Err(format!("{} is not available: {reason}", backend.backend));
        }
        *ticked = !*ticked;
        Ok(())
    }

    /// Chooses a device. Backends it lacks are deselected.
    ///
    /// # Errors
    /// What to do about a device that cannot be used.
    pub fn choose_device(&mut self, store: &Store, id: String) -> Result<(), String> {
        if let Some(row) = devices(store).into_iter().find(|row| row.id == id)
            && let Some(problem) = row.problem
        {
            return Err(format!("{id} is {}: {problem}", row.about));
        }
        self.device = id;
        if self.device == LOCAL_DEVICE {
            for (backend, ticked) in self.backends.iter().zip(&mut self.ticked) {
                *ticked &= backend.available.is_ok();
            }
        }
        Ok(())
    }

    /// The request described by the form.
    ///
    /// # Errors
    /// What is still to be chosen.
    pub fn request(&self) -> Result<Request, &'static str> {
        let model = self.model.and_then(|i| self.models.get(i)).ok_or("choose a model first")?;
        let ticked = self.backends.iter().zip(&self.ticked).filter(|(_, ticked)| **ticked);
        let backends: Vec<Backend> = ticked.map(|(backend, _)| backend.backend).collect();
        if backends.is_empty() {
            return Err("tick a backend first");
        }
        Ok(Request::Start { device: self.device.clone(), model: model.clone(), backends })
    }
}

/// A device to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRow {
    /// `local`, or the adb serial.
    pub id: String,
    /// What is known about it, or its state if not ready.
    pub about: String,
    /// Advice for a state in which it cannot be used.
    pub problem: Option<String>,
}

/// Devices to choose from. This machine is offered before it has been examined; devices that are gone are not.
pub fn devices(store: &Store) -> Vec<DeviceRow> {
    let about = |id: &str| {
        let device = store.device(id)?;
        let parts = [device.model.as_deref(), device.soc.as_deref(), device.hexagon_arch.as_deref()];
        let mut words: Vec<&str> = parts.into_iter().flatten().collect();
        words.extend([device.abi.as_str(), device.os.as_str()].into_iter().filter(|word| !word.is_empty()));
        Some(crate::event::clean_text(&words.join(", ")))
    };
    let local = DeviceRow {
        id: LOCAL_DEVICE.to_owned(),
        about: about(LOCAL_DEVICE).unwrap_or_else(|| "this machine".to_owned()),
        problem: None,
    };
    let attached = store.device_states().iter().filter(|change| change.state != DeviceState::Gone).map(|change| {
        let known = about(&change.id).or_else(|| change.model.clone()).unwrap_or_default();
        let ready = change.state.is_ready();
        DeviceRow {
            id: change.id.clone(),
            about: if ready { known } else { change.state.to_string() },
            problem: change.state.advice().map(ToOwned::to_owned),
        }
    });
    // Devices of a recorded session are known without a state.
    let others =
        store.devices().iter().filter(|device| device.id != LOCAL_DEVICE && store.device_state(&device.id).is_none());
    let others = others.map(|device| DeviceRow {
        id: device.id.clone(),
        about: about(&device.id).unwrap_or_default(),
        problem: None,
    });
    std::iter::once(local).chain(attached).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> StartForm {
        let backends = vec![
            BackendAvailability { backend: Backend::Cpu, available: Ok(()) },
            BackendAvailability { backend: Backend::Gpu, available: Err("no Adreno driver".to_owned()) },
        ];
        StartForm::new(vec![PathBuf::from("a.dlc"), PathBuf::from("b.dlc")], backends)
    }

    #[test]
    fn a_form_with_a_recent_model_can_be_run_at_once() {
        let request = form().request().unwrap();
        let model = PathBuf::from("a.dlc");
        assert_eq!(request, Request::Start { device: LOCAL_DEVICE.to_owned(), model, backends: vec![Backend::Cpu] });
        assert_eq!(StartForm::new(Vec::new(), Vec::new()).request(), Err("choose a model first"));
    }

    #[test]
    fn an_unavailable_backend_says_why() {
        let mut form = form();
        assert_eq!(form.toggle(1), Err("gpu is not available: no Adreno driver".to_owned()));
        assert_eq!(form.toggle(0), Ok(()));
        assert_eq!(form.request(), Err("tick a backend first"));
    }

    #[test]
    fn sections_go_around_to_what_is_chosen() {
        let store = Store::new();
        let mut form = form();
        form.model = Some(1);
        assert_eq!(form.item(&store), Item::Model(0));
        for item in [Item::Backend(0), Item::Run, Item::Device(LOCAL_DEVICE.to_owned()), Item::Model(1)] {
            form.step_section(&store, true);
            assert_eq!(form.item(&store), item);
        }
        form.step(&store, -100);
        assert_eq!(form.item(&store), Item::Device(LOCAL_DEVICE.to_owned()));
        form.step(&store, 100);
        assert_eq!(form.item(&store), Item::Run);
    }

    #[test]
    fn a_picked_model_comes_first_and_once() {
        let mut form = form();
        form.choose_model(PathBuf::from("b.dlc"));
        assert_eq!(form.models, [PathBuf::from("b.dlc"), PathBuf::from("a.dlc")]);
        assert_eq!(form.model, Some(0));
    }
}

//! The start screen's state: device, model and backends of the next run.

use super::{BackendAvailability, Request};
use crate::backends::Backend;
use crate::store::Store;
use std::path::PathBuf;

/// The device that is always there.
pub const LOCAL: &str = "local";

/// A row that can be selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A device by id.
    Device(String),
    /// A model of the list.
    Model(usize),
    /// Opens the file picker.
    Browse,
    /// A backend of the list.
    Backend(usize),
    /// Starts the run.
    Run,
}

impl Item {
    /// Number of the section it is in: device, model, backends, run.
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
    /// Models to choose from, newest first; a file from the picker is put in front.
    pub models: Vec<PathBuf>,
    /// Chosen one of them.
    pub model: Option<usize>,
    /// Backends and whether they can be used.
    pub backends: Vec<BackendAvailability>,
    /// Which of them are ticked.
    pub ticked: Vec<bool>,
    /// Selected row of [`StartForm::items`].
    pub selected: usize,
}

impl StartForm {
    /// A form over recent models. Without a list of backends all are offered; a run tells what is missing.
    pub fn new(models: Vec<PathBuf>, backends: Vec<BackendAvailability>) -> Self {
        let backends = if backends.is_empty() {
            Backend::ALL.map(|backend| BackendAvailability { backend, available: Ok(()) }).to_vec()
        } else {
            backends
        };
        // The first that can be used: one run is what is wanted most.
        let first = backends.iter().position(|backend| backend.available.is_ok());
        let ticked = (0..backends.len()).map(|i| Some(i) == first).collect();
        let model = (!models.is_empty()).then_some(0);
        let mut form = Self { device: LOCAL.to_owned(), models, model, backends, ticked, selected: 0 };
        form.selected = form.row_of(&Store::new(), &if form.model.is_some() { Item::Model(0) } else { Item::Browse });
        form
    }

    /// All rows in order.
    pub fn items(&self, store: &Store) -> Vec<Item> {
        let mut items: Vec<Item> = devices(store).into_iter().map(|(id, _)| Item::Device(id)).collect();
        items.extend((0..self.models.len()).map(Item::Model));
        items.push(Item::Browse);
        items.extend((0..self.backends.len()).map(Item::Backend));
        items.push(Item::Run);
        items
    }

    fn row_of(&self, store: &Store, item: &Item) -> usize {
        self.items(store).iter().position(|known| known == item).unwrap_or(0)
    }

    /// The selected row.
    pub fn item(&self, store: &Store) -> Item {
        let items = self.items(store);
        items.get(self.selected.min(items.len() - 1)).cloned().unwrap_or(Item::Run)
    }

    /// Moves the selection, stopping at the ends.
    pub fn step(&mut self, store: &Store, step: isize) {
        let last = self.items(store).len() - 1;
        self.selected = self.selected.min(last).saturating_add_signed(step).min(last);
    }

    /// Moves the selection to the next or previous section, around the ends.
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
        self.selected = target.and_then(|target| items.iter().position(|item| item == target)).unwrap_or(0);
    }

    /// Puts a model in front and chooses it; the selection goes on to the backends.
    pub fn choose_model(&mut self, store: &Store, path: PathBuf) {
        self.models.retain(|known| *known != path);
        self.models.insert(0, path);
        self.model = Some(0);
        self.selected = self.row_of(store, &Item::Backend(0));
    }

    /// Ticks or unticks a backend.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn toggle(&mut self, index: usize) -> Result<(), String> {
        let (Some(backend), Some(ticked)) = (self.backends.get(index), self.ticked.get_mut(index)) else {
            return Ok(());
        };
        if let Err(reason) = &backend.available {
            return Err(format!("{} is not available: {reason}", backend.backend));
        }
        *ticked = !*ticked;
        Ok(())
    }

    /// The request that the form stands for.
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

/// Devices to choose from: id and what is known. This machine is offered before it was looked at.
pub fn devices(store: &Store) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = store
        .devices()
        .iter()
        .map(|device| {
            let parts = [device.model.as_deref(), device.soc.as_deref(), device.hexagon_arch.as_deref()];
            let mut words: Vec<&str> = parts.into_iter().flatten().collect();
            words.extend([device.abi.as_str(), device.os.as_str()].into_iter().filter(|word| !word.is_empty()));
            (device.id.clone(), crate::event::clean_text(&words.join(", ")))
        })
        .collect();
    if !rows.iter().any(|(id, _)| id == LOCAL) {
        rows.insert(0, (LOCAL.to_owned(), "this machine".to_owned()));
    }
    rows
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
        assert_eq!(request, Request::Start { device: "local".to_owned(), model, backends: vec![Backend::Cpu] });
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
        for item in [Item::Backend(0), Item::Run, Item::Device("local".to_owned()), Item::Model(1)] {
            form.step_section(&store, true);
            assert_eq!(form.item(&store), item);
        }
        form.step(&store, -100);
        assert_eq!(form.item(&store), Item::Device("local".to_owned()));
        form.step(&store, 100);
        assert_eq!(form.item(&store), Item::Run);
    }

    #[test]
    fn a_picked_model_comes_first_and_once() {
        let mut form = form();
        form.choose_model(&Store::new(), PathBuf::from("b.dlc"));
        assert_eq!(form.models, [PathBuf::from("b.dlc"), PathBuf::from("a.dlc")]);
        assert_eq!(form.model, Some(0));
    }
}

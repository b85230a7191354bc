//! The input of checks: the run's own facts and gathered ones.

use crate::backends::Backend;
use crate::event::{DeviceFacts, ModelInfo, PlacedFile, Setting, TensorData};
use crate::facts::{BuildId, DspLook, ElfFacts, Folder, Listing};
use crate::models::Tensor;
use crate::store::{Run, Store};
use std::collections::BTreeMap;

/// What is known without an inspection.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// True for this machine.
    pub is_here: bool,
    /// Folder of the libraries.
    pub folder: Option<String>,
    /// Folders in which the process searches for libraries, in order.
    pub library_folders: Vec<String>,
    /// `ADSP_LIBRARY_PATH` of the process, if known.
    pub dsp_path: Option<String>,
    /// Files that were sent.
    pub placed: Vec<PlacedFile>,
    /// The device.
    pub facts: Option<DeviceFacts>,
    /// Backend.
    pub backend: Option<Backend>,
    /// The model.
    pub model: Option<ModelInfo>,
    /// The model's path, if the file was not identified.
    pub model_path: Option<String>,
    /// Inputs of the graph that runs.
    pub graph_inputs: Vec<Tensor>,
    /// Where the data of the inputs came from.
    pub inputs: Vec<TensorData>,
    /// Settings and their outcomes.
    pub settings: Vec<Setting>,
    /// Build id of the runtime that was loaded.
    pub runtime_build: Option<String>,
    /// Time since the run began, seconds.
    pub since_s: Option<u64>,
}

impl About {
    /// What the store knows about a run.
    pub fn run(store: &Store, run: &Run) -> Self {
        let placement = run.placement.as_ref();
        let split = |path: &str, by: char| -> Vec<String> {
            path.split(by).map(str::trim).filter(|part| !part.is_empty()).map(ToOwned::to_owned).collect()
        };
        let seconds = crate::event::now_us().saturating_sub(run.started_us) / 1_000_000;
        Self {
            is_here: run.plan.is_here(),
            folder: placement.map(|placement| placement.folder.clone()),
            library_folders: placement.map(|placement| split(&placement.library_path, ':')).unwrap_or_default(),
            dsp_path: placement.map(|placement| placement.dsp_path.clone()),
            placed: placement.map(|placement| placement.files.clone()).unwrap_or_default(),
            facts: store.device_facts(&run.plan.device).cloned(),
            backend: Some(run.plan.backend),
            model: run.model.clone(),
            model_path: Some(run.plan.model.clone()),
            graph_inputs: run.graph().map(|graph| graph.inputs.clone()).unwrap_or_default(),
            inputs: run.inputs.clone(),
            settings: run.settings.clone(),
            runtime_build: run.runtime.as_ref().and_then(|runtime| runtime.build_id.clone()),
            since_s: Some(seconds + 2),
        }
    }

    /// Hexagon architecture of the device, such as 75; if unknown, that of the stub that was sent.
    pub fn arch(&self) -> Option<u32> {
        let named = self.facts.as_ref().and_then(|facts| facts.soc.hexagon_arch.as_deref());
        let known = named.and_then(|arch| arch.strip_prefix('v')?.parse().ok());
        known.or_else(|| {
            let stub = |file: &PlacedFile| numbered(&file.name, "Stub.so");
            self.placed.iter().find_map(stub)
        })
    }

    /// Folders the DSP searches, in order; the standard ones if the variable is unknown.
    pub fn dsp_folders(&self) -> Vec<String> {
        match &self.dsp_path {
            Some(path) => path.split(';').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect(),
            None => {
                let usual = crate::facts::DSP_FOLDERS.iter().map(|&folder| folder.to_owned());
                self.folder.iter().cloned().chain(usual).collect()
            }
        }
    }
}

/// The architecture in a name such as `libQnnHtpV75Stub.so`.
pub fn numbered(name: &str, ending: &str) -> Option<u32> {
    name.strip_prefix("libQnnHtpV")?.strip_suffix(ending)?.parse().ok()
}

/// A library as the process or the DSP would find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    /// Its path.
    pub path: String,
    /// Size, bytes.
    pub bytes: u64,
    /// Whether the user may read it.
    pub readable: bool,
    /// Its header; `None` if it is not an ELF file or was not read.
    pub elf: Option<ElfFacts>,
    /// Its build id, if it names one.
    pub build: Option<BuildId>,
    /// True if header and build id were read.
    pub was_read: bool,
}

/// What was read from a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Read {
    /// Its header.
    pub elf: Option<ElfFacts>,
    /// Its build id.
    pub build: Option<BuildId>,
}

/// Everything that checks look at.
#[derive(Debug, Clone)]
pub struct Scene {
    /// What was known beforehand.
    pub about: About,
    /// The device's answer, or why there is none.
    pub look: Result<DspLook, String>,
    /// Headers and build ids by path on the device.
    pub read: BTreeMap<String, Read>,
    /// Text metadata of the context binary.
    pub context: Option<crate::facts::ContextText>,
    /// The model file's format by content, or why it is not a model.
    pub model_kind: Option<Result<crate::models::ModelFormat, String>>,
    /// Version of the SDK that created the model, if it is a DLC that records it.
    pub dlc_maker: Option<String>,
    /// Build of the tool that was sent, if it names one.
    pub tool: Option<BuildId>,
    /// Needed libraries that were not found, each with the file that needs it.
    pub missing: Option<Vec<(String, String)>>,
    /// True if this program runs on a PC's CPU.
    pub is_pc: bool,
}

impl Scene {
    /// A scene without any inspection yet.
    pub fn new(about: About) -> Self {
        Self {
            about,
            look: Err("nothing was inspected".to_owned()),
            read: BTreeMap::new(),
            context: None,
            model_kind: None,
            dlc_maker: None,
            tool: None,
            missing: None,
            is_pc: false,
        }
    }

    /// The device's answer.
    ///
    /// # Errors
    /// An unknown verdict, with the reason.
    pub fn look(&self) -> Result<&DspLook, super::CheckVerdict> {
        self.look.as_ref().map_err(super::CheckVerdict::unknown)
    }

    /// The device's answer about its DSP. A PC has none, and what is absent there says nothing about the
    /// machine where it failed.
    ///
    /// # Errors
    /// An unknown verdict, with the reason.
    pub fn dsp(&self) -> Result<&DspLook, super::CheckVerdict> {
        if self.about.is_here && self.is_pc {
            return Err(super::CheckVerdict::unknown(
                "this machine has no DSP; name the one where it failed with --device",
            ));
        }
        self.look()
    }

    /// A library as the process finds it: in the first of its folders that has it.
    pub fn library(&self, name: &str) -> Option<FileFacts> {
        let look = self.look.as_ref().ok()?;
        let folders = self.about.library_folders.iter();
        folders.filter_map(|path| look.folder(path)).find_map(|folder| self.file(folder, name))
    }

    /// A file in one of the folders.
    pub fn file(&self, folder: &Folder, name: &str) -> Option<FileFacts> {
        let file = folder.file(name)?;
        let path = format!("{}/{name}", folder.path);
        let read = self.read.get(&path);
        Some(FileFacts {
            bytes: file.bytes,
            readable: file.readable,
            elf: read.and_then(|read| read.elf.clone()),
            build: read.and_then(|read| read.build.clone()),
            was_read: read.is_some(),
            path,
        })
    }

    /// Folders of the DSP that were listed, in order.
    pub fn dsp_folders(&self) -> Vec<&Folder> {
        let Ok(look) = &self.look else { return Vec::new() };
        self.about.dsp_folders().iter().filter_map(|path| look.folder(path)).collect()
    }

    /// The first file of this name that the DSP would find.
    pub fn on_dsp_path(&self, name: &str) -> Option<FileFacts> {
        self.dsp_folders().into_iter().find_map(|folder| self.file(folder, name))
    }

    /// Folders of the DSP that may not be listed.
    pub fn unlisted(&self) -> Vec<&str> {
        let refused = |folder: &&Folder| folder.listing == Listing::Refused;
        self.dsp_folders().into_iter().filter(refused).map(|folder| folder.path.as_str()).collect()
    }
}

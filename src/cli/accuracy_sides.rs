//! What `REFERENCE` and `TEST` of `qnnscope accuracy` refer to: models, runs, sides of earlier comparisons,
//! folders of tensors.

use super::accuracy_args::AccuracyArgs;
use super::compute::{device, model_on, runtime_here};
use super::{CliError, Global, target};
use crate::accuracy::{DOCUMENT, Kept, Record, Role, Side, SidePlace, document_of};
use crate::backends::Backend;
use crate::backends::qnn::runner::OnnxTask;
use crate::backends::runtime::{Env, RuntimeDir, RuntimeError, onnx_library};
use crate::backends::settings::SettingRequest;
use crate::event::{LOCAL_DEVICE, clean_text};
use crate::files::Guard;
use crate::history;
use crate::models::source::SourceFormat;
use crate::models::{ModelFormat, identify};
use crate::models::{identify_source, read_source};
use crate::report::comparison::{LoadError, Named, load};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A side as far as it is known before querying a device.
#[derive(Debug)]
pub struct SideRequest {
    /// Its record, if it comes from one.
    pub record: Option<Record>,
    model: PathBuf,
    backend: Backend,
    settings: Vec<SettingRequest>,
    /// The device that computes it.
    device: Option<String>,
    kept: Option<Kept>,
    onnx: Option<OnnxTask>,
    runtime_dir: PathBuf,
    /// Files it was read from.
    read: Vec<PathBuf>,
}

/// What an argument refers to.
enum Argument {
    Model(PathBuf),
    Record(Box<Record>, Vec<PathBuf>),
    /// Tensors of the other side's model.
    Tensors(PathBuf),
}

/// Resolves both sides.
pub fn asked(args: &AccuracyArgs, global: &Global) -> Result<[SideRequest; 2], CliError> {
    let texts = [&args.reference, &args.test];
    let roles = [Role::Reference, Role::Test];
    let mut named = Vec::new();
    for (text, role) in texts.into_iter().zip(roles) {
        let (path, backend) = model_on(text);
        named.push((name(&path, role)?, backend));
    }
    let model_of = |at: usize| match &named[at].0 {
        Argument::Model(path) => Ok(path.clone()),
        Argument::Record(record, _) => Ok(record.model.clone()),
        Argument::Tensors(path) => Err(CliError::Usage(format!(
            "{} holds tensors of an unnamed model: name the model as the other side, or give the folder with --{}-tensors and the model as {}",
            clean_text(&path.to_string_lossy()),
            roles[at].name(),
            roles[at].name().to_uppercase()
        ))),
    };
    let models = [model_of(0).or_else(|error| model_of(1).map_err(|_| error))?, model_of(1).or_else(|_| model_of(0))?];
    let mut named = named.into_iter();
    let mut next = |role: Role, model: PathBuf| {
        let (named, backend) = named.next().unwrap_or((Argument::Model(model.clone()), None));
        side(args, global, role, named, backend, model)
    };
    let [reference, test] = models;
    Ok([next(Role::Reference, reference)?, next(Role::Test, test)?])
}

/// Determines what an argument refers to: one of our files is a record, a folder holds tensors, anything else
/// is a model.
fn name(argument: &Path, role: Role) -> Result<Argument, CliError> {
    let argument = history::resolve(argument)?;
    let text = argument.to_string_lossy();
    let (path, wanted) = match text.rsplit_once('#').filter(|_| !argument.exists()) {
        Some((path, wanted)) => (PathBuf::from(path), Some(wanted)),
        None => (argument.clone(), None),
    };
    let shown = || clean_text(&path.to_string_lossy());
    let wrong = |reason: String| CliError::from(LoadError::Document { path: shown(), reason });
    if let Some((file, document)) = document_of(&path).map_err(wrong)? {
        let role = match wanted {
            None => role,
            Some("reference") => Role::Reference,
            Some("test") => Role::Test,
            Some(other) => {
                let text = format!("{} has the sides #reference and #test, not #{}", shown(), clean_text(other));
                return Err(CliError::Usage(text));
            }
        };
        let record = Record::of_comparison(&file, &document, role).map_err(wrong)?;
        return Ok(Argument::Record(Box::new(record), vec![file]));
    }
    if path.is_dir() {
        if path.join("Result_0").is_dir() {
            return Ok(Argument::Tensors(path));
        }
        let text = format!(
            "{} has no tensors: expected {DOCUMENT} from --save-tensors, or Result_0, Result_1 and so on from qnn-net-run --debug",
            shown()
        );
        return Err(CliError::Usage(text));
    }
    // A file that is not a model may be a run.
    if identify_source(&path).is_some() || identify(&path).is_ok() || !path.is_file() {
        return Ok(Argument::Model(argument));
    }
    let Ok(runs) = load(&Named::new(&argument)?) else { return Ok(Argument::Model(argument)) };
    let [run] = runs.as_slice() else {
        let rows: Vec<String> = (1..).zip(&runs).map(|(number, run)| format!("#{number} ({})", run.backend)).collect();
        let text = format!("{} has several runs: name one of {}", shown(), rows.join(", "));
        return Err(CliError::Usage(text));
    };
    let record = Record::of_run(&path, run).map_err(wrong)?;
    Ok(Argument::Record(Box::new(record), vec![path.clone()]))
}

fn side(
    args: &AccuracyArgs,
    global: &Global,
    role: Role,
    named: Argument,
    on: Option<Backend>,
    model: PathBuf,
) -> Result<SideRequest, CliError> {
    let (flag, usual, dir, tensors) = match role {
        Role::Reference => {
            (args.reference_backend, Backend::Cpu, args.reference_runtime.as_deref(), args.reference_tensors.as_ref())
        }
        Role::Test => (args.test_backend, Backend::Htp, None, args.test_tensors.as_ref()),
    };
    let (record, mut read, folder) = match named {
        Argument::Model(_) => (None, Vec::new(), None),
        Argument::Record(record, read) => (Some(*record), read, None),
        Argument::Tensors(folder) => (None, Vec::new(), Some(folder)),
    };
    read.push(model.clone());
    let recorded = record.as_ref();
    let asked = flag.or(on);
    let mut kept = tensors.or(folder.as_ref()).map(|folder| Kept::results(folder));
    // A backend other than the recorded one computes different tensors.
    let is_same = recorded.is_some_and(|record| asked.is_none_or(|asked| asked == record.backend));
    if kept.is_none() && is_same {
        kept = recorded.and_then(|record| record.kept.clone());
    }
    let is_onnx = is_onnx(&model, role, kept.is_some(), args, global)?;
    if let Some(backend) =
        asked.or(recorded.map(|record| record.backend)).filter(|backend| is_onnx && *backend != Backend::Cpu)
    {
        let text = format!(
            "{}: ONNX models run on ONNX Runtime's CPU provider; `qnnscope convert` makes a DLC for {backend}",
            model.display()
        );
        return Err(CliError::Usage(text));
    }
    let backend = if is_onnx { Backend::Cpu } else { asked.or(recorded.map(|record| record.backend)).unwrap_or(usual) };
    let device = device_of(args, global, role, recorded, kept.is_some(), is_onnx)?;
    let runtime = match (&device, &kept) {
        (Some(_), _) => None,
        // Needed even for kept tensors: the graph comes from the model.
        _ => Some(runtime_here(dir, global)?),
    };
    let dimensions = if args.dimensions.dim.is_empty() {
        recorded.map(|record| record.dimensions.clone()).unwrap_or_default()
    } else {
        args.dimensions.dim.clone()
    };
    Ok(SideRequest {
        onnx: match &runtime {
            Some(runtime) if is_onnx => Some(onnx_task(&model, runtime, &dimensions)?),
            _ => None,
        },
        settings: args.hardware.settings(backend, recorded.map_or(&[], |record| &record.settings))?,
        runtime_dir: runtime.map(|runtime| runtime.path).unwrap_or_default(),
        record,
        model,
        backend,
        device,
        kept,
        read,
    })
}

/// Whether a model is computed by ONNX Runtime; a model for a device is identified there.
fn is_onnx(model: &Path, role: Role, is_kept: bool, args: &AccuracyArgs, global: &Global) -> Result<bool, CliError> {
    let there = match role {
        Role::Reference => args.reference_device.is_some(),
        Role::Test => device(global).is_some(),
    };
    if identify_source(model) == Some(SourceFormat::Onnx) {
        return Ok(true);
    }
    if !there || is_kept {
        return Ok(identify(model)? == ModelFormat::Onnx);
    }
    Ok(false)
}

/// The device that computes a side: the named one, or else the recorded one.
fn device_of(
    args: &AccuracyArgs,
    global: &Global,
    role: Role,
    recorded: Option<&Record>,
    is_kept: bool,
    is_onnx: bool,
) -> Result<Option<String>, CliError> {
    let (flag, named) = match role {
        Role::Reference => ("--reference-device", args.reference_device.clone()),
        Role::Test => ("--device", device(global)),
    };
    if role == Role::Test {
        target::refuse_runner_here(named.as_deref().unwrap_or(LOCAL_DEVICE), global)?;
    }
    let elsewhere = named.as_ref().is_some_and(|name| name != LOCAL_DEVICE);
    if elsewhere && (is_kept || is_onnx) {
        let why = if is_kept { "its tensors already exist" } else { "ONNX Runtime's own kernels compute it" };
        return Err(CliError::Usage(format!("{flag} does not apply to the {}: {why}", role.name())));
    }
    let recorded = recorded.and_then(|record| record.device.clone()).filter(|_| !is_kept);
    Ok(named.or(recorded).filter(|name| name != LOCAL_DEVICE))
}

impl SideRequest {
    /// Adds the files that must not be overwritten.
    pub fn guard(&self, guard: &mut Guard) {
        for path in &self.read {
            guard.reads("the model", path);
        }
        if let Some(kept) = &self.kept {
            guard.reads_tree("the tensor", &kept.folder);
        }
    }

    /// True if its tensors were kept by an earlier comparison, on data that belongs to them.
    pub fn has_own_data(&self) -> bool {
        self.kept.is_some() && self.record.as_ref().is_some_and(|record| record.kept.is_some())
    }

    /// The resolved side, with the device that computes it.
    pub async fn side(self, args: &AccuracyArgs, global: &Global) -> Result<Side, CliError> {
        let place = match self.kept {
            Some(kept) => SidePlace::Kept(Arc::new(kept)),
            None => args.compute.place(self.device.as_deref(), global).await?,
        };
        let record = self.record;
        Ok(Side {
            model: self.model,
            backend: self.backend,
            runtime_dir: self.runtime_dir,
            place,
            sha256: record.as_ref().and_then(|record| record.sha256.clone()),
            graph: args.compute.graph.clone().or_else(|| record.and_then(|record| record.graph)),
            onnx: self.onnx,
            settings: self.settings,
            allow_unknown_runtime: global.allow_unknown_runtime,
            limits: args.compute.limits(),
        })
    }
}

/// How an ONNX model is computed: with ONNX Runtime's own kernels.
fn onnx_task(model: &Path, runtime: &RuntimeDir, dimensions: &[(String, u64)]) -> Result<OnnxTask, CliError> {
    let mut dimensions = dimensions.to_vec();
    let free = read_source(model, SourceFormat::Onnx, &dimensions)?.free_dimensions;
    // As for runs.
    dimensions.extend(free.into_iter().filter_map(|free| Some((free.name?, 1))));
    let library = onnx_library(Some(runtime), &Env::from_process())?.ok_or(RuntimeError::NoOnnxRuntime)?.path;
    let library = std::path::absolute(&library).unwrap_or(library);
    // The plug-in is not loaded: once registered, ONNX Runtime may choose it by itself.
    Ok(OnnxTask { plugin: library.clone(), library, dimensions, reference: true, ..OnnxTask::default() })
}

//! Computes tensors of a TFLite model with the interpreter from the user's Python package `ai_edge_litert`.

use super::computed::{Computed, Known};
use crate::accuracy::Inputs;
use crate::backends::qnn::runner::read_npy;
use crate::event::clean_text;
use crate::files::read_at_most;
use crate::models::read_source;
use crate::models::source::{ElementType, SourceFormat, SourceModel};
use crate::models::{DataType, Tensor, TensorKind};
use npyz::WriterBuilder;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Largest tensor that is read, in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// Script for the interpreter: `MODEL FOLDER COUNT NAME...` computes with `FOLDER/in-SET-POSITION.npy` and
/// writes `FOLDER/out-SET-POSITION.npy` for each name, which is a tensor's name, as it is or with other
/// characters replaced, or its number (`5_litert_5`).
const SCRIPT: &str = "
import re
import sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
model, folder, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
it = Interpreter(model_path=model, experimental_preserve_all_tensors=True,
                 experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
it.allocate_tensors()
details = {detail['index']: detail for detail in it.get_tensor_details()}
plain = lambda name: re.sub('[^0-9A-Za-z]', '_', name)
names = {plain(detail['name']): index for index, detail in details.items()}
names.update({detail['name']: index for index, detail in details.items()})

def found(name):
    number = re.fullmatch(r'(\\d+)_litert_\\1', name)
    for key in (name, plain(name)):
        if key in names:
            return names[key]
    if number and int(number[1]) in details:
        return int(number[1])
    sys.exit(f'it has no tensor named {name}')

wanted = [found(name) for name in sys.argv[4:]]
for number in range(count):
    for position, detail in enumerate(it.get_input_details()):
        values = np.load(f'{folder}/in-{number}-{position}.npy')
        scale, zero = detail['quantization']
        if scale:
            info = np.iinfo(detail['dtype'])
            values = np.clip(np.round(values / scale) + zero, info.min, info.max)
        it.set_tensor(detail['index'], values.reshape(detail['shape']).astype(detail['dtype']))
    it.invoke()
    for position, index in enumerate(wanted):
        values = np.ascontiguousarray(it.get_tensor(index)).astype(np.float64)
        scale, zero = details[index]['quantization']
        np.save(f'{folder}/out-{number}-{position}.npy', (values - zero) * scale if scale else values)
";

/// A TFLite model, and the Python that runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TfliteReference {
    /// The Python with the package.
    pub python: PathBuf,
    /// The model.
    pub model: PathBuf,
}

impl TfliteReference {
    /// Computes the tensors with these names, as spelled by LiteRT's compiler.
    pub async fn compute(&self, wanted: &[String], inputs: &Inputs) -> Result<Computed, String> {
        let source = read_source(&self.model, SourceFormat::Tflite, &[]).map_err(|error| error.to_string())?;
        let given = inputs_of(&source)?;
        let planned = inputs.plan(&given, &given).map_err(|error| error.to_string())?;
        let folder = crate::files::private_folder().map_err(|error| error.to_string())?;
        for set in 0..planned.count() {
            let values = planned.values(set).map_err(|error| error.to_string())?;
            for (position, values) in values.iter().enumerate() {
                let path = folder.path().join(format!("in-{set}-{position}.npy"));
                write_npy(&path, values).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            }
        }
        self.interpret(folder.path(), planned.count(), wanted).await?;
        let mut computed = Vec::new();
        for set in 0..planned.count() {
            let mut known = HashMap::new();
            for (position, name) in wanted.iter().enumerate() {
                let path = folder.path().join(format!("out-{set}-{position}.npy"));
                let bytes = read_at_most(&path, MAX_BYTES).map_err(|error| error.to_string())?;
                let (shape, values) = read_npy(&bytes)?;
                let shape = shape.iter().map(|size| u32::try_from(*size).unwrap_or(0)).collect();
                let tensor =
                    Tensor { name: name.clone(), dtype: FLOAT32, shape, quantization: None, kind: TensorKind::Native };
                known.insert(name.clone(), Known { tensor, values });
            }
            computed.push(known);
        }
        Ok(computed)
    }

    async fn interpret(&self, folder: &Path, count: usize, names: &[String]) -> Result<(), String> {
        let python = clean_text(&self.python.to_string_lossy());
        let output = tokio::process::Command::new(&self.python)
            .args(["-c", SCRIPT])
            .arg(&self.model)
            .arg(folder)
            .arg(count.to_string())
            .args(names)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|error| format!("cannot start {python}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).map(clean_text).unwrap_or_default();
        Err(format!("{python} could not interpret it ({}): {last}", output.status))
    }
}

fn inputs_of(source: &SourceModel) -> Result<Vec<Tensor>, String> {
    let graph = source.graphs.first().ok_or_else(|| "it has no graph".to_owned())?;
    let input = |name: &String| {
        let value = graph.value(name).ok_or_else(|| format!("input `{name}` has no description"))?;
        let shape = value.dims().ok_or_else(|| format!("input `{name}` has a free dimension"))?;
        let shape = shape.iter().map(|size| u32::try_from(*size).unwrap_or(0)).collect();
        // The script quantises real numbers for a quantised input.
        let dtype = if value.dtype.is_some_and(is_whole) && value.quantization.is_none() { INT32 } else { FLOAT32 };
        Ok(Tensor { name: clean_text(name), dtype, shape, quantization: None, kind: TensorKind::Input })
    };
    graph.inputs.iter().map(input).collect()
}

/// QNN's float32 and int32.
const FLOAT32: DataType = DataType(0x0232);
const INT32: DataType = DataType(0x0032);

fn is_whole(element: ElementType) -> bool {
    let name = element.name();
    name.starts_with("int") || name.starts_with("uint") || name == "bool"
}

fn write_npy(path: &Path, values: &[f64]) -> std::io::Result<()> {
    let mut array = Vec::new();
    let shape = [values.len() as u64];
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut array).begin_nd()?;
    writer.extend(values.iter().copied())?;
    writer.finish()?;
    std::fs::write(path, array)
}

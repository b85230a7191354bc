//! The document `qnnscope.accuracy/1`.

use super::cause::Cause;
use super::comparison::AccuracyOutcome;
use super::inputs::Inputs;
use super::layer::Layer;
use super::metrics::ChannelFigures;
use super::pairs::How;
use super::role::Role;
use super::spread::{DiffGrid, DiffMap, Spread};
use crate::event::{ModelInfo, RuntimeInfo, clean_text};
use crate::files::{open_regular, read_at_most};
use crate::models::TensorKind;
use crate::text::clean_json;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Schema of the document.
pub const ACCURACY_SCHEMA: &str = "qnnscope.accuracy/1";
/// Maximum size of a document that is read, bytes.
const MOST_BYTES: u64 = 256 << 20;
/// The document's schema appears within this many bytes from the start.
const HEAD_BYTES: u64 = 4096;

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccuracyDocument {
    schema: String,
    /// The side taken as correct.
    pub reference: SideDocument,
    /// The side under test.
    pub test: SideDocument,
    /// Description of the input data.
    pub inputs: String,
    /// Source of the input data, for computing the models again; missing in documents of older versions.
    #[serde(default)]
    pub data: Option<DataDocument>,
    /// Folder with the tensors of both sides, if they were kept.
    #[serde(default)]
    pub saved_tensors: Option<String>,
    /// Number of inferences.
    pub inferences: usize,
    /// SQNR below which a layer diverges, dB.
    pub min_sqnr_db: f64,
    /// True if only some of the tensors were read.
    pub bisected: bool,
    /// Layers in graph order.
    pub layers: Vec<LayerDocument>,
    /// The first diverging layer.
    pub first_diverging: Option<DivergingDocument>,
    /// Why it diverges.
    pub verdict: Option<VerdictDocument>,
    /// How tensors were paired.
    pub pairs: Vec<PairDocument>,
    /// Tensors of the reference without a pair.
    pub reference_only: Vec<String>,
    /// Tensors of the test without a pair.
    pub test_only: Vec<String>,
    /// Limitations of the result.
    pub notes: Vec<String>,
}

/// A model and where it was computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SideDocument {
    /// Its file.
    pub model: String,
    /// Its SHA-256.
    pub sha256: String,
    /// The backend.
    pub backend: String,
    /// True if the hardware was only emulated.
    pub simulated: bool,
    /// The libraries.
    pub runtime: RuntimeInfo,
    /// Device that computed it, if not this machine.
    #[serde(default)]
    pub device: Option<String>,
    /// Graph, if one was named.
    #[serde(default)]
    pub graph: Option<String>,
    /// Settings that affect the result, by name.
    #[serde(default)]
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Free dimensions of an ONNX model.
    #[serde(default)]
    pub dimensions: BTreeMap<String, u64>,
}

/// Where the data came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataDocument {
    /// `random`, `folder`, `list`, `files` or `kept`.
    pub kind: String,
    /// Folder or list.
    pub path: Option<String>,
    /// Seed of random data.
    pub seed: Option<u64>,
    /// Inputs of the reference, in its order.
    pub names: Vec<String>,
}

impl DataDocument {
    fn new(outcome: &AccuracyOutcome) -> Self {
        let text = |path: &Path| Some(clean_text(&absolute(path).to_string_lossy()));
        let (kind, path, seed) = match &outcome.data {
            Inputs::Random { seed, .. } => ("random", None, Some(*seed)),
            Inputs::Folder(path) => ("folder", text(path), None),
            Inputs::List(path) => ("list", text(path), None),
            Inputs::Files(_) => ("files", None, None),
            Inputs::Kept { folder, .. } => ("kept", text(folder), None),
        };
        Self { kind: kind.to_owned(), path, seed, names: outcome.input_names.clone() }
    }
}

fn absolute(path: &Path) -> std::path::PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The figures of a layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "they are those of [`super::Figures`]")]
pub struct LayerDocument {
    pub reference: String,
    pub test: String,
    pub op: String,
    #[serde(rename = "type")]
    pub op_type: String,
    /// Node of the test's source model.
    #[serde(default)]
    pub source_node: Option<String>,
    pub sqnr_db: Option<f64>,
    pub mse: Option<f64>,
    pub max_abs: Option<f64>,
    pub mean_abs: Option<f64>,
    pub cosine: Option<f64>,
    pub clipped_share: Option<f64>,
    pub own_sqnr_db: Option<f64>,
    pub worst_channels: Vec<ChannelFigures>,
    /// Distribution of its values.
    #[serde(default)]
    pub histogram: Option<Spread>,
    /// Where images differ; for outputs and for the first diverging layer.
    #[serde(default)]
    pub map: Option<DiffGrid>,
}

/// The first diverging layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DivergingDocument {
    /// Its figures.
    #[serde(flatten)]
    pub layer: LayerDocument,
    /// The suspected cause.
    pub cause: Cause,
    /// What to do.
    pub remedy: String,
}

/// Why a layer diverges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerdictDocument {
    /// Its index among the layers.
    pub layer: usize,
    /// The tensor whose encoding is at fault.
    pub tensor: String,
    /// Why, in one sentence.
    pub because: String,
    /// SQNR of its worst source tensor, dB.
    pub inherited_sqnr_db: Option<f64>,
}

/// Facts about a pair besides its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "they are those of [`super::Pair`] and [`super::Sums`]")]
pub struct PairDocument {
    pub reference: String,
    pub test: String,
    pub how: How,
    pub permutation: Option<String>,
    pub dtype: String,
    pub shape: Vec<u32>,
    pub read: bool,
    pub elements: u64,
    pub not_finite: u64,
    pub differing_share: Option<f64>,
    pub used_share: Option<f64>,
    pub seen_min: Option<f64>,
    pub seen_max: Option<f64>,
    pub encoded_min: Option<f64>,
    pub encoded_max: Option<f64>,
}

/// JSON has no infinity: a tensor without any error has no SQNR, and an `mse` of 0.
fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

/// Only the name of the format.
#[derive(Deserialize)]
struct Header {
    schema: Option<String>,
}

impl AccuracyDocument {
    /// Reads what `qnnscope accuracy --json` printed; `None` if the file is something else.
    ///
    /// # Errors
    /// The problem, worded to follow the file's name.
    pub fn read(path: &Path) -> Result<Option<Self>, String> {
        // Reading a pipe would consume it, and sessions may have any size, so only a regular file that
        // identifies itself in its first bytes is read. Other problems, such as a missing file, are better
        // reported by the session readers.
        let is_one = open_regular(path).is_ok_and(|file| {
            let mut head = Vec::new();
            let read = file.take(HEAD_BYTES).read_to_end(&mut head);
            read.is_ok() && memchr::memmem::find(&head, ACCURACY_SCHEMA.as_bytes()).is_some()
        });
        if !is_one {
            return Ok(None);
        }
        let bytes = read_at_most(path, MOST_BYTES).map_err(|error| format!("cannot be read: {error}"))?;
        Self::from_bytes(&bytes)
    }

    /// The same from bytes.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Option<Self>, String> {
        if !bytes.trim_ascii_start().starts_with(b"{") {
            return Ok(None);
        }
        let Ok(Header { schema: Some(schema) }) = serde_json::from_slice(bytes) else { return Ok(None) };
        if schema != ACCURACY_SCHEMA {
            return Ok(None);
        }
        let document: Self = serde_json::from_slice(&clean_json(bytes))
            .map_err(|error| format!("is not a complete `{ACCURACY_SCHEMA}` document: {error}"))?;
        Ok(Some(document))
    }

    /// One of the sides.
    pub fn side(&self, role: Role) -> &SideDocument {
        match role {
            Role::Reference => &self.reference,
            Role::Test => &self.test,
        }
    }

    /// Index of the first diverging layer.
    pub fn first(&self) -> Option<usize> {
        self.verdict.as_ref().map(|verdict| verdict.layer).filter(|at| *at < self.layers.len())
    }

    /// The pair of a layer.
    pub fn pair_of(&self, layer: &LayerDocument) -> Option<&PairDocument> {
        self.pairs.iter().find(|pair| pair.test == layer.test && pair.reference == layer.reference)
    }

    /// The document of a comparison.
    pub fn new(outcome: &AccuracyOutcome) -> Self {
        let side = |at: usize| {
            let model: &ModelInfo = &outcome.models[at];
            let side = &outcome.sides[at];
            SideDocument {
                model: model.path.clone(),
                sha256: model.sha256.clone(),
                backend: side.backend.name().to_owned(),
                simulated: side.is_simulated(),
                runtime: outcome.runtimes[at].clone(),
                device: side.device().map(clean_text),
                graph: side.graph.clone(),
                settings: side.settings.iter().map(|setting| (setting.name.clone(), setting.value.clone())).collect(),
                dimensions: side.onnx.iter().flat_map(|onnx| onnx.dimensions.iter().cloned()).collect(),
            }
        };
        let layers: Vec<LayerDocument> =
            (0..).zip(&outcome.layers).map(|(at, layer)| layer_document(at, layer, outcome)).collect();
        let first_diverging = outcome.first.as_ref().map(|first| DivergingDocument {
            layer: layers[first.layer].clone(),
            cause: first.cause,
            remedy: first.remedy.clone(),
        });
        let verdict = outcome.first.as_ref().map(|first| VerdictDocument {
            layer: first.layer,
            tensor: first.tensor.clone(),
            because: first.because.clone(),
            inherited_sqnr_db: finite(Some(first.inherited_db)),
        });
        Self {
            schema: ACCURACY_SCHEMA.to_owned(),
            reference: side(0),
            test: side(1),
            inputs: outcome.inputs.clone(),
            data: Some(DataDocument::new(outcome)),
            saved_tensors: outcome.saved.as_deref().map(|folder| clean_text(&absolute(folder).to_string_lossy())),
            inferences: outcome.inferences,
            min_sqnr_db: outcome.min_sqnr_db,
            bisected: outcome.bisected,
            layers,
            first_diverging,
            verdict,
            pairs: (0..outcome.pairing.pairs.len()).map(|pair| pair_document(pair, outcome)).collect(),
            reference_only: outcome.pairing.reference_only.clone(),
            test_only: outcome.pairing.test_only.clone(),
            notes: outcome.notes.clone(),
        }
    }
}

fn layer_document(at: usize, layer: &Layer, outcome: &AccuracyOutcome) -> LayerDocument {
    let pair = &outcome.pairing.pairs[layer.pair];
    let is_first = outcome.first.as_ref().is_some_and(|first| first.layer == at);
    let is_shown = is_first || pair.test.tensor.kind == TensorKind::Output;
    let figures = &layer.figures;
    LayerDocument {
        reference: pair.reference.tensor.name.clone(),
        test: pair.test.tensor.name.clone(),
        op: layer.op.clone(),
        op_type: layer.op_type.clone(),
        source_node: outcome.names.get(&layer.op).cloned(),
        sqnr_db: finite(figures.sqnr_db),
        mse: figures.mse,
        max_abs: figures.max_abs,
        mean_abs: figures.mean_abs,
        cosine: figures.cosine,
        clipped_share: figures.clipped_share,
        own_sqnr_db: finite(layer.own_sqnr_db),
        worst_channels: figures
            .worst_channels
            .iter()
            .map(|row| ChannelFigures { sqnr_db: finite(row.sqnr_db), ..row.clone() })
            .collect(),
        histogram: layer.spread.clone(),
        map: layer.map.as_ref().filter(|_| is_shown).map(DiffMap::grid),
    }
}

fn pair_document(at: usize, outcome: &AccuracyOutcome) -> PairDocument {
    let pair = &outcome.pairing.pairs[at];
    let layer = outcome.layers.iter().find(|layer| layer.pair == at);
    let seen = layer.map(|layer| &layer.sums.whole);
    PairDocument {
        reference: pair.reference.tensor.name.clone(),
        test: pair.test.tensor.name.clone(),
        how: pair.how,
        permutation: pair.layout.text(),
        dtype: pair.test.tensor.dtype.name(),
        shape: pair.test.tensor.shape.clone(),
        read: layer.is_some(),
        elements: seen.map_or(0, |sums| sums.count + sums.not_finite),
        not_finite: seen.map_or(0, |sums| sums.not_finite),
        differing_share: layer.and_then(|layer| layer.figures.differing_share),
        used_share: finite(layer.and_then(|layer| layer.figures.used_share)),
        seen_min: finite(seen.map(|sums| sums.min)),
        seen_max: finite(seen.map(|sums| sums.max)),
        encoded_min: layer.and_then(|layer| layer.range).map(|range| range.min),
        encoded_max: layer.and_then(|layer| layer.range).map(|range| range.max),
    }
}

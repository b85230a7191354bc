//! An op's own error, computed on the reference's values, and the errors of its constants.

use super::error::AccuracyError;
use super::kinds::hands_on;
use super::layer::{Constant, Layer};
use super::layout::Layout;
use super::metrics::{TensorFigures, TensorSums};
use super::pairs::Pair;
use super::passes::{Found, Work, begin, to_open, values_of};
use super::values::{encoded_range, real_values, store_values};
use crate::backends::qnn::runner::GivenTensor;
use crate::models::{Graph, Quantization, Tensor, TensorKind};
use std::collections::HashSet;

/// Number of inferences for computing the ops' own errors.
const OWN_INFERENCES: usize = 2;

impl Work<'_> {
    /// Each op's own error, computed on the reference's values. Only for layers that were read, on the first
    /// inputs.
    pub async fn own(&self, layers: &[Layer], found: &mut Found) -> Result<Vec<(usize, Option<f64>)>, AccuracyError> {
        let wanted: Vec<usize> =
            layers.iter().filter(|layer| !layer.op_type.is_empty()).map(|layer| layer.pair).collect();
        let mut own = Vec::new();
        for group in self.groups(&wanted) {
            own.extend(self.own_pass(&group, layers, found).await?);
        }
        Ok(own)
    }

    async fn own_pass(
        &self,
        group: &[usize],
        layers: &[Layer],
        found: &mut Found,
    ) -> Result<Vec<(usize, Option<f64>)>, AccuracyError> {
        let step = "each op on the reference's values";
        self.progress(&format!("{step}: compiling"), 0);
        let pairs = &self.pairing.pairs;
        // A tensor shared by several pairs is passed only once.
        let mut sources: Vec<usize> = group.iter().flat_map(|&pair| pairs[pair].sources.iter().copied()).collect();
        sources.sort_unstable();
        sources.dedup();
        let handed_on: HashSet<&str> = self.graphs[1]
            .ops
            .iter()
            .filter(|op| hands_on(&op.op_type))
            .flat_map(|op| op.inputs.iter().map(|tensor| tensor.name.as_str()))
            .collect();
        let given = sources.iter().map(|&source| {
            let name = pairs[source].name();
            let layer = layers.iter().find(|layer| layer.pair == source && !handed_on.contains(name));
            GivenTensor { name: name.to_owned(), encoding: layer.and_then(Layer::better_encoding) }
        });
        let read: Vec<usize> = group.iter().chain(&sources).copied().collect();
        let mut reference = self.open_reference(read.iter().map(|&pair| &pairs[pair].reference.tensor)).await?;
        let readable = to_open(group.iter().map(|&pair| &pairs[pair].test.tensor));
        let mut test =
            self.comparison.test.open(readable, given.collect(), Vec::new()).await.map_err(AccuracyError::Test)?;
        let stands_for: Vec<(&Pair, Tensor)> = test
            .facts
            .given
            .iter()
            .filter_map(|(of, tensor)| {
                let pair = sources.iter().map(|&source| &pairs[source]).find(|pair| pair.name() == of)?;
                Some((pair, tensor.clone()))
            })
            .collect();
        let mut sums: Vec<TensorSums> = group.iter().map(|_| TensorSums::default()).collect();
        for index in 0..self.planned.count().min(OWN_INFERENCES) {
            self.progress(step, index);
            let values = self.planned.values(index)?;
            let (for_reference, mut for_test) = self.planned.stored(&values)?;
            begin(&mut reference, index, &for_reference).await.map_err(AccuracyError::Reference)?;
            reference.computed().await.map_err(AccuracyError::Reference)?;
            for (pair, tensor) in &stands_for {
                let x = self.reference_values(&reference, pair, &values)?.unwrap_or_default();
                for_test.push(store_values(&x, tensor).unwrap_or_default());
            }
            begin(&mut test, index, &for_test).await.map_err(AccuracyError::Test)?;
            test.computed().await.map_err(AccuracyError::Test)?;
            for (sums, &at) in sums.iter_mut().zip(group) {
                let pair = &pairs[at];
                let x = self.reference_values(&reference, pair, &values)?;
                let y = values_of(&test, &pair.test.tensor).map_err(AccuracyError::Test)?;
                if let (Some(x), Some(y)) = (x, y) {
                    sums.take(&x, &y, &pair.test.tensor.shape, None, None);
                }
                tokio::task::yield_now().await;
            }
        }
        found.refused.extend(test.facts.refused.iter().cloned());
        reference.close().await;
        test.close().await;
        Ok(group.iter().zip(&sums).map(|(&pair, sums)| (pair, sums.whole.sqnr_db())).collect())
    }

    /// The constants of a layer's op compared with the reference's.
    pub async fn constants(&self, layer: &Layer) -> Result<Vec<Constant>, AccuracyError> {
        let Pair { reference, test, .. } = &self.pairing.pairs[layer.pair];
        let of = |graph: &Graph, op: Option<usize>| -> Vec<Tensor> {
            let inputs = op.and_then(|op| graph.ops.get(op)).map(|op| op.inputs.clone()).unwrap_or_default();
            inputs.into_iter().filter(|tensor| tensor.kind == TensorKind::Static).collect()
        };
        // The reference's op may be the activation that follows the op with the constants.
        let mut at = reference.op;
        let graph = self.graphs[0];
        let wanted = of(self.graphs[1], test.op);
        while let Some(op) = at.and_then(|op| graph.ops.get(op))
            && of(graph, at).is_empty()
            && !wanted.is_empty()
        {
            let before = op.inputs.first().map(|tensor| tensor.name.clone()).unwrap_or_default();
            at = graph.ops.iter().position(|other| other.outputs.iter().any(|tensor| tensor.name == before));
        }
        let theirs = of(graph, at);
        if wanted.is_empty() || theirs.is_empty() {
            return Ok(Vec::new());
        }
        let names = |tensors: &[Tensor]| tensors.iter().map(|tensor| tensor.name.clone()).collect();
        let (one, other) = (&self.comparison.reference, &self.comparison.test);
        let reference = one.open(Vec::new(), Vec::new(), names(&theirs)).await.map_err(AccuracyError::Reference)?;
        let test = other.open(Vec::new(), Vec::new(), names(&wanted)).await.map_err(AccuracyError::Test)?;
        let ours = reference.constants().map_err(AccuracyError::Reference)?;
        let data = test.constants().map_err(AccuracyError::Test)?;
        reference.close().await;
        test.close().await;
        let mut rows = Vec::new();
        for (position, tensor) in wanted.iter().enumerate() {
            let y = data.iter().find(|(other, _)| other.name == tensor.name);
            let x = theirs.get(position).and_then(|theirs| ours.iter().find(|(other, _)| other.name == theirs.name));
            let (Some((_, y)), Some((of, x))) = (y, x) else { continue };
            let Some(layout) = Layout::between(&of.shape, &tensor.shape) else { continue };
            let (Some(x), Some(y)) = (real_values(x, of), real_values(y, tensor)) else { continue };
            let x = layout.arranged(x, &of.shape);
            let range = encoded_range(tensor);
            let mut sums = TensorSums::default();
            sums.take(&x, &y, &tensor.shape, slice_axis(tensor), range);
            rows.push(Constant {
                tensor: tensor.clone(),
                figures: TensorFigures::new(&sums, range, false),
                sums,
                range,
            });
        }
        Ok(rows)
    }
}

/// The axis along which a constant is sliced: that of its encoding, otherwise the last one unless it is a
/// vector.
fn slice_axis(tensor: &Tensor) -> Option<usize> {
    match &tensor.quantization {
        Some(Quantization::AxisScaleOffset { axis, .. }) => {
            let rank = i32::try_from(tensor.shape.len()).ok()?;
            usize::try_from(if *axis < 0 { axis + rank } else { *axis }).ok().filter(|axis| *axis < tensor.shape.len())
        }
        _ if tensor.shape.len() >= 2 => Some(tensor.shape.len() - 1),
        _ => None,
    }
}

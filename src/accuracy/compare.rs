//! Compares two models on the same inputs, reading all tensors of both.

use super::cause;
use super::comparison::{AccuracyOutcome, Comparison, Progress};
use super::error::AccuracyError;
use super::layer::Layer;
use super::pairing::pair;
use super::passes::{Found, Work};
use super::verdict::first_diverging;
use crate::models::source_names;

/// Compares the two sides, reporting progress to `tell`.
///
/// # Errors
/// A side cannot be computed, for whatever reason.
pub async fn compare(comparison: &Comparison, tell: &dyn Fn(&Progress)) -> Result<AccuracyOutcome, AccuracyError> {
    let say = |step: &str| tell(&Progress { step: step.to_owned(), done: 0, of: 0 });
    say("reading the models");
    let (reference_model, reference) = comparison.reference.read().await.map_err(AccuracyError::Reference)?;
    let (test_model, test) = comparison.test.read().await.map_err(AccuracyError::Test)?;
    for (model, graph) in [(&reference_model, &reference), (&test_model, &test)] {
        if graph.ops.is_empty() {
            return Err(AccuracyError::Compiled(model.path.clone()));
        }
    }
    let planned = comparison.inputs.plan(&reference.inputs, &test.inputs)?.over([&reference, &test]);
    let names = source_names(&comparison.test.model).unwrap_or_default().nodes;
    let pairing = pair(&reference, &test, &names);
    if pairing.pairs.is_empty() {
        let (reference, test) = (reference_model.path.clone(), test_model.path.clone());
        return Err(AccuracyError::NoPairs { reference, test });
    }
    let work = Work { comparison, planned, graphs: [&reference, &test], pairing: &pairing, tell };
    let mut notes = Vec::new();
    let mut found = Found::default();
    if comparison.bisect {
        work.bisect(&mut found).await?;
    } else {
        let all: Vec<usize> = (0..pairing.pairs.len()).collect();
        for (number, group) in work.groups(&all).iter().enumerate() {
            found.take(work.pass(group, &format!("pass {}", number + 1)).await?);
        }
    }
    found.reads.sort_by_key(|read| read.pair);
    let left_out = found.without_values(&pairing);
    if !left_out.is_empty() {
        notes.push(format!("these tensors were not kept and are left out: {}", left_out.join(", ")));
    }
    let mut layers: Vec<Layer> = found.reads.iter().map(|read| work.layer(read)).collect();
    match work.own(&layers, &mut found).await {
        Ok(own) => {
            for (pair, sqnr) in own {
                if let Some(layer) = layers.iter_mut().find(|layer| layer.pair == pair) {
                    layer.own_sqnr_db = sqnr;
                }
            }
        }
        Err(error) => {
            notes.push(format!("the layers' own errors are unknown: the ops cannot run one by one: {error}"));
        }
    }
    let first = match first_diverging(&layers, &pairing, comparison.min_sqnr_db) {
        Some(at) => {
            say("reading the constants of the diverging layer");
            let constants = work.constants(&layers[at]).await.unwrap_or_else(|error| {
                notes.push(format!("the constants of the layer could not be read: {error}"));
                Vec::new()
            });
            Some(cause::judge(&layers, at, &pairing, &test, &constants, comparison.min_sqnr_db))
        }
        None => None,
    };
    if !found.refused.is_empty() {
        found.refused.sort();
        found.refused.dedup();
        notes.push(format!("the backend did not expose these tensors: {}", found.refused.join(", ")));
    }
    let missing = found.reads.len() < pairing.pairs.len();
    Ok(AccuracyOutcome {
        models: [reference_model, test_model],
        runtimes: found.runtimes,
        sides: [comparison.reference.clone(), comparison.test.clone()],
        inputs: work.planned.text(),
        data: comparison.inputs.clone(),
        input_names: reference.inputs.iter().map(|tensor| tensor.name.clone()).collect(),
        saved: comparison.save_tensors.clone(),
        inferences: work.planned.count(),
        min_sqnr_db: comparison.min_sqnr_db,
        bisected: comparison.bisect && missing,
        names,
        pairing,
        layers,
        first,
        notes,
    })
}

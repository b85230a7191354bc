//! Where the difference starts: the first layer in graph order that adds to it, not the one that shows most
//! of it.

use super::layer::Layer;
use super::pairs::Pairing;

/// Penalty for a wrong range, relative to what layers lose, dB.
const WRONG_RANGE_DB: f64 = 6.0;
/// A layer above the limit that loses less than this is not where an engineer looks first, dB.
const MILD_DROP_DB: f64 = 12.0;
/// A layer that loses less than this only inherits its error, dB.
const OWN_DROP_DB: f64 = 6.0;

/// Index of the layer where the difference starts; `None` if no layer is below the limit.
///
/// It is at or before the first layer below the limit: among the layers that one computes from, the layer
/// that loses most relative to its own sources. A layer below the limit may merely accumulate what an earlier
/// one, still above the limit, has lost.
pub fn first_diverging(layers: &[Layer], pairing: &Pairing, min_sqnr_db: f64) -> Option<usize> {
    let position = |pair: usize| layers.iter().position(|layer| layer.pair == pair);
    let sources = |at: usize| pairing.pairs[layers[at].pair].sources.iter().filter_map(|&pair| position(pair));
    let worth = |at: usize| layers[at].figures.sqnr_db.unwrap_or(f64::INFINITY);
    let drop = |at: usize| {
        let inherited = sources(at).map(worth).fold(f64::INFINITY, f64::min);
        inherited.min(layers[at].ceiling_db()) - worth(at)
    };
    // A layer that is above the limit and loses little is not chosen first: if it is to blame for a later
    // one, it is among that one's sources. By itself it only counts if its encoding is wrong; data slightly
    // beyond the calibration range is not a fault.
    let diverges = |at: &usize| layers[*at].diverges(min_sqnr_db);
    let is_mild = |at: usize| layers[at].is_even(min_sqnr_db) && drop(at) < MILD_DROP_DB;
    let first = (0..layers.len()).find(|at| diverges(at) && !is_mild(*at));
    let is_wrong = |at: &usize| layers[*at].has_wrong_range() || layers[*at].is_turned();
    let first = first.or_else(|| (0..layers.len()).find(|at| diverges(at) && is_wrong(at)))?;
    let mut chain = vec![first];
    let mut next = 0;
    while let Some(&at) = chain.get(next) {
        for source in sources(at) {
            if !chain.contains(&source) {
                chain.push(source);
            }
        }
        next += 1;
    }
    // An encoding that is wrong on its own counts against its layer.
    let blame = |at: usize| drop(at) + if layers[at].has_wrong_range() { WRONG_RANGE_DB } else { 0.0 };
    let own = blame(first);
    // The first one is blamed if it loses enough itself, unless an earlier one lost clearly more.
    let mut chosen = (first, own.max(OWN_DROP_DB));
    chain.sort_unstable();
    for &at in chain.iter().filter(|&&at| at != first) {
        let lost = blame(at);
        if lost > chosen.1 && !layers[at].is_counted() {
            chosen = (at, lost);
        }
    }
    Some(chosen.0)
}

/// The SQNR of the worst layer that this one computes from, dB; infinite if it only computes from inputs.
pub fn inherited_db(layers: &[Layer], at: usize, pairing: &Pairing) -> f64 {
    let sources = &pairing.pairs[layers[at].pair].sources;
    let rows = layers.iter().filter(|layer| sources.contains(&layer.pair));
    rows.filter_map(|layer| layer.figures.sqnr_db).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests;

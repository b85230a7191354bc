//! Where the difference begins: the first layer in graph order that adds it, not the one that shows most of it.

use super::layer::Layer;
use super::pairs::Pairing;

/// How much such a range weighs beside what layers lose, dB.
const WRONG_RANGE_DB: f64 = 6.0;
/// A layer above the limit that loses less than this is not what an engineer looks for first, dB.
const MILD_DROP_DB: f64 = 12.0;
/// A layer that loses less than this only inherits, dB.
const OWN_DROP_DB: f64 = 6.0;

/// Position of the layer where the difference begins; `None` if no layer is below the limit.
///
/// It is at or before the first one below the limit: of those that it computes from, the one that loses most against what it
/// was made from. A layer below the limit may only sum up what one before it, still above the limit, has lost.
pub fn first_diverging(layers: &[Layer], pairing: &Pairing, min_sqnr_db: f64) -> Option<usize> {
    let position = |pair: usize| layers.iter().position(|layer| layer.pair == pair);
    let sources = |at: usize| pairing.pairs[layers[at].pair].sources.iter().filter_map(|&pair| position(pair));
    let worth = |at: usize| layers[at].figures.sqnr_db.unwrap_or(f64::INFINITY);
    let drop = |at: usize| {
        let inherited = sources(at).map(worth).fold(f64::INFINITY, f64::min);
        inherited.min(layers[at].ceiling_db()) - worth(at)
    };
    // What loses little and is above the limit waits for the rest: it is among their sources, if it is to blame for them. Alone it counts
    // where its encoding is wrong by itself; data a little beyond the calibration's is no fault.
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
    // An encoding that is wrong by itself speaks against its layer.
    let blame = |at: usize| drop(at) + if layers[at].has_wrong_range() { WRONG_RANGE_DB } else { 0.0 };
    let own = blame(first);
    // What the first one loses by itself is enough, unless another one before it lost clearly more.
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

/// What the worst of the layers that a layer computes from has; infinite for one that computes from inputs only.
pub fn inherited_db(layers: &[Layer], at: usize, pairing: &Pairing) -> f64 {
    let sources = &pairing.pairs[layers[at].pair].sources;
    let rows = layers.iter().filter(|layer| sources.contains(&layer.pair));
    rows.filter_map(|layer| layer.figures.sqnr_db).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests;

//! What the figures mean: pure functions of the store.

mod energy;

pub use energy::{Energy, NoEnergy, energy};

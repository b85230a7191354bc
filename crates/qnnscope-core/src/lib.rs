//! The base of qnnscope, which imports nothing of its other packages: [`event`]s, graphs ([`models`]), [`Backend`]s and
//! the states of devices. No I/O.

mod backend;
pub mod device_state;
pub mod event;
pub mod models;
pub mod tap;

pub use backend::{Backend, ProfilingLevel};

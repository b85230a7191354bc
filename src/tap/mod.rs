//! The reader's half of the tap: what the library within a program tells becomes events of one session.
//!
//! [`Server`] takes the connections of the program's processes, [`line`] reads their lines whatever is in them, [`Fold`] turns
//! what one process says into events: each of its graphs that executes is a run, as if the runner had made it. [`Program`]
//! starts the program with the tap in it, and [`reach`] says beforehand where a tap cannot get in.

mod binaries;
pub mod device;
mod feed;
mod fold;
pub mod library;
pub mod line;
mod listener;
mod program;
pub mod reach;
mod server;
mod shared;

pub use feed::{Feed, replay};
pub use fold::{FewRuns, Fold, Out};
pub use listener::{Listener, ServeError};
pub use program::{Ended, Output, Program, ProgramError, Signals, Variables, send};
pub use server::Server;
pub use shared::ServerEvent;

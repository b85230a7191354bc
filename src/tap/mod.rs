//! The reader's half of the tap: turns the messages of the library inside a program into events of one session.
//!
//! [`Server`] accepts the connections of the program's processes, [`line`] reads their lines whatever they
//! contain, [`Fold`] turns one process's messages into events: each executing graph becomes a run, as if the
//! runner had made it. [`Program`] starts the program with the tap in it, and [`reach`] reports in advance
//! where a tap cannot get in.

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

//! Tap data about a program's processes, in bounded memory however long the program runs.

mod process;
mod timeline;

pub use process::{CallStats, GraphsMade, TappedContext, TappedGraph, TappedProcess};
pub use timeline::{Alone, GraphTimes, TimeShare, Timeline};

use crate::event::{RunId, TapRecord, TapSeen};

/// Most processes that are kept; more are only counted.
const MOST_PROCESSES: usize = 1024;
/// Most messages of a kind that are kept.
const MOST_SENTENCES: usize = 64;

/// A tapped program.
#[derive(Debug, Default)]
pub struct Tapped {
    /// Its command; empty for processes started elsewhere.
    pub command: Vec<String>,
    /// When it started, in host monotonic microseconds.
    pub started_us: u64,
    /// When it ended, in host monotonic microseconds, and its exit status or signal.
    pub ended: Option<(u64, Option<i32>, Option<i32>)>,
    /// The first processes that loaded the tap: process id and executable.
    pub loaded: Vec<(u32, String)>,
    /// Number of processes that loaded it.
    pub loaded_count: u64,
    /// Why the program, or a part of it, was not reached.
    pub not_reached: Vec<String>,
    /// Processes that used QNN, in order of first use.
    pub processes: Vec<TappedProcess>,
    /// Number of processes beyond those kept.
    pub more_processes: u64,
}

impl Tapped {
    /// Folds in one record.
    pub(super) fn apply(&mut self, t_us: u64, run: Option<RunId>, record: &TapRecord) {
        match (&record.seen, record.process) {
            (TapSeen::ProgramStarted { command }, _) => {
                self.command.clone_from(command);
                self.started_us = t_us;
            }
            (TapSeen::ProgramEnded { status, signal }, _) => self.ended = Some((t_us, *status, *signal)),
            (TapSeen::Loaded { pid, executable }, _) => {
                self.loaded_count += 1;
                if self.loaded.len() < MOST_SENTENCES {
                    self.loaded.push((*pid, executable.clone()));
                }
            }
            (TapSeen::NotReached { reason }, _) => {
                if self.not_reached.len() < MOST_SENTENCES && !self.not_reached.contains(reason) {
                    self.not_reached.push(reason.clone());
                }
            }
            (TapSeen::ProcessStarted(process), Some(number)) => {
                if self.processes.len() < MOST_PROCESSES {
                    self.processes.push(TappedProcess::new(number, (**process).clone(), t_us));
                } else {
                    self.more_processes += 1;
                }
            }
            (seen, Some(number)) => {
                if let Some(process) = self.processes.iter_mut().rev().find(|process| process.number == number) {
                    process.apply(t_us, run, seen);
                }
            }
            (_, None) => {}
        }
    }

    /// The process and graph of a run.
    pub fn of_run(&self, run: RunId) -> Option<(&TappedProcess, &TappedGraph)> {
        self.processes.iter().find_map(|process| Some((process, process.graphs.iter().find(|graph| graph.run == run)?)))
    }

    /// Number of executions in all processes.
    pub fn executions(&self) -> u64 {
        self.processes.iter().map(|process| process.timeline.executions).sum()
    }
}

//! The parts of the view: panes, pages, popups above them, requests.

use super::picker::Picker;
use crate::event::RunId;

/// The panes of the live view, in focus order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pane {
    /// Run status.
    Status,
    /// Latency.
    Latency,
    /// Layers.
    Layers,
    /// Memory.
    Memory,
    /// Host counters.
    Host,
    /// Log.
    Log,
}

impl Pane {
    /// All panes.
    pub const ALL: [Self; 6] = [Self::Status, Self::Latency, Self::Layers, Self::Memory, Self::Host, Self::Log];

    /// Name in titles and key files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Latency => "latency",
            Self::Layers => "layers",
            Self::Memory => "memory",
            Self::Host => "host",
            Self::Log => "log",
        }
    }

    /// True for those that share the main area of a small screen.
    pub fn is_main(self) -> bool {
        !matches!(self, Self::Status | Self::Latency)
    }

    pub(super) fn step(self, step: usize) -> Self {
        let at = Self::ALL.iter().position(|pane| *pane == self).unwrap_or(0);
        Self::ALL[(at + step) % Self::ALL.len()]
    }
}

/// What fills the screen. Its row in the table of pages says what it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// The start screen.
    Start,
    /// The live view.
    Live,
    /// Runs side by side.
    Compare,
    /// Why a run failed.
    Diagnosis,
    /// What the figures mean.
    Findings,
    /// Inferences far from the others.
    Outliers,
    /// Results of the measurement mode.
    Modes,
    /// Where the nodes of an ONNX model ran.
    Placement,
    /// Activity and output of the tapped program.
    Program,
    /// The sessions of the history.
    Sessions,
    /// Two models layer by layer.
    Accuracy,
}

impl Page {
    /// How many there are.
    pub const COUNT: usize = Self::Accuracy as usize + 1;
}

/// Popups above the page; only the topmost gets keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overlay {
    /// All keys, scrolled.
    Help {
        /// First line shown.
        scroll: usize,
    },
    /// Choosing a model file.
    Picker(Picker),
    /// Entering the filter of the layers.
    Filter,
    /// Details of the selected layer, scrolled.
    Details {
        /// First line shown.
        scroll: usize,
    },
    /// Choosing another backend.
    Backends {
        /// Selected row.
        selected: usize,
    },
}

/// The frozen view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paused {
    /// Shown time, host monotonic microseconds.
    pub at_us: u64,
    /// Records folded by that time.
    pub records: u64,
}

/// One-time work of the loop besides drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A report of the session.
    Report,
}

/// A pending request to the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A new run; it exists once the store has more runs than this.
    Run {
        /// Description for display.
        what: String,
        /// Number of runs when it was requested.
        runs: usize,
    },
    /// The end of the run.
    Stop(RunId),
}

//! Charts as SVG. They use only a few fixed colours, so that a page can override them in dark mode.

mod draw;

pub use draw::{ChartError, WIDTH, height, svg};

/// A chart: what it shows, in words and figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Title.
    pub title: String,
    /// Label of the horizontal axis, with its unit.
    pub x: String,
    /// Label of the vertical axis, with its unit.
    pub y: String,
    /// The figures.
    pub plot: Plot,
}

/// Figures of a chart.
#[derive(Debug, Clone, PartialEq)]
pub enum Plot {
    /// A bar from each lower edge to the next one.
    Bins {
        /// Lower edge and height.
        bins: Vec<(f64, f64)>,
        /// Marker lines.
        marks: Vec<Mark>,
    },
    /// Values in sequence.
    Course {
        /// Position and value.
        points: Vec<(f64, f64)>,
        /// Marker lines.
        marks: Vec<Mark>,
    },
    /// A horizontal bar per name.
    Bars {
        /// Name and length.
        rows: Vec<(String, f64)>,
    },
}

/// A marker line at a position.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Its position.
    pub at: f64,
    /// What it is.
    pub label: String,
}

impl Chart {
    /// What it shows, in one sentence, for use as alternative text.
    pub fn in_words(&self) -> String {
        let marks = |marks: &[Mark]| {
            let told: Vec<String> = marks.iter().map(|mark| format!("{} at {:.3}", mark.label, mark.at)).collect();
            if told.is_empty() { String::new() } else { format!("; {}", told.join(", ")) }
        };
        match &self.plot {
            Plot::Bins { bins, marks: at } => {
                let peak = bins.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0.0, |bin| bin.0);
                format!("{}: most at {peak:.3} ({}){}", self.title, self.x, marks(at))
            }
            Plot::Course { points, marks: at } => {
                let (low, high) = points
                    .iter()
                    .fold((f64::MAX, f64::MIN), |(low, high), point| (low.min(point.1), high.max(point.1)));
                format!("{}: {low:.3} to {high:.3} {}{}", self.title, self.y, marks(at))
            }
            Plot::Bars { rows } => {
                let first: Vec<String> =
                    rows.iter().take(3).map(|(name, value)| format!("{name} {value:.1}")).collect();
                format!("{} ({}): {}", self.title, self.x, first.join(", "))
            }
        }
    }

    /// Applies `change` to every name in it.
    pub fn map(&mut self, change: &dyn Fn(&str) -> String) {
        match &mut self.plot {
            Plot::Bars { rows } => rows.iter_mut().for_each(|row| row.0 = change(&row.0)),
            Plot::Bins { marks, .. } | Plot::Course { marks, .. } => {
                for mark in marks {
                    mark.label = change(&mark.label);
                }
            }
        }
    }
}

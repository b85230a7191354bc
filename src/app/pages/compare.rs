//! Runs of the session side by side: which ones, the selection, and the comparison, cached because it costs more than a
//! frame may take.

use crate::analysis::compare::{
    CompareOptions, Comparison, LayerSort, RefusedOp, Side, TypeRow, compare, pool_rounds_of, sort_layers,
};
use crate::analysis::recommend::Recommendation;
use crate::app::layout::{WIDE, inside, split_bottom, split_top};
use crate::event::{RunId, clean_text};
use crate::report::recommendation_of_sides;
use crate::store::{Run, Store};
use ratatui::layout::Rect;
use std::time::Instant;

/// Minimum time between comparisons of unfinished runs, microseconds ...
const REFRESH_US: u64 = 1_000_000;
/// ... which is also at least this many times what the last comparison took.
const SHARE: u64 = 20;

/// A focusable part of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part {
    /// The figures.
    #[default]
    Figures,
    /// The layers, or the op types in place of them.
    Layers,
}

/// Selection and scroll state, and the resulting comparison.
#[derive(Debug, Default)]
pub struct Comparing {
    /// Excluded runs.
    pub left_out: Vec<RunId>,
    /// The run under the cursor.
    pub cursor: Option<RunId>,
    /// The baseline run; `None`: the first measured one.
    pub baseline: Option<RunId>,
    /// Order of the layers.
    pub sort: LayerSort,
    /// The focused part.
    pub part: Part,
    /// Only that part is shown.
    pub zoomed: bool,
    /// First figure shown.
    pub figures_top: usize,
    /// Selected layer.
    pub layer: usize,
    /// First layer shown.
    pub layers_top: usize,
    /// Op types and refused ops are shown in place of the layers.
    pub totals: bool,
    /// First row of these that is shown.
    pub totals_top: usize,
    /// The first run of each compared column.
    pub columns: Vec<RunId>,
    /// All runs of each column: rounds of a plan are launches of one column.
    pub members: Vec<Vec<RunId>>,
    /// The result.
    pub comparison: Option<Comparison>,
    /// The recommended backend, once all compared runs have ended.
    pub recommendation: Option<Recommendation>,
    /// Number and backend of each column.
    names: Vec<String>,
    heights: [usize; 2],
    taken: Option<Taken>,
}

/// What was compared and when.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Taken {
    runs: Vec<RunId>,
    baseline: Option<RunId>,
    ended: usize,
    records: u64,
    at_us: u64,
    cost_us: u64,
}

/// The sort orders in the order in which they are cycled, with their names.
const SORTS: [(LayerSort, &str); 6] = [
    (LayerSort::Difference, "largest difference"),
    (LayerSort::Winners, "faster first"),
    (LayerSort::Losers, "slower first"),
    (LayerSort::Time, "longest"),
    (LayerSort::Order, "order of the graph"),
    (LayerSort::Name, "name"),
];

impl Comparing {
    /// Updates the comparison for the store and the choice, unless done a moment ago.
    pub fn refresh(&mut self, store: &Store, frozen: bool, now_us: u64) {
        let chosen: Vec<&Run> = store.runs().iter().filter(|run| !self.left_out.contains(&run.id)).collect();
        let runs: Vec<RunId> = chosen.iter().map(|run| run.id).collect();
        let ended = chosen.iter().filter(|run| run.is_ended()).count();
        let baseline = self.baseline.filter(|id| runs.contains(id));
        if let Some(taken) = &self.taken {
            let same = taken.runs == runs && taken.baseline == baseline;
            let wait_us = REFRESH_US.max(taken.cost_us.saturating_mul(SHARE));
            let moved = ended < chosen.len()
                && taken.records != store.records()
                && now_us.saturating_sub(taken.at_us) >= wait_us;
            if same && (frozen || (taken.ended == ended && !moved)) {
                return;
            }
        }
        let begun = Instant::now();
        let each: Vec<Side> = chosen.iter().map(|run| Side::of(store, run)).collect();
        let (sides, members) = pool_rounds_of(&each);
        self.members = members.iter().map(|family| family.iter().map(|at| runs[*at]).collect()).collect();
        let at = baseline.and_then(|id| self.column_of(id));
        let options = CompareOptions { baseline: at, sort: self.sort, accuracy: Vec::new() };
        self.comparison = (!sides.is_empty()).then(|| compare(&sides, &options));
        let over = ended == chosen.len() && sides.len() > 1;
        self.recommendation = over.then(|| recommendation_of_sides(store, &chosen, &sides)).flatten();
        self.columns = self.members.iter().filter_map(|family| family.first().copied()).collect();
        self.names = (0..self.columns.len()).map(|column| self.name(store, column)).collect();
        let cost_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.taken = Some(Taken { runs, baseline, ended, records: store.records(), at_us: now_us, cost_us });
    }

    /// The column of a run.
    pub fn column_of(&self, run: RunId) -> Option<usize> {
        self.members.iter().position(|family| family.contains(&run))
    }

    /// Number and backend of a column's first run, and its number of rounds.
    fn name(&self, store: &Store, column: usize) -> String {
        let first = self.columns[column];
        let backend = store.run(first).map_or("", |run| run.plan.backend.name());
        let rounds = match self.members[column].len() {
            1 => String::new(),
            rounds => format!(" x{rounds}"),
        };
        format!("{} {backend}{rounds}", store.run_number(first).unwrap_or_default())
    }

    /// The heading of a column.
    pub fn column_name(&self, column: usize) -> &str {
        self.names.get(column).map_or("", String::as_str)
    }

    /// Clamps selections and scrolling to the existing content.
    pub fn settle(&mut self, store: &Store, layout: &CompareLayout) {
        let known = |id: RunId| store.run(id).is_some();
        self.cursor = self.cursor.filter(|id| known(*id)).or_else(|| store.runs().last().map(|run| run.id));
        // The header takes a row of each table.
        let height = |area| usize::from(layout.inside(area).height).saturating_sub(1);
        self.heights = [height(layout.figures), height(layout.layers)];
        let (rows, layers) = self.lengths();
        self.figures_top = self.figures_top.min(rows.saturating_sub(self.heights[0]));
        self.layer = self.layer.min(layers.saturating_sub(1));
        let shown = self.heights[1].max(1);
        self.layers_top = self.layers_top.clamp((self.layer + 1).saturating_sub(shown), self.layer);
        self.layers_top = self.layers_top.min(layers.saturating_sub(shown));
        self.totals_top = self.totals_top.min(self.total_rows().len().saturating_sub(shown));
    }

    fn lengths(&self) -> (usize, usize) {
        self.comparison.as_ref().map_or((0, 0), |comparison| (comparison.rows.len(), comparison.layers.len()))
    }

    /// Op types with a time in any run, and ops refused by backends.
    pub fn total_rows(&self) -> Vec<Total<'_>> {
        let Some(comparison) = &self.comparison else { return Vec::new() };
        let timed = comparison.op_types.iter().filter(|row| row.cells.iter().any(|cell| cell.time_us.is_some()));
        timed.map(Total::Type).chain(self.refused().into_iter().map(Total::Refused)).collect()
    }

    /// A sentence with `columns 2 and 3` replaced by the names above these columns: some runs may be
    /// excluded, so column numbers and run numbers differ.
    pub fn with_names(&self, text: &str) -> String {
        let mut pieces = text.split("column");
        let mut out = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let mut rest = piece.strip_prefix('s').unwrap_or(piece).trim_start();
            let mut names: Vec<&str> = Vec::new();
            loop {
                let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                let number = rest[..digits].parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let Some(name) = number.and_then(|column| self.names.get(column)) else { break };
                names.push(name);
                rest = &rest[digits..];
                match rest.strip_prefix(" and ").filter(|next| next.starts_with(|c: char| c.is_ascii_digit())) {
                    Some(next) => rest = next,
                    None => break,
                }
            }
            if names.is_empty() {
                out.push_str("column");
                rest = piece;
            }
            out.push_str(&names.join(" and "));
            out.push_str(rest);
        }
        out
    }

    /// Ops refused by backends, one sentence each.
    pub fn refused(&self) -> Vec<String> {
        let Some(comparison) = &self.comparison else { return Vec::new() };
        let sentence = |refused: &RefusedOp| {
            let kind = refused.op_type.as_ref().map_or_else(String::new, |kind| format!(" ({})", clean_text(kind)));
            let name = self.names.get(refused.column).map_or("a run", String::as_str);
            format!("{name} cannot run op `{}`{kind}", clean_text(&refused.op))
        };
        comparison.refused.iter().map(sentence).collect()
    }

    /// Shows op types and refused ops in place of the layers, or the layers again.
    pub fn toggle_totals(&mut self) {
        (self.totals, self.totals_top) = (!self.totals, 0);
        self.part = Part::Layers;
    }

    /// Moves within the focused part.
    pub fn step(&mut self, step: isize) {
        let (rows, layers) = self.lengths();
        match self.part {
            Part::Figures => {
                let last = rows.saturating_sub(self.heights[0]);
                self.figures_top = self.figures_top.saturating_add_signed(step).min(last);
            }
            Part::Layers if self.totals => {
                let last = self.total_rows().len().saturating_sub(self.heights[1].max(1));
                self.totals_top = self.totals_top.saturating_add_signed(step).min(last);
            }
            Part::Layers => {
                self.layer = self.layer.saturating_add_signed(step).min(layers.saturating_sub(1));
            }
        }
    }

    /// Selects the layer at this row of the list area.
    pub fn select(&mut self, row: usize) {
        let index = self.layers_top + row;
        if !self.totals && index < self.lengths().1 {
            self.layer = index;
        }
    }

    /// Rows per page of the focused part.
    pub fn page_rows(&self) -> usize {
        self.heights[usize::from(self.part == Part::Layers)]
    }

    /// Goes to another run of the session.
    pub fn step_run(&mut self, store: &Store, step: isize) {
        let runs = store.runs();
        let at = runs.iter().position(|run| Some(run.id) == self.cursor).unwrap_or(0);
        let at = at.saturating_add_signed(step).min(runs.len().saturating_sub(1));
        self.cursor = runs.get(at).map(|run| run.id);
    }

    /// Includes or excludes the run under the cursor.
    pub fn toggle(&mut self) {
        let Some(id) = self.cursor else { return };
        match self.left_out.iter().position(|out| *out == id) {
            Some(at) => drop(self.left_out.remove(at)),
            None => self.left_out.push(id),
        }
    }

    /// Makes the run under the cursor the baseline.
    pub fn set_baseline(&mut self) {
        self.left_out.retain(|out| Some(*out) != self.cursor);
        self.baseline = self.cursor;
    }

    /// Changes the sort order of the layers.
    pub fn step_sort(&mut self, step: isize) {
        let at = SORTS.iter().position(|(sort, _)| *sort == self.sort).unwrap_or(0);
        let at = (at + step.rem_euclid(6).unsigned_abs()) % SORTS.len();
        self.sort = SORTS[at].0;
        if let Some(comparison) = &mut self.comparison {
            sort_layers(&mut comparison.layers, self.sort);
        }
        (self.layer, self.layers_top) = (0, 0);
    }

    /// The sort order of the layers in words.
    pub fn sort_name(&self) -> &'static str {
        SORTS.iter().find(|(sort, _)| *sort == self.sort).map_or("", |(_, name)| name)
    }

    /// The run under the cursor and the selected layer's row in its op table, if any.
    pub fn selected_op(&self, store: &Store) -> Option<(RunId, usize)> {
        let id = self.cursor?;
        let run = store.run(id)?;
        let column = self.column_of(id)?;
        let names = &self.comparison.as_ref()?.layers.get(self.layer)?.cells.get(column)?.ops;
        let row = names.iter().find_map(|name| {
            let is_it =
                |row: &usize| run.op(*row).is_some_and(|op| op.name == *name) || run.ops.rows()[*row].name == *name;
            (0..run.ops.rows().len()).find(is_it)
        });
        Some((id, row?))
    }
}

/// A row of the list shown in place of the layers.
#[derive(Debug, Clone, PartialEq)]
pub enum Total<'a> {
    /// Ops of one type.
    Type(&'a TypeRow),
    /// An op refused by a backend, as a sentence.
    Refused(String),
}

/// Areas of the page; hidden ones are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompareLayout {
    /// Which runs, and how they differ.
    pub head: Rect,
    /// Figures.
    pub figures: Rect,
    /// Layers.
    pub layers: Rect,
    /// Parts have a line above them instead of a frame around them.
    pub rules: bool,
}

impl CompareLayout {
    /// The area inside the frame of a part at `area`.
    pub fn inside(&self, area: Rect) -> Rect {
        inside(area, self.rules)
    }

    /// The areas on a screen of this size for a head of this many rows.
    pub fn new(area: Rect, head_rows: usize, comparing: &Comparing) -> Self {
        let mut layout = Self { rules: area.width < WIDE.0 || area.height < WIDE.1, ..Self::default() };
        let (body, _) = split_bottom(area, u16::from(area.height > 1));
        if comparing.zoomed {
            match comparing.part {
                Part::Figures => layout.figures = body,
                Part::Layers => layout.layers = body,
            }
            return layout;
        }
        let rows = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let frame = if layout.rules { 1 } else { 2 };
        let (head, rest) = split_top(body, rows(head_rows).min(body.height / 4).saturating_add(frame));
        layout.head = head;
        let (figures, _) = comparing.lengths();
        let wanted = rows(figures.max(1)).saturating_add(1 + frame);
        (layout.figures, layout.layers) = split_top(rest, wanted.min(rest.height * 11 / 20));
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_get_the_names_of_their_runs() {
        let names = ["2 cpu", "5 htp", "11 gpu"].map(str::to_owned).to_vec();
        let comparing = Comparing { names, ..Comparing::default() };
        let told = |text: &str| comparing.with_names(text);
        assert_eq!(told("cpu (column 1), as columns 2 and 3 are"), "cpu (2 cpu), as 5 htp and 11 gpu are");
        assert_eq!(told("column 3"), "11 gpu");
        assert_eq!(told("column 4, columns of column 0 and column "), "column 4, columns of column 0 and column ");
    }
}

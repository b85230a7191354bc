//! Tables from ExecuTorch's Inspector: those that `save_data_to_tsv` writes and `print_data_tabular` prints.
//! It labels every figure with one unit; a delegate's cycles stay cycles.

use super::Import;
use super::draft::{Draft, metric};
use super::error::Problem;
use super::sample::Sample;
use crate::backends::profile_log::op_identifier;
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{OpUnit, Phase, Stage};

pub struct InspectorTable;

/// Columns that exist in every version.
const NAME: &str = "event_name";
const BLOCK: &str = "event_block_name";

impl Import for InspectorTable {
    fn kind(&self) -> &'static str {
        "executorch-inspector"
    }

    fn label(&self) -> &'static str {
        "table of ExecuTorch's Inspector"
    }

    fn is_it(&self, sample: &Sample) -> bool {
        let text = sample.text();
        text.lines().take(5).any(|line| line.contains(NAME) && line.contains(BLOCK) && cells(line).len() > 2)
    }

    fn read(&self, sample: &Sample, draft: &mut Draft) -> Result<(), Problem> {
        let bytes = sample.bytes()?;
        let text = String::from_utf8_lossy(&bytes);
        let mut rows = text.lines().map(cells).filter(|cells| cells.len() > 1);
        let header = rows.find(|cells| cells.contains(&NAME));
        let header: Vec<&str> = header.ok_or_else(|| Problem::content("it has no header line"))?;
        let at = |name: &str| header.iter().position(|cell| *cell == name);
        let (name_at, block_at) = (at(NAME), at(BLOCK));
        // `avg (ms)`, `avg (us)`, or without a unit.
        let (avg_at, scale_us) = header
            .iter()
            .position(|cell| *cell == "avg" || cell.starts_with("avg ("))
            .map(|at| {
                (
                    at,
                    if header[at].contains("us)") {
                        1.0
                    } else if header[at].contains("s)") && !header[at].contains("ms)") {
                        1e6
                    } else {
                        1000.0
                    },
                )
            })
            .ok_or_else(|| Problem::content("it has no column of averages"))?;
        let delegate_at = at("delegate_backend_name");
        let run = draft.run()?;
        run.is_summary = true;
        let (mut cycles, mut times, mut is_cut) = (Vec::new(), Vec::new(), false);
        for row in rows {
            let cell = |at: Option<usize>| at.and_then(|at| row.get(at)).copied().unwrap_or_default();
            let (name, block) = (cell(name_at), cell(block_at));
            let Some(value) = cell(Some(avg_at)).parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
            else {
                is_cut |= !name.is_empty() && row.len() <= avg_at;
                continue;
            };
            if cell(delegate_at).contains("Qnn") {
                run.backend = Backend::Htp;
            }
            let delegate = name.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
            match (name, delegate) {
                ("Method::execute", _) => run.inference(Phase::Clean, None, value * scale_us),
                ("Program::load_method", _) if run.done(Phase::Clean) == 0 => {
                    run.stage(0, Stage::ContextCreate, value * scale_us);
                }
                // The delegate's own figures: the column's unit does not apply to them, and the name contains
                // theirs.
                (_, Some((name, "cycles"))) if name != "Accelerator (execute) time" => {
                    run.backend = Backend::Htp;
                    cycles.push((op_identifier(name, false).name.to_owned(), value));
                }
                (_, Some((name, unit @ ("us" | "cycles" | "count" | "bytes")))) => {
                    run.metrics(Phase::Clean, vec![metric(name, unit, value)]);
                }
                (name, _) if name.starts_with("native_call_") && block == "Execute" => {
                    times.push((name.to_owned(), value * scale_us));
                }
                _ => {}
            }
        }
        let (ops, unit) = if cycles.is_empty() { (times, OpUnit::Us) } else { (cycles, OpUnit::Cycles) };
        if !ops.is_empty() {
            run.clean_level = ProfilingLevel::Detailed;
            run.rows(ops.iter().map(|op| (op.0.clone(), None)), unit);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; saturates")]
            run.op_values(Phase::Clean, ops.iter().map(|op| op.1.round() as u64).collect());
        }
        if run.done(Phase::Clean) == 0 && !run.has_rows() {
            return Err(Problem::content("it has neither a whole inference (Method::execute) nor ops"));
        }
        if is_cut {
            draft.note("the table is truncated");
        }
        draft.note("a table of averages: one figure for all inferences, and averages per layer");
        Ok(())
    }
}

/// Cells of a line: between tabs, or between the bars of a printed table. Ruler lines have none.
fn cells(line: &str) -> Vec<&str> {
    let bar = if line.contains('│') {
        '│'
    } else if line.trim_start().starts_with('|') {
        '|'
    } else {
        '\t'
    };
    let cells: Vec<&str> = line.split(bar).map(str::trim).collect();
    match (bar, cells.as_slice()) {
        ('\t', _) => cells,
        // The outer bars add an empty cell at each end.
        (_, [_, inner @ .., _]) => inner.to_vec(),
        _ => Vec::new(),
    }
}

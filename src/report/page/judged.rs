//! The outputs of a run compared with known correct ones.

use super::overview::dash;
use super::{Block, Table};
use crate::report::judged::shown;
use crate::report::mask::Mask;
use crate::store::Run;
use crate::text::counted;

/// Maximum number of figures in a short report.
const BRIEF: usize = 14;

/// A table of the figures, or why there are none.
pub fn blocks(run: &Run, mask: &Mask) -> Vec<Block> {
    let Some(judged) = &run.judged else { return Vec::new() };
    let truth = mask.name(&judged.truth);
    if let Some(reason) = &judged.error {
        return vec![Block::Warning(format!("Not judged by {truth}: {reason}"))];
    }
    let over = counted(u64::from(judged.inferences), "inference");
    let mut blocks = vec![Block::Text(format!("Against {truth}, over {over}."))];
    let mut table = Table::new(&["output", "figure", "#value", "#worst inference", "#its number"], BRIEF);
    for output in &judged.outputs {
        for figure in &output.figures {
            let value = |value: f64| shown(figure.metric, value);
            let none = if output.identical { "identical" } else { "not defined" };
            table.rows.push(vec![
                mask.name(&output.name).into_owned(),
                figure.metric.label().to_owned(),
                figure.value.map_or_else(|| none.to_owned(), value),
                dash(figure.worst.map(value)),
                dash(figure.worst_inference.map(|at| at.to_string())),
            ]);
        }
    }
    blocks.push(Block::Table(table));
    for output in &judged.outputs {
        let name = mask.name(&output.name);
        if output.not_finite > 0 {
            let lost = counted(output.not_finite, "value");
            blocks.push(Block::Warning(format!("{lost} of {name} are left out: NaN or infinite.")));
        }
        if let Some(axes) = &output.permutation {
            blocks.push(Block::Text(format!("{name} is compared with axes {axes} of the expected output.")));
        }
    }
    blocks.extend(judged.notes.iter().cloned().map(Block::Text));
    blocks
}

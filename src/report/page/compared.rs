//! Runs side by side.

use super::{Block, Material, Section, Table};
use crate::analysis::compare::Better;
use crate::report::comparison::{short, value_text};
use crate::text::duration_text;

/// Maximum number of layers of a comparison on a page.
const LAYERS: usize = 200;
/// Maximum number of figures and layers in a short report.
const BRIEF_FIGURES: usize = 14;
const BRIEF_LAYERS: usize = 10;

pub fn sections(material: &Material<'_>) -> Vec<Section> {
    let Some(report) = &material.comparison else { return Vec::new() };
    let comparison = &report.comparison;
    let name = |column: usize| {
        let base = if column == comparison.baseline { " (base)" } else { "" };
        format!("#{} {}{base}", column + 1, report.sides[column].name())
    };
    let columns: Vec<usize> = (0..report.sides.len()).collect();
    let names: Vec<String> = columns.iter().map(|column| name(*column)).collect();
    let heads =
        |first: &'static str| std::iter::once(first).chain(names.iter().map(String::as_str)).collect::<Vec<_>>();
    let mut blocks = Vec::new();
    for mismatch in &comparison.mismatches {
        blocks.push(Block::Warning(mismatch.text.clone()));
    }
    let mut figures = Table::new(&heads("figure"), BRIEF_FIGURES);
    for row in &comparison.rows {
        let cell = |column: usize| {
            let cell = &row.cells[column];
            let best = if cell.best { "* " } else { "" };
            let value = cell.value.map_or_else(|| "–".to_owned(), |value| value_text(value, &row.unit));
            let difference = match row.better {
                Better::Neither => String::new(),
                _ => short(cell.difference.as_ref()),
            };
            format!("{best}{value} {difference}").trim_end().to_owned()
        };
        figures
            .rows
            .push(std::iter::once(row.label.clone()).chain(columns.iter().map(|column| cell(*column))).collect());
    }
    blocks.push(Block::Table(figures));
    blocks.push(Block::Text(
        "* best of the row. ≈ no significant difference: launches vary as much. ? not tested: one launch, or measured once. Differences are from the base."
            .to_owned(),
    ));
    if let Some(recommendation) = &report.recommendation {
        blocks.push(Block::Text(recommendation.summary.clone()));
    }
    let mut sections = vec![Section { title: "Comparison".to_owned(), is_sub: false, blocks }];
    if comparison.layers.iter().any(|row| row.cells.iter().any(|cell| cell.time_us.is_some())) {
        let mut layers = Table::new(&heads("layer"), BRIEF_LAYERS);
        layers.columns.insert(1, ("type".to_owned(), false));
        layers.is_long = comparison.layers.len() > 30;
        for row in comparison.layers.iter().take(LAYERS) {
            let cells = row.cells.iter().map(|cell| cell.time_us.map_or_else(|| "–".to_owned(), duration_text));
            let kind = row.op_type.clone().unwrap_or_default();
            layers.rows.push([row.name.clone(), kind].into_iter().chain(cells).collect());
        }
        let mut blocks = vec![Block::Table(layers)];
        if comparison.layers.len() > LAYERS {
            blocks.push(Block::Text(format!(
                "{} of {} layers, those that differ most.",
                LAYERS,
                comparison.layers.len()
            )));
        }
        sections.push(Section { title: "Layers side by side".to_owned(), is_sub: true, blocks });
    }
    let mut accuracy = Table::new(&["#run", "similarity of the outputs to the reference"], BRIEF_FIGURES);
    for (column, known) in report.accuracy.iter().enumerate() {
        let text = match known {
            Some(Ok(known)) if known.identical => "identical".to_owned(),
            Some(Ok(known)) => {
                let figure = |name: &str, value: Option<f64>, digits: usize, unit: &str| {
                    value.map(|value| format!("{name} {value:.digits$}{unit}"))
                };
                let parts = [
                    figure("cosine similarity", known.cosine, 6, ""),
                    figure("SQNR", known.sqnr_db, 1, " dB"),
                    Some(format!("largest error {:.3e}", known.max_abs_error)),
                    figure("top-1 agreement", known.top1.map(|part| 100.0 * part), 0, " %"),
                ];
                parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
            }
            Some(Err(reason)) => reason.clone(),
            None => continue,
        };
        accuracy.rows.push(vec![(column + 1).to_string(), text]);
    }
    if !accuracy.rows.is_empty() {
        let text = format!("The reference is run {}.", report.reference + 1);
        let blocks = vec![Block::Table(accuracy), Block::Text(text)];
        sections.push(Section { title: "Accuracy".to_owned(), is_sub: true, blocks });
    }
    if !comparison.refused.is_empty() {
        let mut refused = Table::new(&["#run", "refused op", "type"], BRIEF_LAYERS);
        for op in &comparison.refused {
            refused.rows.push(vec![(op.column + 1).to_string(), op.op.clone(), op.op_type.clone().unwrap_or_default()]);
        }
        sections.push(Section { title: "Refused ops".to_owned(), is_sub: true, blocks: vec![Block::Table(refused)] });
    }
    sections
}

//! All charts of a report below each other, as one picture.

use super::html::escaped;
use super::{ExportError, MARK};
use crate::report::charts::{Chart, WIDTH, height, svg};
use crate::report::page::{Block, Material, Page};
use std::fmt::Write;

/// Height of a title.
const TITLE: u32 = 34;

/// The picture.
pub fn make(material: &Material<'_>) -> Result<Vec<u8>, ExportError> {
    let page = Page::of(material);
    let mut charts: Vec<(String, &Chart)> = Vec::new();
    let mut run = "";
    for section in &page.sections {
        if !section.is_sub {
            run = &section.title;
        }
        for block in &section.blocks {
            if let Block::Chart(chart) = block {
                charts.push((format!("{run}: {}", chart.title), chart));
            }
        }
    }
    if charts.is_empty() {
        return Err(ExportError::Nothing { reason: "no run has enough inferences, layers or counters for a chart" });
    }
    let whole = charts.iter().map(|(_, chart)| TITLE + height(chart)).sum::<u32>() + TITLE;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{whole}\" viewBox=\"0 0 {WIDTH} {whole}\">\n\
         <!-- {MARK} -->\n<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>\n"
    );
    let text = |out: &mut String, y: u32, size: u32, text: &str| {
        let _ = writeln!(
            out,
            "<text x=\"8\" y=\"{y}\" font-family=\"sans-serif\" font-size=\"{size}\" fill=\"#1F2328\">{}</text>",
            escaped(text)
        );
    };
    text(&mut out, 22, 16, &format!("{} ({})", page.title, page.subtitle));
    let mut y = TITLE;
    for (title, chart) in charts {
        text(&mut out, y + 24, 14, &title);
        let drawn = svg(chart)?;
        let placed = drawn.replacen("<svg ", &format!("<svg y=\"{}\" ", y + TITLE), 1);
        out.push_str(&placed);
        y += TITLE + height(chart);
    }
    out.push_str("</svg>\n");
    Ok(out.into_bytes())
}

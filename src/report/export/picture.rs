//! All charts of a report stacked in one picture, as vectors or pixels.

use super::html::escaped;
use super::{ExportError, MARK};
use crate::report::charts::{Chart, WIDTH, height, svg};
use crate::report::page::{Block, Material, Page};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};
use std::fmt::Write;

/// Height of a title, pixels.
const TITLE: u32 = 34;

/// Pixels per unit of the picture, and the maximum height of a picture.
const SCALE: f32 = 2.0;
const MOST_PIXELS: f32 = 16_000.0;
/// Fonts for text; the first available one is used.
const FONTS: [&str; 6] = ["DejaVu Sans", "Noto Sans", "Liberation Sans", "Roboto", "Arial", "Helvetica"];

/// The picture as PNG, with the fonts of this machine.
pub fn png(material: &Material<'_>) -> Result<Vec<u8>, ExportError> {
    let failed = |reason: String| ExportError::Write { format: "PNG picture", reason };
    let svg = make(material)?;
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    let family = family(fonts).ok_or(ExportError::Nothing {
        reason: "this machine has no fonts; install one (such as fonts-dejavu-core), or write a .svg",
    })?;
    fonts.set_sans_serif_family(family);
    let tree = Tree::from_data(&svg, &options).map_err(|error| failed(error.to_string()))?;
    let size = tree.size();
    let scale = SCALE.min(MOST_PIXELS / size.height());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above, and positive")]
    let pixels = |length: f32| (length * scale).ceil() as u32;
    let mut pixmap = Pixmap::new(pixels(size.width()), pixels(size.height()))
        .ok_or_else(|| failed("there is not enough memory for its pixels".to_owned()))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    let (width, height) = (pixmap.width(), pixmap.height());
    encoded(&pixmap.take_demultiplied(), width, height).map_err(|error| failed(error.to_string()))
}

/// Pixels as a PNG file that names its creator, which allows a later report to replace it.
fn encoded(pixels: &[u8], width: u32, height: u32) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.add_text_chunk("Software".to_owned(), MARK.to_owned())?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes)
}

fn family(fonts: &fontdb::Database) -> Option<String> {
    let families = || fonts.faces().flat_map(|face| face.families.iter().map(|family| family.0.as_str()));
    let known = FONTS.iter().copied().find(|wanted| families().any(|family| family == *wanted));
    known.or_else(|| families().next()).map(ToOwned::to_owned)
}

/// The picture as SVG.
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

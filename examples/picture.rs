//! Draws the documentation's pictures as SVG: a screen of the live view from a recorded session, or a
//! program's text.
//!
//!     picture screen SESSION 120x36 OUT.svg [ACTION...]   # actions as key files name them: next-run, findings, down, ...
//!     picture text 100 OUT.svg TITLE < TEXT               # a hundred columns wide, as high as the text is
//!
//! `scripts/pictures.sh` makes all pictures from real runs.

#![allow(clippy::print_stderr, reason = "a tool for the command line")]

use qnnscope::app::{KeyAction, StartChoice, Theme, View, draw, update};
use qnnscope::session::SessionReader;
use qnnscope::store::Store;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Size of a character cell, in pixels, for 14 px type.
const CELL: (f64, f64) = (8.4, 17.0);
/// Margin around the screen, in pixels.
const MARGIN: f64 = 12.0;
const INK: &str = "#d8dee9";
const PAPER: &str = "#1b1f27";
/// The sixteen terminal colours, for themes that use them.
const ANSI: [&str; 16] = [
    "#2e3440", "#bf616a", "#a3be8c", "#ebcb8b", "#81a1c1", "#b48ead", "#88c0d0", "#e5e9f0", "#4c566a", "#d57780",
    "#b4d29a", "#f4dc9f", "#9cbcdc", "#c9a3c4", "#9fd6e4", "#eceff4",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let made = match words.as_slice() {
        ["screen", session, size, out, actions @ ..] => screen(Path::new(session), size, actions).map(|svg| (svg, out)),
        ["text", columns, out, title] => text(columns, title).map(|svg| (svg, out)),
        _ => {
            Err("usage: picture screen SESSION WxH OUT [ACTION...] | picture text COLUMNS OUT TITLE < TEXT".to_owned())
        }
    };
    match made.and_then(|(svg, out)| std::fs::write(out, svg).map_err(|error| format!("{out}: {error}"))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("picture: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// The live view at the end of a session, after some actions.
fn screen(session: &Path, size: &str, actions: &[&str]) -> Result<String, String> {
    let (width, height) = size
        .split_once('x')
        .and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)))
        .ok_or_else(|| format!("`{size}` is no size such as 120x36"))?;
    let mut store = Store::new();
    for record in SessionReader::open(session).map_err(|error| error.to_string())? {
        store.apply(&record.map_err(|error| error.to_string())?);
    }
    let run = store.runs().first().ok_or("the session has no run")?;
    let choice = StartChoice {
        device: run.plan.device.clone(),
        model: PathBuf::from(&run.plan.model),
        backends: store.runs().iter().map(|run| run.plan.backend).collect(),
    };
    let mut view = View::live(&choice, Vec::new(), Vec::new());
    let theme = Theme::shipped("dark").ok_or("the dark theme is gone")?;
    let (area, now_us) = (Rect::new(0, 0, width, height), store.now_us());
    while view.prepare(&store, area, now_us) {}
    for name in actions {
        let action = KeyAction::ALL.iter().find(|action| action.name() == *name);
        let action = action.ok_or_else(|| format!("`{name}` is no action of a key"))?;
        let _ = update(&mut view, &store, (*action).into());
        while view.prepare(&store, area, now_us) {}
    }
    let mut terminal = Terminal::new(TestBackend::new(width, height)).map_err(|error| error.to_string())?;
    let drawn = terminal.draw(|frame| draw(frame, &store, &view, &theme, now_us)).map_err(|error| error.to_string())?;
    Ok(svg(drawn.buffer, "qnnscope"))
}

/// Text as a terminal displays it.
fn text(columns: &str, title: &str) -> Result<String, String> {
    let columns: u16 = columns.parse().map_err(|_| format!("`{columns}` is no number of columns"))?;
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let height = u16::try_from(lines.len()).map_err(|_| "too many lines")?;
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, height));
    for (row, line) in (0..).zip(lines) {
        buffer.set_string(0, row, line, ratatui::style::Style::default());
    }
    Ok(svg(&buffer, title))
}

/// A buffer as an SVG image that any browser can display.
fn svg(buffer: &Buffer, title: &str) -> String {
    let (columns, rows) = (usize::from(buffer.area.width), f64::from(buffer.area.height));
    let (width, height) = (columns as f64 * CELL.0 + 2.0 * MARGIN, rows * CELL.1 + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n",
        escaped(title)
    );
    for (row, cells) in buffer.content.chunks(columns).enumerate() {
        let y = MARGIN + row as f64 * CELL.1;
        let mut column = 0;
        for run in cells.chunk_by(|a, b| look(a) == look(b)) {
            let (ink, paper, bold) = look(&run[0]);
            let (x, span) = (MARGIN + column as f64 * CELL.0, run.len() as f64 * CELL.0);
            column += run.len();
            if paper != PAPER {
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{span:.1}\" height=\"{}\" fill=\"{paper}\"/>",
                    CELL.1
                );
            }
            let words: String = run.iter().map(Cell::symbol).collect();
            if words.trim().is_empty() {
                continue;
            }
            let weight = if bold { " font-weight=\"bold\"" } else { "" };
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"{ink}\"{weight} textLength=\"{span:.1}\" \
                 lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\">{}</text>",
                y + 13.0,
                escaped(&words)
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Foreground, background and weight of a cell.
fn look(cell: &Cell) -> (String, String, bool) {
    let (ink, paper) = (color(cell.fg, INK), color(cell.bg, PAPER));
    let bold = cell.modifier.contains(Modifier::BOLD);
    if cell.modifier.contains(Modifier::REVERSED) { (paper, ink, bold) } else { (ink, paper, bold) }
}

fn color(color: Color, otherwise: &str) -> String {
    let ansi = |index: u8| ANSI.get(usize::from(index)).map_or(otherwise, |color| *color).to_owned();
    match color {
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
        Color::Indexed(index) => ansi(index),
        Color::Black => ansi(0),
        Color::Red => ansi(1),
        Color::Green => ansi(2),
        Color::Yellow => ansi(3),
        Color::Blue => ansi(4),
        Color::Magenta => ansi(5),
        Color::Cyan => ansi(6),
        Color::Gray => ansi(7),
        Color::DarkGray => ansi(8),
        Color::LightRed => ansi(9),
        Color::LightGreen => ansi(10),
        Color::LightYellow => ansi(11),
        Color::LightBlue => ansi(12),
        Color::LightMagenta => ansi(13),
        Color::LightCyan => ansi(14),
        Color::White => ansi(15),
        Color::Reset => otherwise.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

//! The width of text output.

use std::io::IsTerminal;

/// Columns if there is no terminal to ask.
const PIPED_WIDTH: usize = 160;

/// Columns of the terminal, or a fixed width for files and pipes.
pub fn text_width() -> usize {
    let columns = std::io::stdout().is_terminal().then(crossterm::terminal::size).and_then(Result::ok);
    columns.map_or(PIPED_WIDTH, |(columns, _)| usize::from(columns).max(40))
}

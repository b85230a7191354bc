//! How wide texts are.

use std::io::IsTerminal;

/// Columns where no terminal tells.
const PIPED_WIDTH: usize = 160;

/// Columns of the terminal, or a width for files and pipes.
pub fn text_width() -> usize {
    let columns = std::io::stdout().is_terminal().then(crossterm::terminal::size).and_then(Result::ok);
    columns.map_or(PIPED_WIDTH, |(columns, _)| usize::from(columns).max(40))
}

//! The characters for drawing: a Unicode set and an ASCII set.

use ratatui::symbols::border;

/// One set of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbols {
    /// Lines around panes.
    pub border: border::Set<'static>,
    /// Level bars from empty to full; the last one is a full cell.
    pub levels: &'static [&'static str],
    /// Horizontal parts of a cell from empty to full.
    pub parts: &'static [&'static str],
    /// Charts of dots (Braille) can be drawn.
    pub braille: bool,
    /// Marks the selected row.
    pub marker: &'static str,
    /// Succeeded.
    pub ok: &'static str,
    /// Failed.
    pub failed: &'static str,
    /// In progress.
    pub active: &'static str,
    /// Ended by the user.
    pub stopped: &'static str,
    /// Pending.
    pub waiting: &'static str,
    /// Prefix of derived figures.
    pub approx: &'static str,
    /// Placeholder for a missing figure.
    pub missing: &'static str,
    /// Marks truncated text.
    pub ellipsis: &'static str,
    /// Separates words on one line.
    pub dot: &'static str,
    /// The unit of microseconds.
    pub micro: &'static str,
    /// Completed and remaining progress.
    pub progress: (&'static str, &'static str),
    /// Descending and ascending order.
    pub sorted: (&'static str, &'static str),
    /// There is more above, and below.
    pub more: (&'static str, &'static str),
    /// Ticked and unticked boxes.
    pub ticks: (&'static str, &'static str),
    /// Chosen and other choices.
    pub radios: (&'static str, &'static str),
    /// Text cursor.
    pub cursor: &'static str,
    /// Multiplication.
    pub times: &'static str,
    /// From here to there.
    pub arrow: &'static str,
    /// Vertical line between columns.
    pub divider: &'static str,
    /// Horizontal line.
    pub line: &'static str,
}

/// Characters in sentences of the analysis, and their ASCII replacements.
const PLAIN: [(char, &str); 12] = [
    ('µ', "u"),
    ('±', "+-"),
    ('×', "x"),
    ('≥', ">="),
    ('≤', "<="),
    ('≈', "~"),
    ('→', "->"),
    ('–', "-"),
    ('−', "-"),
    ('…', "..."),
    ('·', "|"),
    ('²', "2"),
];

impl Symbols {
    /// One of qnnscope's sentences in these characters. Foreign names stay unchanged.
    pub fn sentence(&self, text: String) -> String {
        if self.braille || text.is_ascii() {
            return text;
        }
        let plain = |c: char| PLAIN.iter().find(|(known, _)| *known == c).map(|(_, plain)| *plain);
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match plain(c) {
                Some(plain) => out.push_str(plain),
                None => out.push(c),
            }
        }
        out
    }
}

/// Unicode.
pub const UNICODE: Symbols = Symbols {
    border: border::ROUNDED,
    levels: &[" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    parts: &[" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"],
    braille: true,
    marker: "▸",
    ok: "✓",
    failed: "✗",
    active: "●",
    stopped: "■",
    waiting: "○",
    approx: "≈",
    missing: "–",
    ellipsis: "…",
    dot: "·",
    micro: "µs",
    progress: ("━", "─"),
    sorted: ("▼", "▲"),
    more: ("▲", "▼"),
    ticks: ("[✓]", "[ ]"),
    radios: ("(•)", "( )"),
    cursor: "▏",
    times: "×",
    arrow: "→",
    divider: "│",
    line: "─",
};

/// ASCII.
pub const ASCII: Symbols = Symbols {
    border: border::Set {
        top_left: "+",
        top_right: "+",
        bottom_left: "+",
        bottom_right: "+",
        vertical_left: "|",
        vertical_right: "|",
        horizontal_top: "-",
        horizontal_bottom: "-",
    },
    levels: &[" ", ".", ":", "#"],
    parts: &[" ", "="],
    braille: false,
    marker: ">",
    ok: "ok",
    failed: "x",
    active: "*",
    stopped: "#",
    waiting: ".",
    approx: "~",
    missing: "-",
    ellipsis: "...",
    dot: "|",
    micro: "us",
    progress: ("=", "-"),
    sorted: ("v", "^"),
    more: ("^", "v"),
    ticks: ("[x]", "[ ]"),
    radios: ("(*)", "( )"),
    cursor: "_",
    times: "x",
    arrow: "->",
    divider: "|",
    line: "-",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_lose_what_ascii_has_not() {
        let text = "±5 % of 200 µs → 1.2 × p50, in größe.dlc";
        assert_eq!(ASCII.sentence(text.to_owned()), "+-5 % of 200 us -> 1.2 x p50, in größe.dlc");
        assert_eq!(UNICODE.sentence(text.to_owned()), text);
    }
}

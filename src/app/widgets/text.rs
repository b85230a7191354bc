//! Text, clipped; frames of panes and popups.

use crate::app::theme::{Meaning, Theme};
use crate::text;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::borrow::Cow;
use unicode_width::UnicodeWidthStr;

/// Width of a text in columns.
pub fn width(text: &str) -> u16 {
    u16::try_from(text.width()).unwrap_or(u16::MAX)
}

/// Writes `text` at column `x` and row `y` of `area`, clipped. Returns the next free column.
pub fn put(buf: &mut Buffer, area: Rect, x: u16, y: u16, text: &str, style: Style) -> u16 {
    let clip = area.intersection(buf.area);
    let (left, top) = (area.x.saturating_add(x), area.y.saturating_add(y));
    if clip.is_empty() || left >= clip.right() || left < clip.left() || top >= clip.bottom() || top < clip.top() {
        return x;
    }
    let room = usize::from(clip.right() - left);
    let (end, _) = buf.set_stringn(left, top, text, room, style);
    end - area.x
}

/// Writes `text` so that it ends before column `end`; text beyond `room` columns is cut and marked.
#[expect(clippy::too_many_arguments, reason = "a place, a size and a look, each of them plain")]
pub fn put_right(buf: &mut Buffer, area: Rect, end: u16, room: u16, y: u16, text: &str, style: Style, ellipsis: &str) {
    let text = fit(text, room, ellipsis);
    let start = end.saturating_sub(width(&text));
    put(buf, area, start, y, &text, style);
}

/// Writes pieces one after another.
fn spans(buf: &mut Buffer, area: Rect, x: u16, y: u16, pieces: &[(&str, Style)]) -> u16 {
    pieces.iter().fold(x, |x, (text, style)| put(buf, area, x, y, text, *style))
}

/// `text` in at most `room` columns. A longer one loses its middle: both the start and the end of a name distinguish
/// it, the end more so.
pub fn fit<'a>(text: &'a str, room: u16, ellipsis: &str) -> Cow<'a, str> {
    let room = usize::from(room);
    if text.width() <= room {
        return Cow::Borrowed(text);
    }
    let mark = ellipsis.width();
    if room <= mark {
        return Cow::Owned(take(text.chars(), room));
    }
    let head = (room - mark) / 4;
    let tail: String = take(text.chars().rev(), room - mark - head).chars().rev().collect();
    Cow::Owned(format!("{}{ellipsis}{tail}", take(text.chars(), head)))
}

/// `text` in at most `room` columns. A longer one loses its end; for text that is read, not compared.
pub fn fit_end<'a>(text: &'a str, room: u16, ellipsis: &str) -> Cow<'a, str> {
    let room = usize::from(room);
    if text.width() <= room {
        return Cow::Borrowed(text);
    }
    let head = take(text.chars(), room.saturating_sub(ellipsis.width()));
    Cow::Owned(if room > ellipsis.width() { head + ellipsis } else { take(text.chars(), room) })
}

fn take(chars: impl Iterator<Item = char>, room: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for c in chars {
        used += unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
        if used > room {
            break;
        }
        out.push(c);
    }
    out
}

/// `text` in lines of at most `room` columns, broken at spaces if possible.
pub fn wrap(text: &str, room: u16) -> Vec<String> {
    text::wrap(text, usize::from(room))
}

/// `text` in lines of at most `room` columns, with its spaces preserved: for text that is copied or compared.
pub fn wrap_literal(text: &str, room: u16) -> Vec<String> {
    let mut rest = text;
    let mut lines = Vec::new();
    loop {
        let head = take(rest.chars(), usize::from(room.max(1)));
        // A single character wider than the room cannot be shortened.
        let cut = if head.is_empty() { rest.chars().next().map_or(0, char::len_utf8) } else { head.len() };
        lines.push(rest[..cut].to_owned());
        rest = &rest[cut..];
        if rest.is_empty() {
            return lines;
        }
    }
}

/// Draws the frame of a pane and returns the inner area. With `rule` there is only a line above, which saves a row
/// and two columns on small terminals. The title is a list of pieces.
pub fn pane(buf: &mut Buffer, area: Rect, title: &[(&str, Style)], focused: bool, rule: bool, theme: &Theme) -> Rect {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return area;
    }
    let style = theme.style(if focused { Meaning::BorderFocus } else { Meaning::Border });
    let set = &theme.symbols.border;
    let line: String = set.horizontal_top.repeat(usize::from(area.width));
    put(buf, area, 0, 0, &line, style);
    let boxed = !rule && area.width >= 2 && area.height >= 2;
    let inner = if boxed {
        put(buf, area, 0, 0, set.top_left, style);
        put(buf, area, area.width - 1, 0, set.top_right, style);
        for y in 1..area.height - 1 {
            put(buf, area, 0, y, set.vertical_left, style);
            put(buf, area, area.width - 1, y, set.vertical_right, style);
        }
        let line: String = set.horizontal_bottom.repeat(usize::from(area.width - 2));
        put(buf, area, 1, area.height - 1, &line, style);
        put(buf, area, 0, area.height - 1, set.bottom_left, style);
        put(buf, area, area.width - 1, area.height - 1, set.bottom_right, style);
        Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 }
    } else {
        Rect { y: area.y + 1, height: area.height - 1, ..area }
    };
    // The corner and a piece of line stay on the right, so that the frame is visible whatever the title.
    let room = Rect { width: area.width.saturating_sub(3), height: 1, ..area };
    let mut x = 2;
    if focused {
        x = put(buf, room, x - 1, 0, theme.symbols.marker, style);
    }
    if !title.is_empty() {
        x = put(buf, room, x, 0, " ", style);
        x = spans(buf, room, x, 0, title);
        put(buf, room, x, 0, " ", style);
    }
    inner
}

/// Clears a box of at most `width` by `height` in the middle of `area`, frames it and returns the inner area.
pub fn popup(buf: &mut Buffer, area: Rect, width: u16, height: u16, title: &[(&str, Style)], theme: &Theme) -> Rect {
    let area = area.intersection(buf.area);
    let (width, height) = (width.min(area.width), height.min(area.height));
    let place = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    clear(buf, place, theme);
    let framed = pane(buf, place, title, true, false, theme);
    // One column of padding on both sides.
    Rect {
        x: framed.x + u16::from(framed.width > 2),
        width: framed.width.saturating_sub(2).max(framed.width.min(1)),
        ..framed
    }
}

fn clear(buf: &mut Buffer, area: Rect, theme: &Theme) {
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            if let Some(cell) = buf.cell_mut((x, y)) {
                cell.reset();
                cell.set_style(theme.style(Meaning::Text));
            }
        }
    }
}

/// Marks at the right end of the frame lines above and below `inner` that rows are hidden there.
pub fn scroll_marks(buf: &mut Buffer, inner: Rect, above: usize, below: usize, theme: &Theme) {
    let style = theme.style(Meaning::Muted);
    let (up, down) = theme.symbols.more;
    let mut say = |y: u16, sign: &str, rows: usize| {
        let text = format!(" {sign} {} ", super::super::format::count(rows as u64));
        let left = inner.right().saturating_sub(width(&text) + 1);
        let row = Rect { x: inner.x, y, width: inner.width, height: 1 };
        if left > inner.x {
            put(buf, row, left - inner.x, 0, &text, style);
        }
    };
    if above > 0 && inner.y > 0 {
        say(inner.y - 1, up, above);
    }
    if below > 0 {
        say(inner.bottom(), down, below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(fit("short", 8, "…"), "short");
        assert_eq!(fit("model/block_7/conv2d", 11, "…"), "mo…7/conv2d");
        assert_eq!(fit_end("DepthWiseConv2d", 10, "…"), "DepthWise…");
        assert_eq!(fit("abcdef", 1, "…"), "a");
        assert_eq!(fit("abcdef", 0, "…"), "");
        assert_eq!(width(&fit("日本語の名前です", 6, "…")), 5);
    }

    #[test]
    fn copied_text_keeps_its_spaces() {
        assert_eq!(wrap_literal("  a  bcd", 4), ["  a ", " bcd"]);
        assert_eq!(wrap_literal("日本", 1), ["日", "本"]);
        assert_eq!(wrap_literal("", 4), [""]);
    }

    #[test]
    fn nothing_is_drawn_outside() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 4, 2));
        put(&mut buf, Rect::new(0, 0, 10, 10), 2, 1, "abcdef", Style::default());
        put(&mut buf, Rect::new(0, 0, 10, 10), 9, 9, "x", Style::default());
        put(&mut buf, Rect::new(7, 7, 3, 3), 0, 0, "x", Style::default());
        assert_eq!(buf, Buffer::with_lines(["    ", "  ab"]));
    }
}

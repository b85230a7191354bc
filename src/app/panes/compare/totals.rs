//! Op types and refused ops of the compared runs.

use super::{COLUMN, DIFFERENCE, Drawn, label_room};
use crate::app::format;
use crate::app::pages::{Part, Total};
use crate::app::panes::status;
use crate::app::theme::Meaning;
use crate::app::widgets::{fit, put, put_right, scroll_marks};
use crate::event::clean_text;
use ratatui::buffer::Buffer;

impl Drawn<'_> {
    /// Op types and refused ops, in place of the layers.
    pub(super) fn totals(&self, buf: &mut Buffer, baseline: usize) {
        let (context, symbols) = (self.context, self.context.symbols());
        let all = self.comparing.total_rows();
        let types = all.iter().filter(|row| matches!(row, Total::Type(_))).count();
        let words = [
            ("op types".to_owned(), Meaning::Title),
            (status::plural(types as u64, "type"), Meaning::Muted),
            (format!("{} refused", status::plural((all.len() - types) as u64, "op")), Meaning::Muted),
            ("time of the layers they lead".to_owned(), Meaning::Muted),
        ];
        let inner = self.frame(buf, self.layout.layers, Some(Part::Layers), &words);
        if all.is_empty() {
            context.empty(buf, inner, "no selected run has layer times, and no op was refused");
            return;
        }
        let label = label_room(inner, self.comparing.columns.len(), u16::MAX);
        let columns = self.header(buf, inner, label, baseline);
        let rows = usize::from(inner.height.saturating_sub(1));
        let top = self.comparing.totals_top.min(all.len().saturating_sub(rows));
        for (y, row) in (1..inner.height).zip(all.iter().skip(top)) {
            let row = match row {
                Total::Refused(text) => {
                    let text = fit(text, inner.width.saturating_sub(2), symbols.ellipsis);
                    put(buf, inner, 1, y, &text, context.style(Meaning::Warn));
                    continue;
                }
                Total::Type(row) => row,
            };
            let name = clean_text(&row.op_type);
            put(buf, inner, 1, y, &fit(&name, label.saturating_sub(2), symbols.ellipsis), context.style(Meaning::Text));
            for (x, column) in (label..).step_by(usize::from(COLUMN)).zip(columns.clone()) {
                let Some(cell) = row.cells.get(column) else { continue };
                let end = x + COLUMN - DIFFERENCE;
                let time = cell.time_us.map_or_else(|| symbols.missing.to_owned(), |us| format::duration(us, symbols));
                put_right(
                    buf,
                    inner,
                    end - 1,
                    COLUMN - DIFFERENCE - 2,
                    y,
                    &time,
                    context.style(Meaning::Text),
                    symbols.ellipsis,
                );
                let ops = status::plural(cell.ops, "op");
                let muted = context.style(Meaning::Muted);
                put_right(buf, inner, end + DIFFERENCE - 1, DIFFERENCE - 1, y, &ops, muted, symbols.ellipsis);
            }
        }
        if !self.layout.rules {
            scroll_marks(buf, inner, top, all.len().saturating_sub(top + rows), context.theme);
        }
    }
}

//! The pages as a table. A new page is a file beside this one, a row here, and the rules for its keys in `keymap-default.toml`.

use super::{Content, accuracy, diagnosis, findings, modes, outliers, placement, program, sessions};
use crate::app::action::KeyAction;
use crate::app::parts::Page;
use crate::app::symbols::Symbols;
use crate::app::view::View;
use crate::store::Store;

/// A page.
pub struct PageRow {
    /// The page.
    pub page: Page,
    /// Name of its screen in titles and key files.
    pub name: &'static str,
    /// Its name in the help.
    pub heading: &'static str,
    /// The action that opens it from anywhere, and leaves it again.
    pub key: Option<KeyAction>,
    /// Whether the footer offers that key, because there is something to see.
    pub offered: fn(&View, &Store) -> bool,
    /// What it lists; `None` for those that are drawn freely.
    pub list: Option<ListPage>,
}

/// A page with a list, and the detail of the selected entry.
pub struct ListPage {
    /// What it shows.
    pub content: fn(&View, &Store, &Symbols) -> Content,
    /// Title of the list.
    pub title: &'static str,
    /// Title of the log section below.
    pub log_title: &'static str,
    /// What opening an entry does, in a word or two; empty if not shown.
    pub open: &'static str,
}

const LIST: ListPage =
    ListPage { content: |_, _, _| Content::default(), title: "list", log_title: "log", open: "look there" };

/// The row of each page, in the order of [`Page`].
pub static PAGES: [PageRow; Page::COUNT] = [
    PageRow { page: Page::Start, name: "start", heading: "Start screen", key: None, offered: always, list: None },
    PageRow { page: Page::Live, name: "live", heading: "Live view", key: None, offered: always, list: None },
    PageRow {
        page: Page::Compare,
        name: "compare",
        heading: "Compare",
        key: Some(KeyAction::Compare),
        offered: |_, store| store.runs().len() > 1,
        list: None,
    },
    PageRow {
        page: Page::Diagnosis,
        name: "diagnosis",
        heading: "Diagnosis of a failed run",
        key: Some(KeyAction::Diagnosis),
        offered: |_, store| store.runs().iter().any(|run| run.failure.is_some()),
        list: Some(ListPage {
            content: |view, store, _| diagnosis::content(view.run_of(store), view.known.diagnosis.as_ref()),
            title: "causes",
            ..LIST
        }),
    },
    PageRow {
        page: Page::Findings,
        name: "findings",
        heading: "Findings",
        key: Some(KeyAction::Findings),
        offered: |view, _| !view.known.findings.is_empty(),
        list: Some(ListPage {
            content: |view, store, symbols| findings::content(view.run_of(store), &view.known, symbols),
            ..LIST
        }),
    },
    PageRow {
        page: Page::Outliers,
        name: "outliers",
        heading: "Outliers",
        key: Some(KeyAction::Outliers),
        offered: |view, _| view.known.outliers.as_ref().is_some_and(|found| found.count > 0),
        list: Some(ListPage {
            content: |view, store, symbols| {
                outliers::content(view.run_of(store), view.known.outliers.as_ref(), symbols)
            },
            ..LIST
        }),
    },
    PageRow {
        page: Page::Modes,
        name: "modes",
        heading: "Modes",
        key: Some(KeyAction::Modes),
        offered: |view, store| view.run_of(store).is_some_and(|run| view.known.modes.tell(run)),
        list: Some(ListPage {
            content: |view, store, symbols| modes::content(view.run_of(store), &view.known.modes, symbols),
            ..LIST
        }),
    },
    PageRow {
        page: Page::Placement,
        name: "placement",
        heading: "Placement",
        key: Some(KeyAction::Placement),
        offered: |view, store| {
            let placed = view.run_of(store).and_then(|run| run.nodes.as_ref());
            placed.is_some_and(|placed| !placed.nodes.is_empty())
        },
        list: Some(ListPage {
            content: |view, store, symbols| placement::content(view.run_of(store), symbols),
            ..LIST
        }),
    },
    PageRow {
        page: Page::Program,
        name: "program",
        heading: "Program",
        key: Some(KeyAction::Program),
        offered: |_, store| store.tapped().is_some(),
        list: Some(ListPage {
            content: |_, store, symbols| program::content(store, symbols),
            log_title: "printed",
            ..LIST
        }),
    },
    PageRow {
        page: Page::Sessions,
        name: "sessions",
        heading: "Session history",
        key: Some(KeyAction::Sessions),
        offered: always,
        list: Some(ListPage {
            content: |view, _, symbols| sessions::content(view.library.as_deref(), symbols),
            open: "",
            ..LIST
        }),
    },
    PageRow {
        page: Page::Accuracy,
        name: "accuracy",
        heading: "Accuracy",
        key: None,
        offered: always,
        list: Some(ListPage {
            content: |view, _, symbols| accuracy::content(view.accuracy.as_deref(), symbols),
            open: "",
            ..LIST
        }),
    },
];

fn always(_: &View, _: &Store) -> bool {
    true
}

/// The page that a key opens.
pub fn opened_by(key: KeyAction) -> Option<&'static PageRow> {
    PAGES.iter().find(|row| row.key == Some(key))
}

impl Page {
    /// Its row of the table.
    pub fn row(self) -> &'static PageRow {
        &PAGES[self as usize]
    }

    /// Name of its screen in titles and key files.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What it lists; `None` for those that are drawn freely.
    pub fn list(self) -> Option<&'static ListPage> {
        self.row().list.as_ref()
    }
}

/// What the page that is open shows; `None` on pages without a list.
pub fn content(view: &View, store: &Store, symbols: &Symbols) -> Option<Content> {
    let list = view.page.list()?;
    Some((list.content)(view, store, symbols).in_symbols(symbols))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_where_their_page_looks_for_them_and_no_key_opens_two() {
        for (at, row) in PAGES.iter().enumerate() {
            assert_eq!(row.page as usize, at, "{}", row.name);
            assert!(
                row.key.is_none_or(|key| opened_by(key).is_some_and(|first| first.page == row.page)),
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn keys_of_every_page_can_be_bound() {
        for row in &PAGES {
            assert!(crate::app::keymap::SCREENS.contains(&row.name), "{}", row.name);
        }
    }
}

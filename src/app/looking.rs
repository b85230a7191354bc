//! Opening and leaving the pages with lists, and going from what they say to where it can be seen.

use super::movement::show;
use super::pages::{self, Content, Section, Target};
use super::panes;
use super::symbols::UNICODE;
use super::view::{Page, Pane, View};
use crate::analysis::Place;
use crate::store::Store;

/// Opens a page, or goes back to the live view if it is open.
pub(super) fn toggle_page(view: &mut View, page: Page) {
    view.overlays.clear();
    if view.page == page {
        leave_page(view);
    } else {
        leave_page(view);
        view.page = page;
    }
}

/// Back to the live view. What was opened for a failed run shows the newest one again.
pub(super) fn leave_page(view: &mut View) {
    view.page = Page::Live;
    if view.opened_for.take().is_some_and(|run| view.run == Some(run)) {
        view.run = None;
    }
}

/// Opens the diagnosis of the shown run, or of the newest failed one.
pub(super) fn diagnosis(view: &mut View, store: &Store) {
    if view.page == Page::Diagnosis {
        return toggle_page(view, Page::Diagnosis);
    }
    let failed = |run: &&crate::store::Run| run.failure.is_some();
    let Some(run) = view.run_of(store).filter(failed).or_else(|| store.runs().iter().rev().find(failed)) else {
        view.notice = Some("no run of this session has failed".to_owned());
        return;
    };
    toggle_page(view, Page::Diagnosis);
    if view.run_of(store).is_none_or(|shown| shown.id != run.id) {
        view.opened_for = Some(run.id);
        view.run = Some(run.id);
    }
}

/// Selects another entry of the page's list.
pub(super) fn step_entry(view: &mut View, store: &Store, step: isize) {
    let Some(content) = pages::content(view, store, &UNICODE) else { return };
    if let Some(browser) = view.page.browser().and_then(|index| view.browsers.get_mut(index)) {
        browser.step_entry(&content.entries, step);
    }
}

/// Has the selected text copied.
pub(super) fn copy(view: &mut View, store: &Store) {
    let Some((content, index)) = pages::content(view, store, &UNICODE).zip(view.page.browser()) else { return };
    let browser = &view.browsers[index];
    let Some(entry) = content.entries.get(browser.position(&content.entries)) else {
        view.notice = Some("there is nothing to copy here".to_owned());
        return;
    };
    let selected = browser.item(entry).filter(|_| browser.section == Section::Detail);
    let text = selected.map_or_else(|| entry.copied(), pages::Item::copied).to_owned();
    let length = crate::app::panes::plural(text.chars().count() as u64, "character");
    view.notice = Some(format!("sent to the terminal's clipboard: {length}; not every terminal takes it"));
    view.copied = Some(text);
}

/// From the list to the detail; from a paragraph of the detail to where it can be seen.
pub(super) fn look(view: &mut View, store: &Store) {
    let Some((content, index)) = pages::content(view, store, &UNICODE).zip(view.page.browser()) else { return };
    let browser = &mut view.browsers[index];
    match browser.section {
        Section::List if !content.entries.is_empty() => browser.section = Section::Detail,
        Section::List | Section::Log => {}
        Section::Detail => match target(&content, browser) {
            Some(Target::LogLine(_)) => (browser.log_top, browser.section) = (None, Section::Log),
            Some(Target::Place(place)) => go(view, store, &place),
            None => view.notice = Some("this is told of the run as a whole, there is no place to go to".to_owned()),
        },
    }
}

fn target(content: &Content, browser: &pages::Browser) -> Option<Target> {
    let entry = content.entries.get(browser.position(&content.entries))?;
    browser.item(entry)?.target.clone()
}

/// Shows a place in the live view.
fn go(view: &mut View, store: &Store, place: &Place) {
    view.page = Page::Live;
    view.opened_for = None;
    view.zoomed = false;
    match place {
        Place::Op(row) => {
            let Ok(row) = u32::try_from(*row) else { return };
            // A filter that hides the layer is in the way.
            if !view.shown.layers.order.contains(&row) {
                view.filter.clear();
            }
            view.selected = Some(row);
            show(view, Pane::Layers);
        }
        Place::Counter { device, id } => {
            view.counter = Some((device.clone(), id.clone()));
            show(view, Pane::Host);
            match panes::counter_position(view, store) {
                // With a little of what is above.
                Some(position) => view.scroll[2] = position.saturating_sub(2),
                None => view.notice = Some(format!("the counter {id} is not known in this session")),
            }
        }
        Place::Moment(t_us) => {
            show(view, Pane::Log);
            let after = store.logs().iter().rev().take_while(|line| line.t_us > *t_us).count();
            // A little of what came later is below.
            view.log_back = after.saturating_sub(4);
            view.moment = Some(*t_us);
        }
    }
}

//! Opens and leaves the pages with lists, and follows their entries to where they can be seen.

use super::movement::show;
use super::pages::{self, Content, JumpTarget, Part, Section};
use super::panes;
use super::parts::{Page, Pane};
use super::symbols::UNICODE;
use super::view::View;
use crate::analysis::EvidencePlace;
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

/// Back to the live view. A page opened for a failed run returns to the newest one.
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
    if view.page == Page::Compare {
        return view.comparing.step_run(store, step);
    }
    let Some(content) = pages::content(view, store, &UNICODE) else { return };
    if let Some(browser) = view.browser_mut() {
        browser.step_entry(&content.entries, step);
    }
}

/// Copies the selected text.
pub(super) fn copy(view: &mut View, store: &Store) {
    let Some((content, browser)) = pages::content(view, store, &UNICODE).zip(view.browser()) else { return };
    let Some(entry) = content.entries.get(browser.position(&content.entries)) else {
        view.notice = Some("nothing to copy here".to_owned());
        return;
    };
    let selected = browser.item(entry).filter(|_| browser.section == Section::Detail);
    let text = selected.map_or_else(|| entry.copied(), pages::Item::copied).to_owned();
    let length = crate::app::panes::plural(text.chars().count() as u64, "character");
    view.notice = Some(format!("sent to the terminal's clipboard: {length}; not every terminal takes it"));
    view.copied = Some(text);
}

/// Goes from the list to the detail, or from a paragraph of the detail to the place it refers to.
pub(super) fn look(view: &mut View, store: &Store) {
    let Some((content, browser)) = pages::content(view, store, &UNICODE).zip(view.browser_mut()) else { return };
    browser.hold(&content.entries);
    match browser.section {
        Section::List if !content.entries.is_empty() => browser.section = Section::Detail,
        Section::List | Section::Log => {}
        Section::Detail => match target(&content, browser) {
            Some(JumpTarget::LogLine(_)) => (browser.log_top, browser.section) = (None, Section::Log),
            Some(JumpTarget::Place(place)) => go(view, store, &place),
            None => view.notice = Some("this concerns the whole run; there is nothing to jump to".to_owned()),
        },
    }
}

fn target(content: &Content, browser: &pages::Browser) -> Option<JumpTarget> {
    let entry = content.entries.get(browser.position(&content.entries))?;
    browser.item(entry)?.target.clone()
}

/// The outlier starting at a given time.
fn outlier_at(view: &View, t_us: u64) -> Option<usize> {
    view.known.outliers.as_ref()?.kept.iter().position(|outlier| outlier.start_us == t_us)
}

/// Shows the selected layer of the comparison among the layers of the selected run.
pub(super) fn look_at_layer(view: &mut View, store: &Store) {
    if view.comparing.part == Part::Figures {
        view.comparing.part = Part::Layers;
        return;
    }
    if view.comparing.totals {
        view.notice = Some("op types are not layers; press the `op types` key to show layers".to_owned());
        return;
    }
    let Some((run, row)) = view.comparing.selected_op(store) else {
        view.notice = Some("the selected run has no time for this layer".to_owned());
        return;
    };
    view.run = store.followed_run().is_none_or(|followed| followed.id != run || !followed.is_ended()).then_some(run);
    go(view, store, &EvidencePlace::Op(row));
    // The table of that run is shown from the next frame on; until then the selection must not be cleared.
    view.keep_selection = view.shown.run != Some(run);
}

/// Shows a place in the live view.
fn go(view: &mut View, store: &Store, place: &EvidencePlace) {
    let came_from = std::mem::replace(&mut view.page, Page::Live);
    view.opened_for = None;
    view.zoomed = false;
    match place {
        EvidencePlace::Op(row) => {
            let Ok(row) = u32::try_from(*row) else { return };
            // A filter that hides the layer is in the way.
            if !view.shown.layers.order.contains(&row) {
                view.filter.clear();
            }
            view.selected = Some(row);
            show(view, Pane::Layers);
        }
        EvidencePlace::Counter { device, id } => {
            view.counter = Some((device.clone(), id.clone()));
            show(view, Pane::Host);
            match panes::counter_position(view, store) {
                // With a few lines above.
                Some(position) => view.scroll[2] = position.saturating_sub(2),
                None => view.notice = Some(format!("this session has no counter {id}")),
            }
        }
        // A slow inference has its own page, with its context.
        EvidencePlace::Moment(t_us) if came_from != Page::Outliers && outlier_at(view, *t_us).is_some() => {
            view.page = Page::Outliers;
            let (content, at) = (pages::content(view, store, &UNICODE), outlier_at(view, *t_us));
            if let (Some(content), Some(at)) = (content, at) {
                view.browsers[Page::Outliers as usize].show(view.shown.run, &content.entries, at);
            }
        }
        EvidencePlace::Moment(t_us) => {
            show(view, Pane::Log);
            let after = store.logs().iter().rev().take_while(|line| line.t_us > *t_us).count();
            // With a few later lines below.
            view.log_back = after.saturating_sub(4);
            view.moment = Some(*t_us);
        }
    }
}

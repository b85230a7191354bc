//! Applies keys to the state: the only place where the view changes.

use super::action::{Action, KeyAction};
use super::looking::{copy, diagnosis, leave_page, look, look_at_layer, step_entry, toggle_page};
use super::movement::{focus, page, show, step, step_run};
use super::pages;
use super::parts::{Asked, Overlay, Page, Pane, Paused, Wanted};
use super::picker::{Choice, Picker};
use super::pointing::point;
use super::rows::{Column, Sort};
use super::start::Item;
use super::symbols::UNICODE;
use super::view::{View, starting};
use super::{BackendAvailability, Request};
use crate::store::{Run, Store};
use std::path::PathBuf;

/// Applies an action to the view. Returns its request to the run, which is only sent: the answer comes as events.
pub fn update(view: &mut View, store: &Store, action: Action) -> Option<Request> {
    match action {
        Action::Notice(text) => view.notice = Some(text),
        Action::Listed(listing) => {
            for overlay in &mut view.overlays {
                if let Overlay::Picker(picker) = overlay {
                    picker.listed(listing.clone());
                }
            }
        }
        Action::Type(c) => {
            view.notice = None;
            insert(view, c.encode_utf8(&mut [0; 4]));
        }
        Action::Point(gesture, x, y) => {
            view.notice = None;
            point(view, store, (x, y), gesture);
        }
        Action::Paste(text) => insert(view, &text),
        Action::Key(key) => {
            view.notice = None;
            return press(view, store, key);
        }
    }
    None
}

fn insert(view: &mut View, text: &str) {
    match (view.overlays.last_mut(), view.page) {
        (Some(Overlay::Picker(picker)), _) => picker.insert(text),
        (Some(Overlay::Filter), _) => view.filter.extend(text.chars().filter(|c| !c.is_control())),
        // A path pasted or dropped onto the start screen goes to the picker.
        (None, Page::Start) => {
            let mut picker = new_picker(view);
            picker.insert(text);
            view.overlays.push(Overlay::Picker(picker));
        }
        _ => {}
    }
}

fn press(view: &mut View, store: &Store, key: KeyAction) -> Option<Request> {
    match key {
        KeyAction::Quit => return Some(Request::Quit),
        KeyAction::Interrupt => return Some(interrupt(view, store)),
        KeyAction::Help => match view.overlays.last() {
            Some(Overlay::Help { .. }) => {
                view.overlays.pop();
            }
            _ => view.overlays.push(Overlay::Help { scroll: 0 }),
        },
        // Without a session there is nothing to go back to.
        KeyAction::Back if view.page == Page::Sessions && view.replay.is_none() && view.overlays.is_empty() => {
            return Some(Request::Quit);
        }
        KeyAction::Back if view.page == Page::Accuracy && view.overlays.is_empty() => return Some(Request::Quit),
        KeyAction::Back => back(view, store),
        KeyAction::Pause => pause(view, store),
        KeyAction::Play
        | KeyAction::SeekBack
        | KeyAction::SeekForward
        | KeyAction::SeekStart
        | KeyAction::SeekEnd
        | KeyAction::Slower
        | KeyAction::Faster => replay(view, key),
        KeyAction::StopRun => return stop(view, store),
        KeyAction::RestartRun => return restart(view, store),
        KeyAction::SwitchBackend => open_backends(view, store),
        KeyAction::NewRun => {
            view.overlays.clear();
            leave_page(view);
            view.page = Page::Start;
        }
        KeyAction::NextRun => step_run(view, store, 1),
        KeyAction::PreviousRun => step_run(view, store, -1),
        KeyAction::FocusNext => focus(view, store, true),
        KeyAction::FocusPrevious => focus(view, store, false),
        KeyAction::Zoom => {
            let zoomed = match view.page {
                Page::Compare => &mut view.comparing.zoomed,
                page if page.list().is_some() => &mut view.browsers[page as usize].zoomed,
                _ => &mut view.zoomed,
            };
            *zoomed = !*zoomed;
        }
        KeyAction::Diagnosis => diagnosis(view, store),
        KeyAction::Findings
        | KeyAction::Outliers
        | KeyAction::Modes
        | KeyAction::Placement
        | KeyAction::Program
        | KeyAction::Compare
        | KeyAction::Sessions => {
            if let Some(row) = pages::opened_by(key) {
                toggle_page(view, row.page);
            }
        }
        KeyAction::OpTypes => view.comparing.toggle_totals(),
        KeyAction::Baseline => view.comparing.set_baseline(),
        KeyAction::NextEntry => step_entry(view, store, 1),
        KeyAction::PreviousEntry => step_entry(view, store, -1),
        KeyAction::Copy => copy(view, store),
        KeyAction::WriteReport if store.runs().is_empty() => {
            view.notice = Some("there is no run to report".to_owned());
        }
        KeyAction::WriteReport => view.wanted = Some(Wanted::Report),
        KeyAction::Up => step(view, store, -1),
        KeyAction::Down => step(view, store, 1),
        KeyAction::PageUp => step(view, store, -page(view)),
        KeyAction::PageDown => step(view, store, page(view)),
        // Far beyond any list.
        KeyAction::First => step(view, store, isize::MIN / 2),
        KeyAction::Last => step(view, store, isize::MAX / 2),
        KeyAction::Open => return open(view, store),
        KeyAction::Toggle if view.page == Page::Compare => view.comparing.toggle(),
        KeyAction::Toggle => return toggle(view, store),
        KeyAction::StartRun => return start(view, store),
        KeyAction::Browse => {
            let picker = new_picker(view);
            view.overlays.push(Overlay::Picker(picker));
        }
        KeyAction::Filter => {
            show(view, Pane::Layers);
            view.overlays.retain(|overlay| !matches!(overlay, Overlay::Details { .. }));
            view.overlays.push(Overlay::Filter);
        }
        KeyAction::SortNext if view.page == Page::Compare => view.comparing.step_sort(1),
        KeyAction::SortPrevious if view.page == Page::Compare => view.comparing.step_sort(-1),
        KeyAction::SortNext => sort(view, view.sort.column.step(1)),
        KeyAction::SortPrevious => sort(view, view.sort.column.step(-1)),
        KeyAction::SortReverse => view.sort.descending = !view.sort.descending,
        KeyAction::ToggleHidden => with_picker(view, Picker::toggle_hidden),
        KeyAction::Parent => with_picker(view, Picker::parent),
        KeyAction::DeleteBack => match view.overlays.last_mut() {
            Some(Overlay::Picker(picker)) => picker.delete_back(),
            Some(Overlay::Filter) => {
                view.filter.pop();
            }
            _ => {}
        },
        KeyAction::DeleteAll => match view.overlays.last_mut() {
            Some(Overlay::Picker(picker)) => picker.delete_all(),
            Some(Overlay::Filter) => view.filter.clear(),
            _ => {}
        },
        KeyAction::Mouse => {
            view.mouse = !view.mouse;
            let says =
                if view.mouse { "the mouse is qnnscope's" } else { "the mouse is the terminal's, to select text" };
            view.notice = Some(says.to_owned());
        }
        // The loop handles these: they concern the terminal, not the view.
        KeyAction::Suspend | KeyAction::Redraw | KeyAction::Nothing => {}
    }
    None
}

fn with_picker(view: &mut View, change: impl FnOnce(&mut Picker)) {
    if let Some(Overlay::Picker(picker)) = view.overlays.last_mut() {
        change(picker);
    }
}

fn new_picker(view: &View) -> Picker {
    let chosen = view.start.model.and_then(|i| view.start.models.get(i));
    let beside = chosen.and_then(|model| model.parent()).filter(|dir| dir.is_absolute()).map(PathBuf::from);
    Picker::new(beside.or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| PathBuf::from("/")))
}

fn back(view: &mut View, store: &Store) {
    if let Some(overlay) = view.overlays.pop() {
        // Leaving the filter with esc restores the whole table; enter keeps the filter.
        if overlay == Overlay::Filter {
            view.filter.clear();
        }
    } else if view.page == Page::Start {
        if !store.runs().is_empty() {
            view.page = Page::Live;
        }
    } else if view.page != Page::Live {
        leave_page(view);
    } else if !view.filter.is_empty() {
        view.filter.clear();
    } else if view.zoomed {
        view.zoomed = false;
    } else if view.log_back > 0 && view.focus == Pane::Log {
        view.log_back = 0;
    } else {
        (view.selected, view.counter, view.moment) = (None, None, None);
    }
}

fn pause(view: &mut View, store: &Store) {
    view.paused = match view.paused {
        Some(_) => None,
        // What is on the screen stays.
        None if view.shown.records > 0 => Some(Paused { at_us: view.shown.at_us, records: view.shown.records }),
        None => Some(Paused { at_us: store.now_us(), records: store.records() }),
    };
}

/// Requests the selected session; the loop reads it.
fn choose_session(view: &mut View) {
    let Some((content, browser)) = pages::content(view, &Store::new(), &UNICODE).zip(view.browser()) else { return };
    let Some(entry) = content.entries.get(browser.position(&content.entries)) else { return };
    view.notice = Some(format!("opening {}", entry.key));
    view.chosen = Some(entry.key.clone());
}

fn replay(view: &mut View, key: KeyAction) {
    let Some(replay) = &mut view.replay else {
        view.notice = Some("only recordings can be played".to_owned());
        return;
    };
    match key {
        KeyAction::Play => replay.toggle(),
        KeyAction::SeekBack => replay.step(false),
        KeyAction::SeekForward => replay.step(true),
        KeyAction::SeekStart => replay.seek(replay.start_us),
        KeyAction::SeekEnd => replay.seek(replay.end_us),
        KeyAction::Slower => replay.step_speed(false),
        _ => replay.step_speed(true),
    }
}

fn interrupt(view: &mut View, store: &Store) -> Request {
    // Nothing runs in a recording.
    match active(store).filter(|_| view.replay.is_none()) {
        Some(run) if !matches!(view.asked, Some(Asked::Stop(_))) => {
            view.asked = Some(Asked::Stop(run.id));
            Request::Stop(None)
        }
        _ => Request::Quit,
    }
}

fn active(store: &Store) -> Option<&Run> {
    store.runs().iter().rev().find(|run| !run.is_ended())
}

fn stop(view: &mut View, store: &Store) -> Option<Request> {
    let looked_at = view.run_of(store).filter(|run| !run.is_ended());
    let Some(run) = looked_at.or_else(|| active(store)) else {
        view.notice = Some("nothing is running".to_owned());
        return None;
    };
    view.asked = Some(Asked::Stop(run.id));
    Some(Request::Stop(Some(run.plan.device.clone())))
}

fn restart(view: &mut View, store: &Store) -> Option<Request> {
    let Some(run) = view.run_of(store) else {
        view.notice = Some("there is no run to restart".to_owned());
        return None;
    };
    if view.over {
        view.notice = Some(OVER.to_owned());
        return None;
    }
    let (what, device) = (format!("restarting on {}", run.plan.backend), run.plan.device.clone());
    ask_run(view, store, what);
    Some(Request::Restart(device))
}

const OVER: &str = "this session has ended: it can run nothing more";

fn ask_run(view: &mut View, store: &Store, what: String) {
    view.asked = Some(Asked::Run { what, runs: store.runs().len() });
    // The user wants to see the new run.
    (view.run, view.opened_for) = (None, None);
    view.paused = None;
    view.page = Page::Live;
}

fn open_backends(view: &mut View, store: &Store) {
    let Some(run) = view.run_of(store) else {
        view.notice = Some("there is no run to switch".to_owned());
        return;
    };
    let current = run.plan.backend;
    let other = |row: &BackendAvailability| row.backend != current && row.available.is_ok();
    let selected = view.start.backends.iter().position(other).unwrap_or(0);
    view.overlays.push(Overlay::Backends { selected });
}

fn sort(view: &mut View, column: Column) {
    view.sort = Sort { column, descending: column.descends() };
    view.layers_top = 0;
}

fn open(view: &mut View, store: &Store) -> Option<Request> {
    match (view.overlays.last_mut(), view.page) {
        (Some(Overlay::Picker(picker)), _) => {
            if let Choice::File(path) = picker.open() {
                view.overlays.pop();
                view.start.choose_model(path);
            }
        }
        (Some(Overlay::Filter), _) => {
            view.overlays.pop();
        }
        (Some(Overlay::Backends { selected }), _) => {
            let selected = *selected;
            return switch(view, store, selected);
        }
        (None, Page::Start) => return toggle(view, store),
        (None, Page::Sessions) => choose_session(view),
        (None, page) if page.list().is_some() => look(view, store),
        (None, Page::Compare) => look_at_layer(view, store),
        (None, Page::Live) if view.focus == Pane::Layers && !view.shown.layers.order.is_empty() => {
            // From now on the details stay with this op, however the order changes.
            let position = view.position();
            view.selected = view.shown.layers.order.get(position).copied();
            view.overlays.push(Overlay::Details { scroll: 0 });
        }
        _ => {}
    }
    None
}

fn switch(view: &mut View, store: &Store, selected: usize) -> Option<Request> {
    let row = view.start.backends.get(selected)?.clone();
    if let Err(reason) = &row.available {
        view.notice = Some(format!("{} is not available: {reason}", row.backend));
        return None;
    }
    view.overlays.pop();
    if view.over {
        view.notice = Some(OVER.to_owned());
        return None;
    }
    let device = view.run_of(store)?.plan.device.clone();
    ask_run(view, store, format!("switching to {}", row.backend));
    Some(Request::Switch { device, backend: row.backend })
}

fn toggle(view: &mut View, store: &Store) -> Option<Request> {
    match view.start.item(store) {
        Item::Device(id) => {
            if let Err(reason) = view.start.choose_device(store, id) {
                view.notice = Some(reason);
            }
        }
        Item::Model(index) => view.start.model = Some(index),
        Item::Browse => {
            let picker = new_picker(view);
            view.overlays.push(Overlay::Picker(picker));
        }
        Item::Backend(index) => {
            if let Err(reason) = view.start.toggle(index) {
                view.notice = Some(reason);
            }
        }
        Item::Run => return start(view, store),
    }
    None
}

fn start(view: &mut View, store: &Store) -> Option<Request> {
    if view.over {
        view.notice = Some(OVER.to_owned());
        return None;
    }
    match view.start.request() {
        Ok(request) => {
            if let Request::Start { model, backends, .. } = &request {
                let model = crate::event::clean_text(&model.to_string_lossy());
                ask_run(view, store, starting(&model, backends));
            }
            Some(request)
        }
        Err(missing) => {
            view.notice = Some(missing.to_owned());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::{Backend, ProfilingLevel};
    use crate::event::{Budget, Event, Record, RunId, RunPlan, RunStatus};

    fn apply(store: &mut Store, run: u32, event: Event) {
        store.apply(&Record { seq: store.records(), t_us: store.records(), run: Some(RunId(run)), event });
    }

    fn begin(store: &mut Store, run: u32) {
        let plan = RunPlan {
            device: "local".to_owned(),
            backend: Backend::Cpu,
            model: "net.dlc".to_owned(),
            warmup: 0,
            budget: Budget::Seconds(1.0),
            profiling: ProfilingLevel::Off,
            profiling_budget: None,
            simulated: false,
            driver: crate::event::Driver::default(),
            energy_while_charging: false,
            mode: crate::event::Mode::default(),
            constraints: crate::event::Constraints::default(),
        };
        apply(store, run, Event::RunStarted(Box::new(plan)));
    }

    fn running() -> (View, Store) {
        let mut store = Store::new();
        begin(&mut store, 0);
        let mut view = View::start(vec![PathBuf::from("net.dlc")], Vec::new());
        view.page = Page::Live;
        (view, store)
    }

    fn press(view: &mut View, store: &Store, key: KeyAction) -> Option<Request> {
        update(view, store, key.into())
    }

    #[test]
    fn an_interrupt_stops_the_run_first_and_leaves_second() {
        let (mut view, store) = running();
        assert_eq!(press(&mut view, &store, KeyAction::Interrupt), Some(Request::Stop(None)));
        assert_eq!(view.asked, Some(Asked::Stop(RunId(0))));
        assert_eq!(press(&mut view, &store, KeyAction::Interrupt), Some(Request::Quit));
    }

    #[test]
    fn what_was_asked_is_over_when_the_event_comes() {
        let (mut view, mut store) = running();
        let area = ratatui::layout::Rect::new(0, 0, 80, 24);
        assert_eq!(press(&mut view, &store, KeyAction::StopRun), Some(Request::Stop(Some("local".to_owned()))));
        view.prepare(&store, area, 0);
        assert!(view.asked.is_some());
        apply(&mut store, 0, Event::RunFinished { status: RunStatus::Stopped });
        view.prepare(&store, area, 0);
        assert_eq!(view.asked, None);
        assert_eq!(press(&mut view, &store, KeyAction::StopRun), None);
        assert_eq!(view.notice.as_deref(), Some("nothing is running"));
        assert_eq!(press(&mut view, &store, KeyAction::RestartRun), Some(Request::Restart("local".to_owned())));
        assert!(matches!(view.asked, Some(Asked::Run { runs: 1, .. })));
        begin(&mut store, 1);
        view.prepare(&store, area, 0);
        assert_eq!((view.asked.clone(), view.shown.run), (None, Some(RunId(1))));
    }

    #[test]
    fn an_ended_session_runs_nothing() {
        let (mut view, store) = running();
        view.over = true;
        for key in [KeyAction::RestartRun, KeyAction::StartRun] {
            assert_eq!(press(&mut view, &store, key), None);
            assert_eq!(view.notice.as_deref(), Some(OVER));
        }
    }

    #[test]
    fn the_focus_goes_around_and_takes_the_main_place() {
        let (mut view, store) = running();
        let mut seen = Vec::new();
        for _ in Pane::ALL {
            press(&mut view, &store, KeyAction::FocusNext);
            seen.push((view.focus, view.main));
        }
        assert_eq!(seen[0], (Pane::Memory, Pane::Memory));
        assert_eq!(seen[3], (Pane::Status, Pane::Log), "status has a place of its own");
        assert_eq!(seen[5], (Pane::Layers, Pane::Layers));
    }

    #[test]
    fn esc_undoes_one_thing_at_a_time() {
        let (mut view, store) = running();
        press(&mut view, &store, KeyAction::Zoom);
        view.filter = "conv".to_owned();
        press(&mut view, &store, KeyAction::Help);
        press(&mut view, &store, KeyAction::Back);
        assert!(view.overlays.is_empty() && view.zoomed && !view.filter.is_empty());
        press(&mut view, &store, KeyAction::Back);
        assert!(view.zoomed && view.filter.is_empty());
        press(&mut view, &store, KeyAction::Back);
        assert!(!view.zoomed);
    }

    #[test]
    fn sorting_starts_with_the_natural_direction() {
        let (mut view, store) = running();
        assert_eq!(view.sort, Sort { column: Column::Mean, descending: true });
        press(&mut view, &store, KeyAction::SortPrevious);
        assert_eq!(view.sort, Sort { column: Column::Type, descending: false });
        press(&mut view, &store, KeyAction::SortReverse);
        assert_eq!(view.sort, Sort { column: Column::Type, descending: true });
    }

    #[test]
    fn starting_goes_to_the_live_view() {
        let store = Store::new();
        let mut view = View::start(vec![PathBuf::from("net.dlc")], Vec::new());
        let request = press(&mut view, &store, KeyAction::StartRun);
        let model = PathBuf::from("net.dlc");
        let wanted = Request::Start { device: "local".to_owned(), model, backends: vec![Backend::Cpu] };
        assert_eq!((request, view.page), (Some(wanted), Page::Live));
        let mut empty = View::start(Vec::new(), Vec::new());
        assert_eq!(press(&mut empty, &store, KeyAction::StartRun), None);
        assert_eq!(empty.notice.as_deref(), Some("choose a model first"));
    }
}

//! Run status: runs, device, backend, stage, progress, time left.

use super::{Context, failure};
use crate::app::format;
use crate::app::parts::{Asked, Pane};
use crate::app::shown::{RunTab, Shown, Standing};
use crate::app::symbols::{Symbols, UNICODE};
use crate::app::theme::Meaning;
use crate::app::widgets::{fit, fit_end, progress, put, put_right, width};
use crate::devices::DeviceState;
use crate::event::{Budget, Phase, RunId, RunStatus, Stage, clean_text};
use crate::store::{Run, RunState};
use crate::text::noun;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::ops::Range;

/// Columns of the labels.
const LABEL: u16 = 9;
/// Columns of a model's name in the list of runs.
const TAB_MODEL: u16 = 18;

/// Draws the pane.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>) {
    let model = context.run.map(|run| file_name(&run.plan.model));
    let muted = context.style(Meaning::Muted);
    let title: Vec<(&str, Style)> = model.iter().map(|name| (name.as_str(), muted)).collect();
    let inner = context.frame(buf, area, Pane::Status, &title);
    if inner.is_empty() {
        return;
    }
    let (Some(run), Some(standing)) = (context.run, context.view.shown.standing) else {
        let text = match &context.view.asked {
            Some(Asked::Run { what, .. }) => format!("{what} {}", context.symbols().ellipsis),
            _ if context.view.over => "the session has ended without a run".to_owned(),
            _ => "no run yet".to_owned(),
        };
        context.empty(buf, inner, &text);
        return;
    };
    tabs(buf, Rect { height: 1, ..inner }, context);
    let rest = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
    if context.rules && inner.height <= 6 && !standing.failed {
        small(buf, rest, context, run, &standing);
        return;
    }
    let mut y = facts(buf, rest, context, run, &standing);
    if !standing.failed {
        y += where_it_is(buf, below(rest, y), context, &standing);
    }
    if run.failure.is_some() && standing.failed {
        let gap = u16::from(rest.height > y + 6);
        let elapsed = format::duration(standing.elapsed_us(context.now_us) as f64, context.symbols());
        let after = format!("after {elapsed} and {}", plural(standing.inferences, "inference"));
        failure::draw(buf, below(rest, y + gap), context, run, &after);
    } else if rest.height > y + 1 {
        stages(buf, below(rest, y + 1), context, run, &standing);
    }
}

fn below(area: Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    Rect { y: area.y + rows, height: area.height - rows, ..area }
}

/// The last part of a path, without control characters.
pub fn file_name(path: &str) -> String {
    clean_text(crate::text::file_name(path))
}

/// The symbol and word of a state, matching its colour.
fn sign(symbols: &Symbols, status: Option<RunStatus>) -> (&'static str, &'static str, Meaning) {
    match status {
        None => (symbols.active, "running", Meaning::Accent),
        Some(RunStatus::Ok) => (symbols.ok, "done", Meaning::Good),
        Some(RunStatus::Stopped) => (symbols.stopped, "stopped", Meaning::Warn),
        Some(RunStatus::Failed) => (symbols.failed, "failed", Meaning::Alert),
    }
}

/// Runs that fit into this many columns, around the shown one, with their columns.
fn tab_columns(shown: &Shown, symbols: &Symbols, columns: u16) -> Vec<(RunId, Range<u16>)> {
    let at = shown.runs.iter().position(|tab| Some(tab.id) == shown.run).unwrap_or(0);
    let widths: Vec<u16> = shown.runs.iter().map(|tab| tab_width(symbols, tab)).collect();
    let mut first = at;
    let mut used = widths.get(at).copied().unwrap_or(0);
    while first > 0 && used + widths[first - 1] < columns.saturating_sub(4) {
        first -= 1;
        used += widths[first];
    }
    let mut x = if first > 0 { width(symbols.ellipsis) } else { 0 };
    let tabs = shown.runs.iter().zip(&widths).skip(first);
    tabs.map(|(tab, width)| {
        let columns = x..x.saturating_add(*width);
        x = columns.end;
        (tab.id, columns)
    })
    .collect()
}

/// The run whose tab is at a column of the list of this width.
pub fn tab_at(shown: &Shown, columns: u16, at: u16) -> Option<RunId> {
    let tabs = tab_columns(shown, &UNICODE, columns);
    tabs.into_iter().find(|(_, columns)| columns.contains(&at)).map(|(run, _)| run)
}

/// The list of runs. If it does not fit, the runs around the shown one are listed.
fn tabs(buf: &mut Buffer, area: Rect, context: &Context<'_>) {
    let shown = &context.view.shown;
    let listed = tab_columns(shown, context.symbols(), area.width);
    let first = shown.runs.len() - listed.len();
    let muted = context.style(Meaning::Muted);
    let mut x = if first > 0 { put(buf, area, 0, 0, context.symbols().ellipsis, muted) } else { 0 };
    for tab in &shown.runs[first..] {
        let selected = Some(tab.id) == shown.run;
        let is_away = selected && tab.status.is_none() && context.run.is_some_and(|run| away(context, run).is_some());
        let (sign, word, meaning) = match sign(context.symbols(), tab.status) {
            (sign, _, _) if is_away => (sign, "waiting", Meaning::Warn),
            other => other,
        };
        let style = context.style(meaning);
        let base = if selected { context.style(Meaning::Title) } else { muted };
        x = put(buf, area, x, 0, if selected { context.symbols().marker } else { " " }, context.style(Meaning::Accent));
        x = put(buf, area, x, 0, &format!("{} ", tab_name(context.symbols(), tab)), base);
        x = put(buf, area, x, 0, &format!("{sign} {word}"), style);
        if tab.simulated {
            x = put(buf, area, x, 0, " simulated", context.style(Meaning::Simulated));
        }
        x += 2;
    }
    if let Some(asked) = &context.view.asked {
        let text = match asked {
            Asked::Run { what, .. } => what.clone(),
            Asked::Stop(_) => "stopping".to_owned(),
        };
        put(buf, area, x, 0, &format!("{text} {}", context.symbols().ellipsis), context.style(Meaning::Warn));
    }
}

/// State of the run's device, if the run is active and the device is unavailable.
fn away<'a>(context: &Context<'a>, run: &Run) -> Option<&'a DeviceState> {
    let state = &context.store.device_state(&run.plan.device)?.state;
    (*state != DeviceState::Device && run.status().is_none()).then_some(state)
}

fn tab_width(symbols: &Symbols, tab: &RunTab) -> u16 {
    let (sign, word, _) = sign(symbols, tab.status);
    let text = format!("{} {sign} {word}", tab_name(symbols, tab));
    width(&text) + 3 + if tab.simulated { 10 } else { 0 }
}

/// `2 htp`, or `2 htp face.dlc` if the session has several models.
fn tab_name(symbols: &Symbols, tab: &RunTab) -> String {
    let model =
        tab.model.as_ref().map_or_else(String::new, |model| format!(" {}", fit(model, TAB_MODEL, symbols.ellipsis)));
    format!("{} {}{model}", tab.number, tab.backend)
}

/// Two rows for small screens: what runs, and its progress.
fn small(buf: &mut Buffer, area: Rect, context: &Context<'_>, run: &Run, standing: &Standing) {
    let text = [Some(device_text(context, run)), runtime_text(run), Some(graph_text(run))];
    let dot = format!(" {} ", context.symbols().dot);
    let text = text.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(&dot);
    let text = fit_end(&text, area.width.saturating_sub(2), context.symbols().ellipsis);
    put(buf, area, 1, 0, &text, context.style(Meaning::Muted));
    where_it_is(buf, below(area, 1), context, standing);
}

fn facts(buf: &mut Buffer, area: Rect, context: &Context<'_>, run: &Run, standing: &Standing) -> u16 {
    let symbols = context.symbols();
    let missing = || symbols.missing.to_owned();
    let dot = format!(" {} ", symbols.dot);
    let model = run.model.as_ref().map(|model| {
        [model.format.label().to_owned(), format::bytes(model.bytes), graph_text(run)]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(&dot)
    });
    let backend = match runtime_text(run) {
        Some(runtime) => format!("{}{dot}{runtime}", run.plan.backend),
        None => run.plan.backend.to_string(),
    };
    let rows = [("device", device_text(context, run)), ("model", model.unwrap_or_else(missing)), ("backend", backend)];
    // The run's progress, and why it failed, matter more.
    let keep = if area.height < 7 || (standing.failed && area.height < 10) { area.height.saturating_sub(3) } else { 3 };
    let mut y = 0;
    for (label, value) in rows.into_iter().take(usize::from(keep)) {
        put(buf, area, 1, y, label, context.style(Meaning::Muted));
        let room = area.width.saturating_sub(LABEL + 2);
        let end = put(buf, area, 1 + LABEL, y, &fit_end(&value, room, symbols.ellipsis), context.style(Meaning::Text));
        if label == "backend" && run.plan.simulated {
            put(buf, area, end + 1, y, "simulated", context.style(Meaning::Simulated));
        }
        y += 1;
    }
    y
}

fn device_text(context: &Context<'_>, run: &Run) -> String {
    let id = clean_text(&run.plan.device);
    let device = context.store.device(&run.plan.device);
    let words: Vec<String> = device
        .map(|device| {
            [&device.soc, &device.hexagon_arch, &device.model]
                .into_iter()
                .flatten()
                .map(|word| clean_text(word))
                .collect()
        })
        .unwrap_or_default();
    let abi = device.map(|device| clean_text(&device.abi));
    std::iter::once(id).chain(words).chain(abi).collect::<Vec<_>>().join(", ")
}

fn runtime_text(run: &Run) -> Option<String> {
    let runtime = run.runtime.as_ref()?;
    let build = runtime.build_id.as_ref().map(|id| clean_text(id));
    Some(build.unwrap_or_else(|| format!("API {}", clean_text(&runtime.backend_api))))
}

fn graph_text(run: &Run) -> String {
    let Some(graph) = run.graph() else { return String::new() };
    let mut parts = Vec::new();
    if !graph.ops.is_empty() {
        parts.push(format!("{} {}", format::count(graph.ops.len() as u64), noun(graph.ops.len() as u64, "op")));
        if graph.macs() > 0 {
            parts.push(format!("{} MACs", format::si(graph.macs() as f64)));
        }
    }
    parts.join(", ")
}

/// The stage with its progress and the time left; returns the rows it took.
fn where_it_is(buf: &mut Buffer, area: Rect, context: &Context<'_>, standing: &Standing) -> u16 {
    if area.is_empty() {
        return 0;
    }
    let symbols = context.symbols();
    let status = match standing.state {
        RunState::Ended(status) => Some(status),
        _ => None,
    };
    let (sign, word, meaning) = sign(context.symbols(), status);
    let style = context.style(meaning);
    let (muted, text) = (context.style(Meaning::Muted), context.style(Meaning::Text));
    let text_style = text;
    let elapsed = format::duration(standing.elapsed_us(context.now_us) as f64, symbols);
    let mut x = put(buf, area, 1, 0, sign, style) + 1;
    let RunState::Ended(_) = standing.state else {
        let name = match (standing.phase, standing.state) {
            (Some((phase, ..)), RunState::In(Stage::Execute) | RunState::Between) => phase_name(phase).to_owned(),
            (_, RunState::In(stage)) => stage.name().replace('_', " "),
            _ if standing.launch.is_some_and(|launch| launch.waits) => "waits for its turn".to_owned(),
            _ => "between stages".to_owned(),
        };
        let name = match standing.launch {
            Some(launch) => format!("launch {} of {}: {name}", launch.number, launch.of),
            None => name,
        };
        if let Some(state) = context.run.and_then(|run| away(context, run)) {
            x = put(buf, area, x, 0, "waiting", context.style(Meaning::Warn)) + 2;
            let text = format!("for the device, which is {state}; elapsed {elapsed}");
            let room = area.width.saturating_sub(x + 1);
            put(buf, area, x, 0, &fit_end(&text, room, symbols.ellipsis), text_style);
            return 1;
        }
        if let Some(pause) = cooling_down(context) {
            x = put(buf, area, x, 0, "cooling down", context.style(Meaning::Title)) + 2;
            let room = area.width.saturating_sub(x + 1);
            put(buf, area, x, 0, &fit_end(&pause, room, symbols.ellipsis), text);
            return 1;
        }
        x = put(buf, area, x, 0, &name, context.style(Meaning::Title)) + 2;
        if let (RunState::In(Stage::Prepare), Some(sent)) = (standing.state, sending(context)) {
            let room = area.width.saturating_sub(x + 1);
            put(buf, area, x, 0, &fit_end(&sent, room, symbols.ellipsis), text);
            return 1;
        }
        let Some((progress_now, (_, budget, _))) = standing.progress(context.now_us).zip(standing.phase) else {
            put(buf, area, x, 0, "elapsed ", muted);
            put(buf, area, x + 8, 0, &elapsed, text);
            return 1;
        };
        let counted = match budget {
            Budget::Iterations(n) => format!("{}/{}", format::count(standing.done), format::count(n)),
            Budget::Seconds(seconds) => format!("{} in {seconds} s", format::count(standing.done)),
            Budget::AtLeast { iterations, seconds } => {
                format!("{}/{} in {seconds} s", format::count(standing.done), format::count(iterations))
            }
        };
        let counted = match standing.paced.filter(|_| matches!(standing.phase, Some((Phase::Clean, ..)))) {
            Some((rate, late)) => format!("{counted}  {rate}/s planned, {} late", format::count(late)),
            None => counted,
        };
        let eta = progress_now.eta_us.map_or_else(
            || symbols.missing.to_owned(),
            |eta| format!("{}{}", symbols.approx, format::duration(eta, symbols)),
        );
        let tail = format!("ETA {eta}");
        let bar = (context.style(Meaning::Accent), context.style(Meaning::Border));
        // Two rows if there is room: the text, then the bar over the whole width.
        let two_rows = area.height >= 2 && !context.rules;
        x = put(buf, area, x, 0, &counted, text) + 2;
        let time = format!("{tail}  elapsed {elapsed}");
        let percent = format!("{:.0} %", progress_now.fraction * 100.0);
        if two_rows {
            let room = area.width.saturating_sub(x + 1);
            let time = if width(&time) <= room { &time } else { &tail };
            put_right(buf, area, area.width - 1, room, 0, time, muted, symbols.ellipsis);
            let room = area.width.saturating_sub(9);
            progress(buf, area, (1, 1), room, Some(progress_now.fraction), bar, symbols);
            put_right(buf, area, area.width - 1, 6, 1, &percent, text, "");
            return 2;
        }
        let room = area.width.saturating_sub(x + width(&time) + 10).min(30);
        progress(buf, area, (x, 0), room, Some(progress_now.fraction), bar, symbols);
        x = put(buf, area, x + room + 1, 0, &percent, text) + 2;
        put(buf, area, x, 0, &time, muted);
        return 1;
    };
    x = put(buf, area, x, 0, word, style) + 2;
    let launches = standing.launch.map_or_else(String::new, |launch| format!(" of {} launches", launch.number));
    let counted = format!("{}{launches} in {elapsed}", plural(standing.inferences, "inference"));
    let counted = match standing.paced {
        Some((rate, late)) => format!("{counted}  {rate}/s planned, {} late", format::count(late)),
        None => counted,
    };
    put(buf, area, x, 0, &counted, text);
    1
}

/// The cool-down pause of the shown run, without its leading words.
fn cooling_down(context: &Context<'_>) -> Option<String> {
    let run = context.store.run(context.view.shown.run?)?;
    let pause = run.cool_down.as_ref().filter(|pause| pause.end.is_none())?;
    let time = |us: u64| format::duration(us as f64, context.symbols());
    let waited = format!("{} of at most {}", time(pause.waited_us), time(pause.limit_us));
    Some(match pause.waiting_for.first() {
        Some(left) => {
            format!("{} {:.0} to {:.0} {}  {waited}", clean_text(&left.id), left.value, left.target, left.unit)
        }
        None => waited,
    })
}

/// Files being sent to the shown run's device.
fn sending(context: &Context<'_>) -> Option<String> {
    let run = context.store.run(context.view.shown.run?)?;
    let sent = run.transfer.as_ref().filter(|sent| sent.done_bytes < sent.total_bytes)?;
    let percent = sent.done_bytes as f64 * 100.0 / sent.total_bytes as f64;
    let (done, total) = (format::bytes(sent.done_bytes), format::bytes(sent.total_bytes));
    Some(format!(
        "sending {} ({} of {})  {done} of {total}, {percent:.0} %",
        clean_text(&sent.name),
        sent.file,
        sent.files
    ))
}

/// A count and its noun.
pub fn plural(count: u64, word: &str) -> String {
    format!("{} {word}{}", format::count(count), if count == 1 { "" } else { "s" })
}

/// Display name of a phase.
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::First => "first inference",
        Phase::Warmup => "warm-up",
        Phase::Clean => "clean",
        Phase::Detailed => "detailed",
    }
}

/// A stage in one word.
fn short(stage: Stage) -> &'static str {
    match stage {
        Stage::LibraryLoad => "library",
        Stage::BackendCreate => "backend",
        Stage::DeviceCreate => "device",
        Stage::ContextCreate => "context",
        Stage::FirstInference => "first run",
        stage => stage.name(),
    }
}

/// Times of the stages, in as many columns as fit.
fn stages(buf: &mut Buffer, area: Rect, context: &Context<'_>, run: &Run, standing: &Standing) {
    const COLUMN: u16 = 22;
    let columns = (area.width / COLUMN).clamp(1, 2);
    let rows = Stage::ALL.len().div_ceil(usize::from(columns));
    let skip = context.view.scroll[0].min(rows.saturating_sub(usize::from(area.height)));
    let symbols = context.symbols();
    let ended = matches!(standing.state, RunState::Ended(_));
    for (i, stage) in Stage::ALL.into_iter().enumerate() {
        let (column, row) = (i / rows, i % rows);
        let Some(y) = row.checked_sub(skip).and_then(|row| u16::try_from(row).ok()) else { continue };
        if y >= area.height {
            continue;
        }
        let x = 1 + u16::try_from(column).unwrap_or(0) * (area.width / columns);
        let cell = Rect { width: (area.width / columns).saturating_sub(2).min(30), x: area.x + x, ..area };
        let done = run.stages[..standing.stages.min(run.stages.len())].iter().find(|time| time.stage == stage);
        let now = standing.state == RunState::In(stage);
        let (sign, style) = match (done.is_some(), now) {
            (true, _) => (symbols.ok, context.style(Meaning::Good)),
            (_, true) => (symbols.active, context.style(Meaning::Accent)),
            _ => (symbols.waiting, context.style(Meaning::Muted)),
        };
        let x = put(buf, cell, 0, y, sign, style);
        let name = if done.is_some() || now { Meaning::Text } else { Meaning::Muted };
        put(buf, cell, x + 1, y, short(stage), context.style(name));
        let value = match done {
            Some(time) => format::duration(time.duration_us, symbols),
            None if now && !ended => {
                let since = context.now_us.saturating_sub(run.stage_started_us);
                format!("{} {}", format::duration(since as f64, symbols), symbols.ellipsis)
            }
            None => symbols.missing.to_owned(),
        };
        let style = if done.is_some() { Meaning::Text } else { Meaning::Muted };
        put_right(buf, cell, cell.width, 12, y, &value, context.style(style), symbols.ellipsis);
    }
}

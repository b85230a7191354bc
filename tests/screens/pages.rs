//! The pages beside the live view, such as diagnosis and findings.

use super::*;
use qnnscope::analysis::{Advice, Effort, Evidence, EvidencePlace, Finding, FindingKind, Severity};
use qnnscope::app::{Overlay, Page, Section};
use qnnscope::event::{
    CheckOutcome, CheckResult, Like, Member, NodePartition, NodePlacement, NodeProvider, NodesPlaced, OutlierLimit,
};
use qnnscope::store::Run;

/// Keys that lead to the pages, and into them.
pub const WAYS: [&[KeyAction]; 10] = [
    &[KeyAction::Placement, KeyAction::Open],
    &[KeyAction::Redraw, KeyAction::Diagnosis],
    &[KeyAction::Findings],
    &[KeyAction::Findings, KeyAction::Open, KeyAction::Zoom],
    &[KeyAction::Outliers, KeyAction::Open],
    &[KeyAction::Compare],
    &[KeyAction::Compare, KeyAction::Open],
    &[KeyAction::Compare, KeyAction::OpTypes],
    &[KeyAction::Modes, KeyAction::Open],
    &[KeyAction::Compare, KeyAction::Open, KeyAction::Zoom],
];

/// Sizes at which something starts or stops fitting.
pub const SIZES: [(u16, u16); 16] = [
    (1, 1),
    (2, 2),
    (3, 3),
    (5, 4),
    (9, 1),
    (1, 9),
    (12, 2),
    (2, 12),
    (17, 8),
    (19, 14),
    (24, 40),
    (40, 10),
    (79, 23),
    (110, 30),
    (149, 29),
    (150, 50),
];

/// A run that failed for a reason in the catalogue, with a log around it.
fn known_failure() -> Session {
    let mut session = Session::new();
    session.counters(20);
    session.load(0, Backend::Htp, 60);
    session.emit(Some(0), Event::StageStarted { stage: Stage::Compose });
    for i in 0..14 {
        session.log(0, LogLevel::Info, &format!("prepare: pass {i} over the graph"));
    }
    let log = [
        "[4294967295] has incorrect Rank 6.",
        "QnnBackend_validateOpConfig failed 3110",
        "Failed to validate op mobilenet/block_3/expand with error 0xc26",
    ];
    for line in log {
        session.log(0, LogLevel::Error, line);
    }
    for i in 0..6 {
        session.log(0, LogLevel::Info, &format!("cleaning up {i}"));
    }
    let failure = Failure {
        code: Some(3110),
        symbol: Some("QNN_OP_PACKAGE_ERROR_VALIDATION_FAILURE".to_owned()),
        hint: Some("quantise the model, or run it with `--backend cpu`".to_owned()),
        log_tail: log.map(str::to_owned).to_vec(),
        ..Failure::new(Stage::Compose, "graphAddNode", "the backend refused the op mobilenet/block_3/expand (Conv2d)")
    };
    session.emit(Some(0), Event::Failed(Box::new(failure)));
    session.emit(Some(0), Event::RunFinished { status: RunStatus::Failed });
    session
}

fn some_findings(_: &Store, _: &Run) -> Vec<Finding> {
    let cpu = EvidencePlace::Counter { device: None, id: "host.cpu.freq".to_owned() };
    let few = Finding::new(
        "trust.few-samples",
        FindingKind::Trust,
        Severity::Warning,
        "1,000 samples are few for p99.9: it rests on a single inference".to_owned(),
        vec![
            Evidence::new("1,000 inferences in the clean phase, 1 of them beyond p99.9"),
            Evidence::at("the CPU clock moved between 2,300 and 2,900 MHz", cpu),
        ],
    );
    let bound = Finding::new(
        "bound.conversions",
        FindingKind::Bound,
        Severity::Problem,
        "format conversions take 41 % of the time on the accelerator".to_owned(),
        vec![
            Evidence::at("mobilenet/block_5/depthwise takes 3.0 % of the op sum", EvidencePlace::Op(21)),
            Evidence::at("it was slowest here", EvidencePlace::Moment(5_000_000)),
        ],
    );
    let mut change = Finding::new(
        "q4-convert-count",
        FindingKind::Suggestion,
        Severity::Info,
        "Keep the model in one layout and one data type".to_owned(),
        vec![Evidence::at("12 of 60 ops are Convert or Transpose", EvidencePlace::Op(3))],
    );
    change.suggestion = Some(Advice {
        action: "Convert the model with its inputs in NHWC, and quantise inputs and outputs, too".to_owned(),
        why: "Every change of layout or type writes and reads the whole tensor once more".to_owned(),
        effort: Effort::Reconvert,
        snippets: vec![
            "qairt-converter --input_network model.onnx \\\n  --source_model_input_layout input NHWC".to_owned(),
        ],
    });
    change.expected_gain_us = Some([200.0, 1_100.0]);
    change.expected_gain_share = Some([0.02, 0.11]);
    change.ops = vec!["mobilenet/block_0/add".to_owned(), "mobilenet/block_5/depthwise".to_owned()];
    change.source = Some("HTP optimisation guide: layout changes");
    vec![few, bound, change]
}

fn view_with_findings() -> View {
    let mut view = live_view();
    view.known.find = some_findings;
    view
}

fn ascii() -> Theme {
    Theme::load("ansi", ColorDepth::Ansi16, true, None).expect("it is shipped").0
}

fn only_ascii(screen: &str) {
    let foreign: Vec<char> = screen.chars().filter(|c| !c.is_ascii() && *c != '°').collect();
    assert_eq!(foreign, Vec::<char>::new(), "{screen}");
}

#[test]
fn a_failed_run_opens_its_diagnosis() {
    let session = known_failure();
    let mut view = live_view();
    screen!(diagnosis_80x24, session, view, 80 x 24);
    assert_eq!(view.page, Page::Diagnosis);
    screen!(diagnosis_120x40, session, view, 120 x 40);
    screen!(diagnosis_200x60, session, view, 200 x 60);
    let screen = text(&render_with(&session, &mut view, 80, 24, &ascii()));
    only_ascii(&screen);
    insta::assert_snapshot!("diagnosis_ascii_80x24", screen);
    press(&session, &mut view, &[KeyAction::Back]);
    assert_eq!((view.page, view.run), (Page::Live, None));
    press(&session, &mut view, &[KeyAction::Diagnosis]);
    assert_eq!(view.page, Page::Diagnosis, "it can be opened again");
}

#[test]
fn an_unknown_failure_shows_what_was_said() {
    screen!(diagnosis_unknown_80x24, failed(), live_view(), 80 x 24);
}

#[test]
fn a_failure_that_no_rule_knows_shows_what_it_reads_like() {
    let mut session = Session::new();
    session.load(0, Backend::Htp, 60);
    session.emit(Some(0), Event::StageStarted { stage: Stage::DeviceCreate });
    session.log(
        0,
        LogLevel::Error,
        "adsp_library_path and ld_library_path were of no use, libQnnHtpV73Skel stayed shut",
    );
    session.emit(
        Some(0),
        Event::Failed(Box::new(Failure {
            stage: Stage::DeviceCreate,
            call: "the start".to_owned(),
            code: None,
            symbol: None,
            message: "the wrapper gave up".to_owned(),
            hint: None,
            missing: false,
            bad_input: false,
            log_tail: Vec::new(),
            refusal: None,
        })),
    );
    session.emit(Some(0), Event::RunFinished { status: RunStatus::Failed });
    let mut view = live_view();
    let screen = text(&render(&session, &mut view, 120, 40));
    assert!(screen.contains("(skel-not-found); both say "), "{screen}");
    screen!(diagnosis_reads_like_80x24, session, live_view(), 80 x 24);
}

#[test]
fn the_evidence_is_marked_and_in_sight() {
    let session = known_failure();
    let mut view = live_view();
    let theme = theme();
    let buffer = render(&session, &mut view, 80, 24);
    let (_, y) = find(&buffer, "error  1 backend  [4294967295]");
    assert_eq!(buffer[(0, y)].symbol(), "▸");
    let accent = theme.style(Meaning::Accent);
    assert_eq!(Some(buffer[(40, y)].fg), accent.fg);
    let (_, y) = find(&buffer, "error  1 backend  QnnBackend_validateOpConfig");
    assert_eq!(buffer[(0, y)].symbol(), " ");
}

#[test]
fn evidence_leads_to_its_line() {
    let session = known_failure();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Redraw, KeyAction::Open]);
    assert_eq!(view.browser().unwrap().section, Section::Detail);
    // Title, confidence, why, fix, the steps, then the evidence.
    let steps = view.known.diagnosis.as_ref().unwrap().causes[0].steps.len();
    let before_evidence = 4 + if steps > 0 { steps + 1 } else { 0 };
    press(&session, &mut view, &vec![KeyAction::Down; before_evidence]);
    press(&session, &mut view, &[KeyAction::Open]);
    assert_eq!(view.browser().unwrap().section, Section::Log);
    let before = view.browser().unwrap().log_top.unwrap();
    press(&session, &mut view, &[KeyAction::Up]);
    assert_eq!(view.browser().unwrap().log_top, Some(before - 1));
    press(&session, &mut view, &[KeyAction::First, KeyAction::Up, KeyAction::Last, KeyAction::Down]);
    find(&render(&session, &mut view, 80, 24), "cleaning up 5");
}

#[test]
fn checks_that_end_while_the_diagnosis_is_open_show_in_it() {
    let mut session = known_failure();
    let mut view = live_view();
    find(&render(&session, &mut view, 80, 24), "very likely, 94 %, not confirmed");
    // Nothing was selected, so the most recent result comes first and is shown.
    let mut check = |cause: &str, check: &str, outcome, detail: &str| {
        let result = CheckResult { cause: cause.into(), check: check.into(), outcome, detail: detail.into() };
        session.emit(Some(0), Event::CheckFinished(Box::new(result)));
    };
    check("op-rank-unsupported", "ranks", CheckOutcome::Refutes, "no tensor has more than 4 dimensions");
    check("skel-wrong-arch", "skel-files", CheckOutcome::Confirms, "this DSP is v75 and there is only v73");
    screen!(diagnosis_confirmed_80x24, session, view, 80 x 24);
    find(&render(&session, &mut view, 120, 40), "confirms it: this DSP is v75");
    press(&session, &mut view, &[KeyAction::Last, KeyAction::Up]);
    find(&render(&session, &mut view, 80, 24), "a check contradicts it");
}

#[test]
fn the_steps_are_those_of_the_run_s_device() {
    let session = known_failure();
    let mut view = live_view();
    let shown = text(&render(&session, &mut view, 200, 60));
    let first = &view.known.diagnosis.as_ref().unwrap().causes[0];
    let on = view.known.diagnosis.as_ref().unwrap().platform.expect("the device is known").title();
    assert!(shown.contains(&format!("on {on}, in order:")), "{shown}");
    assert!(!first.steps.is_empty());
    for (number, step) in (1..).zip(first.steps) {
        let words: Vec<&str> = step.split(['`', ' ']).filter(|word| !word.is_empty()).collect();
        assert!(shown.contains(&format!("{number}. {}", words[0])), "{step}: {shown}");
    }
}

#[test]
fn causes_are_walked_through_from_everywhere() {
    let session = known_failure();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Redraw, KeyAction::Open]);
    find(&render(&session, &mut view, 80, 24), "1 of ");
    press(&session, &mut view, &[KeyAction::NextEntry]);
    find(&render(&session, &mut view, 80, 24), "2 of ");
    press(&session, &mut view, &[KeyAction::PreviousEntry, KeyAction::PreviousEntry]);
    find(&render(&session, &mut view, 80, 24), "1 of ");
}

#[test]
fn a_diagnosis_does_not_come_over_what_the_user_does() {
    let session = known_failure();
    let running = running_cpu();
    let others: [&[KeyAction]; 5] = [
        &[KeyAction::Filter],
        &[KeyAction::Help],
        &[KeyAction::Findings],
        &[KeyAction::NewRun],
        &[KeyAction::SwitchBackend],
    ];
    for keys in others {
        let mut view = live_view();
        press(&running, &mut view, keys);
        let (page, overlays) = (view.page, view.overlays.clone());
        render(&session, &mut view, 80, 24);
        assert_eq!((view.page, &view.overlays), (page, &overlays), "{keys:?}");
        let notice = "the run on htp failed; `d` in the live view says why";
        assert_eq!(view.notice.as_deref(), Some(notice));
    }
    let mut view = live_view();
    press(&running, &mut view, &[KeyAction::Redraw, KeyAction::Pause]);
    render(&session, &mut view, 80, 24);
    assert_eq!(view.page, Page::Live, "a frozen view stands still");
    press(&session, &mut view, &[KeyAction::Pause]);
    assert_eq!(view.page, Page::Diagnosis, "and catches up later");
}

#[test]
fn a_run_after_the_failed_one_is_followed_when_the_diagnosis_is_left() {
    let mut session = known_failure();
    let mut view = live_view();
    render(&session, &mut view, 80, 24);
    session.whole_run(1, Backend::Cpu, 60);
    find(&render(&session, &mut view, 80, 24), "run 1 on htp");
    press(&session, &mut view, &[KeyAction::Back]);
    assert_eq!(view.shown.run, Some(RunId(1)));
    // From the successful run, the key leads to the failed one.
    press(&session, &mut view, &[KeyAction::Diagnosis]);
    assert_eq!((view.page, view.shown.run), (Page::Diagnosis, Some(RunId(0))));
    press(&session, &mut view, &[KeyAction::NextRun]);
    find(&render(&session, &mut view, 80, 24), "this run has not failed");
}

#[test]
fn a_failed_run_is_run_again_from_its_diagnosis() {
    let session = known_failure();
    let mut view = live_view();
    render(&session, &mut view, 80, 24);
    assert_eq!(press(&session, &mut view, &[KeyAction::RestartRun]), Some(Request::Restart("local".to_owned())));
    assert_eq!((view.page, view.run), (Page::Live, None));
}

#[test]
fn the_fix_and_the_command_of_a_check_are_copied() {
    let session = known_failure();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Redraw, KeyAction::Copy]);
    let causes = &view.known.diagnosis.as_ref().unwrap().causes;
    let (fix, check) = (causes[0].cause().fix.clone(), causes[0].checks().first().map(|check| check.command.clone()));
    let evidence = causes[0].evidence.len();
    assert_eq!(view.copied.take(), Some(fix.clone()));
    let notice = format!("sent to the terminal's clipboard: {} characters; not every terminal takes it", fix.len());
    assert_eq!(view.notice, Some(notice));
    press(&session, &mut view, &[KeyAction::Open]);
    press(&session, &mut view, &vec![KeyAction::Down; 4 + evidence]);
    press(&session, &mut view, &[KeyAction::Copy]);
    assert_eq!(view.copied.take(), check);
}

#[test]
fn findings() {
    let session = finished_htp();
    let mut view = view_with_findings();
    press(&session, &mut view, &[KeyAction::Findings]);
    screen!(findings_80x24, session, view, 80 x 24);
    screen!(findings_120x40, session, view, 120 x 40);
    press(&session, &mut view, &[KeyAction::NextEntry, KeyAction::NextEntry, KeyAction::Open, KeyAction::Last]);
    let screen = text(&render_with(&session, &mut view, 80, 24, &ascii()));
    only_ascii(&screen);
    insta::assert_snapshot!("findings_ascii_80x24", screen);
    press(&session, &mut view, &[KeyAction::Zoom]);
    screen!(findings_zoomed_80x24, session, view, 80 x 24);
}

#[test]
fn findings_that_need_attention_are_counted_in_the_live_view() {
    let session = finished_htp();
    let mut view = view_with_findings();
    let buffer = render(&session, &mut view, 80, 24);
    assert_eq!(find(&buffer, "f 1 problem, 1 warning").1, 23);
    let alert = theme().style(Meaning::Alert);
    assert_eq!(Some(buffer[find(&buffer, "1 problem")].fg), alert.fg);
}

#[test]
fn a_run_without_findings_says_so() {
    let mut view = live_view();
    view.known.find = |_, _| Vec::new();
    let session = finished_htp();
    press(&session, &mut view, &[KeyAction::Findings, KeyAction::Open, KeyAction::Copy]);
    assert_eq!(view.notice.as_deref(), Some("nothing to copy here"));
    find(&render(&session, &mut view, 80, 24), "no findings");
}

#[test]
fn findings_lead_to_layers_counters_and_moments() {
    let session = finished_htp();
    let mut view = view_with_findings();
    view.filter = "block_0".to_owned();
    // The second finding: its title, then evidence about a layer.
    let to_layer = [KeyAction::Findings, KeyAction::NextEntry, KeyAction::Open, KeyAction::Down, KeyAction::Open];
    press(&session, &mut view, &to_layer);
    assert_eq!((view.page, view.focus, view.selected_row()), (Page::Live, Pane::Layers, Some(21)));
    assert_eq!(view.filter, "", "the filter hid the layer");
    press(&session, &mut view, &[KeyAction::Findings, KeyAction::Down, KeyAction::Open]);
    assert_eq!((view.page, view.focus, view.moment), (Page::Live, Pane::Log, Some(5_000_000)));
    press(&session, &mut view, &[KeyAction::Findings, KeyAction::PreviousEntry]);
    press(&session, &mut view, &[KeyAction::Down, KeyAction::Down, KeyAction::Open]);
    assert_eq!((view.page, view.focus), (Page::Live, Pane::Host));
    let buffer = render(&session, &mut view, 80, 24);
    let (x, y) = find(&buffer, "CPU clock");
    assert_eq!(buffer[(x - 1, y)].symbol(), "▸", "{}", text(&buffer));
}

#[test]
fn the_snippet_of_a_finding_is_copied() {
    let session = finished_htp();
    let mut view = view_with_findings();
    press(&session, &mut view, &[KeyAction::Findings, KeyAction::Last, KeyAction::Copy]);
    let snippet = "qairt-converter --input_network model.onnx \\\n  --source_model_input_layout input NHWC";
    assert_eq!(view.copied.as_deref(), Some(snippet));
}

#[test]
fn findings_are_looked_for_once_a_second_and_at_the_end() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let mut session = running_cpu();
    let mut view = live_view();
    view.known.find = |_, _| {
        CALLS.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    };
    let calls = |session: &Session, view: &mut View| {
        render(session, view, 80, 24);
        CALLS.load(Ordering::Relaxed)
    };
    assert_eq!(calls(&session, &mut view), 1);
    session.inferences(0, Phase::Clean, 412, 10, 7_300);
    assert_eq!(calls(&session, &mut view), 1, "only a moment has passed");
    session.t_us += 2_000_000;
    assert_eq!(calls(&session, &mut view), 2);
    session.t_us += 2_000_000;
    assert_eq!(calls(&session, &mut view), 2, "nothing has happened");
    session.finish(0, RunStatus::Ok);
    assert_eq!(calls(&session, &mut view), 3);
    session.counters(100);
    assert_eq!(calls(&session, &mut view), 3, "the run is over");
}

#[test]
fn pages_are_left_before_the_program() {
    let session = finished_htp();
    let mut view = view_with_findings();
    press(&session, &mut view, &[KeyAction::Findings, KeyAction::Help]);
    assert!(matches!(view.overlays.last(), Some(Overlay::Help { .. })));
    find(&render(&session, &mut view, 80, 24), "Findings");
    press(&session, &mut view, &[KeyAction::Back, KeyAction::Back]);
    assert_eq!(view.page, Page::Live);
    let context = |view: &View| view.key_context(&session.store);
    let q = "q".parse().unwrap();
    assert_eq!(view.keymap.action(q, &context(&view)), Some(KeyAction::Quit));
    press(&session, &mut view, &[KeyAction::Findings]);
    assert_eq!(view.keymap.action(q, &context(&view)), Some(KeyAction::Back));
}

#[test]
fn runs_that_were_refused_are_numbered_as_the_others() {
    // Runs that were refused before they could start have their own ids, far from those of the others.
    let mut session = finished_htp();
    for id in [u32::MAX - 1, u32::MAX] {
        session.load(id, Backend::Cpu, 4);
        session.log(id, LogLevel::Error, "no such file");
        let failure = Failure::new(Stage::Prepare, "prepare", "no such file");
        session.emit(Some(id), Event::Failed(Box::new(failure)));
        session.emit(Some(id), Event::RunFinished { status: RunStatus::Failed });
    }
    let mut view = live_view();
    find(&render(&session, &mut view, 80, 24), "run 3 on cpu");
    press(&session, &mut view, &[KeyAction::Back]);
    let buffer = render(&session, &mut view, 120, 40);
    find(&buffer, "3 cpu ✗ failed");
    find(&buffer, "error  3 backend  no such file");
}

/// A run in which three inferences took far longer than the others; during the slowest one, the CPU clock
/// dropped.
fn with_outliers() -> Session {
    let mut session = Session::new();
    session.counters(40);
    session.load(0, Backend::Cpu, 60);
    session.finalize(0);
    session.execute(0, 7_300, 300);
    session.inferences(0, Phase::Clean, 300, 1, 22_000);
    session.inferences(0, Phase::Clean, 301, 100, 7_300);
    let tick = |session: &mut Session, busy: f64, clock: f64| {
        let (t_us, values) = (session.t_us, vec![Some(busy), Some(5e9), Some(clock), None]);
        session.emit(None, Event::Counters(CounterSample { set: 0, t_us, values }));
    };
    for i in 0..60 {
        tick(&mut session, 40.0, 2_600.0);
        session.inferences(0, Phase::Clean, 401 + i, 1, 7_300);
    }
    session.log(0, LogLevel::Warning, "thermal: the limit is now 1200 MHz");
    session.inferences(0, Phase::Clean, 461, 1, 61_000);
    for i in 0..60 {
        tick(&mut session, 95.0, 1_200.0);
        session.inferences(0, Phase::Clean, 462 + i, 1, 7_300);
    }
    session.inferences(0, Phase::Clean, 522, 1, 24_000);
    session.detailed(0, 60, OpUnit::Us, 50, 8_000);
    session.finish(0, RunStatus::Ok);
    session
}

#[test]
fn outliers() {
    let session = with_outliers();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Outliers]);
    screen!(outliers_80x24, session, view, 80 x 24);
    screen!(outliers_120x40, session, view, 120 x 40);
    let screen = text(&render_with(&session, &mut view, 80, 24, &ascii()));
    only_ascii(&screen);
    insta::assert_snapshot!("outliers_ascii_80x24", screen);
    press(&session, &mut view, &[KeyAction::NextEntry]);
    find(&render(&session, &mut view, 80, 24), "2 of 4");
}

#[test]
fn outliers_lead_to_their_moment_and_their_counters() {
    let session = with_outliers();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Outliers, KeyAction::Open, KeyAction::Down, KeyAction::Open]);
    let start_us = view.known.outliers.as_ref().unwrap().kept[0].start_us;
    assert_eq!((view.page, view.focus, view.moment), (Page::Live, Pane::Log, Some(start_us)));
    let to_counter = [KeyAction::Outliers, KeyAction::Down, KeyAction::Open];
    press(&session, &mut view, &to_counter);
    assert_eq!((view.page, view.focus), (Page::Live, Pane::Host));
    let counter = view.known.outliers.as_ref().unwrap().kept[0].counters[0].id.clone();
    assert_eq!(view.counter, Some((None, counter)));
}

#[test]
fn a_finding_about_an_outlier_leads_to_its_page() {
    let session = with_outliers();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Findings]);
    let at = view.known.findings.iter().position(|finding| finding.kind == FindingKind::Outlier).unwrap();
    press(&session, &mut view, &[KeyAction::Down].repeat(at));
    press(&session, &mut view, &[KeyAction::Open, KeyAction::Down, KeyAction::Open]);
    assert_eq!(view.page, Page::Outliers);
    find(&render(&session, &mut view, 80, 24), "1 of 4");
}

/// The same with a limit set by the user.
fn with_outliers_beyond(limit: OutlierLimit) -> Session {
    let mut session = Session::new();
    let mut plan = plan(Backend::Cpu);
    plan.mode.outlier_limit = Some(limit);
    session.emit(Some(0), Event::RunStarted(Box::new(plan)));
    session.ready(0, Backend::Cpu, 60);
    session.finalize(0);
    session.execute(0, 7_300, 400);
    session.inferences(0, Phase::Clean, 400, 1, 40_000);
    session.finish(0, RunStatus::Ok);
    session
}

#[test]
fn outliers_are_told_against_the_median_whatever_the_limit_is() {
    for limit in [OutlierLimit::TimesMedian(2.0), OutlierLimit::TimesMedian(4.0), OutlierLimit::Percentile(99.5)] {
        let session = with_outliers_beyond(limit);
        let p50 = session.store.runs()[0].clean.percentile_us(50.0).unwrap();
        let mut view = live_view();
        press(&session, &mut view, &[KeyAction::Outliers]);
        let buffer = render(&session, &mut view, 80, 24);
        let slowest = session.store.runs()[0].clean.max_us().unwrap();
        find(&buffer, &format!("{:.2} x p50", slowest / p50));
        find(&buffer, &format!("times the median of {:.2} ms", p50 / 1000.0));
    }
}

#[test]
fn a_limit_that_the_samples_do_not_support_is_told() {
    let session = with_outliers_beyond(OutlierLimit::Percentile(99.99));
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Outliers]);
    let buffer = render(&session, &mut view, 80, 24);
    find(&buffer, "401 inferences do not support p99.99");
    press(&session, &mut view, &[KeyAction::Findings]);
    find(&render(&session, &mut view, 80, 24), "outliers were not searched for");
}

/// Runs in other measurement modes: over time and as published, in turns, at rates.
fn in_other_ways() -> Session {
    let mut session = Session::new();
    let begin = |session: &mut Session, run: u32, change: &dyn Fn(&mut RunPlan)| {
        let mut plan = plan(Backend::Cpu);
        change(&mut plan);
        session.emit(Some(run), Event::RunStarted(Box::new(plan)));
        session.ready(run, Backend::Cpu, 60);
        session.finalize(run);
    };
    let member = |index| Some(Member { group: 0, index, of: 3 });
    for (run, hz) in [(0, Some(5.0)), (1, Some(50.0)), (2, None)] {
        begin(&mut session, run, &|plan| (plan.mode.sweep, plan.mode.rate_hz) = (member(run), hz));
        for index in 0..40 {
            let latency_us = 7_300 + noise(index) + if run == 0 { 2_000 } else { 0 };
            let batch = InferenceBatch {
                phase: Phase::Clean,
                first_index: index,
                start_us: vec![session.t_us],
                latency_ns: vec![latency_us * 1000],
                late_ns: if hz.is_some() { vec![0] } else { Vec::new() },
            };
            session.emit(Some(run), Event::Inferences(batch));
            session.t_us += if run == 2 { latency_us } else { 1_000_000 / [5, 50][run as usize] };
        }
        session.finish(run, RunStatus::Ok);
    }
    for run in 3..6 {
        begin(&mut session, run, &|plan| plan.mode.repeat = member(run - 3));
        session.inferences(run, Phase::Clean, 0, 40, 7_300);
        session.finish(run, RunStatus::Ok);
    }
    begin(&mut session, 6, &|plan| {
        (plan.mode.sustained, plan.budget) = (true, Budget::Seconds(10.0));
        (plan.mode.like, plan.mode.published_us) = (Some(Like::Aihub), Some(5_000.0));
    });
    for second in 0..10 {
        let (busy, base) = if second < 5 { (40.0, 7_300) } else { (90.0, 9_800) };
        for first in 0..10 {
            let (t_us, values) = (session.t_us, vec![Some(busy), Some(5e9), Some(2_600.0), None]);
            session.emit(None, Event::Counters(CounterSample { set: 0, t_us, values }));
            let count = 100_000 / base;
            session.inferences(6, Phase::Clean, (second * 10 + first) * 20, count, base);
        }
    }
    session.finish(6, RunStatus::Ok);
    session
}

#[test]
fn modes() {
    let session = in_other_ways();
    let mut view = live_view();
    find(&render(&session, &mut view, 120, 40), "m modes");
    press(&session, &mut view, &[KeyAction::Modes]);
    screen!(modes_80x24, session, view, 80 x 24);
    screen!(modes_120x40, session, view, 120 x 40);
    let keys = [KeyAction::NextEntry, KeyAction::Open, KeyAction::Zoom];
    press(&session, &mut view, &keys);
    screen!(modes_published_80x24, session, view, 80 x 24);
    press(&session, &mut view, &[KeyAction::NextEntry]);
    find(&render(&session, &mut view, 80, 24), "3 of 3 rounds");
    press(&session, &mut view, &[KeyAction::NextEntry]);
    let screen = text(&render_with(&session, &mut view, 80, 24, &ascii()));
    only_ascii(&screen);
    insta::assert_snapshot!("modes_rates_ascii_80x24", screen);
    press(&session, &mut view, &[KeyAction::Modes]);
    assert_eq!(view.page, Page::Live);
}

#[test]
fn a_run_that_was_measured_as_usual_has_no_modes() {
    let session = finished_htp();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Modes]);
    find(&render(&session, &mut view, 80, 24), "measured back to back");
}

/// A run of an ONNX model of which QNN left two nodes to the CPU.
fn placed_run() -> Session {
    let mut session = finished_htp();
    let node = |name: &str, op_type: &str, provider: NodeProvider| NodePlacement {
        node: name.to_owned(),
        op_type: op_type.to_owned(),
        provider,
        partition: None,
        qnn_ops: Vec::new(),
        time_us: None,
        time_derived: false,
        code: None,
        reason: None,
        remedy: None,
        inserted: false,
    };
    let nodes = vec![
        NodePlacement {
            partition: Some(0),
            qnn_ops: vec![op_name(34), op_name(35)],
            time_us: Some(310.5),
            time_derived: true,
            ..node("/stem/Conv", "Conv", NodeProvider::Qnn)
        },
        NodePlacement {
            time_us: Some(72.0),
            reason: Some("the plug-in has no translation of Hardmax".to_owned()),
            remedy: Some("replace it, or move it to the start or end of the model".to_owned()),
            ..node("hardmax_mid", "Hardmax", NodeProvider::Cpu)
        },
        node("/stem/Shape", "Shape", NodeProvider::None),
        NodePlacement {
            code: Some(3110),
            reason: Some("the backend refused ElementWiseAdd with 3110 (a tensor of rank 6)".to_owned()),
            remedy: Some("reshape to at most 5 dimensions before this node, and back after it".to_owned()),
            ..node("add_rank6", "Add", NodeProvider::Cpu)
        },
        NodePlacement { partition: Some(1), inserted: true, ..node("Transpose", "Transpose", NodeProvider::Qnn) },
    ];
    let partition =
        |name: &str| NodePartition { name: name.to_owned(), nodes: 1, node_us: Some(700.0), qnn_us: Some(640.0) };
    let placed = NodesPlaced { nodes, partitions: vec![partition("QNN_1_2_0"), partition("QNN_1_3_1")], problem: None };
    session.emit(Some(0), Event::NodesPlaced(Box::new(placed)));
    session
}

#[test]
fn placement() {
    let session = placed_run();
    let mut view = live_view();
    find(&render(&session, &mut view, 120, 40), "w placement");
    // A layer's row names its node, and the filter finds it.
    find(&render(&session, &mut view, 200, 60), "/stem/Conv");
    press(&session, &mut view, &[KeyAction::Placement]);
    screen!(placement_80x24, session, view, 80 x 24);
    screen!(placement_120x40, session, view, 120 x 40);
    screen!(placement_200x60, session, view, 200 x 60);
    let screen = text(&render_with(&session, &mut view, 80, 24, &ascii()));
    only_ascii(&screen);
    press(&session, &mut view, &[KeyAction::Placement]);
    assert_eq!(view.page, Page::Live);
}

#[test]
fn models_that_are_not_onnx_have_no_placement() {
    let session = finished_htp();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Placement]);
    find(&render(&session, &mut view, 80, 24), "only ONNX models are placed");
}

#[test]
fn even_runs_have_no_outliers() {
    let session = finished_htp();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Outliers]);
    find(&render(&session, &mut view, 80, 24), "no inference took more than");
}

fn two_runs() -> Session {
    let mut session = finished_htp();
    session.whole_run(1, Backend::Cpu, 60);
    session
}

#[test]
fn compare() {
    let session = two_runs();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Compare]);
    screen!(compare_80x24, session, view, 80 x 24);
    screen!(compare_120x40, session, view, 120 x 40);
    screen!(compare_200x60, session, view, 200 x 60);
    let screen = text(&render_with(&session, &mut view, 80, 24, &ascii()));
    only_ascii(&screen);
    insta::assert_snapshot!("compare_ascii_80x24", screen);
    press(&session, &mut view, &[KeyAction::FocusNext, KeyAction::SortNext, KeyAction::Zoom, KeyAction::Down]);
    screen!(compare_layers_80x24, session, view, 80 x 24);
}

#[test]
fn op_types_take_the_place_of_the_layers_and_refused_ops_are_told() {
    let mut session = two_runs();
    session.load(2, Backend::Gpu, 60);
    let message = "op `mobilenet/block_3/expand` (Conv2d) was refused by the backend";
    let failure = Failure::new(Stage::Compose, "graphAddNode", message);
    session.emit(Some(2), Event::Failed(Box::new(failure)));
    session.emit(Some(2), Event::RunFinished { status: RunStatus::Failed });
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Redraw, KeyAction::Compare]);
    let refused = "3 gpu cannot run op `mobilenet/block_3/expand` (Conv2d)";
    let buffer = render(&session, &mut view, 120, 40);
    find(&buffer, "which backend?");
    find(&buffer, refused);
    press(&session, &mut view, &[KeyAction::OpTypes]);
    screen!(compare_op_types_80x24, session, view, 80 x 24);
    screen!(compare_op_types_120x40, session, view, 120 x 40);
    press(&session, &mut view, &[KeyAction::Zoom]);
    let screen = text(&render_with(&session, &mut view, 80, 24, &ascii()));
    only_ascii(&screen);
    assert!(screen.contains(refused) && screen.contains("DepthWiseConv2d"), "{screen}");
    press(&session, &mut view, &[KeyAction::Open]);
    assert_eq!(view.page, Page::Compare, "a type is no layer to look at");
    press(&session, &mut view, &[KeyAction::OpTypes]);
    find(&render(&session, &mut view, 80, 24), "layers");
}

#[test]
fn the_recommendation_waits_for_all_runs_and_goes_by_those_that_are_chosen() {
    let mut session = two_runs();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Compare]);
    assert!(view.comparing.recommendation.is_some());
    press(&session, &mut view, &[KeyAction::Toggle]);
    assert_eq!(view.comparing.recommendation, None, "one run is no choice");
    press(&session, &mut view, &[KeyAction::Toggle]);
    assert!(view.comparing.recommendation.is_some());
    session.load(2, Backend::Gpu, 60);
    press(&session, &mut view, &[KeyAction::Redraw]);
    assert_eq!(view.comparing.recommendation, None, "a run goes on");
    session.emit(Some(2), Event::RunFinished { status: RunStatus::Stopped });
    // The first run is excluded: the recommendation names the run, not its column.
    press(&session, &mut view, &[KeyAction::PreviousEntry, KeyAction::PreviousEntry, KeyAction::Toggle]);
    assert_eq!(view.comparing.recommendation.as_ref().and_then(|answer| answer.column), Some(0));
    find(&render(&session, &mut view, 120, 40), "which backend? cpu (2 cpu)");
}

#[test]
fn runs_are_taken_out_of_the_comparison_and_one_is_its_baseline() {
    let mut session = two_runs();
    session.whole_run(2, Backend::Cpu, 60);
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Compare]);
    let columns = |view: &View| view.comparing.columns.iter().map(|id| id.0).collect::<Vec<_>>();
    let baseline = |view: &View| view.comparing.comparison.as_ref().unwrap().baseline;
    assert_eq!((columns(&view), baseline(&view)), (vec![0, 1, 2], 0));
    press(&session, &mut view, &[KeyAction::Baseline]);
    assert_eq!(baseline(&view), 2, "the newest run has the cursor at first");
    press(&session, &mut view, &[KeyAction::PreviousEntry, KeyAction::Toggle]);
    assert_eq!((columns(&view), baseline(&view)), (vec![0, 2], 1));
    press(&session, &mut view, &[KeyAction::NextEntry, KeyAction::Toggle, KeyAction::PreviousEntry]);
    press(&session, &mut view, &[KeyAction::PreviousEntry, KeyAction::Toggle]);
    find(&render(&session, &mut view, 80, 24), "no run is selected");
    press(&session, &mut view, &[KeyAction::Baseline]);
    assert_eq!((columns(&view), baseline(&view)), (vec![0], 0), "a baseline is compared");
}

#[test]
fn rounds_are_launches_of_one_column() {
    let session = in_other_ways();
    let rounds = session.store.runs().iter().filter(|run| run.plan.mode.repeat.is_some()).count();
    assert_eq!(rounds, 3);
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Compare]);
    let all = session.store.runs().len();
    assert_eq!(view.comparing.columns.len(), all - rounds + 1);
    let column = view.comparing.column_of(RunId(3)).unwrap();
    assert_eq!(view.comparing.members[column], [RunId(3), RunId(4), RunId(5)]);
    assert_eq!(view.comparing.column_of(RunId(5)), Some(column));
    // Each of them can be excluded, and the cursor on any of them shows the column.
    press(&session, &mut view, &[KeyAction::PreviousEntry]);
    let buffer = render(&session, &mut view, 120, 40);
    find(&buffer, "x3");
    find(&buffer, &format!("{all} of {all} runs"));
    press(&session, &mut view, &[KeyAction::Toggle]);
    assert_eq!(view.comparing.members[view.comparing.column_of(RunId(3)).unwrap()], [RunId(3), RunId(4)]);
    find(&render(&session, &mut view, 120, 40), "x2");
    press(&session, &mut view, &[KeyAction::Baseline]);
    assert_eq!(Some(view.comparing.comparison.as_ref().unwrap().baseline), view.comparing.column_of(RunId(5)));
}

#[test]
fn a_layer_of_the_comparison_leads_to_the_layers_of_the_run() {
    let session = two_runs();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Compare, KeyAction::PreviousEntry, KeyAction::Open, KeyAction::Down]);
    let name = view.comparing.comparison.as_ref().unwrap().layers[1].name.clone();
    press(&session, &mut view, &[KeyAction::Open]);
    assert_eq!((view.page, view.focus, view.shown.run), (Page::Live, Pane::Layers, Some(RunId(0))));
    let row = view.selected_row().unwrap();
    assert_eq!(session.store.runs()[0].op(row).unwrap().name, name);
}

#[test]
fn many_runs_are_scrolled_through_and_failed_ones_say_so() {
    let mut session = two_runs();
    for run in 2..7 {
        session.whole_run(run, Backend::Cpu, 20);
    }
    session.load(7, Backend::Htp, 60);
    session.emit(Some(7), Event::Failed(Box::new(Failure::new(Stage::Finalize, "graphFinalize", "no"))));
    session.emit(Some(7), Event::RunFinished { status: RunStatus::Failed });
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Redraw, KeyAction::Compare]);
    let buffer = render(&session, &mut view, 80, 24);
    find(&buffer, "8 of 8 runs");
    find(&buffer, "8 htp failed");
    press(&session, &mut view, &[KeyAction::PreviousEntry; 9]);
    let (_, y) = find(&render(&session, &mut view, 80, 24), "= 1 htp simulated");
    assert!(y > 3, "the header of the figures");
}

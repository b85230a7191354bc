//! Two models layer by layer.

use super::*;
use qnnscope::accuracy::AccuracyDocument;
use qnnscope::app::{Page, Section};
use serde_json::{Value, json};
use std::sync::Arc;

/// Bins with a hump at `peak`.
fn hump(peak: usize, most: u64) -> Vec<u64> {
    (0..32).map(|bin: usize| most >> bin.abs_diff(peak).min(40)).collect()
}

fn layer(name: &str, op_type: &str, sqnr_db: Option<f64>, clipped: f64) -> Value {
    let map: Vec<f64> =
        (0..8 * 16).map(|at| if at % 16 > 9 && at / 16 > 4 { 0.25 } else { f64::from(at % 3) * 0.01 }).collect();
    json!({
        "reference": name, "test": format!("{name}_QuantizeLinear"), "op": format!("{name}_token_7"), "type": op_type,
        "sqnr_db": sqnr_db, "mse": sqnr_db.map_or(0.0, |_| 1.5e-4), "max_abs": 0.5, "mean_abs": 0.004, "cosine": 0.9991,
        "clipped_share": clipped, "own_sqnr_db": sqnr_db.map(|sqnr| sqnr + 1.5),
        "worst_channels": [{"channel": 3, "sqnr_db": 1.2, "noise_share": 0.61}],
        "histogram": {"from": -0.4, "to": 1.2, "reference": hump(12, 4096), "test": hump(8, 4096)},
        "map": {"rows": 8, "columns": 16, "mean_abs": map}
    })
}

fn document() -> AccuracyDocument {
    let layers = vec![
        layer("conv1", "Conv2d", Some(41.8), 0.0),
        layer("relu2\u{1b}[2J", "ElementWiseNeuron", Some(2.5), 0.375),
        layer("probs", "Softmax", None, 0.0),
    ];
    let side = |model: &str, backend: &str, simulated: bool| {
        json!({"model": model, "sha256": "00", "backend": backend, "simulated": simulated,
            "runtime": {"path": "", "build_id": "v2.47.0", "core_api": "2.34.0", "backend_api": "", "provider": ""}})
    };
    let mut first = layers[1].clone();
    first["cause"] = json!("range-too-small");
    first["remedy"] =
        json!("widen the range of `relu2` to 0..0.557: calibrate with data like this, or override its encoding");
    let pairs: Vec<Value> = layers
        .iter()
        .map(|layer| {
            json!({"reference": layer["reference"], "test": layer["test"], "how": "op", "permutation": null, "dtype": "ufixed_point8",
                "shape": [1, 8, 16, 8], "read": true, "elements": 4096, "not_finite": 0, "differing_share": 0.5, "used_share": 0.42,
                "seen_min": 0.0, "seen_max": 0.557, "encoded_min": 0.0, "encoded_max": 0.05})
        })
        .collect();
    let document = json!({
        "schema": "qnnscope.accuracy/1", "reference": side("/home/ada/float.dlc", "cpu", false), "test": side("/home/ada/quant.dlc", "htp", true),
        "inputs": "4 inputs from files", "inferences": 4, "min_sqnr_db": 20.0, "bisected": false, "layers": layers, "first_diverging": first,
        "verdict": {"layer": 1, "tensor": "relu2", "because": "37.5 % of the values are clipped: `relu2` has 0..0.557, its encoding holds 0..0.05",
            "inherited_sqnr_db": 41.8},
        "pairs": pairs, "reference_only": [], "test_only": [], "notes": []
    });
    AccuracyDocument::from_bytes(document.to_string().as_bytes()).unwrap().unwrap()
}

fn opened() -> (Session, View) {
    let mut view = View::start(Vec::new(), Vec::new());
    view.accuracy = Some(Arc::new(document()));
    view.page = Page::Accuracy;
    (Session::new(), view)
}

#[test]
fn layers_have_bars_and_the_first_that_diverges_its_cause() {
    let (session, mut view) = opened();
    insta::assert_snapshot!("accuracy_80x24", text(&render(&session, &mut view, 80, 24)));
    press(&session, &mut view, &[KeyAction::NextEntry]);
    insta::assert_snapshot!("accuracy_200x60", text(&render(&session, &mut view, 200, 60)));
    // Details scroll with the focus.
    press(&session, &mut view, &[KeyAction::FocusNext, KeyAction::Last]);
    assert_eq!(view.browser().unwrap().section, Section::Detail);
    find(&render(&session, &mut view, 120, 40), "where it differs");
}

#[test]
fn without_colours_and_unicode_it_says_the_same() {
    let (session, mut view) = opened();
    let (mono, _) = Theme::load("dark", ColorDepth::None, false, None).expect("it is shipped");
    let plain = render_with(&session, &mut view, 120, 40, &mono);
    assert_eq!(text(&plain), text(&render(&session, &mut view, 120, 40)));
    let reset = ratatui::style::Color::Reset;
    assert!(plain.content.iter().all(|cell| cell.fg == reset && cell.bg == reset));
    let (ascii, _) = Theme::load("ansi", ColorDepth::Ansi16, true, None).expect("it is shipped");
    press(&session, &mut view, &[KeyAction::NextEntry]);
    let screen = text(&render_with(&session, &mut view, 80, 24, &ascii));
    // A name stays unchanged, except that anything that could control the terminal is made visible.
    assert!(screen.replace('\u{fffd}', "").is_ascii(), "{screen}");
    assert!(!screen.contains('\u{1b}'));
}

#[test]
fn nothing_is_behind_it() {
    let (session, mut view) = opened();
    assert_eq!(press(&session, &mut view, &[KeyAction::Open]), None);
    assert_eq!(press(&session, &mut view, &[KeyAction::Back]), Some(Request::Quit));
    for (width, height) in pages::SIZES {
        let (session, mut view) = opened();
        render(&session, &mut view, width, height);
    }
    view.accuracy = None;
    find(&render(&session, &mut view, 120, 40), "--view");
}

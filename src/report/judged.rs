//! A run's outputs compared with known correct ones.

use crate::event::{JudgedOutput, TruthFigure, TruthMetric};
use crate::store::Run;
use crate::text::{counted, three_digits};
use std::fmt::Write;

/// One line per output; nothing if not requested.
pub fn lines(out: &mut String, run: &Run) {
    let Some(judged) = &run.judged else { return };
    if let Some(reason) = &judged.error {
        let _ = writeln!(out, "outputs    not judged by {}: {reason}", judged.truth);
        return;
    }
    let over = counted(u64::from(judged.inferences), "inference");
    for output in &judged.outputs {
        let _ = writeln!(out, "outputs    `{}` against {} over {over}: {}", output.name, judged.truth, figures(output));
    }
    for note in &judged.notes {
        let _ = writeln!(out, "           note: {note}");
    }
}

/// The figures of an output for display.
pub fn figures(output: &JudgedOutput) -> String {
    let mut parts: Vec<String> = output.figures.iter().map(|figure| figure_text(output, figure)).collect();
    if output.not_finite > 0 {
        parts.push(format!("{} left out, NaN or infinite", counted(output.not_finite, "value")));
    }
    if let Some(axes) = &output.permutation {
        parts.push(format!("axes {axes} of the expected output"));
    }
    parts.join(", ")
}

/// A figure's value with its unit.
pub fn shown(metric: TruthMetric, value: f64) -> String {
    match metric {
        TruthMetric::SqnrDb | TruthMetric::PsnrDb => format!("{value:.1} dB"),
        TruthMetric::Cosine => format!("{value:.6}"),
        TruthMetric::Mse => format!("{value:.3e}"),
        _ => format!("{} %", three_digits(value * 100.0)),
    }
}

fn figure_text(output: &JudgedOutput, figure: &TruthFigure) -> String {
    let label = figure.metric.label();
    let shown = |value: f64| shown(figure.metric, value);
    let Some(value) = figure.value else {
        let why = if output.identical { "identical" } else { "not defined" };
        return format!("{label} {why}");
    };
    // With classes, each inference is right or wrong, so the worst one means nothing.
    let worst = figure.worst.zip(figure.worst_inference).filter(|(worst, _)| {
        (*worst - value).abs() > 1e-9 && !matches!(figure.metric, TruthMetric::Top1 | TruthMetric::Top5)
    });
    let worst = worst.map_or_else(String::new, |(worst, at)| format!(" (worst {} in {at})", shown(worst)));
    format!("{label} {}{worst}", shown(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_their_units() {
        let figure = |metric, value: f64, worst: f64| TruthFigure {
            metric,
            value: Some(value),
            worst_inference: Some(3),
            worst: Some(worst),
        };
        let output = JudgedOutput {
            name: "y".to_owned(),
            elements: 10,
            identical: false,
            not_finite: 2,
            permutation: None,
            figures: vec![
                figure(TruthMetric::Top1, 0.75, 0.0),
                figure(TruthMetric::SqnrDb, 31.25, 20.0),
                TruthFigure { value: None, worst: None, ..figure(TruthMetric::PsnrDb, 0.0, 0.0) },
            ],
        };
        assert_eq!(
            figures(&output),
            "top-1 75.0 %, SQNR 31.2 dB (worst 20.0 dB in 3), PSNR not defined, 2 values left out, NaN or infinite"
        );
    }
}

//! Draws the figure of docs/repeatability.md: eight runs of the same workload, in one launch each and in
//! several.
//!
//!     cargo run --example repeatability_picture -- docs/repeatability.svg

#[path = "../tests/support/launches.rs"]
#[expect(dead_code, reason = "the picture takes the made-up machines, not the rates")]
mod launches;

use launches::{Draws, Figure, Machine, Run, value};
use plotters::coord::Shift;
use plotters::prelude::*;
use qnnscope::analysis::launches::Spread;
use std::error::Error;

const RUNS: u32 = 8;
const MACHINE: Machine = Machine::TwoLevels(0.5);
const SEED: u64 = 18;
const GREY: RGBColor = RGBColor(150, 150, 150);
const ORANGE: RGBColor = RGBColor(213, 94, 0);
const BLUE: RGBColor = RGBColor(0, 114, 178);

/// A run in the figure: the medians of its launches and its interval, in ms.
struct Shown {
    medians: Vec<f64>,
    interval: [f64; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name the file to write, such as docs/repeatability.svg")?;
    let mut draws = Draws::new(SEED);
    let alone = (0..RUNS).map(|_| one_launch(&mut draws)).collect::<Vec<_>>();
    let several = (0..RUNS).map(|_| launches_of_a_run(&mut draws)).collect::<Result<Vec<_>, _>>()?;
    let area = SVGBackend::new(&path, (900, 380)).into_drawing_area();
    area.fill(&WHITE)?;
    let (left, right) = area.split_horizontally(450);
    panel(&left, "one launch each: intervals of its inferences", &alone, ORANGE)?;
    panel(&right, "several launches each: intervals of launches", &several, BLUE)?;
    area.present()?;
    Ok(())
}

/// The median and its interval from order statistics: ranks 40 and 61 of a hundred.
fn one_launch(draws: &mut Draws) -> Shown {
    let mut latencies = MACHINE.launch(draws, 0, 1.0);
    let median = value(&mut latencies, Figure::P50) / 1000.0;
    Shown { medians: vec![median], interval: [latencies[39] / 1000.0, latencies[60] / 1000.0] }
}

fn launches_of_a_run(draws: &mut Draws) -> Result<Shown, Box<dyn Error>> {
    let run = Run::new(MACHINE, draws, 1.0);
    let medians: Vec<f64> = run.values[0].iter().map(|us| us / 1000.0).collect();
    let interval = Spread::of(&medians).ok_or("a run has several launches")?.interval();
    Ok(Shown { medians, interval })
}

fn panel<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    title: &str,
    runs: &[Shown],
    colour: RGBColor,
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    let last = f64::from(RUNS) + 0.6;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(44)
        .build_cartesian_2d(0.4..last, 0.8..2.6)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_desc("run of the same model on the same machine")
        .y_desc("median latency, ms")
        .x_labels(RUNS as usize + 1)
        .x_label_formatter(&|x| if (x - x.round()).abs() < 0.01 { format!("{x:.0}") } else { String::new() })
        .draw()?;
    for (number, run) in (1..).zip(runs) {
        let x = f64::from(number);
        let [low, high] = run.interval;
        chart.draw_series([PathElement::new(vec![(x, low), (x, high)], colour.stroke_width(5))])?;
        let ends = [low, high].map(|y| PathElement::new(vec![(x - 0.2, y), (x + 0.2, y)], colour.stroke_width(2)));
        chart.draw_series(ends)?;
        chart.draw_series(run.medians.iter().map(|ms| Circle::new((x - 0.3, *ms), 2, GREY.filled())))?;
    }
    Ok(())
}

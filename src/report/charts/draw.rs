//! Drawing charts with plotters.

use super::{Chart, Mark, Plot};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use thiserror::Error;

/// Width of a chart, pixels.
pub const WIDTH: u32 = 720;
/// Height of a chart without rows, pixels.
const HEIGHT: u32 = 260;
/// Height of a row of bars, pixels.
const ROW: u32 = 18;
/// Number of positions drawn along a series, each with its smallest and largest value.
const COLUMNS: usize = 600;
/// Maximum length of a name beside a bar, characters.
const NAME: usize = 34;

const INK: RGBColor = RGBColor(31, 35, 40);
const FAINT: RGBColor = RGBColor(208, 215, 222);
const BLUE: RGBColor = RGBColor(9, 105, 218);
const RED: RGBColor = RGBColor(188, 76, 0);

/// A chart that could not be drawn.
#[derive(Debug, Error)]
#[error("cannot draw the chart `{title}`: {reason}")]
pub struct ChartError {
    title: String,
    reason: String,
}

/// The chart as an SVG element.
pub fn svg(chart: &Chart) -> Result<String, ChartError> {
    let mut text = String::new();
    let size = (WIDTH, height(chart));
    let drawn = draw(chart, &SVGBackend::with_string(&mut text, size).into_drawing_area());
    drawn.map_err(|error| ChartError { title: chart.title.clone(), reason: error.to_string() })?;
    Ok(text)
}

/// Its height, pixels.
pub fn height(chart: &Chart) -> u32 {
    match &chart.plot {
        Plot::Bars { rows } => 64 + ROW * u32::try_from(rows.len()).unwrap_or(0),
        _ => HEIGHT,
    }
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw<B: DrawingBackend>(chart: &Chart, area: &DrawingArea<B, Shift>) -> Drawn
where
    B::ErrorType: 'static,
{
    match &chart.plot {
        Plot::Bins { bins, marks } => draw_bins(chart, area, bins, marks)?,
        Plot::Course { points, marks } => course(chart, area, points, marks)?,
        Plot::Bars { rows } => bars(chart, area, rows)?,
    }
    area.present()?;
    Ok(())
}

/// A non-empty range with some room at the top.
fn range(values: impl Iterator<Item = f64>, from_zero: bool) -> std::ops::Range<f64> {
    let (mut low, mut high) = (f64::MAX, f64::MIN);
    for value in values.filter(|value| value.is_finite()) {
        (low, high) = (low.min(value), high.max(value));
    }
    if low > high {
        return 0.0..1.0;
    }
    if from_zero {
        low = low.min(0.0);
    }
    let room = (high - low).max(high.abs() * 0.02).max(1e-9) * 0.08;
    let below = if low == 0.0 { 0.0 } else { room };
    low - below..high + room
}

fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{:.1} M", value / 1e6),
        size if size >= 1e4 => format!("{:.0} k", value / 1e3),
        size if size >= 99.95 || size == 0.0 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.0995 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn axes<'a, B: DrawingBackend>(
    chart: &Chart,
    area: &'a DrawingArea<B, Shift>,
    x: std::ops::Range<f64>,
    y: std::ops::Range<f64>,
) -> Result<
    ChartContext<'a, B, Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>>,
    Box<dyn std::error::Error>,
>
where
    B::ErrorType: 'static,
{
    let mut context = ChartBuilder::on(area)
        .margin(8)
        .margin_right(20)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(x, y)?;
    context
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT)
        .axis_style(FAINT)
        .label_style(("sans-serif", 14).into_font().color(&INK))
        .axis_desc_style(("sans-serif", 14).into_font().color(&INK))
        .x_desc(chart.x.as_str())
        .y_desc(chart.y.as_str())
        .x_label_formatter(&|value| short(*value))
        .y_label_formatter(&|value| short(*value))
        .draw()?;
    Ok(context)
}

/// Marker lines whose labels are staggered, so that close ones stay readable.
fn lines<B: DrawingBackend>(
    context: &mut ChartContext<
        '_,
        B,
        Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
    >,
    marks: &[Mark],
) -> Drawn
where
    B::ErrorType: 'static,
{
    let (x, y) = (context.x_range(), context.y_range());
    let height = y.end - y.start;
    for (row, mark) in marks.iter().filter(|mark| x.contains(&mark.at)).enumerate() {
        context.draw_series(std::iter::once(PathElement::new(vec![(mark.at, y.start), (mark.at, y.end)], RED)))?;
        let is_right = mark.at > x.start + 0.75 * (x.end - x.start);
        let side = if is_right { HPos::Right } else { HPos::Left };
        let style = ("sans-serif", 14).into_font().color(&RED).pos(Pos::new(side, VPos::Top));
        let label = if is_right { format!("{} ", mark.label) } else { format!(" {}", mark.label) };
        let at = (mark.at, y.end - height * 0.08 * (row % 5) as f64);
        context.draw_series(std::iter::once(Text::new(label, at, style)))?;
    }
    Ok(())
}

fn draw_bins<B: DrawingBackend>(
    chart: &Chart,
    area: &DrawingArea<B, Shift>,
    bins: &[(f64, f64)],
    marks: &[Mark],
) -> Drawn
where
    B::ErrorType: 'static,
{
    let step = match bins {
        [first, second, ..] => second.0 - first.0,
        _ => 1e-3,
    };
    let end = bins.last().map_or(1.0, |last| last.0 + step);
    let start = bins.first().map_or(0.0, |first| first.0);
    let y = range(bins.iter().map(|bin| bin.1), true);
    let mut context = axes(chart, area, start..end.max(start + 1e-9), y)?;
    let filled = bins.iter().filter(|bin| bin.1 > 0.0);
    context.draw_series(filled.map(|bin| Rectangle::new([(bin.0, 0.0), (bin.0 + step, bin.1)], BLUE.filled())))?;
    lines(&mut context, marks)
}

fn course<B: DrawingBackend>(
    chart: &Chart,
    area: &DrawingArea<B, Shift>,
    points: &[(f64, f64)],
    marks: &[Mark],
) -> Drawn
where
    B::ErrorType: 'static,
{
    let points = thinned(points);
    let x = range(points.iter().map(|point| point.0), false);
    let y = range(points.iter().map(|point| point.1), true);
    let mut context = axes(chart, area, x.start.max(0.0)..x.end, y)?;
    context.draw_series(std::iter::once(PathElement::new(points, BLUE)))?;
    lines(&mut context, marks)
}

/// At most two points per distinguishable position, the smallest and the largest, so that no outlier is lost.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let points: Vec<(f64, f64)> =
        points.iter().copied().filter(|point| point.0.is_finite() && point.1.is_finite()).collect();
    if points.len() <= 2 * COLUMNS {
        return points;
    }
    let mut kept = Vec::with_capacity(2 * COLUMNS);
    for part in points.chunks(points.len().div_ceil(COLUMNS)) {
        let low = part.iter().enumerate().min_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let high = part.iter().enumerate().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
        if let (Some(low), Some(high)) = (low, high) {
            let (first, second) = if low.0 <= high.0 { (low, high) } else { (high, low) };
            kept.push(*first.1);
            if first.0 != second.0 {
                kept.push(*second.1);
            }
        }
    }
    kept
}

fn bars<B: DrawingBackend>(chart: &Chart, area: &DrawingArea<B, Shift>, rows: &[(String, f64)]) -> Drawn
where
    B::ErrorType: 'static,
{
    let longest = rows.iter().map(|row| row.1).fold(0.0, f64::max).max(1e-9);
    let (width, _) = area.dim_in_pixel();
    let left = 250;
    #[expect(clippy::cast_possible_truncation, reason = "within the picture")]
    let pixels = |value: f64| (value.clamp(0.0, longest) / longest * f64::from(width - 250 - 70)) as i32;
    let style = |side| ("sans-serif", 14).into_font().color(&INK).pos(Pos::new(side, VPos::Center));
    for (at, (name, value)) in (0i32..).zip(rows) {
        let top = 6 + 18 * at;
        area.draw(&Text::new(cut(name), (left - 8, top + 7), style(HPos::Right)))?;
        let end = left + pixels(*value).max(1);
        area.draw(&Rectangle::new([(left, top), (end, top + 13)], BLUE.filled()))?;
        area.draw(&Text::new(format!("{value:.1}"), (end + 6, top + 7), style(HPos::Left)))?;
    }
    let below = 6 + 18 * i32::try_from(rows.len()).unwrap_or(0) + 14;
    area.draw(&Text::new(chart.x.clone(), (left, below), style(HPos::Left)))?;
    Ok(())
}

/// Keeps the end of a name: it is more specific than the start, which many names share.
fn cut(name: &str) -> String {
    let length = name.chars().count();
    if length <= NAME {
        name.to_owned()
    } else {
        format!("…{}", name.chars().skip(length - NAME + 1).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(plot: Plot) -> Chart {
        Chart { title: "t".to_owned(), x: "x <&>".to_owned(), y: "y".to_owned(), plot }
    }

    #[test]
    fn names_cannot_leave_the_picture() {
        let rows = vec![("</text><script>alert(1)</script>\"'&".to_owned(), 3.0), ("é".repeat(100), 0.0)];
        let text = svg(&chart(Plot::Bars { rows })).unwrap();
        assert!(!text.contains("<script") && text.contains("&lt;script"), "{text}");
        let marks = vec![Mark { at: 1.0, label: "<b onload=x>".to_owned() }];
        let text = svg(&chart(Plot::Course { points: vec![(0.0, 1.0), (2.0, 3.0)], marks })).unwrap();
        assert!(!text.contains("<b ") && text.contains("x &lt;&amp;&gt;"), "{text}");
    }

    #[test]
    fn long_courses_stay_small_and_keep_their_outliers() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|at| (f64::from(at), 1.0)).collect();
        points[54_321].1 = 9.0;
        let kept = thinned(&points);
        assert!(kept.len() <= 2 * COLUMNS && kept.contains(&(54_321.0, 9.0)));
        assert!(kept.is_sorted_by(|a, b| a.0 < b.0));
        assert!(svg(&chart(Plot::Course { points, marks: Vec::new() })).unwrap().len() < 40_000);
    }

    #[test]
    fn odd_figures_are_drawn_or_left_out() {
        for points in [vec![], vec![(0.0, f64::NAN)], vec![(0.0, 0.0); 3], vec![(1.0, 1e300), (2.0, -1e300)]] {
            svg(&chart(Plot::Course { points, marks: Vec::new() })).unwrap();
        }
        for bins in [vec![], vec![(5.0, 1.0)], vec![(5.0, 0.0), (5.0, 0.0)]] {
            svg(&chart(Plot::Bins { bins, marks: Vec::new() })).unwrap();
        }
    }
}

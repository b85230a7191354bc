//! Visualisations of a tensor: the distribution of its values, and where in an image the two sides differ.

use serde::{Deserialize, Serialize};

/// Bins of a histogram.
const BINS: usize = 32;
/// Maximum number of rows and columns of a map.
const MAP: (usize, usize) = (16, 32);

/// The distribution of both sides' values, in bins of equal width.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Lower edge of the first bin.
    pub from: f64,
    /// Upper edge of the last bin.
    pub to: f64,
    /// Number of the reference's values in each bin; the outermost bins include everything beyond.
    pub reference: Vec<u64>,
    /// The same for the test.
    pub test: Vec<u64>,
}

impl Spread {
    /// An empty histogram over the range of both sides' values. `None` if these are all the same number, or
    /// there are none.
    pub fn over(x: &[f64], y: &[f64]) -> Option<Self> {
        let finite = x.iter().chain(y).copied().filter(|value| value.is_finite());
        let (from, to) =
            finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let is_range = (to - from).is_finite() && to > from;
        is_range.then(|| Self { from, to, reference: vec![0; BINS], test: vec![0; BINS] })
    }

    /// Adds the values of one inference.
    pub fn take(&mut self, x: &[f64], y: &[f64]) {
        let (from, scale) = (self.from, BINS as f64 / (self.to - self.from));
        let count = |bins: &mut [u64], values: &[f64]| {
            for value in values.iter().filter(|value| value.is_finite()) {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the bins")]
                let bin = ((value - from) * scale).clamp(0.0, (BINS - 1) as f64) as usize;
                bins[bin] += 1;
            }
        };
        count(&mut self.reference, x);
        count(&mut self.test, y);
    }
}

/// Where in an image the two sides differ: mean differences over channels, inferences, and the elements that
/// share a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffMap {
    rows: usize,
    columns: usize,
    sums: Vec<f64>,
    counts: Vec<u64>,
}

/// The map as stored in a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiffGrid {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Mean abs(x - y) per cell, row by row, to three digits.
    pub mean_abs: Vec<f64>,
}

impl DiffMap {
    /// A map for tensors of this shape; `None` if they are not images. `axis` is the channel axis.
    pub fn of(shape: &[u32], axis: Option<usize>) -> Option<Self> {
        let (height, width) = image(shape, axis)?;
        let (rows, columns) = (height.min(MAP.0), width.min(MAP.1));
        Some(Self { rows, columns, sums: vec![0.0; rows * columns], counts: vec![0; rows * columns] })
    }

    /// Adds the values of one inference.
    pub fn take(&mut self, x: &[f64], y: &[f64], shape: &[u32], axis: Option<usize>) {
        let Some((height, width)) = image(shape, axis) else { return };
        let inner = if axis == Some(3) { shape[3] as usize } else { 1 };
        let cell =
            |row: usize, column: usize| (row * self.rows / height) * self.columns + column * self.columns / width;
        let lines = x.chunks_exact(inner * width).zip(y.chunks_exact(inner * width)).enumerate();
        for (line, (x, y)) in lines {
            let pixels = x.chunks_exact(inner).zip(y.chunks_exact(inner)).enumerate();
            for (column, (x, y)) in pixels {
                let at = cell(line % height, column);
                for difference in
                    x.iter().zip(y).map(|(x, y)| (x - y).abs()).filter(|difference| difference.is_finite())
                {
                    self.sums[at] += difference;
                    self.counts[at] += 1;
                }
            }
        }
    }

    /// The mean differences.
    pub fn grid(&self) -> DiffGrid {
        let mean = |(sum, count): (&f64, &u64)| rounded(if *count == 0 { 0.0 } else { sum / *count as f64 });
        DiffGrid {
            rows: self.rows,
            columns: self.columns,
            mean_abs: self.sums.iter().zip(&self.counts).map(mean).collect(),
        }
    }
}

/// Height and width of a four-dimensional tensor, both larger than 1.
fn image(shape: &[u32], axis: Option<usize>) -> Option<(usize, usize)> {
    let [_, a, b, c] = *shape else { return None };
    let (height, width) = if axis == Some(1) { (b, c) } else { (a, b) };
    (height > 1 && width > 1).then_some((height as usize, width as usize))
}

/// Rounds to three digits: a picture needs no more.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_in_their_bins() {
        let (x, y) = ([0.0, 1.0, 3.2], [0.1, 1.0, f64::NAN]);
        let mut spread = Spread::over(&x, &y).unwrap();
        assert_eq!((spread.from, spread.to), (0.0, 3.2));
        spread.take(&x, &y);
        // Bins of 0.1; values beyond go into the outermost ones.
        spread.take(&[-5.0, 99.0], &[]);
        assert_eq!((spread.reference[0], spread.reference[10], spread.reference[31]), (2, 1, 2));
        assert_eq!((spread.test[0] + spread.test[1], spread.test.iter().sum::<u64>()), (1, 2));
        assert_eq!(Spread::over(&[1.0, 1.0], &[1.0]), None);
        assert_eq!(Spread::over(&[f64::NAN], &[]), None);
    }

    #[test]
    fn maps_show_where_images_differ() {
        // Two channels of 2 x 3, once last and once first; the pixel in row 1, column 2 differs by 4 in one of them.
        let mut last = vec![0.0; 12];
        last[(3 + 2) * 2] = 4.0;
        let mut first = vec![0.0; 12];
        first[5] = 4.0;
        for (values, shape, axis) in [(last, [1, 2, 3, 2], 3), (first, [1, 2, 2, 3], 1)] {
            let mut map = DiffMap::of(&shape, Some(axis)).unwrap();
            map.take(&[0.0; 12], &values, &shape, Some(axis));
            let grid = map.grid();
            assert_eq!((grid.rows, grid.columns), (2, 3));
            assert_eq!(grid.mean_abs, [0.0, 0.0, 0.0, 0.0, 0.0, 2.0]);
        }
        // 40 columns in 32 cells.
        let mut wide = DiffMap::of(&[1, 2, 40, 1], Some(3)).unwrap();
        wide.take(&[1.0; 80], &[0.0; 80], &[1, 2, 40, 1], Some(3));
        assert!(wide.grid().mean_abs.iter().all(|mean| (mean - 1.0).abs() < 1e-12));
        assert!(DiffMap::of(&[1, 10], Some(1)).is_none() && DiffMap::of(&[1, 1, 1, 5], Some(3)).is_none());
    }
}

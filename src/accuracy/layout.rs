//! Shapes of one tensor in two graphs: equal, with channels moved, or with extra axes of size 1.

/// How a reference tensor's elements are arranged in the test's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// In the same order.
    Same,
    /// Test axis `i` is axis `permutation[i]` of the reference.
    Permuted(Vec<usize>),
}

impl Layout {
    /// How a tensor of shape `reference` is arranged in shape `test`; `None` if it cannot be the same tensor.
    ///
    /// Equal shapes mean equal order, as far as shapes can show it: see [`Layout::moves_unseen`].
    pub fn between(reference: &[u32], test: &[u32]) -> Option<Self> {
        if reference == test {
            return Some(Self::Same);
        }
        let rank = reference.len();
        if rank == test.len() && rank >= 3 {
            // Channels first to channels last, and back.
            let last: Vec<usize> = std::iter::once(0).chain(2..rank).chain(std::iter::once(1)).collect();
            let first: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
            for permutation in [last, first] {
                if permutation.iter().zip(test).all(|(&axis, &size)| reference[axis] == size) {
                    return Some(Self::Permuted(permutation));
                }
            }
        }
        let whole = |shape: &[u32]| shape.iter().copied().filter(|&size| size != 1).collect::<Vec<_>>();
        (whole(reference) == whole(test)).then_some(Self::Same)
    }

    /// True for shapes that stay the same when channels move from first to last.
    pub fn moves_unseen(shape: &[u32]) -> bool {
        let moving = shape.get(1..).unwrap_or_default();
        moving.len() >= 2 && moving.iter().all(|size| *size == moving[0] && *size > 1)
    }

    /// The layout from the test's order back to the reference's, given [`Layout::text`] of the forward one.
    pub fn back(text: Option<&str>) -> Self {
        let axes: Option<Vec<usize>> = text.and_then(|text| text.split(',').map(|axis| axis.parse().ok()).collect());
        let Some(axes) = axes else { return Self::Same };
        let back = (0..axes.len()).map(|axis| axes.iter().position(|&from| from == axis));
        back.collect::<Option<_>>().map_or(Self::Same, Self::Permuted)
    }

    /// The reference's values in the test's order.
    pub fn arranged(&self, values: Vec<f64>, reference: &[u32]) -> Vec<f64> {
        let Self::Permuted(permutation) = self else { return values };
        let sizes: Vec<usize> = reference.iter().map(|&size| size as usize).collect();
        let mut strides = vec![1usize; sizes.len()];
        for axis in (0..sizes.len().saturating_sub(1)).rev() {
            strides[axis] = strides[axis + 1] * sizes[axis + 1];
        }
        let shape: Vec<usize> = permutation.iter().map(|&axis| sizes[axis]).collect();
        let steps: Vec<usize> = permutation.iter().map(|&axis| strides[axis]).collect();
        let mut out = Vec::with_capacity(values.len());
        let mut at = vec![0usize; shape.len()];
        let mut from = 0usize;
        for _ in 0..values.len() {
            out.push(values.get(from).copied().unwrap_or(f64::NAN));
            for axis in (0..shape.len()).rev() {
                at[axis] += 1;
                from += steps[axis];
                if at[axis] < shape[axis] {
                    break;
                }
                from -= steps[axis] * shape[axis];
                at[axis] = 0;
            }
        }
        out
    }

    /// The channel axis in the test's shape: the last one, unless the reference shows that channels come
    /// first there.
    pub fn channel_axis(&self, test: &[u32]) -> Option<usize> {
        if test.len() < 2 {
            return None;
        }
        match self {
            Self::Permuted(permutation) if permutation.get(1) == Some(&(permutation.len() - 1)) => Some(1),
            _ => Some(test.len() - 1),
        }
    }

    /// `0,2,3,1`; `None` if nothing moves.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Same => None,
            Self::Permuted(axes) => Some(axes.iter().map(usize::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_move_and_ones_do_not_matter() {
        assert_eq!(Layout::between(&[1, 16, 8, 9], &[1, 8, 9, 16]), Some(Layout::Permuted(vec![0, 2, 3, 1])));
        assert_eq!(Layout::between(&[1, 8, 9, 16], &[1, 16, 8, 9]), Some(Layout::Permuted(vec![0, 3, 1, 2])));
        assert_eq!(Layout::between(&[1, 1, 1, 16], &[1, 16]), Some(Layout::Same));
        assert_eq!(Layout::between(&[], &[1]), Some(Layout::Same));
        assert_eq!(Layout::between(&[2, 8], &[8, 2]), None);
        let unseen = [&[1, 8, 8, 8][..], &[2, 4, 4]].map(Layout::moves_unseen);
        assert_eq!(unseen, [true, true]);
        let seen = [&[1, 8, 8, 4][..], &[1, 8], &[1, 1, 1, 1], &[]].map(Layout::moves_unseen);
        assert_eq!(seen, [false; 4]);
    }

    #[test]
    fn values_are_arranged_as_numpy_transposes_them() {
        // np.arange(12).reshape(1, 2, 2, 3).transpose(0, 2, 3, 1).ravel()
        let values: Vec<f64> = (0..12).map(f64::from).collect();
        let moved = Layout::Permuted(vec![0, 2, 3, 1]).arranged(values.clone(), &[1, 2, 2, 3]);
        assert_eq!(moved, [0., 6., 1., 7., 2., 8., 3., 9., 4., 10., 5., 11.]);
        let back = Layout::Permuted(vec![0, 3, 1, 2]).arranged(moved, &[1, 2, 3, 2]);
        assert_eq!(back, values);
        let there = Layout::Permuted(vec![0, 3, 1, 2]);
        assert_eq!(Layout::back(there.text().as_deref()), Layout::Permuted(vec![0, 2, 3, 1]));
        assert_eq!((Layout::back(None), Layout::back(Some("0,7"))), (Layout::Same, Layout::Same));
        assert_eq!(Layout::Permuted(vec![0, 2, 1]).arranged(vec![], &[1, 0, 3]), Vec::<f64>::new());
    }
}

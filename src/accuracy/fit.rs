//! Whether an encoding fits values, and which one would.

use super::values::EncodedRange;

/// Share of clipped values from which an encoding does not fit.
pub const CLIPPED_SHARE: f64 = 0.001;
/// Share of its range that an encoding should use.
pub const USED_SHARE: f64 = 0.25;
/// Values beyond a range by at most this share of it still fit.
const HELD_BEYOND: f64 = 0.05;
/// The same for a range with its sign flipped.
const TURNED_BEYOND: f64 = 0.15;

/// Scale and offset for values from `min` to `max`, with the stored numbers of `like`.
pub fn fitting(min: f64, max: f64, like: EncodedRange) -> Option<(f32, i32)> {
    let (min, max) = (min.min(0.0), max.max(0.0));
    if max <= min || !(max - min).is_finite() {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "scales are float32, offsets far below 2^31 for up to 16 bits")]
    Some(if like.low < 0 && like.offset == 0 {
        (((-min).max(max) / like.high as f64) as f32, 0)
    } else {
        let scale = (max - min) / (like.high - like.low) as f64;
        (scale as f32, ((min / scale).round() as i64 - like.low) as i32)
    })
}

/// The range with the sign of its offset, or of its ends, flipped, if that would hold the values and the
/// present range does not.
pub fn turned(min: f64, max: f64, range: EncodedRange) -> Option<(f64, f64)> {
    let width = range.max - range.min;
    let real = |stored: i64, offset: f64| (stored as f64 + offset) * range.step;
    let offset = f64::from(range.offset);
    // How far values lie beyond a range. Data always differs somewhat from the calibration data, so the
    // flipped range need not hold every last value.
    let beyond = |low: f64, high: f64| (low - min).max(max - high).max(0.0);
    let now = beyond(range.min, range.max);
    let holds = |low: f64, high: f64| beyond(low, high) <= (width * TURNED_BEYOND).min(now / 2.0);
    if now <= width * HELD_BEYOND || max - min < width * USED_SHARE {
        return None;
    }
    let flipped = (real(range.low, -offset), real(range.high, -offset));
    let mirrored = (-range.max, -range.min);
    [flipped, mirrored].into_iter().find(|&(low, high)| holds(low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(scale: f64, offset: i32) -> EncodedRange {
        let real = |stored: i64| (stored as f64 + f64::from(offset)) * scale;
        EncodedRange { min: real(0), max: real(255), step: scale, low: 0, high: 255, offset, bits: 8 }
    }

    #[test]
    fn a_wrong_sign_is_told_from_a_wrong_size() {
        // Values -0.5..1.5; the right encoding is offset -64.
        let right = range(2.0 / 255.0, -64);
        assert_eq!(turned(-0.5, 1.5, right), None);
        let plus = range(2.0 / 255.0, 64);
        let (low, high) = turned(-0.5, 1.5, plus).unwrap();
        assert!((low - right.min).abs() < 1e-9 && (high - right.max).abs() < 1e-9);
        // Ends swapped: -1.5..0.5.
        assert!(turned(-0.5, 1.5, range(2.0 / 255.0, -191)).is_some());
        // The data reaches a little further than the calibration data did.
        assert!(turned(-0.6, 1.7, plus).is_some());
        // Ten times too small.
        assert_eq!(turned(-0.5, 1.5, range(0.2 / 255.0, -64)), None);
        assert_eq!(turned(0.0, 1.5, range(0.15 / 255.0, 0)), None);
    }
}

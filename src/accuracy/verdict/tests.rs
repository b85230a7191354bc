//! Which layer is to blame.

use super::*;
use crate::accuracy::fit::fitting;
use crate::accuracy::metrics::{TensorFigures, TensorSums};
use crate::accuracy::pairs::{How, Pair, Slot};
use crate::accuracy::values::EncodedRange;
use crate::accuracy::{Layout, Sums};
use crate::models::{DataType, Tensor, TensorKind};

const U8: EncodedRange = EncodedRange { min: 0.0, max: 2.55, step: 0.01, low: 0, high: 255, offset: 0, bits: 8 };
const S8: EncodedRange = EncodedRange { min: -1.28, max: 1.27, step: 0.01, low: -128, high: 127, offset: 0, bits: 8 };

#[test]
fn fitting_encodings_hold_zero_and_both_ends() {
    let (scale, offset) = fitting(-0.5, 1.5, U8).unwrap();
    let real = |stored: f64| (stored + f64::from(offset)) * f64::from(scale);
    assert!(real(0.0) <= -0.5 + f64::from(scale) && real(255.0) >= 1.5 - f64::from(scale), "{scale} {offset}");
    assert_eq!(fitting(0.2, 2.55, U8).unwrap(), (0.01, 0));
    assert_eq!(fitting(-2.54, 1.0, S8).unwrap(), (0.02, 0));
    assert_eq!(fitting(0.0, 0.0, U8), None);
}

/// A layer with this SQNR, in dB, whose values fill the share `used` of its encoding's range.
fn layer(pair: usize, sqnr_db: f64, used: f64) -> Layer {
    let x: Vec<f64> = (0..256).map(|at| f64::from(at) * 0.01 * used).collect();
    let signal: f64 = x.iter().map(|x| x * x).sum();
    let error = (signal / 10f64.powf(sqnr_db / 10.0) / x.len() as f64).sqrt();
    let y: Vec<f64> = x.iter().enumerate().map(|(at, x)| if at % 2 == 0 { x + error } else { x - error }).collect();
    let mut sums = TensorSums::default();
    sums.take(&x, &y, &[256], None, Some(U8));
    Layer {
        pair,
        op: format!("op{pair}"),
        op_type: "Conv2d".into(),
        figures: TensorFigures::new(&sums, Some(U8), false),
        sums,
        spread: None,
        map: None,
        range: Some(U8),
        own_sqnr_db: Some(sqnr_db),
    }
}

/// A chain of layers, each computed from the one before.
fn row(layers: &[(f64, f64)]) -> (Vec<Layer>, Pairing) {
    let slot = |at: usize| Slot {
        tensor: Tensor {
            name: format!("t{at}"),
            dtype: DataType(0x0408),
            shape: vec![256],
            quantization: None,
            kind: TensorKind::Native,
        },
        op: Some(at),
    };
    let pair = |at: usize| Pair {
        reference: slot(at),
        test: slot(at),
        layout: Layout::Same,
        how: How::Name,
        sources: at.checked_sub(1).into_iter().collect(),
    };
    let made = layers.iter().enumerate().map(|(at, &(sqnr, used))| layer(at, sqnr, used)).collect();
    (made, Pairing { pairs: (0..layers.len()).map(pair).collect(), ..Pairing::default() })
}

#[test]
fn layers_that_lose_little_wait_for_those_that_lose_much() {
    let first = |layers: &[(f64, f64)]| {
        let (layers, pairing) = row(layers);
        first_diverging(&layers, &pairing, 20.0)
    };
    // Eight bits, with data slightly beyond the calibration range.
    assert_eq!(first(&[(40.0, 1.0), (29.5, 1.0), (29.0, 1.0)]), None);
    // The next layer loses more; the blame goes to where the SQNR dropped most.
    assert_eq!(first(&[(40.0, 1.0), (29.5, 1.0), (6.0, 1.0)]), Some(2));
    assert_eq!(first(&[(40.0, 1.0), (21.0, 1.0), (19.0, 1.0)]), Some(1));
    // A wasted range is a fault even above the limit, and takes precedence over an equal loss from rounding.
    assert_eq!(first(&[(40.0, 1.0), (29.5, 0.1), (29.0, 1.0)]), Some(1));
    assert_eq!(first(&[(29.5, 1.0), (19.5, 0.1)]), Some(1));
}

#[test]
fn sums_of_nothing_are_no_layer_to_blame() {
    let mut nothing = layer(0, 30.0, 1.0);
    nothing.sums.whole = Sums::default();
    nothing.figures = TensorFigures::new(&nothing.sums, Some(U8), false);
    assert!(!nothing.diverges(20.0));
}

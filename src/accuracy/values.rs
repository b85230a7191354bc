//! Stored bytes as real numbers and back.

use crate::backends::qnn::runner::{encode, scale_offset};
use crate::models::{Quantization, Tensor};

/// Converts stored bytes to real numbers by the tensor's own encoding; `None` for types without a numeric
/// value.
pub fn real_values(bytes: &[u8], tensor: &Tensor) -> Option<Vec<f64>> {
    let size = tensor.dtype.bytes()?;
    // A single scale is by far the most common case.
    let single = match &tensor.quantization {
        Some(Quantization::ScaleOffset { scale, offset, .. }) => Some((*scale, *offset)),
        _ => None,
    };
    let fixed = tensor.dtype.is_fixed_point();
    if fixed && matches!(tensor.quantization, Some(Quantization::Other { .. })) {
        return None;
    }
    let elements = bytes.chunks_exact(size).enumerate();
    elements
        .map(|(index, element)| {
            let stored = tensor.dtype.load(element)?;
            Some(match single.or_else(|| scale_offset(tensor, index)) {
                Some((scale, offset)) if fixed => (stored + f64::from(offset)) * scale,
                _ => stored,
            })
        })
        .collect()
}

/// Converts real numbers to a tensor's bytes by its own encoding; `None` for types that cannot be written.
pub fn store_values(values: &[f64], tensor: &Tensor) -> Option<Vec<u8>> {
    encode(values, tensor, false).ok()
}

/// Bits of a stored number: those of the encoding, otherwise those of the type.
pub fn stored_bits(tensor: &Tensor) -> Option<u32> {
    let named = match &tensor.quantization {
        Some(Quantization::ScaleOffset { bitwidth, .. } | Quantization::AxisScaleOffset { bitwidth, .. }) => *bitwidth,
        _ => None,
    };
    named.or_else(|| tensor.dtype.bits())
}

/// Range and step of a fixed-point tensor with a single scale; `None` for other tensors.
pub fn encoded_range(tensor: &Tensor) -> Option<EncodedRange> {
    let Some(Quantization::ScaleOffset { scale, offset, .. }) = &tensor.quantization else { return None };
    if !tensor.dtype.is_fixed_point() {
        return None;
    }
    let bits = stored_bits(tensor)?.min(32);
    let (low, high) = tensor.dtype.integer_range()?;
    let (low, high) =
        if low < 0 { (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1) } else { (low, high.min((1i64 << bits) - 1)) };
    let real = |stored: i64| (stored as f64 + f64::from(*offset)) * scale;
    Some(EncodedRange { min: real(low), max: real(high), step: *scale, low, high, offset: *offset, bits })
}

/// What an encoding can represent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EncodedRange {
    /// Smallest real value.
    pub min: f64,
    /// Largest real value.
    pub max: f64,
    /// Scale.
    pub step: f64,
    /// Smallest stored number.
    pub low: i64,
    /// Largest stored number.
    pub high: i64,
    /// Offset.
    pub offset: i32,
    /// Bits.
    pub bits: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{DataType, TensorKind};

    fn tensor(dtype: u32, quantization: Option<Quantization>) -> Tensor {
        Tensor { name: "t".into(), dtype: DataType(dtype), shape: vec![4], quantization, kind: TensorKind::Native }
    }

    #[test]
    fn ranges_are_those_of_the_stored_numbers() {
        let encoding = |offset, bitwidth| Some(Quantization::ScaleOffset { scale: 0.5, offset, bitwidth });
        let unsigned = encoded_range(&tensor(0x0408, encoding(-10, None))).unwrap();
        assert_eq!((unsigned.min, unsigned.max), (-5.0, 122.5));
        let signed = encoded_range(&tensor(0x0308, encoding(0, None))).unwrap();
        assert_eq!((signed.min, signed.max), (-64.0, 63.5));
        let four = encoded_range(&tensor(0x0308, encoding(0, Some(4)))).unwrap();
        assert_eq!((four.min, four.max, four.bits), (-4.0, 3.5, 4));
        assert_eq!(encoded_range(&tensor(0x0232, encoding(0, None))), None);
    }

    #[test]
    fn values_without_a_number_are_none() {
        let other = Some(Quantization::Other { id: 4, name: None });
        assert_eq!(real_values(&[0; 4], &tensor(0x0408, other)), None);
        assert_eq!(real_values(&[0; 4], &tensor(0x7fff_ffff, None)), None);
        assert_eq!(real_values(&[0, 1, 0, 1], &tensor(0x0508, None)).unwrap(), [0.0, 1.0, 0.0, 1.0]);
    }
}

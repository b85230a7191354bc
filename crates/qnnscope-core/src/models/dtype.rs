//! Tensor data types and their conversion from and to float32.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A QNN data type by number. Numbers outside the table are kept and shown, never guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DataType(pub u32);

/// Number, name and bits of each type that QNN core API 2.37 knows (measured against `systemTensorGetMemoryFootprint`
/// for every type of 8 bits or more).
const TABLE: &[(u32, &str, u32)] = &[
    (0x0002, "int2", 2),
    (0x0004, "int4", 4),
    (0x0008, "int8", 8),
    (0x0016, "int16", 16),
    (0x0032, "int32", 32),
    (0x0064, "int64", 64),
    (0x0102, "uint2", 2),
    (0x0104, "uint4", 4),
    (0x0108, "uint8", 8),
    (0x0116, "uint16", 16),
    (0x0132, "uint32", 32),
    (0x0164, "uint64", 64),
    (0x0204, "float4", 4),
    (0x0208, "float8", 8),
    (0x0216, "float16", 16),
    (0x0226, "bfloat16", 16),
    (0x0232, "float32", 32),
    (0x0264, "float64", 64),
    (0x0302, "sfixed2", 2),
    (0x0304, "sfixed4", 4),
    (0x0308, "sfixed8", 8),
    (0x0316, "sfixed16", 16),
    (0x0332, "sfixed32", 32),
    (0x0402, "ufixed2", 2),
    (0x0404, "ufixed4", 4),
    (0x0408, "ufixed8", 8),
    (0x0416, "ufixed16", 16),
    (0x0432, "ufixed32", 32),
    (0x0508, "bool8", 8),
];

impl DataType {
    /// 32-bit float.
    pub const FLOAT_32: Self = Self(0x0232);
    /// 16-bit float.
    pub const FLOAT_16: Self = Self(0x0216);

    /// Short name: `float32`, `ufixed8`, or `0x….` for a number outside the table.
    pub fn name(self) -> String {
        TABLE.iter().find(|row| row.0 == self.0).map_or_else(|| format!("0x{:04x}", self.0), |row| row.1.to_owned())
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(row) = TABLE.iter().find(|row| row.1 == text) {
            return Some(Self(row.0));
        }
        u32::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(Self)
    }

    /// Width in bits, if the type is in the table.
    pub fn bits(self) -> Option<u32> {
        TABLE.iter().find(|row| row.0 == self.0).map(|row| row.2)
    }

    /// Whole bytes per element; `None` for types below 8 bits (their memory layout is not established) and unknown
    /// ones.
    pub fn bytes(self) -> Option<usize> {
        match self.bits()? {
            bits if bits >= 8 => Some(bits as usize / 8),
            _ => None,
        }
    }

    /// True for fixed-point types, which need an encoding to represent real numbers.
    pub fn is_fixed_point(self) -> bool {
        matches!(self.0 >> 8, 3 | 4)
    }

    /// True for float types.
    pub fn is_float(self) -> bool {
        self.0 >> 8 == 2
    }

    /// Smallest and largest stored integer, for integer, fixed-point and bool types of at most 32 bits.
    pub fn integer_range(self) -> Option<(i64, i64)> {
        let bits = self.bits()?;
        if bits > 32 {
            return None;
        }
        match self.0 >> 8 {
            0 | 3 => Some((-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1)),
            1 | 4 => Some((0, (1i64 << bits) - 1)),
            5 => Some((0, 1)),
            _ => None,
        }
    }

    /// Reads the stored number of one little-endian element.
    pub fn load(self, bytes: &[u8]) -> Option<f64> {
        fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
            bytes.get(..N)?.try_into().ok()
        }
        Some(match self.0 {
            0x0008 | 0x0308 => f64::from(i8::from_le_bytes(array(bytes)?)),
            0x0108 | 0x0408 | 0x0508 => f64::from(u8::from_le_bytes(array(bytes)?)),
            0x0016 | 0x0316 => f64::from(i16::from_le_bytes(array(bytes)?)),
            0x0116 | 0x0416 => f64::from(u16::from_le_bytes(array(bytes)?)),
            0x0032 | 0x0332 => f64::from(i32::from_le_bytes(array(bytes)?)),
            0x0132 | 0x0432 => f64::from(u32::from_le_bytes(array(bytes)?)),
            0x0064 => i64::from_le_bytes(array(bytes)?) as f64,
            0x0164 => u64::from_le_bytes(array(bytes)?) as f64,
            0x0216 => f64::from(f16_to_f32(u16::from_le_bytes(array(bytes)?))),
            0x0226 => f64::from(f32::from_bits(u32::from(u16::from_le_bytes(array(bytes)?)) << 16)),
            0x0232 => f64::from(f32::from_le_bytes(array(bytes)?)),
            0x0264 => f64::from_le_bytes(array(bytes)?),
            _ => return None,
        })
    }

    /// Appends one element; integers are rounded half to even and saturated. `false` if the type cannot be written.
    pub fn store(self, value: f64, out: &mut Vec<u8>) -> bool {
        if let Some((low, high)) = self.integer_range() {
            let rounded = value.round_ties_even();
            #[expect(clippy::cast_possible_truncation, reason = "clamped to at most 32 bits just here; NaN becomes 0")]
            let stored = if rounded.is_nan() { 0 } else { rounded.clamp(low as f64, high as f64) as i64 };
            let Some(size) = self.bytes() else { return false };
            out.extend_from_slice(&stored.to_le_bytes()[..size]);
            return true;
        }
        #[expect(clippy::cast_possible_truncation, reason = "narrowing to the tensor's own type is the purpose")]
        match self.0 {
            0x0064 => out.extend_from_slice(&(value as i64).to_le_bytes()),
            #[expect(clippy::cast_sign_loss, reason = "saturating at 0 is what an unsigned tensor can hold")]
            0x0164 => out.extend_from_slice(&(value as u64).to_le_bytes()),
            0x0216 => out.extend_from_slice(&f32_to_f16(value as f32).to_le_bytes()),
            0x0226 => {
                let bits = (value as f32).to_bits();
                let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
                let half = if (value as f32).is_nan() { 0x7fc0 } else { (rounded >> 16) as u16 };
                out.extend_from_slice(&half.to_le_bytes());
            }
            0x0232 => out.extend_from_slice(&(value as f32).to_le_bytes()),
            0x0264 => out.extend_from_slice(&value.to_le_bytes()),
            _ => return false,
        }
        true
    }
}

impl std::fmt::Display for DataType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

impl Serialize for DataType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for DataType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("unknown data type `{text}`")))
    }
}

/// IEEE half to single precision, exact.
fn f16_to_f32(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let exponent = u32::from(half >> 10) & 0x1f;
    let fraction = u32::from(half & 0x3ff);
    match (exponent, fraction) {
        (0, 0) => f32::from_bits(sign),
        // Subnormal: fraction x 2^-24.
        (0, _) => {
            #[expect(clippy::cast_precision_loss, reason = "at most 10 bits")]
            let magnitude = fraction as f32 * 2f32.powi(-24);
            if sign == 0 { magnitude } else { -magnitude }
        }
        (31, _) => f32::from_bits(sign | 0x7f80_0000 | (fraction << 13)),
        _ => f32::from_bits(sign | ((exponent + 112) << 23) | (fraction << 13)),
    }
}

/// Single to half precision, round half to even.
fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let exponent = ((bits >> 23) & 0xff).cast_signed() - 127;
    let fraction = bits & 0x007f_ffff;
    if exponent == 128 {
        return sign | 0x7c00 | if fraction == 0 { 0 } else { 0x200 };
    }
    if exponent > 15 {
        return sign | 0x7c00;
    }
    if exponent < -25 {
        return sign;
    }
    let (mantissa, shift) = if exponent >= -14 {
        ((u32::try_from(exponent + 15).unwrap_or(0) << 23) | fraction, 13)
    } else {
        (fraction | 0x0080_0000, u32::try_from(-exponent - 1).unwrap_or(24))
    };
    let kept = mantissa >> shift;
    let rest = mantissa & ((1 << shift) - 1);
    let half = 1u32 << (shift - 1);
    let rounded = kept + u32::from(rest > half || (rest == half && kept & 1 == 1));
    sign | u16::try_from(rounded).unwrap_or(0x7c00)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_half_survives_the_round_trip() {
        for half in 0..=u16::MAX {
            let wide = f16_to_f32(half);
            if wide.is_nan() {
                assert!(f16_to_f32(f32_to_f16(wide)).is_nan());
            } else {
                assert_eq!(f32_to_f16(wide), half, "{half:#06x} {wide}");
            }
        }
    }

    #[test]
    fn halves_round_to_even_and_saturate() {
        assert_eq!(f32_to_f16(65520.0), 0x7c00);
        assert_eq!(f32_to_f16(1.0 + 2f32.powi(-11)), 0x3c00);
        assert_eq!(f32_to_f16(1.0 + 3.0 * 2f32.powi(-11)), 0x3c02);
        assert_eq!(f32_to_f16(2f32.powi(-25)), 0);
    }

    #[test]
    fn integers_saturate() {
        let mut out = Vec::new();
        assert!(DataType(0x0408).store(300.0, &mut out));
        assert!(DataType(0x0308).store(-300.0, &mut out));
        assert!(DataType(0x0408).store(f64::NAN, &mut out));
        assert_eq!(out, [255, 0x80, 0]);
    }

    #[test]
    fn names_and_numbers_agree() {
        for row in TABLE {
            assert_eq!(DataType::parse(&DataType(row.0).name()), Some(DataType(row.0)));
        }
        assert_eq!(DataType::parse(&DataType(0x7777).name()), Some(DataType(0x7777)));
    }

    proptest! {
        #[test]
        fn stored_integers_come_back(value in -128i32..128) {
            for dtype in [DataType(0x0008), DataType(0x0308), DataType(0x0016), DataType(0x0332), DataType(0x0064), DataType::FLOAT_32] {
                let mut out = Vec::new();
                prop_assert!(dtype.store(f64::from(value), &mut out));
                prop_assert_eq!(out.len(), dtype.bytes().unwrap());
                prop_assert_eq!(dtype.load(&out), Some(f64::from(value)));
            }
        }
    }
}

//! Types of tensor elements, with their numbers in each format.

use serde::{Serialize, Serializer};

/// Type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the formats")]
pub enum ElementType {
    Float32,
    Float16,
    Bfloat16,
    Float64,
    Float8E4M3Fn,
    Float8E4M3Fnuz,
    Float8E5M2,
    Float8E5M2Fnuz,
    Float8E8M0,
    Float4E2M1,
    Int2,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint2,
    Uint4,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Bool,
    String,
    Complex64,
    Complex128,
    /// A handle, a variant or a framework's quantised type: no numbers that a model would compute with.
    Opaque,
    /// A number that the format did not define when this was written.
    Unknown(i32),
}

use ElementType as E;

/// Each type's name, bits per element (0 if they vary), and its numbers in ONNX, TFLite and ExecuTorch; -1 if
/// a format lacks it.
const TABLE: [(ElementType, &str, u32, i32, i32, i32); 26] = [
    (E::Float32, "float32", 32, 1, 0, 6),
    (E::Float16, "float16", 16, 10, 1, 5),
    (E::Bfloat16, "bfloat16", 16, 16, 18, 15),
    (E::Float64, "float64", 64, 11, 10, 7),
    (E::Float8E4M3Fn, "float8_e4m3fn", 8, 17, 21, 24),
    (E::Float8E4M3Fnuz, "float8_e4m3fnuz", 8, 18, -1, 26),
    (E::Float8E5M2, "float8_e5m2", 8, 19, 22, 23),
    (E::Float8E5M2Fnuz, "float8_e5m2fnuz", 8, 20, -1, 25),
    (E::Float8E8M0, "float8_e8m0", 8, 24, -1, -1),
    (E::Float4E2M1, "float4_e2m1", 4, 23, -1, -1),
    (E::Int2, "int2", 2, 26, 19, -1),
    (E::Int4, "int4", 4, 22, 17, -1),
    (E::Int8, "int8", 8, 3, 9, 1),
    (E::Int16, "int16", 16, 5, 7, 2),
    (E::Int32, "int32", 32, 6, 2, 3),
    (E::Int64, "int64", 64, 7, 4, 4),
    (E::Uint2, "uint2", 2, 25, -1, -1),
    (E::Uint4, "uint4", 4, 21, 20, -1),
    (E::Uint8, "uint8", 8, 2, 3, 0),
    (E::Uint16, "uint16", 16, 4, 16, 27),
    (E::Uint32, "uint32", 32, 12, 15, 28),
    (E::Uint64, "uint64", 64, 13, 12, 29),
    (E::Bool, "bool", 8, 9, 6, 11),
    (E::String, "string", 0, 8, 5, -1),
    (E::Complex64, "complex64", 64, 14, 8, 9),
    (E::Complex128, "complex128", 128, 15, 11, 10),
];

impl ElementType {
    /// From ONNX's `TensorProto.DataType`; `None` for 0, which means undefined.
    pub fn from_onnx(number: i32) -> Option<Self> {
        (number != 0).then(|| Self::numbered(number, |row| row.3))
    }

    /// From TFLite's `TensorType`.
    pub fn from_tflite(number: i32) -> Self {
        if matches!(number, 13 | 14) { Self::Opaque } else { Self::numbered(number, |row| row.4) }
    }

    /// From ExecuTorch's `ScalarType`.
    pub fn from_executorch(number: i32) -> Self {
        if matches!(number, 12..=14 | 16..=22) { Self::Opaque } else { Self::numbered(number, |row| row.5) }
    }

    fn numbered(number: i32, column: impl Fn(&(Self, &str, u32, i32, i32, i32)) -> i32) -> Self {
        let row = TABLE.iter().find(|row| number >= 0 && column(row) == number);
        row.map_or(Self::Unknown(number), |row| row.0)
    }

    fn row(self) -> Option<&'static (Self, &'static str, u32, i32, i32, i32)> {
        TABLE.iter().find(|row| row.0 == self)
    }

    /// Name, such as `float32`.
    pub fn name(self) -> String {
        match self {
            Self::Opaque => "opaque".to_owned(),
            Self::Unknown(number) => format!("type_{number}"),
            known => known.row().map_or_else(String::new, |row| row.1.to_owned()),
        }
    }

    /// Bits per element; `None` if they vary or are unknown.
    pub fn bits(self) -> Option<u32> {
        self.row().map(|row| row.2).filter(|&bits| bits > 0)
    }

    /// Bytes for this many elements, with small ones packed.
    pub fn bytes(self, elements: u64) -> Option<u64> {
        Some(elements.checked_mul(u64::from(self.bits()?))?.div_ceil(8))
    }

    /// True for a floating-point type.
    pub fn is_float(self) -> bool {
        self.name().contains("float")
    }
}

impl Serialize for ElementType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_formats() {
        assert_eq!(ElementType::from_onnx(1), Some(E::Float32));
        assert_eq!(ElementType::from_onnx(0), None);
        assert_eq!(ElementType::from_onnx(99), Some(E::Unknown(99)));
        assert_eq!(ElementType::from_onnx(-1), Some(E::Unknown(-1)));
        assert_eq!(ElementType::from_tflite(9), E::Int8);
        assert_eq!(ElementType::from_tflite(13), E::Opaque);
        assert_eq!(ElementType::from_executorch(6), E::Float32);
        assert_eq!(E::Int4.bytes(3), Some(2));
        assert_eq!(E::Float32.bytes(u64::MAX), None);
        assert_eq!(E::String.bytes(1), None);
        assert!(E::Bfloat16.is_float() && !E::Int8.is_float());
    }
}

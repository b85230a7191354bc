//! Tensors as bytes, whatever their type.

#![expect(
    unsafe_code,
    reason = "ort lends the memory of a tensor as a pointer only, unless its type is known when this is built"
)]

use super::error::OnnxError;
use ort::memory::Allocator;
use ort::session::Session;
use ort::value::{DynTensor, DynValue, Outlet, TensorElementType, ValueType};
use qnnscope_core::models::DataType;

/// A dimension of an input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dimension {
    /// A number.
    Fixed(u64),
    /// Unknown before the inference; its name in the model, which may be empty.
    Free(String),
}

/// An input or output, as the model declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnnxTensor {
    /// Name.
    pub name: String,
    /// Type; `None` for text, complex numbers and types below 8 bits.
    pub dtype: Option<DataType>,
    /// ONNX Runtime's name of the type.
    pub type_name: String,
    /// Dimensions.
    pub shape: Vec<Dimension>,
    pub(super) element: TensorElementType,
}

impl OnnxTensor {
    pub(super) fn of(outlet: &Outlet) -> Self {
        let name = outlet.name().to_owned();
        let ValueType::Tensor { ty, shape, dimension_symbols } = outlet.dtype() else {
            let type_name = format!("{} instead of a tensor", outlet.dtype());
            return Self { name, dtype: None, type_name, shape: Vec::new(), element: TensorElementType::Undefined };
        };
        let dimension = |(at, size): (usize, &i64)| match u64::try_from(*size) {
            Ok(size) => Dimension::Fixed(size),
            Err(_) => Dimension::Free(dimension_symbols.get(at).cloned().unwrap_or_default()),
        };
        let shape = shape.iter().enumerate().map(dimension).collect();
        Self { name, dtype: data_type(*ty), type_name: ty.to_string(), shape, element: *ty }
    }
}

/// QNN's number for a plain numeric type.
fn data_type(element: TensorElementType) -> Option<DataType> {
    use TensorElementType as Element;
    Some(DataType(match element {
        Element::Int8 => 0x0008,
        Element::Int16 => 0x0016,
        Element::Int32 => 0x0032,
        Element::Int64 => 0x0064,
        Element::Uint8 => 0x0108,
        Element::Uint16 => 0x0116,
        Element::Uint32 => 0x0132,
        Element::Uint64 => 0x0164,
        Element::Float16 => 0x0216,
        Element::Bfloat16 => 0x0226,
        Element::Float32 => 0x0232,
        Element::Float64 => 0x0264,
        Element::Bool => 0x0508,
        _ => return None,
    }))
}

/// What an inference wrote to one output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputTensor {
    /// Dimensions.
    pub shape: Vec<u64>,
    /// Type; `None` as in [`OnnxTensor::dtype`].
    pub dtype: Option<DataType>,
    /// The numbers.
    pub bytes: Vec<u8>,
}

impl OutputTensor {
    /// A copy of the value's data; `None` unless it is a tensor of plain numbers in CPU memory.
    pub(super) fn of(value: &DynValue) -> Option<Self> {
        let ValueType::Tensor { ty, shape, .. } = value.dtype() else { return None };
        let dtype = data_type(*ty);
        let sizes = shape.iter().map(|size| u64::try_from(*size).ok()).collect::<Option<Vec<u64>>>()?;
        let length = usize::try_from(sizes.iter().try_fold(1u64, |all, size| all.checked_mul(*size))?).ok()?;
        let length = length.checked_mul(dtype?.bytes()?)?;
        let tensor = value.view().downcast::<ort::value::DynTensorValueType>().ok()?;
        if !tensor.memory_info().is_cpu_accessible() {
            return None;
        }
        let data = tensor.data_ptr().cast::<u8>();
        let bytes = if data.is_null() || length == 0 {
            Vec::new()
        } else {
            // SAFETY: ONNX Runtime allocated `length` bytes for a tensor of this type and shape in the processor's memory, and
            // `value`, which is borrowed, keeps them alive.
            unsafe { std::slice::from_raw_parts(data, length) }.to_vec()
        };
        Some(Self { shape: sizes, dtype, bytes })
    }
}

/// An input with its memory.
#[derive(Debug)]
pub(super) struct Input {
    pub value: DynTensor,
    length: usize,
}

impl Input {
    /// Memory for an input of this shape, zeroed.
    pub fn new(session: &Session, tensor: &OnnxTensor, shape: &[u64]) -> Result<Self, OnnxError> {
        let not_numbers = || OnnxError::NotNumbers { name: tensor.name.clone(), found: tensor.type_name.clone() };
        let size = tensor.dtype.and_then(DataType::bytes).ok_or_else(not_numbers)?;
        let too_large = || OnnxError::Call {
            call: "CreateTensorAsOrtValue",
            code: None,
            message: format!("`{}` of shape {shape:?} does not fit into memory", tensor.name),
        };
        let elements = shape.iter().try_fold(1u64, |all, size| all.checked_mul(*size)).ok_or_else(too_large)?;
        let length = usize::try_from(elements).ok().and_then(|n| n.checked_mul(size)).ok_or_else(too_large)?;
        let shape: Vec<i64> =
            shape.iter().map(|size| i64::try_from(*size)).collect::<Result<_, _>>().map_err(|_| too_large())?;
        let allocator: &Allocator = session.allocator();
        let value = DynTensor::new(allocator, tensor.element, ort::value::Shape::new(shape))
            .map_err(OnnxError::of("CreateTensorAsOrtValue"))?;
        Ok(Self { value, length })
    }

    /// Copies data in; `false` if the size differs.
    pub fn set(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() != self.length {
            return false;
        }
        let data = self.value.data_ptr_mut().cast::<u8>();
        if !data.is_null() && !bytes.is_empty() {
            // SAFETY: the tensor was allocated with room for `length` bytes, which is the length of `bytes`; the two do not
            // overlap, since `bytes` is not the tensor's.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
        }
        true
    }
}

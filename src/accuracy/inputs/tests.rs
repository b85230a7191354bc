//! Data for two models.

use super::*;
use crate::models::{DataType, Quantization, TensorKind};

fn tensor(name: &str, dtype: u32, shape: &[u32], quantization: Option<Quantization>) -> Tensor {
    Tensor { name: name.into(), dtype: DataType(dtype), shape: shape.into(), quantization, kind: TensorKind::Input }
}

#[test]
fn both_models_get_the_same_numbers() {
    let encoding = Some(Quantization::ScaleOffset { scale: 0.1, offset: -100, bitwidth: None });
    let reference = [tensor("x", 0x0232, &[1, 2, 3, 4], None)];
    let test = [tensor("x_QuantizeLinear_Output", 0x0408, &[1, 3, 4, 2], encoding)];
    let planned = Inputs::Random { count: 2, seed: 5 }.plan(&reference, &test).unwrap();
    let values = planned.values(0).unwrap();
    assert!(values[0].iter().all(|value| (-10.0..=15.5).contains(value)), "{values:?}");
    assert!(values[0].iter().any(|value| *value < 0.0), "the range is the test's: {values:?}");
    assert_ne!(values, planned.values(1).unwrap());
    let (_, stored) = planned.stored(&values).unwrap();
    // Element (0, 1, 2, 3) of the reference is (0, 2, 3, 1) of the test, which is the last one of both.
    let back = (f64::from(stored[0][23]) - 100.0) * 0.1;
    assert!((back - values[0][23]).abs() <= 0.0501, "{back} {}", values[0][23]);
    let back = (f64::from(stored[0][1]) - 100.0) * 0.1;
    assert!((back - values[0][12]).abs() <= 0.0501, "{back} {}", values[0][12]);
}

#[test]
fn folders_are_read_by_name_by_folder_or_in_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let one = [tensor("x", 0x0232, &[1], None)];
    let two = [tensor("x", 0x0232, &[1], None), tensor("y", 0x0232, &[1], None)];
    let plan = |inputs: &[Tensor]| Inputs::Folder(dir.path().to_owned()).plan(inputs, inputs);
    assert!(matches!(plan(&one), Err(InputError::Empty { .. })));
    for name in ["a10.raw", "a2.raw"] {
        std::fs::write(dir.path().join(name), f32::to_le_bytes(name.len() as f32)).unwrap();
    }
    let rows = plan(&one).unwrap();
    assert_eq!((rows.count(), rows.values(0).unwrap()), (2, vec![vec![6.0]]));
    let error = plan(&two).unwrap_err().to_string();
    assert!(error.contains("x.npy or .raw, y.npy or .raw"), "{error}");
    for folder in ["Result_0", "Result_1"] {
        let folder = dir.path().join(folder);
        std::fs::create_dir(&folder).unwrap();
        for name in ["x.raw", "y.raw"] {
            std::fs::write(folder.join(name), 1f32.to_le_bytes()).unwrap();
        }
    }
    assert_eq!(plan(&two).unwrap().count(), 2);
    std::fs::write(dir.path().join("Result_0/x.raw"), [0; 8]).unwrap();
    let error = plan(&two).unwrap().values(0).unwrap_err().to_string();
    assert!(error.contains("2 values for input `x`"), "{error}");
}

#[test]
fn arrays_with_channels_elsewhere_are_turned() {
    let dir = tempfile::tempdir().unwrap();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 2, 3), }";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len() + 1).unwrap().to_le_bytes());
    bytes.extend(header.bytes().chain(*b"\n"));
    bytes.extend((0..12u8).flat_map(|value| f32::from(value).to_le_bytes()));
    std::fs::write(dir.path().join("x.npy"), bytes).unwrap();
    let first = [tensor("x", 0x0232, &[1, 2, 2, 3], None)];
    let last = [tensor("x", 0x0232, &[1, 2, 3, 2], None)];
    let values = |inputs: &[Tensor]| {
        Inputs::Folder(dir.path().to_owned()).plan(inputs, inputs).unwrap().values(0).unwrap().remove(0)
    };
    assert_eq!(values(&first), (0..12).map(f64::from).collect::<Vec<_>>());
    assert_eq!(values(&last), [0., 6., 1., 7., 2., 8., 3., 9., 4., 10., 5., 11.]);
}

#[test]
fn recorded_inputs_are_found_by_name_and_else_by_position() {
    let inputs = [tensor("a", 0x0232, &[1], None), tensor("b", 0x0232, &[1], None)];
    assert_eq!(recorded(&["b_quantized", "a"], &inputs).unwrap(), [1, 0]);
    assert_eq!(recorded(&["x", "y"], &inputs).unwrap(), [0, 1]);
    assert!(recorded(&["x"], &inputs).unwrap_err().to_string().contains("`x`"));
}

#[test]
fn models_that_take_different_things_are_told() {
    let a = [tensor("x", 0x0232, &[1, 8], None)];
    let b = [tensor("x", 0x0232, &[1, 9], None)];
    let inputs = Inputs::Random { count: 1, seed: 1 };
    assert!(inputs.plan(&a, &b).unwrap_err().to_string().contains("1x8"));
    assert!(inputs.plan(&a, &[]).is_err());
}

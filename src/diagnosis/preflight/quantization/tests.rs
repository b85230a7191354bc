use super::*;
use crate::models::DataType;
use serde_json::Map;

fn graph(tensors: Vec<Tensor>) -> Graph {
    let op = Op {
        index: 0,
        name: "op".to_owned(),
        op_type: "Relu".to_owned(),
        package: "qti.aisw".to_owned(),
        inputs: tensors.clone(),
        outputs: tensors,
        params: Map::new(),
        macs: None,
        parameter_bytes: 0,
        bytes_moved: None,
    };
    Graph { name: "g".to_owned(), inputs: Vec::new(), outputs: Vec::new(), ops: vec![op], parameter_bytes: 0 }
}

fn tensor(dtype: u32, quantization: Option<Quantization>) -> Tensor {
    Tensor { name: "t".to_owned(), dtype: DataType(dtype), shape: vec![2, 3], quantization, kind: TensorKind::Native }
}

fn found(dtype: u32, scale: f64, offset: i32, bitwidth: Option<u32>) -> Vec<&'static str> {
    let encoding = Quantization::ScaleOffset { scale, offset, bitwidth };
    notes(&graph(vec![tensor(dtype, Some(encoding))])).iter().map(|note| note.id).collect()
}

#[test]
fn usual_encodings_are_left_alone() {
    for (dtype, scale, offset) in [
        (0x0408, 1.0 / 255.0, 0),
        (0x0408, 0.05, -128),
        (0x0408, 0.05, -255),
        (0x0308, 0.05, 0),
        (0x0416, 1e-5, -32768),
        (0x0316, 1e-5, 0),
        (0x0332, 1e-9, 0),
        (0x0332, 3.0, 0),
    ] {
        assert_eq!(found(dtype, scale, offset, None), Vec::<&str>::new(), "{dtype:#x} {scale} {offset}");
    }
    assert!(found(0x0232, 0.0, 900, None).is_empty(), "an encoding on a float means nothing");
}

#[test]
fn the_limits_are_those_of_the_type() {
    assert_eq!(found(0x0408, 0.05, 1, None), ["offset-outside"]);
    assert_eq!(found(0x0408, 0.05, -256, None), ["offset-outside"]);
    assert_eq!(found(0x0308, 0.05, -128, None), ["offset-outside"], "zero would be stored as 128");
    assert_eq!(found(0x0416, 2.0, -32768, None), ["huge-range"]);
    assert_eq!(found(0x0408, f64::NAN, 0, None), ["invalid-scale"]);
    assert_eq!(found(0x0408, -1.0, 0, None), ["invalid-scale"]);
    assert_eq!(found(0x0408, 0.0, 0, None), ["zero-range"]);
    assert_eq!(found(0x0408, 0.05, 0, Some(4)), Vec::<&str>::new());
    assert_eq!(found(0x0408, 0.05, 0, Some(16)), ["bitwidth-mismatch"]);
    assert_eq!(notes(&graph(vec![tensor(0x0408, None)]))[0].id, "missing-encoding");
}

proptest::proptest! {
    #[test]
    fn no_encoding_is_too_strange(dtype in 0u32..0x700, scale: f32, offset: i32, axis: i32, count in 0usize..5, bits: Option<u32>) {
        let one = Quantization::ScaleOffset { scale: f64::from(scale), offset, bitwidth: bits };
        let scales = vec![f64::from(scale); count];
        let each = Quantization::AxisScaleOffset { axis, scales, offsets: vec![offset; count / 2], bitwidth: bits };
        let list = notes(&graph(vec![tensor(dtype, Some(one)), Tensor { name: "u".to_owned(), ..tensor(dtype, Some(each)) }]));
        proptest::prop_assert!(list.iter().all(|note| !note.message.is_empty() && remedy(note.id) != remedy("none of these")));
        grouped(&list);
    }
}

//! Pairs of graphs as composers make them.

use super::*;

fn tensor(name: &str, dtype: u32, shape: &[u32], kind: TensorKind) -> Tensor {
    Tensor { name: name.into(), dtype: DataType(dtype), shape: shape.into(), quantization: None, kind }
}

/// Ops as `name type input output`, all tensors with the same shape.
fn graph(dtype: u32, inputs: &[&str], ops: &[(&str, &str, &[&str], &str)]) -> Graph {
    let native = |name: &&str| tensor(name, dtype, &[1, 4, 4, 8], TensorKind::Native);
    Graph {
        name: "g".into(),
        inputs: inputs.iter().map(|name| tensor(name, dtype, &[1, 4, 4, 8], TensorKind::Input)).collect(),
        outputs: vec![],
        ops: ops
            .iter()
            .enumerate()
            .map(|(index, (name, op_type, inputs, output))| Op {
                index: u32::try_from(index).unwrap(),
                name: (*name).into(),
                op_type: (*op_type).into(),
                package: String::new(),
                inputs: inputs.iter().map(native).collect(),
                outputs: vec![native(output)],
                params: serde_json::Map::new(),
                macs: None,
                parameter_bytes: 0,
                bytes_moved: None,
            })
            .collect(),
        parameter_bytes: 0,
    }
}

fn names(pairing: &Pairing) -> Vec<(&str, &str, How)> {
    pairing.pairs.iter().map(|pair| (&*pair.reference.tensor.name, &*pair.test.tensor.name, pair.how)).collect()
}

#[test]
fn a_folded_activation_is_the_tensor_behind_it() {
    // As composed by the plug-in from a float model and from its quantised form.
    let float = graph(
        0x0232,
        &["image"],
        &[
            ("conv1_token_1", "Conv2d", &["image"], "conv1"),
            ("relu1", "ElementWiseNeuron", &["conv1"], "relu1"),
            ("softmax", "Softmax", &["relu1"], "probs"),
        ],
    );
    let quantised = graph(
        0x0408,
        &["image"],
        &[
            ("image_QuantizeLinear", "Quantize", &["image"], "image_QuantizeLinear_Output"),
            ("conv1_token_7", "Conv2d", &["image_QuantizeLinear_Output"], "r1_QuantizeLinear"),
            ("softmax", "Softmax", &["r1_QuantizeLinear"], "probs_QuantizeLinear_Output"),
            ("probs_DequantizeLinear", "Dequantize", &["probs_QuantizeLinear_Output"], "probs"),
        ],
    );
    let pairing = pair(&float, &quantised, &BTreeMap::new());
    assert_eq!(
        names(&pairing),
        [
            ("image", "image_QuantizeLinear_Output", How::Name),
            ("relu1", "r1_QuantizeLinear", How::Op),
            ("probs", "probs_QuantizeLinear_Output", How::Name),
            ("probs", "probs", How::Name),
        ]
    );
    let sources: Vec<&[usize]> = pairing.pairs.iter().map(|pair| &*pair.sources).collect();
    assert_eq!(sources, [&[][..], &[0], &[1], &[2]]);
    assert_eq!(pairing.reference_only, ["conv1"]);
}

#[test]
fn the_same_graph_pairs_each_tensor_with_itself() {
    let ops: &[(&str, &str, &[&str], &str)] = &[
        ("a", "Conv2d", &["x"], "t1"),
        ("b", "Relu", &["t1"], "t2"),
        ("c", "Conv2d", &["t2"], "t3"),
        ("d", "ElementWiseAdd", &["t3", "t1"], "t4"),
    ];
    let one = graph(0x0232, &["x"], ops);
    let pairing = pair(&one, &one, &BTreeMap::new());
    assert!(pairing.pairs.iter().all(|pair| pair.reference.tensor.name == pair.test.tensor.name));
    assert_eq!(pairing.pairs.len(), 4);
    assert_eq!(pairing.pairs[3].sources, [0, 2]);
}

#[test]
fn without_names_order_type_and_shape_decide() {
    let one = graph(0x0232, &["x"], &[("a", "Conv2d", &["x"], "t1"), ("b", "Softmax", &["t1"], "t2")]);
    let other = graph(
        0x0408,
        &["in"],
        &[("o1", "Quantize", &["in"], "u0"), ("o2", "Conv2d", &["u0"], "u1"), ("o3", "Softmax", &["u1"], "u2")],
    );
    let pairing = pair(&one, &other, &BTreeMap::new());
    assert_eq!(names(&pairing), [("t1", "u1", How::Order), ("t2", "u2", How::Order)]);
    assert_eq!(pairing.test_only, ["u0"]);
    // A tensor without a pair passes on its sources.
    assert_eq!(pairing.pairs[0].sources, Vec::<usize>::new());
}

#[test]
fn counts_are_not_paired_with_numbers() {
    let one = graph(0x0232, &["x"], &[("a", "Argmax", &["x"], "t")]);
    let other = graph(0x0032, &["x"], &[("a", "Argmax", &["x"], "t")]);
    assert!(pair(&one, &other, &BTreeMap::new()).pairs.is_empty());
}

#[test]
fn names_lose_what_was_put_behind_them() {
    assert_eq!(base_name("r1_QuantizeLinear_Output"), "r1");
    assert_eq!(base_name("w1_quantized"), "w1");
    assert_eq!(base_name("_quantized"), "_quantized");
    assert_eq!(base_op("conv_token_12"), "conv");
    assert_eq!(base_op("conv_token_x"), "conv_token_x");
}

#[test]
fn a_folded_normalisation_and_its_activation_are_the_tensor_behind_both() {
    // As exported by frameworks: convolution, normalisation, activation; converters merge them into one op
    // under any of the three names.
    let float = graph(
        0x0232,
        &["x"],
        &[
            ("conv", "Conv2d", &["x"], "c"),
            ("norm", "Batchnorm", &["c"], "n"),
            ("act", "ElementWiseNeuron", &["n"], "a"),
            ("pool", "PoolMax2d", &["a"], "p"),
        ],
    );
    let paired = |ops: &[(&str, &str, &[&str], &str)]| {
        let quantised = graph(0x0408, &["x"], ops);
        let pairing = pair(&float, &quantised, &BTreeMap::new());
        names(&pairing).into_iter().map(|(a, b, _)| (a.to_owned(), b.to_owned())).collect::<Vec<_>>()
    };
    let expected = |tensor: &str| [("a".to_owned(), tensor.to_owned()), ("p".to_owned(), "p".to_owned())];
    let pool: (&str, &str, &[&str], &str) = ("pool", "PoolMax2d", &["t"], "p");
    assert_eq!(paired(&[("conv", "Conv2d", &["x"], "t"), pool]), expected("t"));
    // The op has the convolution's name, its tensor that of the activation's output; then that of the tensor
    // that is gone.
    assert_eq!(paired(&[("conv", "Conv2d", &["x"], "a"), ("pool", "PoolMax2d", &["a"], "p")]), expected("a"));
    assert_eq!(paired(&[("conv", "Conv2d", &["x"], "c"), ("pool", "PoolMax2d", &["c"], "p")]), expected("c"));
    assert_eq!(paired(&[("other", "Conv2d", &["x"], "t"), pool]), expected("t"));
    // Only the normalisation is folded; the activation remains.
    let split = paired(&[
        ("conv", "Conv2d", &["x"], "t"),
        ("act", "ElementWiseNeuron", &["t"], "u"),
        ("pool", "PoolMax2d", &["u"], "p"),
    ]);
    let names = [("n", "t"), ("a", "u"), ("p", "p")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(split, names);
    // Composers add a reshape after a matrix product.
    let product = |act: bool| {
        let mut ops: Vec<(&str, &str, &[&str], &str)> =
            vec![("fc", "FullyConnected", &["x"], "m"), ("re", "Reshape", &["m"], "n")];
        if act {
            ops.push(("act", "ElementWiseNeuron", &["n"], "a"));
        }
        graph(if act { 0x0232 } else { 0x0408 }, &["x"], &ops)
    };
    let pairing = pair(&product(true), &product(false), &BTreeMap::new());
    let (first, ..) = self::names(&pairing)[0];
    assert_eq!(first, "a", "{:?}", self::names(&pairing));
    // A convolution with other readers is not folded.
    let shared = graph(
        0x0232,
        &["x"],
        &[
            ("conv", "Conv2d", &["x"], "c"),
            ("norm", "Batchnorm", &["c"], "n"),
            ("add", "ElementWiseAdd", &["c", "n"], "s"),
        ],
    );
    let pairing = pair(&shared, &shared, &BTreeMap::new());
    assert!(pairing.pairs.iter().all(|pair| pair.reference.tensor.name == pair.test.tensor.name));
}

/// The same ops on tensors of these shapes, in order, starting with the input's.
fn shaped(ops: &[(&str, &str, &[&str], &str)], shapes: &[&[u32]]) -> Graph {
    let mut graph = graph(0x0232, &["x"], ops);
    let mut by_name: HashMap<String, Vec<u32>> = HashMap::from([("x".to_owned(), shapes[0].to_vec())]);
    by_name.extend(ops.iter().zip(&shapes[1..]).map(|(op, shape)| (op.3.to_owned(), shape.to_vec())));
    let set = |tensor: &mut Tensor| tensor.shape.clone_from(&by_name[&tensor.name]);
    graph.inputs.iter_mut().for_each(set);
    for op in &mut graph.ops {
        op.inputs.iter_mut().chain(&mut op.outputs).for_each(set);
    }
    graph
}

#[test]
fn axes_of_one_size_stand_as_those_beside_them() {
    let ops: &[(&str, &str, &[&str], &str)] = &[
        ("a", "Conv2d", &["x"], "t1"),
        ("b", "Conv2d", &["t1"], "t2"),
        ("c", "Relu", &["t2"], "t3"),
        ("d", "Conv2d", &["t3"], "t4"),
        ("e", "Transpose", &["t4"], "t5"),
    ];
    let cube: &[u32] = &[1, 8, 8, 8];
    let layouts = |first: &[&[u32]], last: &[&[u32]]| -> Vec<Option<String>> {
        let pairing = pair(&shaped(ops, first), &shaped(ops, last), &BTreeMap::new());
        pairing.pairs.iter().map(|pair| pair.layout.text()).collect()
    };
    let moved = || Some("0,2,3,1".to_owned());
    // From the tensor before, and from the one after; a transposition's output does not follow from its
    // input.
    let (seen, unseen): (&[u32], &[u32]) = (&[1, 4, 8, 8], &[1, 8, 8, 4]);
    assert_eq!(
        layouts(&[cube, seen, cube, cube, cube, cube], &[cube, unseen, cube, cube, cube, cube]),
        [moved(), moved(), moved(), moved(), None]
    );
    assert_eq!(
        layouts(&[cube, cube, cube, cube, seen, cube], &[cube, cube, cube, cube, unseen, cube]),
        [moved(), moved(), moved(), moved(), None]
    );
    // If nothing moves in the shapes, no axes are moved.
    assert_eq!(layouts(&[cube; 6], &[cube; 6]), [const { None }; 5]);
    assert_eq!(
        layouts(&[cube, seen, cube, cube, cube, cube], &[cube, seen, cube, cube, cube, cube]),
        [const { None }; 5]
    );
}

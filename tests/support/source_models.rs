//! Models before conversion, written byte by byte: protobuf messages and FlatBuffers, as small as a test needs them.

/// A number in protobuf's variable length.
pub fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field with a number.
pub fn int(field: u32, value: u64) -> Vec<u8> {
    [varint(u64::from(field) << 3), varint(value)].concat()
}

/// A field with text, bytes or a message.
pub fn bytes(field: u32, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [varint(u64::from(field) << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// A tensor of these dimensions with raw data.
pub fn tensor(name: &str, kind: u64, dims: &[u64], raw: &[u8]) -> Vec<u8> {
    let mut message: Vec<u8> = dims.iter().flat_map(|&dim| int(1, dim)).collect();
    message.extend(int(2, kind));
    message.extend(bytes(8, name));
    message.extend(bytes(9, raw));
    message
}

/// A tensor whose data is elsewhere.
pub fn external_tensor(name: &str, kind: u64, dims: &[u64], entries: &[(&str, &str)]) -> Vec<u8> {
    let mut message: Vec<u8> = dims.iter().flat_map(|&dim| int(1, dim)).collect();
    message.extend(int(2, kind));
    message.extend(bytes(8, name));
    for (key, value) in entries {
        message.extend(bytes(13, [bytes(1, key), bytes(2, value)].concat()));
    }
    message.extend(int(14, 1));
    message
}

/// A value with elements of type `kind`; dimensions are numbers or names.
pub fn value(name: &str, kind: u64, dims: &[Result<u64, &str>]) -> Vec<u8> {
    let dim = |dim: &Result<u64, &str>| match dim {
        Ok(number) => bytes(1, int(1, *number)),
        Err(name) => bytes(1, bytes(2, name)),
    };
    let shape: Vec<u8> = dims.iter().flat_map(dim).collect();
    let tensor = [int(1, kind), bytes(2, shape)].concat();
    [bytes(1, name), bytes(2, bytes(1, tensor))].concat()
}

/// A node without attributes.
pub fn node(op_type: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> Vec<u8> {
    let mut message: Vec<u8> = inputs.iter().flat_map(|input| bytes(1, input)).collect();
    message.extend(outputs.iter().flat_map(|output| bytes(2, output)));
    message.extend(bytes(3, name));
    message.extend(bytes(4, op_type));
    message
}

/// An attribute with an integer, a text or bytes, or a graph.
pub fn int_attribute(name: &str, value: u64) -> Vec<u8> {
    bytes(5, [bytes(1, name), int(3, value), int(20, 2)].concat())
}

pub fn bytes_attribute(name: &str, value: impl AsRef<[u8]>) -> Vec<u8> {
    bytes(5, [bytes(1, name), bytes(4, value), int(20, 3)].concat())
}

pub fn graph_attribute(name: &str, graph: &[u8]) -> Vec<u8> {
    bytes(5, [bytes(1, name), bytes(6, graph), int(20, 5)].concat())
}

/// A model of IR version 9 and opset 17 with this graph.
pub fn onnx(graph: &[u8]) -> Vec<u8> {
    [int(1, 9), bytes(2, "by hand"), bytes(7, graph), bytes(8, int(2, 17))].concat()
}

/// Parts of a graph: nodes, initialisers, inputs and outputs.
pub fn graph(nodes: &[Vec<u8>], constants: &[Vec<u8>], inputs: &[Vec<u8>], outputs: &[Vec<u8>]) -> Vec<u8> {
    let mut message: Vec<u8> = nodes.iter().flat_map(|node| bytes(1, node)).collect();
    message.extend(bytes(2, "g"));
    message.extend(constants.iter().flat_map(|constant| bytes(5, constant)));
    message.extend(inputs.iter().flat_map(|input| bytes(11, input)));
    message.extend(outputs.iter().flat_map(|output| bytes(12, output)));
    message
}

/// A field of a FlatBuffer's table.
#[derive(Clone)]
pub enum Fb {
    U8(u8),
    U32(u32),
    U64(u64),
    Text(String),
    Bytes(Vec<u8>),
    Ints(Vec<i32>),
    Table(Vec<(u16, Fb)>),
    Tables(Vec<Vec<(u16, Fb)>>),
}

/// Writes a FlatBuffer with this root, an identifier, and `header` between the identifier and the rest.
pub fn flatbuffer(identifier: &[u8; 4], header: &[u8], root: &[(u16, Fb)]) -> Vec<u8> {
    let mut out = vec![0; 4];
    out.extend(identifier);
    out.extend(header);
    let at = table(&mut out, root);
    out[..4].copy_from_slice(&(at as u32).to_le_bytes());
    out
}

fn table(out: &mut Vec<u8>, fields: &[(u16, Fb)]) -> usize {
    let slots = fields.iter().map(|(slot, _)| slot + 1).max().unwrap_or(0);
    let fields_at = out.len();
    out.extend((4 + 2 * slots).to_le_bytes());
    out.extend([0; 2]);
    out.extend(vec![0; 2 * usize::from(slots)]);
    let at = out.len();
    out.extend(((at - fields_at) as i32).to_le_bytes());
    let mut places = Vec::new();
    for (slot, field) in fields {
        let place = out.len();
        let entry = fields_at + 4 + 2 * usize::from(*slot);
        out[entry..entry + 2].copy_from_slice(&((place - at) as u16).to_le_bytes());
        match field {
            Fb::U8(value) => out.push(*value),
            Fb::U32(value) => out.extend(value.to_le_bytes()),
            Fb::U64(value) => out.extend(value.to_le_bytes()),
            _ => {
                out.extend([0; 4]);
                places.push((place, field));
            }
        }
    }
    let size = (out.len() - at) as u16;
    out[fields_at + 2..fields_at + 4].copy_from_slice(&size.to_le_bytes());
    for (place, field) in places {
        let to = match field {
            Fb::Table(fields) => table(out, fields),
            Fb::Text(text) => list(out, text.len(), text.as_bytes()),
            Fb::Bytes(bytes) => list(out, bytes.len(), bytes),
            Fb::Ints(values) => {
                list(out, values.len(), &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
            }
            Fb::Tables(rows) => {
                let to = list(out, rows.len(), &vec![0; 4 * rows.len()]);
                for (index, row) in rows.iter().enumerate() {
                    let entry = to + 4 + 4 * index;
                    let row = table(out, row);
                    out[entry..entry + 4].copy_from_slice(&((row - entry) as u32).to_le_bytes());
                }
                to
            }
            _ => unreachable!("numbers stand in the table"),
        };
        out[place..place + 4].copy_from_slice(&((to - place) as u32).to_le_bytes());
    }
    at
}

fn list(out: &mut Vec<u8>, len: usize, content: &[u8]) -> usize {
    let at = out.len();
    out.extend((len as u32).to_le_bytes());
    out.extend(content);
    at
}

/// A FlexBuffer map of these 32-bit numbers and one text called `name`.
pub fn flex(numbers: &[(&str, u32)], name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    // Keys have to be sorted; every width is 4 bytes.
    let mut entries: Vec<(&str, Option<u32>)> = numbers.iter().map(|(key, value)| (*key, Some(*value))).collect();
    entries.push(("name", None));
    entries.sort();
    let keys: Vec<usize> = entries
        .iter()
        .map(|(key, _)| {
            let at = out.len();
            out.extend(key.as_bytes());
            out.push(0);
            at
        })
        .collect();
    out.extend((name.len() as u32).to_le_bytes());
    let text = out.len();
    out.extend(name.as_bytes());
    out.push(0);
    out.extend((entries.len() as u32).to_le_bytes());
    let keys_at = out.len();
    for key in keys {
        out.extend(((out.len() - key) as u32).to_le_bytes());
    }
    out.extend(((out.len() - keys_at) as u32).to_le_bytes());
    out.extend(4u32.to_le_bytes());
    out.extend((entries.len() as u32).to_le_bytes());
    let values = out.len();
    for (_, value) in &entries {
        let stored = value.unwrap_or((out.len() - text) as u32);
        out.extend(stored.to_le_bytes());
    }
    // Kinds: unsigned number, text; their widths are 4 bytes.
    out.extend(entries.iter().map(|(_, value)| if value.is_some() { 2 << 2 | 2 } else { 5 << 2 | 2 }));
    out.extend(((out.len() - values) as u32).to_le_bytes());
    out.extend([9 << 2 | 2, 4]);
    out
}

/// A compiled model as LiteRT's compiler writes it: one dispatch operator, and the binary after the
/// FlatBuffer.
pub fn compiled_tflite(binary: &[u8]) -> Vec<u8> {
    let build = |offset: u32| {
        let tensor =
            |name: &str, shape: Vec<i32>| vec![(0, Fb::Ints(shape)), (1, Fb::U8(0)), (3, Fb::Text(name.into()))];
        let options = flex(&[("bytecode_offset", offset), ("bytecode_size", binary.len() as u32)], "qnn_partition_0");
        let dispatch = vec![(0, Fb::U32(1)), (1, Fb::Ints(vec![0])), (2, Fb::Ints(vec![1])), (5, Fb::Bytes(options))];
        let relu = vec![(0, Fb::U32(0)), (1, Fb::Ints(vec![1])), (2, Fb::Ints(vec![2]))];
        let subgraph = vec![
            (0, Fb::Tables(vec![tensor("in", vec![1, 4]), tensor("mid", vec![1, 4]), tensor("out", vec![1, 4])])),
            (1, Fb::Ints(vec![0])),
            (2, Fb::Ints(vec![2])),
            (3, Fb::Tables(vec![dispatch, relu])),
            (4, Fb::Text("main".into())),
        ];
        let codes =
            vec![vec![(0, Fb::U8(19))], vec![(0, Fb::U8(32)), (1, Fb::Text("DISPATCH_OP".into())), (3, Fb::U32(32))]];
        let root =
            [(0, Fb::U32(3)), (1, Fb::Tables(codes)), (2, Fb::Tables(vec![subgraph])), (4, Fb::Tables(vec![vec![]]))];
        flatbuffer(b"TFL3", &[], &root)
    };
    let offset = build(0).len() as u32;
    [build(offset), binary.to_vec()].concat()
}

/// A program with one QNN delegate, whose binary is in a segment after a frame.
pub fn program(binary: &[u8]) -> Vec<u8> {
    let frame =
        [&0x5678_abcdu32.to_le_bytes()[..], &7u64.to_le_bytes(), &(binary.len() as u64).to_le_bytes(), &[0; 236]]
            .concat();
    let build = |base: u64| {
        let header =
            [&b"eh00"[..], &32u32.to_le_bytes(), &base.to_le_bytes(), &base.to_le_bytes(), &0u64.to_le_bytes()]
                .concat();
        let tensor = |sizes: Vec<i32>| vec![(0, Fb::U8(5)), (1, Fb::Table(vec![(0, Fb::U8(5)), (2, Fb::Ints(sizes))]))];
        let delegate = vec![(0, Fb::Text("QnnBackend".into())), (1, Fb::Table(vec![(0, Fb::U8(1)), (1, Fb::U32(1))]))];
        let call = vec![(0, Fb::U8(2)), (1, Fb::Table(vec![(0, Fb::U32(0)), (1, Fb::Ints(vec![0, 1]))]))];
        let plan = vec![
            (0, Fb::Text("forward".into())),
            (2, Fb::Tables(vec![tensor(vec![1, 8]), tensor(vec![1, 3])])),
            (3, Fb::Ints(vec![0])),
            (4, Fb::Ints(vec![1])),
            (5, Fb::Tables(vec![vec![(2, Fb::Tables(vec![call]))]])),
            (7, Fb::Tables(vec![delegate])),
        ];
        let segment = |at: u64, size: usize| vec![(0, Fb::U64(at)), (1, Fb::U64(size as u64))];
        let segments = vec![segment(0, 0), segment(16, 256 + binary.len())];
        flatbuffer(b"ET12", &header, &[(1, Fb::Tables(vec![plan])), (4, Fb::Tables(segments))])
    };
    let base = build(0).len() as u64;
    [build(base), vec![0; 16], frame, binary.to_vec()].concat()
}

//! Names nameless nodes: writes a copy of a model in which every node has a name, so that it can be traced
//! through conversion.

use super::wire::{Field, Message};
use crate::models::source::{SourceError, SourceFile, SourceNode, Span};
use std::io::Write;
use std::path::Path;

/// Field numbers: the graph of a model, a node of a graph, name and operator of a node.
const GRAPH: u32 = 7;
const NODE: u32 = 1;
const NAME: u32 = 3;
const OP_TYPE: u32 = 4;

/// A piece of the copy.
enum Piece {
    Same(Span),
    New(Vec<u8>),
}

/// The pieces of a copy in which each node has a name.
pub struct Named {
    file: SourceFile,
    pieces: Vec<Piece>,
}

impl Named {
    /// Reads the model, without its data.
    ///
    /// # Errors
    /// The file cannot be read, or is not an ONNX model.
    pub fn of(model: &Path) -> Result<Option<Self>, SourceError> {
        let file = SourceFile::open(model, "ONNX model")?;
        let mut pieces = Vec::new();
        let (mut same, mut nodes, mut found) = (0, 0, false);
        let mut message = Message::new(&file, file.whole());
        loop {
            let from = message.at();
            let Some((number, field)) = message.next()? else { break };
            let (GRAPH, Field::Bytes(span)) = (number, field) else { continue };
            let (inside, added) = graph(&file, span, &mut nodes)?;
            if added == 0 {
                continue;
            }
            found = true;
            pieces.push(Piece::Same(Span { at: same, len: from - same }));
            pieces.push(Piece::New(head(GRAPH, span.len + added)));
            pieces.extend(inside);
            same = span.end();
        }
        pieces.push(Piece::Same(Span { at: same, len: file.size() - same }));
        Ok(found.then_some(Self { file, pieces }))
    }

    /// Writes the copy.
    ///
    /// # Errors
    /// The file can no longer be read, or there is no space left.
    pub fn write(&self, mut out: impl Write) -> Result<(), SourceError> {
        let io = |source| SourceError::Io { path: self.file.path().to_owned(), source };
        for piece in &self.pieces {
            match piece {
                Piece::Same(span) => self.file.copy(*span, &mut out)?,
                Piece::New(bytes) => out.write_all(bytes).map_err(io)?,
            }
        }
        out.flush().map_err(io)
    }
}

/// The pieces of a graph, and by how many bytes it grows. `nodes` counts the nodes in all graphs of the
/// model.
fn graph(file: &SourceFile, span: Span, nodes: &mut usize) -> Result<(Vec<Piece>, u64), SourceError> {
    let mut pieces = Vec::new();
    let (mut same, mut added) = (span.at, 0);
    let mut message = Message::new(file, span);
    loop {
        let from = message.at();
        let Some((number, field)) = message.next()? else { break };
        let (NODE, Field::Bytes(node)) = (number, field) else { continue };
        let index = *nodes;
        *nodes += 1;
        let Some(op_type) = nameless(file, node)? else { continue };
        let name = SourceNode::label_of("", &op_type, index);
        let mut field = head(NAME, name.len() as u64);
        field.extend_from_slice(name.as_bytes());
        let begin = head(NODE, node.len + field.len() as u64);
        added += begin.len() as u64 + field.len() as u64;
        added -= node.at - from;
        pieces.push(Piece::Same(Span { at: same, len: from - same }));
        pieces.push(Piece::New(begin));
        pieces.push(Piece::Same(node));
        pieces.push(Piece::New(field));
        same = node.end();
    }
    pieces.push(Piece::Same(Span { at: same, len: span.end() - same }));
    Ok((pieces, added))
}

/// The operator of a node without a name.
fn nameless(file: &SourceFile, node: Span) -> Result<Option<String>, SourceError> {
    let mut op_type = String::new();
    let mut message = Message::new(file, node);
    while let Some((number, field)) = message.next()? {
        match (number, field) {
            (NAME, Field::Bytes(span)) if span.len > 0 => return Ok(None),
            (OP_TYPE, Field::Bytes(span)) => op_type = file.text(span)?,
            _ => {}
        }
    }
    Ok(Some(op_type))
}

/// Header of a bytes field: number and length.
fn head(number: u32, length: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for mut value in [u64::from(number << 3 | 2), length] {
        loop {
            let part = u8::try_from(value & 0x7f).unwrap_or(0);
            value >>= 7;
            if value == 0 {
                out.push(part);
                break;
            }
            out.push(part | 0x80);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::read_source;
    use crate::models::source::SourceFormat;

    fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
        let mut out = head(number, bytes.len() as u64);
        out.extend_from_slice(bytes);
        out
    }

    fn node(name: &str, op_type: &str, input: &str, output: &str) -> Vec<u8> {
        let name = if name.is_empty() { Vec::new() } else { field(3, name.as_bytes()) };
        field(
            1,
            &[field(1, input.as_bytes()), field(2, output.as_bytes()), name, field(4, op_type.as_bytes())].concat(),
        )
    }

    #[test]
    fn every_node_gets_a_name_and_all_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let long = "x".repeat(120);
        let graph = [node("", "Relu", &long, "b"), node("kept", "Relu", "b", "c"), node("", "Neg", "c", "d")].concat();
        let bytes = [vec![8, 8], field(7, &[graph, field(2, b"g")].concat()), field(8, &[16, 17])].concat();
        let (from, to) = (dir.path().join("m.onnx"), dir.path().join("n.onnx"));
        std::fs::write(&from, &bytes).unwrap();
        Named::of(&from).unwrap().unwrap().write(std::fs::File::create(&to).unwrap()).unwrap();
        let read = |path: &Path| read_source(path, SourceFormat::Onnx, &[]).unwrap();
        let (old, new) = (read(&from), read(&to));
        let names: Vec<&str> = new.graphs[0].nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["Relu #0", "kept", "Neg #2"]);
        // Their labels are the same as before.
        let labels: Vec<String> = old.graphs[0].nodes.iter().map(SourceNode::label).collect();
        assert_eq!(labels, names);
        assert_eq!((new.opsets.clone(), &new.graphs[0].name), (old.opsets.clone(), &old.graphs[0].name));
        assert_eq!(new.graphs[0].nodes[0].inputs, [long]);
        assert!(Named::of(&to).unwrap().is_none(), "nothing is left to be named");
    }
}

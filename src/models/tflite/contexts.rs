//! QNN context binaries used by the dispatch operators of a compiled LiteRT model.

use super::CUSTOM;
use super::flex::{Value, map};
use crate::models::source::{ContextSite, EmbeddedContext, SourceError, SourceFile, SourceGraph, Span, Table};

/// Custom code of the operators that hand over to a compiled binary.
const DISPATCH: &str = "DISPATCH_OP";
/// Longest options of such an operator, in bytes: a map with three entries.
const MOST_OPTIONS: u64 = 64 << 10;

/// Adds the binaries that the graph's dispatch operators refer to, each once.
pub fn find(
    file: &SourceFile,
    table: &Table<'_>,
    graph: &SourceGraph,
    found: &mut Vec<EmbeddedContext>,
) -> Result<(), SourceError> {
    let operators = table.tables(3)?;
    for node in graph.nodes.iter().filter(|node| node.domain == CUSTOM && node.op_type == DISPATCH) {
        let operator = table.entry(operators, node.index as u64)?;
        let Some(options) = operator.bytes(5)? else { continue };
        let options = file.bytes(options, MOST_OPTIONS)?.and_then(|bytes| map(&bytes)).unwrap_or_default();
        let number = |key: &str| if let Some(Value::Number(value)) = options.get(key) { Some(*value) } else { None };
        let (Some(at), Some(len)) = (number("bytecode_offset"), number("bytecode_size")) else { continue };
        let partition = match options.get("name") {
            Some(Value::Text(name)) => name.clone(),
            _ => node.name.clone(),
        };
        let span = Span { at, len };
        let (site, partitions) = (ContextSite::DispatchOp, vec![partition.clone()]);
        let context = if len == 0 {
            let problem = "the model was compiled without it (for example with a separate DLC folder) and does not run"
                .to_owned();
            EmbeddedContext::absent(file.path(), partition, site, partitions, None, problem)
        } else {
            EmbeddedContext::look(file, span, partition, site, partitions, None)?
        };
        context.add_to(found, file)?;
    }
    Ok(())
}

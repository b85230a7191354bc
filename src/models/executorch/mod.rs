//! ExecuTorch programs (.pte), read without the runtime: a FlatBuffer followed by data segments.
//!
//! Slots are those of `program.fbs` (identifier `ET12`). A call lists everything it reads and writes
//! together, so all of it appears as inputs of the node here.

mod contexts;

use super::source::{
    Constant, Dim, ElementType, SourceError, SourceFile, SourceFormat, SourceGraph, SourceModel, SourceNode,
    SourceValue, Storage, Table,
};

/// Domain of delegate calls.
const DELEGATE: &str = "delegate";
/// Number of the value kind "tensor".
const TENSOR: u8 = 5;
/// Numbers of the instruction kinds.
const KERNEL_CALL: u8 = 1;
const DELEGATE_CALL: u8 = 2;

/// Reads a program.
pub fn read(file: &SourceFile) -> Result<SourceModel, SourceError> {
    let root = Table::root(file, 0)?;
    let mut model = SourceModel::new(file.path(), SourceFormat::Executorch, file.size());
    model.format_version = Some(i64::from(root.u32(0)?));
    let plans = root.tables(1)?;
    for index in 0..plans.len {
        let plan = root.entry(plans, index)?;
        let graph = graph(&plan)?;
        contexts::find(&root, &plan, &graph.name, &mut model.contexts)?;
        model.graphs.push(graph);
    }
    if model.graphs.is_empty() {
        return Err(file.damaged(0, "it has no execution plan"));
    }
    Ok(model)
}

fn graph(plan: &Table<'_>) -> Result<SourceGraph, SourceError> {
    let file = plan.file;
    let mut graph = SourceGraph::new(plan.text(0)?);
    let names = values(plan, &mut graph)?;
    let name_of = |index: i32| -> Result<String, SourceError> {
        let name = usize::try_from(index).ok().and_then(|at| names.get(at));
        let name = name.ok_or_else(|| file.damaged(0, format!("value {index} of {} is used", names.len())))?;
        file.keep(name.len() + size_of::<String>())?;
        Ok(name.clone())
    };
    let all = |indices: Vec<i32>| indices.into_iter().map(name_of).collect::<Result<Vec<_>, _>>();
    graph.inputs = all(plan.ints(3)?)?;
    graph.outputs = all(plan.ints(4)?)?;
    let (operators, delegates, chains) = (plan.tables(6)?, plan.tables(7)?, plan.tables(5)?);
    for index in 0..chains.len {
        let chain = plan.entry(chains, index)?;
        let instructions = chain.tables(2)?;
        for index in 0..instructions.len {
            let instruction = chain.entry(instructions, index)?;
            let kind = instruction.u8(0, 0)?;
            let Some(call) = instruction.table(1)? else { continue };
            let (op_type, domain) = match kind {
                KERNEL_CALL => {
                    let operator = plan.entry(operators, u64::from(call.u32(0)?))?;
                    let (name, overload) = (operator.text(0)?, operator.text(1)?);
                    (if overload.is_empty() { name } else { format!("{name}.{overload}") }, "")
                }
                DELEGATE_CALL => (plan.entry(delegates, u64::from(call.u32(0)?))?.text(0)?, DELEGATE),
                // Moves, jumps and releases compute nothing.
                _ => continue,
            };
            file.keep(size_of::<SourceNode>() + op_type.len())?;
            graph.nodes.push(SourceNode {
                index: graph.nodes.len(),
                op_type,
                domain: domain.to_owned(),
                inputs: all(call.ints(1)?)?,
                ..SourceNode::default()
            });
        }
    }
    Ok(graph)
}

/// Adds the plan's tensors to the graph; returns the names of all its values.
fn values(plan: &Table<'_>, graph: &mut SourceGraph) -> Result<Vec<String>, SourceError> {
    let file = plan.file;
    let list = plan.tables(2)?;
    let mut names = Vec::new();
    for index in 0..list.len {
        let value = plan.entry(list, index)?;
        let tensor = if value.u8(0, 0)? == TENSOR { value.table(1)? } else { None };
        let told = match tensor {
            Some(tensor) => tensor.table(9)?.map(|more| more.text(1)).transpose()?.unwrap_or_default(),
            None => String::new(),
        };
        let name = if told.is_empty() { format!("value_{index}") } else { format!("{told}#{index}") };
        file.keep(size_of::<SourceValue>() + 4 * name.len())?;
        names.push(name.clone());
        let Some(tensor) = tensor else { continue };
        let dtype = ElementType::from_executorch(i32::from(tensor.u8(0, 0)?.cast_signed()));
        let sizes = tensor.ints(2)?;
        file.keep(sizes.len() * size_of::<Dim>())?;
        let is_constant = tensor.u32(5)? > 0 && tensor.table(6)?.is_none();
        if is_constant {
            let shape: Vec<u64> = sizes.iter().map(|&size| u64::try_from(size).unwrap_or(0)).collect();
            let bytes = super::source::product(&shape).and_then(|elements| dtype.bytes(elements));
            let storage = Storage::Scattered;
            let (small, quantization, nested) = (None, None, false);
            graph.constants.push(Constant {
                name,
                dtype: Some(dtype),
                shape,
                bytes,
                storage,
                small,
                quantization,
                nested,
            });
        } else {
            // The sizes of a dynamic tensor are upper bounds at best.
            let is_static = tensor.u8(8, 0)? == 0;
            let dim = |&size: &i32| u64::try_from(size).ok().filter(|_| is_static).map_or(Dim::Unknown, Dim::Known);
            let shape = Some(sizes.iter().map(dim).collect());
            graph.declare(SourceValue { name, dtype: Some(dtype), shape, inferred: false, quantization: None });
        }
    }
    Ok(names)
}

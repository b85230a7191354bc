//! QNN context binaries in EPContext nodes.

use crate::models::source::{
    AttributeValue, ContextSite, EmbeddedContext, SourceError, SourceFile, SourceGraph, SourceNode, beside,
};

/// The binaries that the model's EPContext nodes contain or refer to, each once.
pub fn find(file: &SourceFile, graph: &SourceGraph) -> Result<Vec<EmbeddedContext>, SourceError> {
    let mut found: Vec<EmbeddedContext> = Vec::new();
    let mut sharing = Vec::new();
    for node in graph.nodes.iter().filter(|node| is_qnn(node)) {
        let partition = node.text("partition_name").filter(|name| !name.is_empty()).unwrap_or(&node.name).to_owned();
        // Such a node runs a graph from another node's binary.
        if node.int("main_context") == Some(0) {
            sharing.push(partition);
            continue;
        }
        one(file, node, partition)?.add_to(&mut found, file)?;
    }
    // By the operator's specification they belong to the single main node.
    match found.first_mut() {
        Some(first) => first.partitions.append(&mut sharing),
        None if sharing.is_empty() => {}
        None => {
            let problem = "it belongs to a node of another model that shares it with this one".to_owned();
            let name = sharing[0].clone();
            let site = ContextSite::EpContextNode;
            found.push(EmbeddedContext::absent(file.path(), name, site, sharing, None, problem));
        }
    }
    Ok(found)
}

/// Execution providers of other vendors use the same operator.
fn is_qnn(node: &SourceNode) -> bool {
    node.op_type == "EPContext"
        && node.text("source").is_none_or(|source| source.is_empty() || source.to_ascii_lowercase().contains("qnn"))
}

fn one(file: &SourceFile, node: &SourceNode, partition: String) -> Result<EmbeddedContext, SourceError> {
    let site = ContextSite::EpContextNode;
    let sdk = node.text("ep_sdk_version").filter(|version| !version.is_empty()).map(str::to_owned);
    let (name, partitions) = (node.label(), vec![partition]);
    let Some(AttributeValue::Bytes(span, short)) = node.attribute("ep_cache_context") else {
        let problem = "the node has no ep_cache_context".to_owned();
        return Ok(EmbeddedContext::absent(file.path(), name, site, partitions, sdk, problem));
    };
    // The operator's default is 1: the binary itself is embedded.
    if node.int("embed_mode").unwrap_or(1) == 1 {
        return EmbeddedContext::look(file, *span, name, site, partitions, sdk);
    }
    let absent =
        |problem| EmbeddedContext::absent(file.path(), name.clone(), site, partitions.clone(), sdk.clone(), problem);
    let Some(short) = short else { return Ok(absent("its file name is too long".to_owned())) };
    match beside(file.path(), short) {
        Err(reason) => Ok(absent(format!("it is in {short}, {reason}"))),
        Ok((path, _)) => {
            let held = SourceFile::open(&path, "context binary")?;
            let name = name.clone();
            EmbeddedContext::look(&held, held.whole(), name, site, partitions.clone(), sdk.clone())
        }
    }
}

//! QNN context binaries in a program's delegates.

use crate::models::source::{ContextSite, EmbeddedContext, SourceError, SourceFile, Span, Table};

/// Name of the QNN delegate.
const QNN: &str = "QnnBackend";
/// Start of the delegate's frame around the binary: this number, a signature, the binary's size, and zeros.
const FRAME_MAGIC: u32 = 0x5678_abcd;
const FRAME_BYTES: u64 = 256;
/// Offset of the size in the frame.
const FRAME_SIZE_AT: u64 = 12;

/// Adds the binaries of the plan's QNN delegates.
pub fn find(
    root: &Table<'_>,
    plan: &Table<'_>,
    plan_name: &str,
    found: &mut Vec<EmbeddedContext>,
) -> Result<(), SourceError> {
    let file = root.file;
    let delegates = plan.tables(7)?;
    for index in 0..delegates.len {
        let delegate = plan.entry(delegates, index)?;
        if delegate.text(0)? != QNN {
            continue;
        }
        let name = if delegates.len == 1 { plan_name.to_owned() } else { format!("{plan_name}_{index}") };
        let (site, partitions) = (ContextSite::Delegate, vec![format!("{plan_name} delegate {index}")]);
        let span = match delegate.table(1)? {
            Some(reference) => data(root, &reference)?,
            None => None,
        };
        let context = match span {
            Some(span) => EmbeddedContext::look(file, unframed(file, span)?, name, site, partitions, None)?,
            None => {
                let problem = "the delegate has no data".to_owned();
                EmbeddedContext::absent(file.path(), name, site, partitions, None, problem)
            }
        };
        context.add_to(found, file)?;
    }
    Ok(())
}

/// Location of a delegate's data: in the program, or in a segment after it.
fn data(root: &Table<'_>, reference: &Table<'_>) -> Result<Option<Span>, SourceError> {
    let file = root.file;
    let index = u64::from(reference.u32(1)?);
    if reference.u8(0, 0)? == 0 {
        return root.entry(root.tables(3)?, index)?.bytes(0);
    }
    let segment = root.entry(root.tables(4)?, index)?;
    let at = segment_base(file)?.checked_add(segment.u64(0)?);
    let at = at.ok_or_else(|| file.damaged(0, format!("segment {index} goes beyond the end")))?;
    Ok(Some(Span { at, len: segment.u64(1)? }))
}

/// Start of the segments, from the header after the identifier.
fn segment_base(file: &SourceFile) -> Result<u64, SourceError> {
    let mut header = [0; 32];
    file.read(8, &mut header)?;
    if &header[..2] != b"eh" {
        return Err(file.damaged(8, "it has segments but no header that locates them"));
    }
    Ok(header[16..24].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// The binary in the delegate's data, with or without a frame around it.
fn unframed(file: &SourceFile, span: Span) -> Result<Span, SourceError> {
    let mut frame = [0; 20];
    if span.len < FRAME_BYTES || span.end() > file.size() {
        return Ok(span);
    }
    file.read(span.at, &mut frame)?;
    if frame[..4] != FRAME_MAGIC.to_le_bytes() {
        return Ok(span);
    }
    let from = usize::try_from(FRAME_SIZE_AT).unwrap_or(0);
    let len = frame[from..].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
    if len > span.len - FRAME_BYTES {
        let reason = format!("a delegate's binary should have {len} bytes, but {} are left", span.len - FRAME_BYTES);
        return Err(file.damaged(span.at, reason));
    }
    Ok(Span { at: span.at + FRAME_BYTES, len })
}

//! Whether qnnscope wrote a file, judged by its content.

use super::signature::starts_context_binary;
use crate::event::SESSION_SCHEMA;
use qnn_profile_log::Decoder;
use std::io::{self, BufRead, BufReader, Read};

/// Folder in a report's archive.
const BUNDLE_FOLDER: &[u8] = b"qnnscope-report/";
/// How much of a session is examined for its first line, bytes.
const HEAD_BYTES: u64 = 256 << 10;
/// First bytes of a zstd frame.
const ZSTD: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
/// Largest encodings file examined.
const ENCODINGS_BYTES: u64 = 256 << 20;
/// Longest first chunk of a profile log; it holds the header and about a thousand messages.
const CHUNK_BYTES: u32 = 256 << 20;

/// The kind of an output. An older file of the same kind may be replaced without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A session: its header names the schema.
    Session,
    /// A context binary. It does not name its writer, so every context binary counts.
    Context,
    /// A QNN profile log: its header names qnnscope as the writer.
    ProfileLog,
    /// A report: its first lines name qnnscope.
    Report,
    /// What a tap recorded: the document names its schema first.
    TapDocument,
    /// A process id. It may be another program's, so it never counts as ours.
    ProcessId,
    /// A report to send: its first file is in our folder.
    Bundle,
    /// A man page of qnnscope.
    ManPage,
    /// Intermediate results of `ranges`: the document names its schema first.
    RangesState,
    /// Quantisation encodings: the document names qnnscope as its producer.
    Encodings,
    /// Results of `accuracy`: the document names its schema first.
    Accuracy,
}

impl Kind {
    /// Display name of the kind of file that may be replaced.
    pub fn expected(self) -> &'static str {
        match self {
            Self::Session => "it is not a session of qnnscope",
            Self::Context => "it is not a context binary",
            Self::ProfileLog => "it is not a profile log that qnnscope wrote",
            Self::Report => "it is not a report that qnnscope wrote",
            Self::TapDocument => "it is not a document of qnnscope tap",
            Self::ProcessId => "it may belong to a running process or another program",
            Self::Bundle => "it is not a bundle that qnnscope diagnose wrote",
            Self::ManPage => "it is not a man page of qnnscope",
            Self::RangesState => "it is not a state file of qnnscope ranges",
            Self::Encodings => "it holds no encodings that qnnscope wrote",
            Self::Accuracy => "it is not a document of qnnscope accuracy",
        }
    }

    /// True if `file`, read from its beginning, is an older file of this kind.
    pub fn is_ours(self, mut file: impl Read) -> io::Result<bool> {
        match self {
            Self::Session => {
                let mut line = Vec::new();
                // Of a compressed session, this much of its text.
                let mut head = Vec::new();
                file.take(HEAD_BYTES).read_to_end(&mut head)?;
                if head.starts_with(&ZSTD) {
                    let decoder = zstd::stream::read::Decoder::new(head.as_slice())?;
                    // The head is cut off somewhere, but after the first line.
                    let _ = BufReader::new(decoder.take(HEAD_BYTES)).read_until(b'\n', &mut line);
                } else {
                    BufReader::new(head.as_slice()).read_until(b'\n', &mut line)?;
                }
                let header: Option<serde_json::Value> = serde_json::from_slice(&line).ok();
                let schema =
                    header.as_ref().and_then(|header| header.pointer("/event/session_started/schema")?.as_str());
                // Any version: a newer one is ours as well.
                let name = |schema: &str| schema.split_once('/').map(|(name, _)| name.to_owned());
                Ok(schema.is_some_and(|schema| name(schema) == name(SESSION_SCHEMA)))
            }
            Self::Report => {
                let mut start = Vec::new();
                file.take(512).read_to_end(&mut start)?;
                // A CSV table begins with its first heading; all other formats name their maker. A session is
                // not a report.
                let text = String::from_utf8_lossy(&start);
                // "qnnscope 0.1.0 report": prose that mentions qnnscope would not put a version in between.
                let named = |rest: &str| {
                    let (version, rest) = rest.split_once(' ').unwrap_or_default();
                    version.starts_with(|digit: char| digit.is_ascii_digit()) && rest.starts_with("report")
                };
                let table = text.starts_with("qnnscope_run,backend,");
                Ok(table || text.match_indices("qnnscope ").any(|(at, mark)| named(&text[at + mark.len()..])))
            }
            Self::Context => {
                let mut start = Vec::new();
                file.take(64).read_to_end(&mut start)?;
                Ok(starts_context_binary(&start))
            }
            Self::TapDocument => {
                let mut start = Vec::new();
                file.take(64).read_to_end(&mut start)?;
                Ok(start.starts_with(b"{\"schema\":\"qnnscope.tap/"))
            }
            // A number does not show whose it is.
            Self::ProcessId => Ok(false),
            Self::Bundle => {
                // In a zip archive, 30 bytes of a local file header precede the name.
                let mut start = Vec::new();
                file.take(64).read_to_end(&mut start)?;
                let named = start.get(30..).is_some_and(|name| name.starts_with(BUNDLE_FOLDER));
                Ok(start.starts_with(b"PK\x03\x04") && named)
            }
            Self::ManPage => {
                let mut start = String::new();
                // A page that is not text is not ours.
                let is_text = file.take(4096).read_to_string(&mut start).is_ok();
                Ok(is_text && start.lines().any(|line| line.starts_with(".TH qnnscope")))
            }
            Self::RangesState => {
                let mut start = Vec::new();
                file.take(64).read_to_end(&mut start)?;
                Ok(start.starts_with(b"{\"schema\":\"qnnscope.ranges-state/"))
            }
            Self::Accuracy => {
                let mut start = Vec::new();
                file.take(64).read_to_end(&mut start)?;
                Ok(start.starts_with(b"{\"schema\":\"qnnscope.accuracy/"))
            }
            Self::Encodings => {
                let mut text = String::new();
                let is_text = file.take(ENCODINGS_BYTES).read_to_string(&mut text).is_ok();
                let document: Option<serde_json::Value> = serde_json::from_str(&text).ok().filter(|_| is_text);
                let producer = document.as_ref().and_then(|document| document.pointer("/producer/package")?.as_str());
                Ok(producer == Some(env!("CARGO_PKG_NAME")))
            }
            Self::ProfileLog => {
                let mut bytes = Vec::new();
                file.by_ref().take(4).read_to_end(&mut bytes)?;
                let length = bytes.as_slice().try_into().map_or(0, u32::from_le_bytes);
                if length > CHUNK_BYTES {
                    return Ok(false);
                }
                file.take(length.into()).read_to_end(&mut bytes)?;
                let mut decoder = Decoder::new();
                decoder.push(&bytes);
                let chunk = decoder.next_chunk().ok().flatten();
                let writer = chunk.and_then(|chunk| chunk.header()?.writer_name());
                Ok(writer == Some(env!("CARGO_PKG_NAME").as_bytes()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_tells() {
        let session = br#"{"seq":0,"t_us":1,"event":{"session_started":{"schema":"qnnscope.session/1"}}}"#;
        let binary = [0, 0, 0, 2, 0, 0, 0, 3, 0, 0];
        for (kind, content, ours) in [
            (Kind::Session, &session[..], true),
            (Kind::Session, b"{\"event\":{\"session_started\":{\"schema\":\"other.session/1\"}}}", false),
            (Kind::Session, b"my notes\n", false),
            (Kind::Report, b"qnnscope_run,backend,device\n", true),
            (Kind::Report, b"<!-- qnnscope 0.1.0 report -->\n", true),
            (Kind::Report, b"my report\n", false),
            (Kind::Report, b"# my qnnscope notes\nA bug report for the team\n", false),
            (Kind::Report, b"qnnscope_run,mine\n", false),
            (Kind::Context, &binary, true),
            (Kind::Context, b"PK\x03\x04", false),
            (Kind::TapDocument, b"{\"schema\":\"qnnscope.tap/2\",\"tool\":{}}", true),
            (Kind::TapDocument, b"{\"schema\":\"qnnscope.result/1\"}", false),
            (Kind::Encodings, b"{\"producer\":{\"package\":\"qnnscope\"}}", true),
            (Kind::Encodings, b"{\"producer\":{\"package\":\"aimet-onnx\"}}", false),
            (Kind::ProcessId, b"12345\n", false),
            (Kind::ProfileLog, b"PK\x03\x04", false),
            (Kind::ProfileLog, &binary, false),
            (Kind::Bundle, b"PK\x03\x04aaaabbbbccccddddeeeeffffggqnnscope-report/log.txt", true),
            (Kind::Bundle, b"PK\x03\x04aaaabbbbccccddddeeeeffffggmy/photos.txt", false),
        ] {
            assert_eq!(kind.is_ours(content).unwrap(), ours, "{kind:?} {content:?}");
        }
    }
}

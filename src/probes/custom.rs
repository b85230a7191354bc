//! Users' own counters, from a file.

use super::catalogue::{Cadence, Group, Parse};
use super::counter::{Counter, FileRead, How};
use super::value::Parser;
use crate::event::clean_text;
use crate::files::read_text_at_most;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Maximum length of a counter list.
const MAX_BYTES: u64 = 1 << 20;
/// All paths go to the device in one command, which adb limits to 64 KiB.
const MAX_COUNTERS: usize = 100;
const MAX_PATH_BYTES: usize = 250;

/// An unusable counter file.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CustomError {
    #[error("cannot read the counters in {path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path}, line {line}: {reason}")]
    Bad { path: PathBuf, line: usize, reason: String },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    counter: Vec<toml::Spanned<Entry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    label: Option<String>,
    path: String,
    #[serde(default)]
    unit: String,
    #[serde(default = "one")]
    scale: f64,
    #[serde(default)]
    root: bool,
    cadence: Option<Cadence>,
    maximum: Option<f64>,
}

fn one() -> f64 {
    1.0
}

/// The counters in the file at `path`; only the device shows whether they are readable, see [`super::discover`].
pub fn load(path: &Path) -> Result<Vec<Counter>, CustomError> {
    let text =
        read_text_at_most(path, MAX_BYTES).map_err(|source| CustomError::Io { path: path.to_owned(), source })?;
    parse(&text).map_err(|(line, reason)| CustomError::Bad { path: path.to_owned(), line, reason })
}

/// The user's `counters.toml` in the config folder; `None` if this system has no such folder.
pub fn default_path() -> Option<PathBuf> {
    crate::files::config_file("counters.toml")
}

fn parse(text: &str) -> Result<Vec<Counter>, (usize, String)> {
    let line_of = |at: usize| text[..text.floor_char_boundary(at)].matches('\n').count() + 1;
    let file: File = toml::from_str(text).map_err(|error| {
        (error.span().map_or(1, |span| line_of(span.start)), clean_text(&error.message().replace('\n', "; ")))
    })?;
    if file.counter.len() > MAX_COUNTERS {
        return Err((1, format!("{} counters are too many; at most {MAX_COUNTERS} are read", file.counter.len())));
    }
    let mut seen = BTreeSet::new();
    let mut counters = Vec::with_capacity(file.counter.len());
    for entry in file.counter {
        let line = line_of(entry.span().start);
        let counter = counter(entry.into_inner()).map_err(|reason| (line, reason))?;
        if !seen.insert(counter.id.clone()) {
            return Err((line, format!("counter {} is defined twice", counter.id)));
        }
        counters.push(counter);
    }
    Ok(counters)
}

fn counter(entry: Entry) -> Result<Counter, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if entry.id.is_empty() || entry.id.len() > 80 || !entry.id.chars().all(plain) {
        return Err(format!("id {:?} may contain only letters, digits, dots, - and _", clean_text(&entry.id)));
    }
    if super::catalogue::rows().iter().any(|row| entry.id == row.id || entry.id.starts_with(&format!("{}.", row.id))) {
        return Err(format!("id {:?} belongs to a built-in counter", entry.id));
    }
    if entry.path.len() > MAX_PATH_BYTES {
        return Err(format!("path is longer than {MAX_PATH_BYTES} bytes"));
    }
    if !entry.path.starts_with('/') || entry.path.contains(|c: char| c.is_control()) {
        return Err(format!("path {:?} must be absolute", clean_text(&entry.path)));
    }
    if !entry.scale.is_finite() || entry.scale == 0.0 {
        return Err(format!("scale {} is invalid", entry.scale));
    }
    let mut parser = Parser::new(Parse::Number);
    parser.scale = entry.scale;
    let cadence = match entry.cadence {
        Some(Cadence::Slow) => return Err("cadence must be fast, tenth or second".to_owned()),
        other => other.unwrap_or(Cadence::Fast),
    };
    Ok(Counter {
        label: clean_text(entry.label.as_deref().unwrap_or(&entry.id)),
        id: entry.id,
        group: Group::Other,
        unit: clean_text(&entry.unit),
        maximum: entry.maximum.filter(|top| top.is_finite()),
        about: String::new(),
        cadence,
        needs_root: entry.root,
        chosen: true,
        files: vec![FileRead { path: entry.path, how: How::Line }],
        parser,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_taken_as_written() {
        let text = "# mine\n[[counter]]\nid = \"my.rail\"\npath = \"/sys/x y/in1\"\nunit = \"V\"\nscale = 0.001\nroot = true\n";
        let counters = parse(text).unwrap();
        let mine = &counters[0];
        assert_eq!((mine.id.as_str(), mine.label.as_str(), mine.unit.as_str()), ("my.rail", "my.rail", "V"));
        assert!(mine.needs_root && mine.cadence == Cadence::Fast);
        assert_eq!(mine.parser.clone().value(0, &[Ok(b"1200\n")]), Ok(Some(1.2)));
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, line, part) in [
            ("[[counter]]\nid = 3\npath = \"/x\"", 2, "string"),
            ("\n[[counter]]\nid = \"a\"\n", 2, "path"),
            ("[[counter]]\nid = \"a\"\npath = \"x\"", 1, "absolute"),
            ("[[counter]]\nid = \"a b\"\npath = \"/x\"", 1, "letters"),
            ("[[counter]]\nid = \"cpu.busy\"\npath = \"/x\"", 1, "built-in"),
            ("[[counter]]\nid = \"a\"\npath = \"/x\"\nscale = nan", 1, "scale"),
            ("[[counter]]\nid = \"a\"\npath = \"/x\"\n[[counter]]\nid = \"a\"\npath = \"/y\"", 4, "twice"),
            ("[[counter]]\nid = \"a\"\npath = \"/x\"\nwhat = 1", 4, "unknown field"),
            ("[[counter]]\nid = \"ä", 2, ""),
        ] {
            let (at, reason) = parse(text).unwrap_err();
            assert_eq!(at, line, "{text}: {reason}");
            assert!(reason.contains(part), "{text}: {reason}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counters.toml");
        std::fs::write(&path, "[[counter]]\nid = 3\n").unwrap();
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("counters.toml, line 2"), "{error}");
        assert!(load(&folder.path().join("none")).unwrap_err().to_string().contains("cannot read the counters"));
    }
}

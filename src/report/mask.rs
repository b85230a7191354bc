//! Removes private data from a report: paths, device serials, names of models, layers and tensors.

use crate::accuracy::AccuracyDocument;
use crate::event::LOCAL_DEVICE;
use crate::store::Store;
use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Absolute paths, and paths that start with `~`, `.` or `..`.
static PATHS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(^|[\s"'`(=,:\[])((?:~|\.\.?|[A-Za-z]:)?[/\\][^\s"'`,;)\]<>|]+)"#).ok());
/// Shorter names are too often ordinary words to be removed from sentences; standing alone they are replaced.
const SHORTEST_IN_TEXT: usize = 3;

/// Replaces private data; does nothing unless requested.
#[derive(Debug, Default)]
pub struct Mask {
    names: HashMap<String, String>,
    in_text: Option<(AhoCorasick, Vec<String>)>,
    is_active: bool,
}

impl Mask {
    /// Leaves everything unchanged.
    pub fn none() -> Self {
        Self::default()
    }

    /// Collects what is private in these stores.
    pub fn of<'a>(stores: impl Iterator<Item = &'a Store>) -> Self {
        let mut mask = Self { is_active: true, ..Self::default() };
        for store in stores {
            mask.learn(store);
        }
        mask.find_in_texts();
        mask
    }

    /// Prepares the search for known names in texts.
    fn find_in_texts(&mut self) {
        let mut known: Vec<(&String, &String)> =
            self.names.iter().filter(|(name, _)| name.chars().count() >= SHORTEST_IN_TEXT).collect();
        known.sort();
        let replacements: Vec<String> = known.iter().map(|(_, other)| (*other).clone()).collect();
        let finder =
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(known.iter().map(|(name, _)| name));
        self.in_text = finder.ok().map(|finder| (finder, replacements));
    }

    /// True if it removes anything.
    pub fn is_active(&self) -> bool {
        self.is_active
    }

    fn put(&mut self, name: &str, kind: &str) {
        if !name.is_empty() && !self.names.contains_key(name) {
            let number = self.names.values().filter(|known| known.starts_with(kind)).count() + 1;
            self.names.insert(name.to_owned(), format!("{kind}-{number}"));
        }
    }

    /// Collects names by kind, numbered in order of appearance.
    fn learn(&mut self, store: &Store) {
        let mut devices: Vec<&str> = store.devices().iter().map(|device| device.id.as_str()).collect();
        devices.extend(store.device_states().iter().map(|state| state.id.as_str()));
        devices.extend(store.runs().iter().map(|run| run.plan.device.as_str()));
        for device in devices.into_iter().filter(|device| ![LOCAL_DEVICE, "unknown"].contains(device)) {
            self.put(device, "device");
        }
        // Refused ops appear in no composed graph.
        for refusal in store.runs().iter().filter_map(|run| run.failure.as_ref()?.refusal.as_ref()) {
            self.put(&refusal.graph, "graph");
            self.put(&refusal.op.name, "op");
            for tensor in refusal.op.inputs.iter().chain(&refusal.op.outputs) {
                self.put(&tensor.name, "tensor");
            }
        }
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        // There may be thousands of names, so they are counted here instead of being searched.
        let mut name = |names: &mut HashMap<String, String>, text: &str, kind: &'static str| {
            if !text.is_empty() && !names.contains_key(text) {
                let number = numbers
                    .entry(kind)
                    .or_insert_with(|| names.values().filter(|known| known.starts_with(kind)).count());
                *number += 1;
                names.insert(text.to_owned(), format!("{kind}-{number}"));
            }
        };
        for run in store.runs() {
            let path = run.plan.model.as_str();
            name(&mut self.names, path, "model");
            let own = self.names.get(path).cloned().unwrap_or_default();
            if let Some(file) = path.rsplit(['/', '\\']).next().filter(|file| !file.is_empty()) {
                self.names.entry(file.to_owned()).or_insert(own);
            }
            for graph in &run.graphs {
                name(&mut self.names, &graph.name, "graph");
                for op in &graph.ops {
                    name(&mut self.names, &op.name, "op");
                    for tensor in op.inputs.iter().chain(&op.outputs) {
                        name(&mut self.names, &tensor.name, "tensor");
                    }
                }
                for tensor in graph.inputs.iter().chain(&graph.outputs) {
                    name(&mut self.names, &tensor.name, "tensor");
                }
            }
            for row in run.ops.rows() {
                name(&mut self.names, &row.name, "op");
            }
            for node in run.nodes.iter().flat_map(|placed| &placed.nodes) {
                name(&mut self.names, &node.node, "node");
                node.qnn_ops.iter().for_each(|op| name(&mut self.names, op, "op"));
            }
            for partition in run.nodes.iter().flat_map(|placed| &placed.partitions) {
                name(&mut self.names, &partition.name, "partition");
            }
            for input in &run.inputs {
                name(&mut self.names, &input.name, "tensor");
            }
            if let Some(judged) = &run.judged {
                name(&mut self.names, &judged.truth, "truth");
                judged.outputs.iter().for_each(|output| name(&mut self.names, &output.name, "tensor"));
            }
        }
    }

    /// Collects the names in a comparison of two models.
    pub fn learn_accuracy(&mut self, document: &AccuracyDocument) {
        for side in [&document.reference, &document.test] {
            self.put(&side.model, "model");
            side.device.iter().for_each(|device| self.put(device, "device"));
            if let Some(file) = side.model.rsplit(['/', '\\']).next().filter(|file| !file.is_empty()) {
                self.put(file, "model");
            }
        }
        for pair in &document.pairs {
            self.put(&pair.test, "tensor");
            self.put(&pair.reference, "tensor");
        }
        for layer in &document.layers {
            self.put(&layer.op, "op");
        }
        document.reference_only.iter().chain(&document.test_only).for_each(|name| self.put(name, "tensor"));
        self.find_in_texts();
    }

    /// Masks a name that stands alone.
    pub fn name<'t>(&self, name: &'t str) -> Cow<'t, str> {
        match self.names.get(name) {
            Some(other) => Cow::Owned(other.clone()),
            None => self.text(name),
        }
    }

    /// Masks a text that may contain names and paths.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.is_active {
            return Cow::Borrowed(text);
        }
        if let Some(other) = self.names.get(text) {
            return Cow::Owned(other.clone());
        }
        let named = self.without_names(text);
        match PATHS.as_ref() {
            Some(paths) => {
                // Sentence punctuation does not belong to the path.
                let hidden = |found: &regex::Captures<'_>| {
                    let end = found[2].len() - found[2].trim_end_matches([':', '.']).len();
                    format!("{}(path){}", &found[1], &found[2][found[2].len() - end..])
                };
                Cow::Owned(paths.replace_all(&named, hidden).into_owned())
            }
            None => named,
        }
    }

    fn without_names<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some((finder, replacements)) = &self.in_text else { return Cow::Borrowed(text) };
        let mut out = String::new();
        let mut from = 0;
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        for found in finder.find_iter(text) {
            let before = text[..found.start()].chars().next_back().is_some_and(is_part);
            let after = text[found.end()..].chars().next().is_some_and(is_part);
            let first_is_part = text[found.range()].chars().next().is_some_and(is_part);
            let last_is_part = text[found.range()].chars().next_back().is_some_and(is_part);
            // Part of a longer word, hence not this name.
            if (before && first_is_part) || (after && last_is_part) {
                continue;
            }
            out.push_str(&text[from..found.start()]);
            out.push_str(&replacements[found.pattern().as_usize()]);
            from = found.end();
        }
        if from == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[from..]);
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(names: &[(&str, &str)]) -> Mask {
        let mut mask = Mask { is_active: true, ..Mask::default() };
        for (name, kind) in names {
            mask.put(name, kind);
        }
        let known: Vec<(String, String)> = mask.names.clone().into_iter().filter(|name| name.0.len() >= 3).collect();
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(known.iter().map(|(name, _)| name))
            .unwrap();
        mask.in_text = Some((finder, known.into_iter().map(|(_, other)| other).collect()));
        mask
    }

    #[test]
    fn names_and_paths_go_and_words_stay() {
        let mask = mask(&[("R5CT10", "device"), ("face_conv1", "op"), ("face", "model"), ("a", "op")]);
        for (text, expected) in [
            ("a face_conv1 on R5CT10", "a op-1 on device-1"),
            ("`face_conv1`, face_conv12 and surface", "`op-1`, face_conv12 and surface"),
            ("cannot open /home/jo/face.dlc: no such file", "cannot open (path): no such file"),
            ("750 inferences/s at 3 km/h", "750 inferences/s at 3 km/h"),
            ("--record ~/x/y.jsonl (in C:\\Users\\jo\\x)", "--record (path) (in (path))"),
            ("a", "op-2"),
        ] {
            assert_eq!(mask.text(text), expected);
        }
        assert_eq!(Mask::none().text("/home/jo"), "/home/jo");
    }
}

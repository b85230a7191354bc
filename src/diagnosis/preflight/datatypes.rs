//! The lists of datatypes that HTP prints for an op: the requested ones and the supported ones.

use crate::models::Op;
use std::collections::BTreeMap;

/// Configurations in order of preference; all others follow.
const PREFERRED: [&str; 4] = ["INT8", "INT16", "FP16", "BF16"];

/// An input or output of an op, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// Input.
    In(usize),
    /// Output.
    Out(usize),
}

impl Slot {
    fn read(text: &str) -> Option<Self> {
        let (kind, number) = text.strip_suffix(']')?.split_once('[')?;
        let number = number.parse().ok()?;
        match kind {
            "in" => Some(Self::In(number)),
            "out" => Some(Self::Out(number)),
            _ => None,
        }
    }

    /// Its index among the op's inputs and outputs, counted through.
    pub fn position(self, op: &Op) -> Option<usize> {
        let place = match self {
            Self::In(number) => (number < op.inputs.len()).then_some(number),
            Self::Out(number) => (number < op.outputs.len()).then_some(op.inputs.len() + number),
        };
        place.filter(|place| *place < op.inputs.len() + op.outputs.len())
    }
}

impl std::fmt::Display for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::In(number) => write!(f, "in[{number}]"),
            Self::Out(number) => write!(f, "out[{number}]"),
        }
    }
}

type Types = BTreeMap<Slot, String>;

/// The requested set and the supported ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sets {
    requested: Types,
    /// Configuration (`INT8`) and datatypes of each set.
    supported: Vec<(String, Types)>,
}

impl Sets {
    /// Parses them from the lines of a refusal; `None` if they are not there.
    pub fn read(lines: &[&str]) -> Option<Self> {
        let mut sets = Self::default();
        let mut configuration: Option<String> = None;
        let mut begun = false;
        for line in lines.iter().map(|line| line.trim()) {
            if line.starts_with("Requested I/O datatype set") {
                // Some releases print it twice: the first time is enough.
                if begun {
                    break;
                }
                begun = true;
            } else if let Some((_, name)) = line.split_once("datatype sets for the configuration:") {
                configuration = Some(name.replace("(continued)", "").trim().to_owned());
            } else if line.strip_suffix(':').is_some_and(|number| number.parse::<u32>().is_ok()) {
                sets.supported.extend(configuration.clone().map(|name| (name, Types::new())));
            } else if let Some((slot, types)) = line.split_once(':')
                && let Some(slot) = Slot::read(slot)
                && begun
            {
                let types = short(types);
                match (&configuration, sets.supported.last_mut()) {
                    (None, _) => drop(sets.requested.insert(slot, types)),
                    (Some(_), Some((_, last))) => drop(last.insert(slot, types)),
                    (Some(_), None) => {}
                }
            }
        }
        // An optional tensor that is absent has no datatype.
        sets.requested.retain(|_, types| !types.contains("optional"));
        (begun && !sets.requested.is_empty()).then_some(sets)
    }

    /// The supported set that differs least from the requested one, and where it differs.
    fn nearest(&self) -> Option<(&str, &Types, Vec<Slot>)> {
        let rank = |name: &str| PREFERRED.iter().position(|known| *known == name).unwrap_or(PREFERRED.len());
        self.supported
            .iter()
            .map(|(name, types)| {
                let differs = |(slot, asked): &(&Slot, &String)| {
                    !types.get(slot).is_some_and(|taken| taken.split_whitespace().any(|word| word == *asked))
                };
                let slots: Vec<Slot> = self.requested.iter().filter(differs).map(|(slot, _)| *slot).collect();
                (name.as_str(), types, slots)
            })
            .min_by_key(|(name, _, slots)| (slots.len(), rank(name)))
    }
}

/// `QNN_DATATYPE_UFIXED_POINT_8` in this project's notation: `ufixed8`.
fn short(types: &str) -> String {
    let word = |word: &str| {
        let Some(name) = word.strip_prefix("QNN_DATATYPE_") else { return word.to_lowercase() };
        name.to_lowercase().replace("_point", "").replace('_', "")
    };
    types.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

fn listed(types: &Types) -> String {
    let cells: Vec<String> = types.iter().map(|(slot, types)| format!("{slot} {types}")).collect();
    cells.join(", ")
}

/// The requested set against the closest supported one, and the first tensor that differs.
pub fn sentence(sets: &Sets) -> (String, Option<Slot>) {
    let asked = listed(&sets.requested);
    let Some((name, types, differing)) = sets.nearest() else {
        return (format!("datatypes not taken: {asked}"), None);
    };
    let nearest: Types = types
        .iter()
        .filter(|(slot, _)| sets.requested.contains_key(slot))
        .map(|(slot, types)| (*slot, types.clone()))
        .collect();
    let text = format!("datatypes not taken: {asked}; nearest that is ({name}): {}", listed(&nearest));
    (text, differing.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    // As QAIRT 2.47 prints them for an int32 convolution, shortened.
    const INT_CONV: &str = include_str!("../../../tests/data/run-logs/op-3110-int32-conv-htp-error.log");

    fn cleaned(log: &str) -> Vec<String> {
        log.lines().map(|line| line.rsplit("<E>").next().unwrap_or(line).trim().to_owned()).collect()
    }

    #[test]
    fn a_real_log_is_read_whole() {
        let log = cleaned(INT_CONV);
        let lines: Vec<&str> = log.iter().map(String::as_str).collect();
        let sets = Sets::read(&lines).unwrap();
        assert_eq!(listed(&sets.requested), "in[0] int32, in[1] int32, out[0] int32");
        assert_eq!(sets.supported.len(), 1 + 3 + 9 + 8);
        let (text, slot) = sentence(&sets);
        assert_eq!(slot, Some(Slot::In(0)));
        assert!(text.ends_with("(INT8): in[0] ufixed8, in[1] ufixed8, out[0] ufixed8"), "{text}");
    }

    #[test]
    fn one_wrong_tensor_is_found_by_the_nearest_set() {
        let text = INT_CONV
            .replacen("in[0]:QNN_DATATYPE_INT_32", "in[0]:QNN_DATATYPE_UFIXED_POINT_16", 1)
            .replacen("in[1]:QNN_DATATYPE_INT_32", "in[1]:QNN_DATATYPE_FLOAT_32", 1)
            .replacen("out[0]:QNN_DATATYPE_INT_32", "out[0]:QNN_DATATYPE_UFIXED_POINT_16", 1);
        let log = cleaned(&text);
        let lines: Vec<&str> = log.iter().map(String::as_str).collect();
        let (text, slot) = sentence(&Sets::read(&lines).unwrap());
        assert_eq!(slot, Some(Slot::In(1)), "{text}");
        assert!(text.contains("in[1] float32") && text.contains("(INT16)"), "{text}");
    }

    #[test]
    fn other_texts_are_no_sets() {
        assert_eq!(Sets::read(&["in[0]:QNN_DATATYPE_INT_32", "[1] has incorrect Rank 6."]), None);
        assert_eq!(Sets::read(&["Requested I/O datatype set:", "in[x]:", "in[", "out]:1"]), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_strange(lines in proptest::collection::vec("(Requested I/O datatype set:|[a-z\\[\\]:0-9 _]{0,20}|1:|in\\[0\\]:QNN_DATATYPE_X|datatype sets for the configuration: \\PC{0,5})", 0..30)) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            if let Some(sets) = Sets::read(&lines) {
                sentence(&sets);
            }
        }
    }
}

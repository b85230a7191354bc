//! The rules, as data: `catalogue/*.toml`, embedded.

use super::rule::Rule;
use serde::Deserialize;
use std::sync::LazyLock;

/// One catalogue file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rule: Vec<Rule>,
}

const FILES: [&str; 7] = [
    include_str!("catalogue/measurement.toml"),
    include_str!("catalogue/power.toml"),
    include_str!("catalogue/structure.toml"),
    include_str!("catalogue/precision.toml"),
    include_str!("catalogue/memory.toml"),
    include_str!("catalogue/runtime.toml"),
    include_str!("catalogue/gpu-cpu.toml"),
];

// A file that does not parse is a defect that the tests catch; at run time its rules would be missing.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    FILES.iter().filter_map(|text| toml::from_str::<File>(text).ok()).flat_map(|file| file.rule).collect()
});

/// All rules, by area.
pub fn rules() -> &'static [Rule] {
    &RULES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::rules::rule::{OpTest, When};
    use std::collections::BTreeSet;

    #[test]
    fn every_file_parses() {
        for text in FILES {
            toml::from_str::<File>(text).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn words_that_do_not_exist_are_errors() {
        let good = r#"
            [[rule]]
            id = "x"
            title = "t"
            backends = ["htp"]
            on-simulator = true
            do = "d"
            why = "w"
            effort = "model"
            source = "s"
            [[rule.layers]]
            kind = ["Conv", "any data mover"]
            is = ["at-the-input"]
            measure.share = { above = 0.1 }
        "#;
        toml::from_str::<File>(good).unwrap();
        for (word, other) in [
            ("why", "because"),
            ("Conv", "Convolution"),
            ("any data mover", "any mover"),
            ("at-the-input", "at-the-start"),
            ("measure.share", "measure.part"),
            ("above", "over"),
            ("htp", "npu"),
            ("is =", "are ="),
            ("\"model\"", "\"huge\""),
        ] {
            let bad = good.replacen(word, other, 1);
            assert!(bad != good && toml::from_str::<File>(&bad).is_err(), "{other} is read");
        }
    }

    /// All op tests of a rule, and whether each is in a place where a chain may begin.
    fn op_tests<'r>(test: &'r OpTest, top: bool, found: &mut Vec<(&'r OpTest, bool)>) {
        found.push((test, top));
        for inner in test.reads.iter().chain(&test.read_by) {
            op_tests(inner, false, found);
        }
        for step in &test.then {
            op_tests(step, false, found);
        }
    }

    fn whens<'r>(when: &'r When, found: &mut Vec<&'r When>) {
        found.push(when);
        for inner in &when.any {
            whens(inner, found);
        }
    }

    #[test]
    fn every_rule_is_whole() {
        let ids: BTreeSet<&str> = rules().iter().map(|rule| rule.id.as_str()).collect();
        assert_eq!(ids.len(), rules().len(), "an id stands twice");
        assert!(rules().len() >= 30);
        for rule in rules() {
            let id = &rule.id;
            assert!(id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{id}");
            for text in [&rule.title, &rule.action, &rule.why, &rule.source] {
                assert!(!text.trim().is_empty() && *text == text.trim() && !text.contains('\n'), "{id}: {text:?}");
            }
            assert!(!rule.backends.is_empty(), "{id}");
            let mut tests = Vec::new();
            rule.layers.iter().for_each(|test| op_tests(test, true, &mut tests));
            let mut parts = Vec::new();
            whens(&rule.when, &mut parts);
            for others in parts.iter().flat_map(|when| &when.layers) {
                op_tests(&others.which, false, &mut tests);
                assert!(!others.together.count.is_empty() || !others.together.share.is_empty(), "{id} asks nothing");
            }
            for (test, top) in tests {
                assert!(top || test.then.is_empty(), "{id}: a chain begins within a test");
                assert!(!test.kind.0.is_empty() || !test.is.is_empty() || !test.measure.is_empty(), "{id}: any op");
                assert!(test.measure.values().all(|range| !range.is_empty()), "{id} sets no limit");
            }
            assert!(parts.iter().all(|when| when.figure.values().all(|range| !range.is_empty())), "{id} sets no limit");
            let observed = |when: &&When| !when.is.is_empty() || !when.figure.is_empty() || !when.layers.is_empty();
            assert!(!rule.layers.is_empty() || parts.iter().any(observed), "{id} observes nothing");
            if let Some(gain) = rule.gain {
                let [low, high] = gain.part;
                assert!(0.0 <= low && low <= high && high <= 1.0, "{id}");
                assert!(gain.by.is_none_or(super::super::measure::Measure::is_share), "{id}");
            }
        }
    }
}

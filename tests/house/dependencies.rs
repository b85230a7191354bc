//! Checks licences and sources of all dependencies against `deny.toml` without cargo-deny, which checks more
//! closely (`./deny.sh`) but is not installed everywhere.

use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

fn rules() -> toml::Table {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/deny.toml");
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

fn texts<'a>(rules: &'a toml::Table, table: &str, key: &str) -> BTreeSet<&'a str> {
    rules[table][key].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// Additional licences allowed for a single crate.
fn exceptions<'a>(rules: &'a toml::Table, name: &str) -> BTreeSet<&'a str> {
    let all = rules["licenses"]["exceptions"].as_array().unwrap();
    let own = all.iter().filter(|exception| exception["crate"].as_str() == Some(name));
    own.flat_map(|exception| exception["allow"].as_array().unwrap()).map(|text| text.as_str().unwrap()).collect()
}

/// Every package in Cargo.lock, for every platform.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--format-version", "1", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\npackages of other platforms are missing: cargo fetch --locked");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["packages"].as_array().unwrap().clone()
}

/// Whether the allowed licences satisfy an SPDX expression. Old manifests write `/` for `OR`.
fn is_met(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = either(&words, &mut at, allowed);
    assert_eq!(at, words.len(), "`{expression}` is understood to its end");
    met
}

fn either(words: &[&str], at: &mut usize, allowed: &BTreeSet<&str>) -> bool {
    let mut met = both(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= both(words, at, allowed);
    }
    met
}

fn both(words: &[&str], at: &mut usize, allowed: &BTreeSet<&str>) -> bool {
    let mut met = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, allowed);
    }
    met
}

fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<&str>) -> bool {
    let word = words[*at];
    *at += 1;
    if word == "(" {
        let met = either(words, at, allowed);
        assert_eq!(words[*at], ")");
        *at += 1;
        return met;
    }
    if words.get(*at) == Some(&"WITH") {
        let licence = format!("{word} WITH {}", words[*at + 1]);
        *at += 2;
        return allowed.contains(licence.as_str());
    }
    allowed.contains(word)
}

#[test]
fn expressions_are_read_as_spdx_says() {
    let allowed = BTreeSet::from(["MIT", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"]);
    for met in
        ["MIT", "GPL-3.0/MIT", "GPL-3.0 OR MIT", "Apache-2.0 WITH LLVM-exception", "(GPL-3.0 OR MIT) AND Unicode-3.0"]
    {
        assert!(is_met(met, &allowed), "{met}");
    }
    for unmet in ["GPL-3.0", "Apache-2.0", "MIT AND GPL-3.0", "(MIT OR GPL-3.0) AND GPL-2.0"] {
        assert!(!is_met(unmet, &allowed), "{unmet}");
    }
}

#[test]
fn dependencies_keep_to_the_licences_and_sources_of_deny_toml() {
    let rules = rules();
    let allowed = texts(&rules, "licenses", "allow");
    let registries = texts(&rules, "sources", "allow-registry");
    let packages = packages();
    assert!(packages.len() > 100);
    for package in &packages {
        let name = format!("{} {}", package["name"], package["version"]);
        let licence = package["license"].as_str().unwrap_or_else(|| panic!("{name} names no licence"));
        let besides = exceptions(&rules, package["name"].as_str().unwrap());
        assert!(
            is_met(licence, &allowed.union(&besides).copied().collect()),
            "{name} is under {licence}, which deny.toml does not allow"
        );
        // Our own packages have no source.
        if let Some(source) = package["source"].as_str() {
            let registry = source.strip_prefix("registry+").unwrap_or(source);
            assert!(registries.contains(registry), "{name} comes from {source}");
        }
    }
    for exception in rules["licenses"]["exceptions"].as_array().unwrap() {
        let name = exception["crate"].as_str().unwrap();
        assert!(
            packages.iter().any(|package| package["name"] == name),
            "{name} is no dependency any more: take it out"
        );
    }
    let met: Vec<&str> = packages.iter().filter_map(|package| package["license"].as_str()).collect();
    for licence in allowed {
        assert!(met.iter().any(|text| text.contains(licence)), "nothing is under {licence} any more: take it out");
    }
}

//! Modules that import each other in a circle: none of them can be understood, tested or moved without the
//! others.
//!
//! A module and those inside it count as one and may use each other. Comments and tests do not count.

use crate::shape::{packages, root, rust_files};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Folders that still have circles in them. Remove one when its last circle is gone.
const KNOWN: [&str; 2] = ["crates/qnnscope-qnn/src/api", "crates/qnnscope-qnn/src/tap"];

/// A path, split into names: `crate::a::b` without its `crate`.
type Names = Vec<String>;

fn names(path: &str) -> Names {
    path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The code of a file, without comments and without the tests at its end.
fn code(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().take_while(|line| *line != "mod tests {").filter(|line| !line.trim().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths that `a::{b, c::{d, e}}` stands for.
fn expanded(tree: &str) -> Vec<String> {
    let Some((before, rest)) = tree.split_once('{') else {
        return vec![tree.split_whitespace().next().unwrap_or_default().to_owned()];
    };
    let body = rest.rsplit_once('}').unwrap().0;
    let mut depth = 0;
    let parts = body.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let parts = parts.map(str::trim).filter(|part| !part.is_empty());
    parts.flat_map(|part| expanded(&format!("{}{part}", before.trim()))).collect()
}

/// A module: what it imports or names, and what it re-exports under another path.
#[derive(Default)]
struct Module {
    paths: Vec<Names>,
    reexports: BTreeMap<String, Names>,
}

/// The path from the crate's root of a path written in `module`.
fn absolute(module: &Names, path: &str) -> Names {
    let path = names(path);
    match path[0].as_str() {
        "crate" => path[1..].to_vec(),
        "self" => [module, &path[1..]].concat(),
        "super" => {
            let up = path.iter().take_while(|name| *name == "super").count();
            [&module[..module.len().saturating_sub(up)], &path[up..]].concat()
        }
        // A crate, or a module within this one.
        _ => [&module[..], &path].concat(),
    }
}

impl Module {
    fn new(name: &Names, code: &str) -> Self {
        let mut module = Self::default();
        let mut rest = String::new();
        let mut lines = code.lines();
        while let Some(line) = lines.next() {
            let (visibility, item) = line.trim().split_at(line.trim().find("use ").unwrap_or(0));
            let is_public = visibility.starts_with("pub");
            if !item.starts_with("use ") || !(visibility.is_empty() || is_public && visibility.ends_with(' ')) {
                rest.push_str(line);
                rest.push('\n');
                continue;
            }
            let mut tree = item["use ".len()..].to_owned();
            while !tree.contains(';') {
                let Some(line) = lines.next() else { break };
                tree.push_str(line.trim());
            }
            // A line of a text may begin like this too.
            let is_import = |c: char| c.is_alphanumeric() || "_:{}, *".contains(c);
            let Some(tree) = tree.strip_suffix(';').filter(|tree| tree.chars().all(is_import)) else { continue };
            for path in expanded(tree) {
                let path = absolute(name, &path);
                if let Some(last) = path.last().filter(|_| is_public) {
                    module.reexports.insert(last.clone(), path.clone());
                }
                module.paths.push(path);
            }
        }
        let words = rest.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        let written = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
        module.paths.extend(written.map(|word| absolute(name, word)));
        module
    }
}

/// The module that defines the thing at this path, behind all re-exports.
fn home(modules: &BTreeMap<Names, Module>, path: &[String], handed_on: usize) -> Option<Names> {
    let length = (1..=path.len()).rev().find(|length| modules.contains_key(&path[..*length]))?;
    let (module, rest) = path.split_at(length);
    let elsewhere = rest.first().and_then(|name| modules[module].reexports.get(name));
    let elsewhere = elsewhere.filter(|other| other[..] != *path && handed_on < 8);
    elsewhere.and_then(|other| home(modules, other, handed_on + 1)).or_else(|| Some(module.to_vec()))
}

/// The modules of a package, by path.
fn modules(source: &Path) -> BTreeMap<Names, Module> {
    let mut modules = BTreeMap::new();
    for file in rust_files(source) {
        let path = file.strip_prefix(source).unwrap().with_extension("");
        let mut name: Names = path.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        name.pop_if(|last| last == "mod");
        let is_test = name.iter().any(|part| part == "tests" || part == "testing" || part.ends_with("_tests"));
        if !is_test && !["lib", "main"].contains(&name[0].as_str()) {
            let module = Module::new(&name, &code(&file));
            modules.insert(name, module);
        }
    }
    modules
}

/// What each module uses of the others, except for the modules around it and inside it.
fn uses(modules: &BTreeMap<Names, Module>) -> BTreeMap<Names, BTreeSet<Names>> {
    let of = |(name, module): (&Names, &Module)| {
        let used = module.paths.iter().filter_map(|path| home(modules, path, 0));
        let others = used.filter(|other| !other.starts_with(name) && !name.starts_with(other));
        (name.clone(), others.collect())
    };
    modules.iter().map(of).collect()
}

/// The groups of modules that lead back to themselves, each with what its modules use of one another.
fn circles(uses: &BTreeMap<Names, BTreeSet<Names>>) -> Vec<Vec<(&Names, Vec<&Names>)>> {
    let reached = |from: &Names| {
        let mut seen: BTreeSet<&Names> = BTreeSet::new();
        let mut next: Vec<&Names> = uses[from].iter().collect();
        while let Some(module) = next.pop() {
            if seen.insert(module) {
                next.extend(&uses[module]);
            }
        }
        seen
    };
    let reach: BTreeMap<&Names, BTreeSet<&Names>> = uses.keys().map(|module| (module, reached(module))).collect();
    let group = |module: &Names| -> Vec<&Names> {
        let both = |other: &&&Names| reach[**other].contains(module);
        reach[module].iter().filter(both).copied().collect()
    };
    let groups: BTreeSet<Vec<&Names>> = uses.keys().map(group).filter(|group| !group.is_empty()).collect();
    let mut circles = Vec::new();
    for group in groups {
        let used = |module: &Names| uses[module].iter().filter(|other| group.contains(other)).collect();
        circles.push(group.iter().map(|module| (*module, used(module))).collect());
    }
    circles
}

/// A circle, described in a few lines.
fn told(circle: &[(&Names, Vec<&Names>)]) -> String {
    let row = |(module, used): &(&Names, Vec<&Names>)| {
        let used: Vec<String> = used.iter().map(|other| other.join("::")).collect();
        format!("    {} uses {}", module.join("::"), used.join(", "))
    };
    circle.iter().map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let mut found = Vec::new();
    let mut met = BTreeSet::new();
    for package in std::iter::once(root().to_owned()).chain(packages()) {
        let source = package.join("src");
        for circle in circles(&uses(&modules(&source))) {
            let within = |known: &&&str| circle.iter().all(|(module, _)| source.join(&module[0]) == root().join(known));
            match KNOWN.iter().find(within) {
                Some(folder) => drop(met.insert(*folder)),
                None => found.push(told(&circle)),
            }
        }
    }
    let help = "move what they share below them, or hand it in from above";
    assert!(found.is_empty(), "modules import each other in a circle: {help}\n{}", found.join("\n\n"));
    for folder in KNOWN {
        assert!(met.contains(folder), "{folder} has no circle any more: take it out of KNOWN");
    }
}

#[test]
fn a_circle_is_seen_through_reexports_and_without_comments() {
    let of = |files: &[(&str, &str)]| {
        let modules: BTreeMap<Names, Module> =
            files.iter().map(|(name, code)| (names(name), Module::new(&names(name), code))).collect();
        let uses = uses(&modules);
        circles(&uses).iter().map(|circle| told(circle)).collect::<Vec<_>>()
    };
    let handing_on = ("a", "pub use inner::{Thing, other::{One,\n Two}};");
    let inner = ("a::inner", "use crate::b::Part;");
    assert_eq!(of(&[handing_on, inner, ("b", "use crate::a::Thing;")]), ["    a::inner uses b\n    b uses a::inner"]);
    assert_eq!(of(&[handing_on, inner, ("b", "fn f() { super::a::Thing::new() }")]).len(), 1);
    // Within one module, and one way only.
    assert_eq!(of(&[("a", "use inner::Thing;"), ("a::inner", "use super::Other;")]), [""; 0]);
    assert_eq!(of(&[handing_on, inner, ("b", "use std::fmt;")]), [""; 0]);
}

//! The shape of the source tree: what the compiler accepts but a reader would stumble over.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Rust files below a folder.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    files
}

pub fn packages() -> Vec<PathBuf> {
    let mut packages: Vec<PathBuf> =
        std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    packages.sort();
    packages
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// The modules that `mod name;` declares in a file, and the files that `#[path]` names.
fn declared(file: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(file).unwrap();
    let stem = file.file_stem().unwrap().to_str().unwrap();
    let folder = file.parent().unwrap();
    // The modules of `a/b.rs` are in `a/b/`, but those of `mod.rs`, `lib.rs` and `main.rs` are beside them.
    let home = if ["mod", "lib", "main"].contains(&stem) { folder.to_owned() } else { folder.join(stem) };
    let mut files = Vec::new();
    let mut named = None;
    for line in text.lines().map(str::trim) {
        if let Some(path) = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]")) {
            named = Some(folder.join(path));
            continue;
        }
        let item = line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ").trim_start_matches("pub ");
        let Some(name) = item.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) else { continue };
        files.extend(named.take().or_else(|| {
            [home.join(format!("{name}.rs")), home.join(name).join("mod.rs")].into_iter().find(|path| path.exists())
        }));
    }
    files
}

/// Files reachable from a crate's root by `mod`.
fn reached(entry: &Path, seen: &mut BTreeSet<PathBuf>) {
    if seen.insert(entry.to_owned()) {
        for file in declared(entry) {
            reached(&file, seen);
        }
    }
}

#[test]
fn every_source_file_is_compiled() {
    let mut unreached = Vec::new();
    for package in std::iter::once(root().to_owned()).chain(packages()) {
        let source = package.join("src");
        let mut seen = BTreeSet::new();
        for entry in ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().filter(|path| path.exists()) {
            reached(&entry, &mut seen);
        }
        assert!(seen.len() > 1, "{} has modules", shown(&source));
        unreached.extend(rust_files(&source).into_iter().filter(|file| !seen.contains(file)).map(|file| shown(&file)));
    }
    assert!(unreached.is_empty(), "no `mod` reaches {unreached:?}: delete them or declare them");
}

/// The lint table of a package: its own, or the workspace's.
fn unsafe_lint(manifest: &toml::Table) -> Option<String> {
    let table = |value: Option<&toml::Value>| value.and_then(toml::Value::as_table).cloned();
    let mut lints = table(manifest.get("lints"))?;
    if lints.get("workspace").and_then(toml::Value::as_bool) == Some(true) {
        let workspace: toml::Table =
            std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse::<toml::Table>().unwrap();
        lints = table(table(workspace.get("workspace"))?.get("lints"))?;
    }
    table(lints.get("rust"))?.get("unsafe_code")?.as_str().map(str::to_owned)
}

#[test]
fn one_package_has_unsafe_code_and_the_base_imports_nothing() {
    for package in std::iter::once(root().to_owned()).chain(packages()) {
        let name = if package == root() { "qnnscope" } else { package.file_name().unwrap().to_str().unwrap() };
        let manifest: toml::Table =
            std::fs::read_to_string(package.join("Cargo.toml")).unwrap().parse::<toml::Table>().unwrap();
        let expected = if ["qnnscope-qnn", "qnnscope-tap"].contains(&name) { "deny" } else { "forbid" };
        assert_eq!(unsafe_lint(&manifest).as_deref(), Some(expected), "{name}");
        // Dependencies of single systems are below `target`.
        let own: Vec<&str> = manifest
            .get("dependencies")
            .and_then(toml::Value::as_table)
            .into_iter()
            .flat_map(toml::Table::keys)
            .map(String::as_str)
            .filter(|dependency| dependency.starts_with("qnn"))
            .collect();
        match name {
            "qnnscope-core" => assert_eq!(own, [""; 0], "the base imports nothing upward"),
            "qnnscope-qnn" | "qnn-profile-log" => assert_eq!(own, ["qnnscope-core"], "{name}"),
            _ => {}
        }
    }
}

/// Which folders of `src` must not refer to which others. Drivers run models; layers above them know what a
/// failure means.
const NOT_ABOVE: &[(&str, &[&str])] = &[
    ("backends", &["analysis", "app", "checks", "cli", "diagnosis", "doctor", "report", "run"]),
    ("devices", &["analysis", "app", "backends", "checks", "cli", "diagnosis", "doctor", "report", "run"]),
    ("tap", &["analysis", "app", "checks", "cli", "diagnosis", "doctor", "report", "run"]),
    ("session", &["analysis", "app", "backends", "checks", "cli", "diagnosis", "doctor", "report", "run"]),
    ("imports", &["analysis", "app", "checks", "cli", "diagnosis", "doctor", "report", "run"]),
    ("store", &["analysis", "app", "checks", "cli", "diagnosis", "doctor", "probes", "report", "run", "session"]),
    ("files", &["analysis", "app", "backends", "cli", "devices", "models", "report", "run", "session", "store"]),
    ("facts", &["analysis", "app", "backends", "checks", "cli", "models", "report", "run", "session", "store"]),
    ("history", &["app", "cli", "doctor", "report", "run"]),
    ("accuracy", &["app", "cli", "doctor", "report", "run", "truth"]),
    ("analysis", &["app", "checks", "cli", "doctor", "probes", "report", "run"]),
];

#[test]
fn lower_folders_do_not_import_upper_ones() {
    let mut found = Vec::new();
    for (folder, forbidden) in NOT_ABOVE {
        let is_test = |file: &Path| file.components().any(|part| part.as_os_str() == "tests");
        for file in rust_files(&root().join("src").join(folder)).into_iter().filter(|file| !is_test(file)) {
            for (number, line) in std::fs::read_to_string(&file).unwrap().lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                let hit = forbidden.iter().any(|name| code.contains(&format!("crate::{name}::")));
                if hit {
                    found.push(format!("{}:{}: {}", shown(&file), number + 1, line.trim()));
                }
            }
        }
    }
    assert!(found.is_empty(), "imports against the direction of docs/architecture.md:\n{}", found.join("\n"));
}

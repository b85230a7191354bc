//! `docs/counters.md` matches the catalogue.

use qnnscope::probes::{Cadence, rows};
use std::fmt::Write;

fn table() -> String {
    let mut text = String::from("| id | what | unit | read | where |\n|---|---|---|---|---|\n");
    for row in rows() {
        let read = match row.cadence {
            Cadence::Fast => "every tick",
            Cadence::Tenth => "10 Hz",
            Cadence::Second => "1 Hz",
            Cadence::Slow => "apart",
        };
        let id = if row.each || row.clusters.is_some() { format!("`{}.*`", row.id) } else { format!("`{}`", row.id) };
        let mut about = row.about.clone();
        if !row.names.is_empty() {
            about = format!("{about} Of the type {}.", row.names.join(", ").replace('*', "…"));
        }
        if let Some(other) = &row.instead_of {
            about = format!("{about} Used where `{other}` cannot be read.");
        }
        if row.root {
            about.push_str(" Needs root.");
        }
        if !row.chosen {
            about.push_str(" Sampled only on request.");
        }
        let paths: Vec<String> = row
            .paths
            .iter()
            .map(|path| format!("`{}`", path.replacen(':', " ", usize::from(path.starts_with("dumpsys:")))))
            .collect();
        writeln!(text, "| {id} | {}: {about} | {} | {read} | {} |", row.label, row.unit, paths.join(" ")).unwrap();
    }
    text
}

#[test]
fn the_reference_is_the_catalogue() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/counters.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let expected = table();
    if !document.contains(&expected) {
        let new = std::env::temp_dir().join("qnnscope-counters-table.md");
        std::fs::write(&new, &expected).unwrap();
        panic!("the table of {} is not the catalogue's; the right one is in {}", path.display(), new.display());
    }
}

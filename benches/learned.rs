//! Learns from the known logs which words at a log's end go with which cause, and measures that on logs of other projects.
//! `UPDATE_DOCS=1 cargo bench --bench learned` writes `src/diagnosis/learned/weights.tsv` and the figures of
//! `docs/diagnosis.md`; without it, nothing is written.

#![allow(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "it prints, and fails by panicking"
)]

#[path = "../tests/support/examples.rs"]
mod examples;
#[path = "../tests/support/logs.rs"]
mod logs;
#[path = "learned/train.rs"]
mod train;

use examples::{Example, digest, known};
use logs::Known;
use qnnscope::diagnosis::Diagnoser;
use qnnscope::diagnosis::learned::{NONE, Reader};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use train::train;

/// Parts of the logs, each of which is read by what the others teach. All logs of a project are in one.
const PARTS: usize = 5;

fn main() {
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let known = known();
    let examples: Vec<Example> = known.iter().map(Example::of).collect();
    let figures = measure(&known, &examples);
    println!("{figures}");
    if std::env::var_os("UPDATE_DOCS").is_none() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let weights = train(&examples.iter().collect::<Vec<_>>());
    let text = format!("{}\n{weights}", digest(&examples));
    std::fs::write(root.join("src/diagnosis/learned/weights.tsv"), text).expect("the weights are written");
    let docs = root.join("docs/diagnosis.md");
    let text = std::fs::read_to_string(&docs).expect("the documentation is there");
    let (begin, end) = ("<!-- figures of benches/learned.rs -->\n", "<!-- end of learned figures -->\n");
    let (before, rest) = text.split_once(begin).expect("the documentation has the figures");
    let (_, after) = rest.split_once(end).expect("the figures end");
    std::fs::write(&docs, format!("{before}{begin}{figures}{end}{after}")).expect("the documentation is written");
}

/// The project of a log; those of one maker of logs are one: `a8-H-n-few` and `H-n-many` are of maker H.
fn project(known: &Known) -> &str {
    if !known.project.starts_with("made") {
        return &known.project;
    }
    let is_year =
        |part: &&str| part.len() == 2 && part.starts_with('a') && part.ends_with(|c: char| c.is_ascii_digit());
    known.name.split('-').find(|part| !is_year(part)).unwrap_or_default()
}

/// What the causes of a log are worth.
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    right: usize,
    wrong: usize,
    silent: usize,
}

impl Score {
    fn note(&mut self, known: &Known, reader: Option<&'static Reader>) {
        let mut diagnoser = Diagnoser::new();
        diagnoser.taught_by(reader);
        if let Some(status) = known.exit_status {
            diagnoser.exit_status(status);
        }
        diagnoser.feed(known.log.as_bytes());
        match diagnoser.finish().causes.first() {
            None => self.silent += 1,
            Some(first) if known.right.iter().any(|id| id == first.id || first.cause().aliases.contains(id)) => {
                self.right += 1;
            }
            Some(_) => self.wrong += 1,
        }
    }
}

/// How well the rules do on known logs, alone and beside what the logs of other projects taught.
fn measure(known: &[Known], examples: &[Example]) -> String {
    let mut parts: BTreeMap<&str, usize> = BTreeMap::new();
    for known in known {
        let next = parts.len() % PARTS;
        parts.entry(project(known)).or_insert(next);
    }
    // Of failures and of other logs; by the rules alone, and beside what was learned.
    let mut scores = [[Score::default(); 2]; 2];
    for part in 0..PARTS {
        let is_of_part = |at: &usize| parts[project(&known[*at])] == part;
        let others: Vec<&Example> = (0..known.len()).filter(|at| !is_of_part(at)).map(|at| &examples[at]).collect();
        let text: &'static str = Box::leak(train(&others).into_boxed_str());
        let reader: &'static Reader = Box::leak(Box::new(Reader::of(text).expect("the weights are whole")));
        for at in (0..known.len()).filter(is_of_part) {
            let of = &mut scores[usize::from(examples[at].cause == NONE)];
            of[0].note(&known[at], None);
            of[1].note(&known[at], Some(reader));
        }
    }
    let mut table = String::from(
        "| known logs | right first, rules alone | beside words of other projects' logs | another cause, rules alone | beside words | no cause, rules alone | beside words |\n|---|---|---|---|---|---|---|\n",
    );
    for (what, [alone, beside]) in ["failures", "good runs, and failures of nothing known"].iter().zip(scores) {
        let all = alone.right + alone.wrong + alone.silent;
        writeln!(
            table,
            "| {all} {what} | {} | {} | {} | {} | {} | {} |",
            alone.right, beside.right, alone.wrong, beside.wrong, alone.silent, beside.silent
        )
        .expect("text takes lines");
    }
    table
}

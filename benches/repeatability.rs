//! How often intervals of launches contain the true value and verdicts are right, on simulated machines:
//! prints the rates given in docs/repeatability.md.

#[path = "../tests/support/launches.rs"]
mod launches;

use launches::{Machine, eight_runs, rates};

/// Number of pairs of runs, and of machines with eight runs each: for `cargo bench`, and for `cargo test
/// --bench`, which only checks that it works.
const MANY: (u32, u32) = (4000, 400);
const FEW: (u32, u32) = (40, 4);

const ALL: [(&str, Machine); 12] = [
    ("normal 0.2 %", Machine::Normal(0.002)),
    ("normal 1 %", Machine::Normal(0.01)),
    ("normal 2 %", Machine::Normal(0.02)),
    ("normal 5 %", Machine::Normal(0.05)),
    ("lognormal inferences, 2 %", Machine::Lognormal(0.02)),
    ("heavy tails, 2 %", Machine::HeavyTails(0.02)),
    ("two levels, 1 in 2 slow", Machine::TwoLevels(0.5)),
    ("two levels, 1 in 4 slow", Machine::TwoLevels(0.25)),
    ("drift of 5 %, 2 %", Machine::Drift(0.02, 0.05)),
    ("two levels by chance, sides in turns", Machine::Levels(0.5)),
    ("spells 1.5 times as slow, 2 %", Machine::Spells(0.02, 1.5)),
    ("spells 3 times as slow, 2 %", Machine::Spells(0.02, 3.0)),
];

fn main() {
    let (runs, machines) = if std::env::args().any(|arg| arg == "--bench") { MANY } else { FEW };
    println!("per cent of {runs} pairs of runs with default settings; columns p50, p95, mean where there are three");
    println!(
        "{:<30} {:>8} {:>17} {:>17} {:>6} {:>6} {:>6} {:>9}",
        "launches vary by", "launches", "interval holds", "difference holds", "A/A", "+10 %", "+30 %", "of 28"
    );
    for (name, machine) in ALL {
        let rates = rates(machine, runs, 1);
        let three = |of: [f64; 3]| of.map(|rate| format!("{rate:5.1}")).join(" ");
        let (pairs, many) = eight_runs(machine, machines, 2);
        println!(
            "{name:<30} {:>8.1} {} {} {:>6.1} {:>6.1} {:>6.1} {pairs:>4.2}, {many:.0} %",
            rates.launches,
            three(rates.covered),
            three(rates.difference_covered),
            rates.called_different,
            rates.found_10,
            rates.found_30,
        );
    }
    println!("A/A: equal sides called different. of 28: pairs of eight equal runs called different, and runs of eight");
    println!("where more than two are.");
}

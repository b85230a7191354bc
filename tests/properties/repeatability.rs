//! Intervals and verdicts of launches, compared with simulated machines whose true values are known. `cargo
//! bench --bench repeatability` prints the rates of more attempts.

use crate::launches::{Machine, Rates, eight_runs, rates};

const PAIRS: u32 = 500;
/// Number of pairs where runs have many launches.
const FEW_PAIRS: u32 = 300;

/// Intervals of one run and of differences contain the truth in 92 to 98 of 100 cases, and equal sides are
/// called different in at most 5.
#[track_caller]
fn holds(machine: Machine, rates: &Rates) {
    for covered in rates.covered.into_iter().chain(rates.difference_covered) {
        assert!((92.0..=98.0).contains(&covered), "{machine:?}: {rates:?}");
    }
    assert!(rates.called_different <= 5.0, "{machine:?}: {rates:?}");
    assert!((3.0..=60.0).contains(&rates.launches), "{machine:?}: {rates:?}");
}

#[test]
fn a_usual_machine_tells_ten_percent_and_its_intervals_hold() {
    for deviation in [0.01, 0.02] {
        let machine = Machine::Normal(deviation);
        let rates = rates(machine, PAIRS, 1);
        holds(machine, &rates);
        assert!(rates.found_10 >= 99.0 && rates.found_30 > 99.99, "{machine:?}: {rates:?}");
    }
}

#[test]
fn a_restless_machine_makes_more_launches_and_still_tells_ten_percent() {
    let machine = Machine::Normal(0.05);
    let rates = rates(machine, PAIRS, 2);
    holds(machine, &rates);
    assert!(rates.launches > 9.0 && rates.found_10 >= 90.0 && rates.found_30 > 99.99, "{rates:?}");
}

#[test]
fn intervals_hold_for_skewed_latencies_and_heavy_tails() {
    for machine in [Machine::Lognormal(0.02), Machine::HeavyTails(0.02)] {
        let rates = rates(machine, 2 * PAIRS, 3);
        holds(machine, &rates);
        assert!(rates.found_30 > 99.0, "{machine:?}: {rates:?}");
    }
}

#[test]
fn separate_runs_whose_launches_are_on_two_levels_are_hardly_ever_told_apart() {
    for (machine, seed) in [(Machine::TwoLevels(0.5), 4), (Machine::TwoLevels(0.25), 5)] {
        let seen = rates(machine, FEW_PAIRS, seed);
        assert!(seen.called_different <= 1.0, "{machine:?}: {seen:?}");
        assert!(seen.difference_covered.iter().all(|covered| *covered >= 92.0), "{machine:?}: {seen:?}");
    }
    // A slow level that one launch in four meets is hardly ever missed by all of a run's first launches.
    let rare = rates(Machine::TwoLevels(0.25), PAIRS, 5);
    assert!(rare.covered[0] >= 90.0, "{rare:?}");
}

#[test]
fn drift_that_sides_share_because_they_take_turns_is_no_difference() {
    let machine = Machine::Drift(0.02, 0.05);
    let rates = rates(machine, PAIRS, 6);
    assert!(rates.called_different <= 5.0 && rates.found_10 >= 90.0, "{rates:?}");
    assert!(rates.difference_covered.iter().all(|covered| *covered >= 92.0), "{rates:?}");
}

#[test]
fn spells_that_fall_on_neighbours_hide_no_difference() {
    for (machine, seed) in
        [(Machine::Spells(0.02, 1.5), 8), (Machine::Spells(0.02, 3.0), 9), (Machine::Levels(0.5), 10)]
    {
        let seen = rates(machine, FEW_PAIRS, seed);
        assert!(
            seen.called_different <= 5.0 && seen.found_10 >= 98.0 && seen.found_30 >= 98.0,
            "{machine:?}: {seen:?}"
        );
        assert!(seen.difference_covered.iter().all(|covered| *covered >= 92.0), "{machine:?}: {seen:?}");
    }
}

#[test]
fn of_the_28_pairs_of_eight_equal_runs_less_than_one_is_called_different() {
    for machine in [Machine::Normal(0.02), Machine::TwoLevels(0.5)] {
        let (pairs, many) = eight_runs(machine, 50, 7);
        assert!(pairs < 1.0 && many <= 12.0, "{machine:?}: {pairs} of 28 pairs; more than two in {many} %");
    }
}

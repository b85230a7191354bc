//! How many launches a run has when the command line does not say, and what a number of them has to go with.

use super::CliError;
use super::modes::ModeOptions;
use crate::event::{Budget, Launches};

/// Launches when nothing is said: the fewest whose differences say something.
const PLANNED: u32 = 3;
/// Launches that there may be when they disagree.
const MOST: u32 = 10;
/// Inferences that a launch should have, for a median that is not chance.
const INFERENCES: u64 = 10;
/// Time that a launch should have for the same, seconds.
const SECONDS: f64 = 0.1;

/// The launches of runs with this budget.
pub fn plan(options: &ModeOptions, budget: Budget, seed: u64) -> Result<Launches, CliError> {
    if let Some(asked) = options.launches {
        return match budget {
            Budget::Iterations(all) if all < u64::from(asked) => Err(CliError::Usage(format!(
                "--launches {asked}: {all} inferences cannot be shared by {asked} launches; ask for more with -n, or for fewer \
                 launches"
            ))),
            _ => Ok(Launches { planned: asked, limit: asked, seed }),
        };
    }
    // Rounds are launches already; a course over time, a published way of measuring and the points of a sweep are made by
    // one process each.
    let alone = options.interleave.is_some()
        || options.sustained.is_some()
        || options.like.is_some()
        || !options.rate_sweep.is_empty();
    let enough_for = match budget {
        Budget::Iterations(all) => u32::try_from(all / INFERENCES).unwrap_or(PLANNED),
        Budget::Seconds(seconds) if seconds < SECONDS * f64::from(PLANNED) => 1,
        Budget::Seconds(_) | Budget::AtLeast { .. } => PLANNED,
    };
    let planned = if alone { 1 } else { enough_for.clamp(1, PLANNED) };
    Ok(Launches { planned, limit: if planned > 1 { MOST } else { 1 }, seed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Like;

    fn of(options: &ModeOptions, budget: Budget) -> (u32, u32) {
        let launches = plan(options, budget, 7).unwrap();
        assert_eq!(launches.seed, 7);
        (launches.planned, launches.limit)
    }

    #[test]
    fn inferences_are_shared_as_far_as_they_go() {
        let options = ModeOptions::default();
        for (inferences, launches) in [(1, (1, 1)), (19, (1, 1)), (20, (2, 10)), (30, (3, 10)), (1 << 40, (3, 10))] {
            assert_eq!(of(&options, Budget::Iterations(inferences)), launches, "{inferences}");
        }
        assert_eq!(of(&options, Budget::Seconds(0.2)), (1, 1));
        assert_eq!(of(&options, Budget::Seconds(10.0)), (3, 10));
    }

    #[test]
    fn ways_of_measuring_that_are_one_process_stay_so_unless_asked() {
        let budget = Budget::Iterations(1000);
        for options in [
            ModeOptions { interleave: Some(2), ..ModeOptions::default() },
            ModeOptions { sustained: Some(60.0), ..ModeOptions::default() },
            ModeOptions { like: Some(Like::Aihub), ..ModeOptions::default() },
            ModeOptions { rate_sweep: vec![Some(5.0), None], ..ModeOptions::default() },
        ] {
            assert_eq!(of(&options, budget), (1, 1), "{options:?}");
        }
        let asked = ModeOptions { launches: Some(4), like: Some(Like::Aihub), ..ModeOptions::default() };
        assert_eq!(of(&asked, budget), (4, 4));
    }

    #[test]
    fn more_launches_than_inferences_are_refused() {
        let options = ModeOptions { launches: Some(5), ..ModeOptions::default() };
        let error = plan(&options, Budget::Iterations(4), 0).unwrap_err().to_string();
        assert!(error.contains("--launches 5") && error.contains("4 inferences"), "{error}");
        assert!(plan(&options, Budget::Iterations(5), 0).is_ok());
    }
}

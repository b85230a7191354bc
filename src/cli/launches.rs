//! The default number of launches, and the options that rule out several.

use super::CliError;
use super::modes::ModeOptions;
use crate::analysis::launches::{FIRST_LAUNCHES, MANY_LAUNCHES};
use crate::event::{Budget, Launches};

/// Default number of launches.
#[expect(clippy::cast_possible_truncation, reason = "a handful")]
const PLANNED: u32 = FIRST_LAUNCHES as u32;
/// Maximum number of launches if they disagree.
#[expect(clippy::cast_possible_truncation, reason = "a handful")]
const MOST: u32 = MANY_LAUNCHES as u32;
/// Inferences per launch for a reliable median; a smaller total is just a quick look.
const INFERENCES: u64 = 10;
/// Time per launch for the same purpose, seconds.
const SECONDS: f64 = 0.1;

/// The launches of runs with this budget.
pub fn plan(options: &ModeOptions, budget: Budget, seed: u64) -> Result<Launches, CliError> {
    if let Some(asked) = options.launches {
        return match budget {
            Budget::Iterations(all) if all < u64::from(asked) => Err(CliError::Usage(format!(
                "--launches {asked}: {all} inferences are too few for {asked} launches; raise -n or use fewer launches"
            ))),
            _ => Ok(Launches { planned: asked, limit: asked, seed }),
        };
    }
    // Rounds are launches already; a sustained run, a published procedure and each point of a sweep use a
    // single process.
    let alone = options.interleave.is_some()
        || options.sustained.is_some()
        || options.like.is_some()
        || !options.rate_sweep.is_empty();
    let enough = match budget {
        Budget::Iterations(all) => all >= INFERENCES * u64::from(PLANNED),
        Budget::Seconds(seconds) => seconds >= SECONDS * f64::from(PLANNED),
        Budget::AtLeast { .. } => true,
    };
    let (planned, limit) = if enough && !alone { (PLANNED, MOST) } else { (1, 1) };
    Ok(Launches { planned, limit, seed })
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
        for (inferences, launches) in [(1, (1, 1)), (29, (1, 1)), (30, (3, 60)), (1 << 40, (3, 60))] {
            assert_eq!(of(&options, Budget::Iterations(inferences)), launches, "{inferences}");
        }
        assert_eq!(of(&options, Budget::Seconds(0.2)), (1, 1));
        assert_eq!(of(&options, Budget::Seconds(10.0)), (3, 60));
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

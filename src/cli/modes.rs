//! Ways of measuring and constraints, as run options: their effect, and conflicts.

use super::CliError;
use super::values::{decibels, points, seconds};
use crate::backends::Backend;
use crate::backends::settings::SettingRequest;
use crate::event::{Budget, Constraints, Launches, Like, Member, Mode, OutlierLimit};
use crate::run::Site;

/// Plausible planned starts per second: from one in 100 s to what a microsecond clock can resolve.
const RATES_HZ: (f64, f64) = (0.01, 10_000.0);
/// Heading of these options in the help.
const MODES: &str = "Ways of measuring";
/// Number of inferences in an AI Hub profile job.
const AIHUB_ITERATIONS: u64 = 100;
/// Samples and seconds of `MLPerf`'s single-stream scenario.
const MLPERF: (u64, f64) = (1024, 60.0);
/// Maximum detailed phase, seconds, if the clean phase is deliberately long: it would only warm the device.
const DETAILED_SECONDS: f64 = 10.0;

/// How to measure.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ModeOptions {
    /// Start this many inferences per second, as a camera would; latency counts from the planned start
    #[arg(long, value_name = "HZ", value_parser = pace, help_heading = MODES)]
    pub rate: Option<f64>,
    /// Run once at each of these rates, such as 1,5,15,30,max (max: back to back); shows what waking up costs
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = pace_or_max, conflicts_with_all = ["rate", "interleave", "like"], help_heading = MODES)]
    pub rate_sweep: Vec<Option<f64>>,
    /// Measure for this long (30s, 10m, 1h): percentiles over time, when it throttles, the steady state
    #[arg(long, value_name = "TIME", value_parser = seconds, conflicts_with_all = ["iterations", "duration", "like"], help_heading = MODES)]
    pub sustained: Option<f64>,
    /// Measure the way a published figure was: aihub (100 inferences, burst, fp16) or mlperf (1,024 samples and 60 s)
    #[arg(long, value_name = "WHOM", value_parser = like, conflicts_with = "rate", help_heading = MODES)]
    pub like: Option<Like>,
    /// The published latency; the report says what may explain the gap
    #[arg(long, value_name = "MS", value_parser = positive, requires = "like", help_heading = MODES)]
    pub published_ms: Option<f64>,
    /// Split each run's inferences over N fresh processes, in random order across backends [default: 3; more while they disagree
    /// and time allows, fewer for few inferences or slow loading]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100), conflicts_with_all = ["interleave", "sustained"], help_heading = MODES)]
    pub launches: Option<u32>,
    /// Repeat each run N times, alternating (A B A B ...), so that heat and clock drift favour none
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100), help_heading = MODES)]
    pub interleave: Option<u32>,
    /// Before every launch but the first, wait at most this long for temperatures and clock limits to recover
    #[arg(long, value_name = "TIME", value_parser = seconds, num_args = 0..=1, require_equals = true, default_missing_value = "5m", help_heading = MODES)]
    pub cool_down: Option<f64>,
    /// Count inferences as outliers beyond this multiple of the median (3x) or this percentile (p99.9) [default: 2x]
    #[arg(long, value_name = "LIMIT", value_parser = outlier_limit, help_heading = MODES)]
    pub outlier_limit: Option<OutlierLimit>,
    /// Latency budget; the report shows whether the run meets it
    #[arg(long, value_name = "MS", value_parser = positive, help_heading = "Constraints")]
    pub latency_budget_ms: Option<f64>,
    /// Percentile that must meet the budget [default: the highest up to p99 that the samples support]
    #[arg(long, value_name = "P", value_parser = percent, requires = "latency_budget_ms", help_heading = "Constraints")]
    pub latency_percentile: Option<f64>,
    /// Memory limit of the process that runs the model; the report shows whether it is met
    #[arg(long, value_name = "MB", value_parser = positive, help_heading = "Constraints")]
    pub max_memory_mb: Option<f64>,
    /// Prefer low power to low latency: for recommendations
    #[arg(long, conflicts_with = "latency_critical", help_heading = "Constraints")]
    pub power_critical: bool,
    /// Judge by the slowest inferences, not the typical one: for recommendations
    #[arg(long, help_heading = "Constraints")]
    pub latency_critical: bool,
    /// Lowest SQNR of the outputs in dB, against those of --expected
    #[arg(long, value_name = "DB", value_parser = decibels, requires = "expected", help_heading = "Constraints")]
    pub min_sqnr_db: Option<f64>,
    /// Largest loss of top-1 accuracy against the best run, percentage points: for recommendations
    #[arg(long, value_name = "POINTS", value_parser = points, requires = "truth", help_heading = "Constraints")]
    pub max_top1_loss: Option<f64>,
}

/// One of the requested runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// Index of the model among those requested.
    pub model: usize,
    /// Backend.
    pub backend: Backend,
    /// How it measures.
    pub mode: Mode,
}

/// The user's other options, which may conflict with a way of measuring.
#[derive(Debug, Clone, Copy)]
pub struct ModeRequest<'a> {
    /// `--iterations`.
    pub iterations: Option<u64>,
    /// `--duration`, seconds.
    pub duration: Option<f64>,
    /// `--perf-profile`.
    pub perf_profile: Option<&'a str>,
    /// `--precision`.
    pub precision: Option<&'a str>,
    /// `--stage-timeout`, seconds.
    pub stage_timeout: f64,
}

impl Slot {
    /// The same slot with its group numbers shifted.
    pub fn moved(&self, groups: usize) -> Self {
        let mut slot = self.clone();
        let groups = u32::try_from(groups).unwrap_or(u32::MAX);
        for member in [&mut slot.mode.sweep, &mut slot.mode.repeat].into_iter().flatten() {
            member.group = member.group.saturating_add(groups);
        }
        slot
    }
}

impl ModeOptions {
    /// All runs in execution order: round by round over the backends, on each backend all models, at each
    /// rate.
    pub fn slots(&self, backends: &[Backend], models: usize) -> Vec<Slot> {
        let rates = if self.rate_sweep.is_empty() { vec![self.rate] } else { self.rate_sweep.clone() };
        let place = |group: usize, index: usize, of: usize| {
            let [group, index, of] = [group, index, of].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
            Member { group, index, of }
        };
        let rounds = self.interleave.map_or(1, |rounds| rounds as usize);
        let mut slots = Vec::new();
        for round in 0..rounds {
            let sides = backends.iter().flat_map(|backend| (0..models).map(move |model| (*backend, model)));
            for (group, (backend, model)) in sides.enumerate() {
                for (at, &rate_hz) in rates.iter().enumerate() {
                    let mode = Mode {
                        rate_hz,
                        sweep: (!self.rate_sweep.is_empty()).then(|| place(group, at, rates.len())),
                        repeat: self.interleave.map(|_| place(group, round, rounds)),
                        sustained: self.sustained.is_some(),
                        like: self.like,
                        published_us: self.published_ms.map(|ms| ms * 1000.0),
                        cool_down_s: self.cool_down,
                        outlier_limit: self.outlier_limit,
                        launches: Launches::default(),
                        origin: None,
                    };
                    slots.push(Slot { model, backend, mode });
                }
            }
        }
        slots
    }

    /// The constraints on the runs.
    pub fn constraints(&self) -> Constraints {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturates")]
        let bytes = |mb: f64| (mb * f64::from(1u32 << 20)) as u64;
        Constraints {
            latency_budget_us: self.latency_budget_ms.map(|ms| ms * 1000.0),
            latency_percent: self.latency_percentile,
            power_critical: self.power_critical,
            latency_critical: self.latency_critical,
            max_memory_bytes: self.max_memory_mb.map(bytes),
            min_sqnr_db: self.min_sqnr_db,
            max_top1_loss: self.max_top1_loss,
        }
    }

    /// Refuses what is impossible on that device, and flags that conflict with a way of measuring.
    pub fn check(&self, asked: ModeRequest<'_>, site: &Site) -> Result<(), CliError> {
        let usage = |text: String| Err(CliError::Usage(text));
        let slowest = self.rate_sweep.iter().flatten().chain(&self.rate).copied().fold(f64::INFINITY, f64::min);
        if slowest.is_finite() {
            let flag = if self.rate.is_some() { "--rate" } else { "--rate-sweep" };
            if matches!(site, Site::NetRun { .. }) {
                return usage(format!(
                    "{flag}: qnn-net-run runs inferences back to back and cannot wait between them; a qnnscope built for \
                     the device can: give it with --runner FILE"
                ));
            }
            if 1.0 / slowest >= asked.stage_timeout {
                return usage(format!(
                    "{flag}: at {slowest}/s there are {} s between two inferences, which --stage-timeout {} would treat as a hang",
                    1.0 / slowest,
                    asked.stage_timeout
                ));
            }
        }
        let contradiction = match self.like {
            None => None,
            Some(Like::Aihub) => contradicts_aihub(asked),
            Some(Like::Mlperf) => contradicts_mlperf(asked),
        };
        match contradiction {
            None => Ok(()),
            Some(text) => usage(text),
        }
    }

    /// Budget of the clean phase, if the measurement mode sets it, and a matching budget of the detailed
    /// phase.
    pub fn budgets(&self, asked: ModeRequest<'_>) -> Option<(Budget, Budget)> {
        let clean = match (self.sustained, self.like) {
            (Some(seconds), _) => Budget::Seconds(seconds),
            (None, Some(Like::Mlperf)) => Budget::AtLeast {
                iterations: asked.iterations.unwrap_or(MLPERF.0),
                seconds: asked.duration.unwrap_or(MLPERF.1),
            },
            _ => return None,
        };
        let seconds = self.sustained.map_or(DETAILED_SECONDS, |seconds| (seconds / 4.0).min(DETAILED_SECONDS));
        Some((clean, Budget::Seconds(seconds)))
    }

    /// Settings implied by the measurement mode, unless the user's flags set them.
    pub fn settings(&self, asked: ModeRequest<'_>) -> Vec<SettingRequest> {
        if self.like != Some(Like::Aihub) {
            return Vec::new();
        }
        let wanted = [("perf_profile", "burst", asked.perf_profile), ("precision", "float16", asked.precision)];
        let missing = wanted.into_iter().filter(|(.., given)| given.is_none());
        let setting = |(name, value, _): (&str, &str, Option<&str>)| SettingRequest {
            origin: format!("--like aihub: {name}"),
            name: name.to_owned(),
            value: value.into(),
            backend: None,
        };
        missing.map(setting).collect()
    }
}

fn contradicts_aihub(asked: ModeRequest<'_>) -> Option<String> {
    let profile = asked.perf_profile.filter(|profile| !profile.trim().eq_ignore_ascii_case("burst"));
    let full = |text: &&str| ["float32", "fp32", "32"].contains(&text.trim().to_ascii_lowercase().as_str());
    let contradiction = match asked {
        ModeRequest { iterations: Some(n), .. } if n != AIHUB_ITERATIONS => {
            format!("--iterations {n}: a profile job runs {AIHUB_ITERATIONS} inferences")
        }
        ModeRequest { duration: Some(_), .. } => {
            format!("--duration: a profile job runs {AIHUB_ITERATIONS} inferences, however long they take")
        }
        _ if profile.is_some() => {
            format!("--perf-profile {}: a profile job runs in burst", profile.unwrap_or_default())
        }
        ModeRequest { precision: Some(text), .. } if full(&text) => {
            format!("--precision {text}: a profile job runs float graphs in fp16")
        }
        _ => return None,
    };
    Some(format!("--like aihub contradicts {contradiction}; remove one of them"))
}

fn contradicts_mlperf(asked: ModeRequest<'_>) -> Option<String> {
    let contradiction = match asked {
        ModeRequest { iterations: Some(n), .. } if n < MLPERF.0 => {
            format!("--iterations {n}: single stream needs at least {} samples", MLPERF.0)
        }
        ModeRequest { duration: Some(seconds), .. } if seconds < MLPERF.1 => {
            format!("--duration {seconds}: single stream needs at least {} s", MLPERF.1)
        }
        _ => return None,
    };
    Some(format!("--like mlperf contradicts {contradiction}; remove one of them"))
}

fn pace(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if (RATES_HZ.0..=RATES_HZ.1).contains(&value) => Ok(value),
        _ => Err(format!("expected inferences per second, from {} to {}", RATES_HZ.0, RATES_HZ.1)),
    }
}

fn pace_or_max(text: &str) -> Result<Option<f64>, String> {
    if text.trim() == "max" { Ok(None) } else { pace(text).map(Some).map_err(|error| format!("{error}, or max")) }
}

fn like(text: &str) -> Result<Like, String> {
    match text {
        "aihub" => Ok(Like::Aihub),
        "mlperf" => Ok(Like::Mlperf),
        _ => Err("known are aihub and mlperf".to_owned()),
    }
}

pub(super) fn positive(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 && value <= 1e9 => Ok(value),
        _ => Err("expected a number above 0".to_owned()),
    }
}

pub(super) fn percent(text: &str) -> Result<f64, String> {
    match text.trim().trim_start_matches('p').parse::<f64>() {
        Ok(value) if value > 0.0 && value < 100.0 => Ok(value),
        _ => Err("expected a percentile between 0 and 100, such as 95 or 99.9".to_owned()),
    }
}

fn outlier_limit(text: &str) -> Result<OutlierLimit, String> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
    let text = text.trim();
    let limit = match (text.strip_suffix('x'), text.strip_prefix('p')) {
        (Some(times), _) => number(times).filter(|times| *times > 1.0).map(OutlierLimit::TimesMedian),
        (_, Some(percent)) => number(percent).filter(|p| (50.0..100.0).contains(p)).map(OutlierLimit::Percentile),
        _ => None,
    };
    limit.ok_or_else(|| {
        "expected a multiple of the median above 1, such as 2x, or a percentile of at least 50, such as p99.9"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_outliers() {
        assert_eq!(outlier_limit("3x"), Ok(OutlierLimit::TimesMedian(3.0)));
        assert_eq!(outlier_limit("p99.9"), Ok(OutlierLimit::Percentile(99.9)));
        for bad in ["", "3", "1x", "-2x", "nanx", "infx", "p100", "p20", "x", "p"] {
            assert!(outlier_limit(bad).is_err(), "{bad}");
        }
    }

    const NOTHING: ModeRequest<'_> =
        ModeRequest { iterations: None, duration: None, perf_profile: None, precision: None, stage_timeout: 300.0 };

    #[test]
    fn rounds_go_over_the_backends_in_turn() {
        let options = ModeOptions { interleave: Some(3), ..ModeOptions::default() };
        let slots = options.slots(&[Backend::Cpu, Backend::Htp], 1);
        let order: Vec<(Backend, u32, u32)> = slots
            .iter()
            .map(|slot| slot.mode.repeat.map(|place| (slot.backend, place.group, place.index)).unwrap())
            .collect();
        let (cpu, htp) = (Backend::Cpu, Backend::Htp);
        assert_eq!(order, [(cpu, 0, 0), (htp, 1, 0), (cpu, 0, 1), (htp, 1, 1), (cpu, 0, 2), (htp, 1, 2)]);
    }

    #[test]
    fn a_sweep_is_a_run_per_rate() {
        let options = ModeOptions { rate_sweep: vec![Some(5.0), None], ..ModeOptions::default() };
        let slots = options.slots(&[Backend::Cpu, Backend::Htp], 1);
        let rates: Vec<(Backend, Option<f64>)> = slots.iter().map(|slot| (slot.backend, slot.mode.rate_hz)).collect();
        let (cpu, htp) = (Backend::Cpu, Backend::Htp);
        assert_eq!(rates, [(cpu, Some(5.0)), (cpu, None), (htp, Some(5.0)), (htp, None)]);
    }

    #[test]
    fn flags_that_contradict_a_published_way_are_named() {
        for (asked, word) in [
            (ModeRequest { iterations: Some(50), ..NOTHING }, "--iterations 50"),
            (ModeRequest { duration: Some(3.0), ..NOTHING }, "--duration"),
            (ModeRequest { perf_profile: Some("balanced"), ..NOTHING }, "balanced"),
            (ModeRequest { precision: Some("fp32"), ..NOTHING }, "fp32"),
        ] {
            assert!(contradicts_aihub(asked).unwrap().contains(word));
        }
        let same =
            ModeRequest { iterations: Some(100), perf_profile: Some("burst"), precision: Some("fp16"), ..NOTHING };
        assert_eq!(contradicts_aihub(same), None);
        assert!(contradicts_mlperf(ModeRequest { iterations: Some(1023), ..NOTHING }).is_some());
        assert!(contradicts_mlperf(ModeRequest { duration: Some(59.0), ..NOTHING }).is_some());
        assert_eq!(contradicts_mlperf(ModeRequest { iterations: Some(5000), duration: Some(90.0), ..NOTHING }), None);
    }

    #[test]
    fn a_published_way_brings_its_budget_and_settings() {
        let mlperf = ModeOptions { like: Some(Like::Mlperf), ..ModeOptions::default() };
        let (clean, _) = mlperf.budgets(NOTHING).unwrap();
        assert_eq!(clean, Budget::AtLeast { iterations: 1024, seconds: 60.0 });
        let aihub = ModeOptions { like: Some(Like::Aihub), ..ModeOptions::default() };
        let names: Vec<String> = aihub.settings(NOTHING).into_iter().map(|setting| setting.name).collect();
        assert_eq!(names, ["perf_profile", "precision"]);
        assert_eq!(aihub.settings(ModeRequest { perf_profile: Some("burst"), ..NOTHING }).len(), 1);
    }

    #[test]
    fn values() {
        assert_eq!((pace("30"), pace_or_max("max"), percent("p99.9")), (Ok(30.0), Ok(None), Ok(99.9)));
        assert!(pace("0").is_err() && pace("NaN").is_err() && pace("1e9").is_err() && percent("100").is_err());
        assert!(positive("-1").is_err() && positive("inf").is_err() && like("x").is_err());
    }
}

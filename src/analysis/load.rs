//! Other processes' CPU use while a run was measured.

use super::window::{Watched, counter};
use crate::backends::Backend;
use crate::store::{Run, Store};

/// A CPU reading covers the time since the previous one, at most this long, microseconds.
pub(super) const READING_US: u64 = 250_000;
/// Minimum number of readings for a figure.
const MIN_READINGS: usize = 3;

/// CPU use during the clean phase.
pub struct Load<'a> {
    /// Cores kept busy by all processes.
    pub busy_cores: f64,
    /// Cores kept busy by the process that ran the model.
    pub own_cores: f64,
    /// Number of cores.
    pub cores: f64,
    /// Number of readings.
    pub readings: usize,
    /// The counter of busy cores.
    pub busy: Watched<'a>,
}

impl Load<'_> {
    /// Cores kept busy by other processes.
    pub fn others(&self) -> f64 {
        (self.busy_cores - self.own_cores).max(0.0)
    }

    /// What other processes took, in one sentence.
    pub fn text(&self) -> String {
        let (others, cores, percent) = (self.others(), self.cores, self.share() * 100.0);
        format!("other processes kept {others:.1} of {cores:.0} cores busy ({percent:.0} %)")
    }

    /// Share of the machine used by other processes, 0 to 1.
    pub fn share(&self) -> f64 {
        self.others() / self.cores.max(1.0)
    }
}

/// Share used by other processes above which a CPU run no longer reflects an idle machine.
pub(super) const TOO_MUCH: f64 = 0.3;

/// Whether other processes used the CPU that the run needed, as a sentence.
pub fn crowded(store: &Store, run: &Run) -> Option<String> {
    let load = load(store, run).ok().filter(|load| load.share() >= TOO_MUCH)?;
    (run.plan.backend == Backend::Cpu).then(|| load.text())
}

/// The load during the clean phase, or why it is unknown.
pub fn load<'a>(store: &'a Store, run: &'a Run) -> Result<Load<'a>, String> {
    let local = run.plan.device == "local";
    let id = if local { "host.cpu.busy" } else { "cpu.busy" };
    let busy = counter(store, run, id).ok_or_else(|| format!("the counter {id} was not sampled"))?;
    let cores = if local {
        counter(store, run, "host.load.1m").and_then(|load| load.info().maximum)
    } else {
        cores_of(store, run)
    };
    let cores = cores.ok_or("the number of CPU cores is unknown")?;
    let windows_us = run.clean.windows_us();
    if windows_us.is_empty() {
        return Err("nothing was measured".to_owned());
    }
    // A reading that began before the phase includes loading.
    let later: Vec<(u64, u64)> = windows_us.iter().map(|(from_us, to_us)| (from_us + READING_US, *to_us)).collect();
    let values = busy.values_in(&later);
    if values.len() < MIN_READINGS {
        let measured = run.clean.span_us() / 1e6;
        return Err(format!("only {} CPU-usage readings fall in the {measured:.1} s of the clean phase", values.len()));
    }
    let percent = values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64;
    let own = match run.cpu_utilization_percent() {
        Some(own) => Some(own),
        None => counter(store, run, "proc.cpu").and_then(|own| own.mean_in(windows_us)),
    };
    let own_cores = own.ok_or("the CPU time of the run's own process is unknown")? / 100.0;
    Ok(Load { busy_cores: percent / 100.0 * cores, own_cores, cores, readings: values.len(), busy })
}

fn cores_of(store: &Store, run: &Run) -> Option<f64> {
    let clusters = &store.device_facts(&run.plan.device)?.clusters;
    let cores: usize = clusters.iter().map(|cluster| cluster.cpus.len()).sum();
    (cores > 0).then_some(cores as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{Made, only, steady};
    use crate::backends::Backend;

    fn made(busy: f64, own_cores: f64, inferences: usize) -> Store {
        Made::local(Backend::Cpu)
            .clean(steady(10_000.0, 5.0, inferences))
            .runner_cores(own_cores)
            .host_counter("host.cpu.busy", Some(100.0), move |_| busy)
            .host_counter("host.load.1m", Some(8.0), |_| 1.0)
            .store()
    }

    #[test]
    fn a_backend_that_spins_on_all_cores_is_no_load_of_others() {
        let store = made(99.0, 7.9, 200);
        let load = load(&store, only(&store)).unwrap();
        assert!(load.others() < 0.1 && load.readings >= 5, "{}", load.others());
    }

    #[test]
    fn load_of_others_is_what_the_run_does_not_use_itself() {
        let store = made(75.0, 1.0, 200);
        let load = load(&store, only(&store)).unwrap();
        assert!((load.others() - 5.0).abs() < 0.01 && (load.share() - 0.625).abs() < 0.01);
    }

    #[test]
    fn a_short_phase_says_that_nothing_is_known() {
        let store = made(75.0, 1.0, 20);
        let why = load(&store, only(&store)).err().unwrap();
        assert!(why.contains("readings") && why.contains("0.2 s"), "{why}");
    }
}

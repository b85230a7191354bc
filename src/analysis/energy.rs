//! Energy use of a run, from the battery's power.

use super::window::is_in;
use crate::event::{Battery, DeviceKind};
use crate::store::{Run, Store};
use thiserror::Error;

/// Counter of battery power, W; negative while discharging.
const POWER: &str = "battery.power";

/// Minimum number of readings for a mean: fuel gauges report once per second or less.
const MIN_READINGS: usize = 3;

/// Energy of the clean phase, for the whole device including screen and radio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Energy {
    /// Mean power over the phase, W.
    pub average_power_w: f64,
    /// Mean power times the time per inference, mJ.
    pub per_inference_mj: f64,
    /// Number of battery readings behind the mean.
    pub readings: usize,
}

/// Why there is no energy figure.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum NoEnergy {
    #[error("no device with a battery")]
    NoDevice,
    #[error("the battery's current and voltage cannot be read: {0}")]
    NotReadable(String),
    #[error(
        "the device is charging, so the battery current does not show the chip's power (unplug it and use wireless adb, or set \
         --energy-while-charging)"
    )]
    Charging,
    #[error("too few battery readings: {0} in the clean phase")]
    TooFew(usize),
}

/// System-wide energy of a run. Not available while the device charges, unless the run's plan asks for it.
pub fn energy(store: &Store, run: &Run) -> Result<Energy, NoEnergy> {
    let device = store.device(&run.plan.device).filter(|device| device.kind == DeviceKind::Adb);
    let device = device.ok_or(NoEnergy::NoDevice)?;
    let counters = store.device_counters().series();
    let series = counters.iter().find(|counter| counter.device == device.id && counter.series.info.id == POWER);
    let series = &series.ok_or_else(|| NoEnergy::NotReadable("it was not sampled".to_owned()))?.series;
    if let Some(reason) = &series.info.unavailable {
        return Err(NoEnergy::NotReadable(reason.clone()));
    }
    let facts = store.device_facts(&device.id);
    let charging = facts.and_then(|facts| facts.battery.as_ref()).is_some_and(Battery::is_externally_powered);
    if charging && !run.plan.energy_while_charging {
        return Err(NoEnergy::Charging);
    }
    let windows_us = run.clean.windows_us();
    let inside = series.points().iter().filter(|(t_us, _)| is_in(windows_us, *t_us));
    let readings: Vec<f64> = inside.filter_map(|(_, watts)| *watts).collect();
    if readings.len() < MIN_READINGS {
        return Err(NoEnergy::TooFew(readings.len()));
    }
    let average_power_w = -readings.iter().sum::<f64>() / readings.len() as f64;
    let inference_us = run.clean.span_us() / run.clean.count().max(1) as f64;
    Ok(Energy { average_power_w, per_inference_mj: average_power_w * inference_us / 1000.0, readings: readings.len() })
}

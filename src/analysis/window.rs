//! Counters over a time span: those of this machine and of the run's device in one list.

use super::EvidencePlace;
use crate::event::CounterInfo;
use crate::store::{CounterSeries, Run, Store};

/// A counter that may be relevant to a run.
#[derive(Clone, Copy)]
pub struct Watched<'a> {
    /// Id of its device; `None` for this machine.
    pub device: Option<&'a str>,
    /// The series.
    pub series: &'a CounterSeries,
}

impl<'a> Watched<'a> {
    /// The counter's description.
    pub fn info(&self) -> &'a CounterInfo {
        &self.series.info
    }

    /// Where to find it in the views.
    pub fn place(&self) -> EvidencePlace {
        EvidencePlace::Counter { device: self.device.map(ToOwned::to_owned), id: self.info().id.clone() }
    }

    /// Human-readable label; the views mark the counters of a device themselves.
    pub fn label(&self) -> &'a str {
        &self.info().label
    }

    /// Values from `from_us` to `to_us`, oldest first: single points while these are still in memory, else
    /// means of spans.
    pub fn values(&self, from_us: u64, to_us: u64) -> Vec<(u64, f64)> {
        if self.has_points_from(from_us) {
            let points = self.series.points();
            let first = points.partition_point(|(t_us, _)| *t_us < from_us);
            let within = points.range(first..).take_while(|(t_us, _)| *t_us <= to_us);
            return within.filter_map(|(t_us, value)| Some((*t_us, (*value)?))).collect();
        }
        let spans = self.series.history().iter().filter(|span| span.to_us >= from_us && span.from_us <= to_us);
        spans.map(|span| (u64::midpoint(span.from_us, span.to_us), span.mean())).collect()
    }

    /// Mean of the values from `from_us` to `to_us`.
    pub fn mean(&self, from_us: u64, to_us: u64) -> Option<f64> {
        let values = self.values(from_us, to_us);
        (!values.is_empty()).then(|| values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64)
    }

    /// Values within any of these spans, oldest first; whatever ran between them is left out.
    pub fn values_in(&self, windows_us: &[(u64, u64)]) -> Vec<(u64, f64)> {
        windows_us.iter().flat_map(|&(from_us, to_us)| self.values(from_us, to_us)).collect()
    }

    /// Mean of the values within any of these spans.
    pub fn mean_in(&self, windows_us: &[(u64, u64)]) -> Option<f64> {
        let values = self.values_in(windows_us);
        (!values.is_empty()).then(|| values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64)
    }

    /// True if no point since `from_us` has been dropped.
    pub fn has_points_from(&self, from_us: u64) -> bool {
        self.series.dropped() == 0 || self.series.points().front().is_some_and(|(oldest_us, _)| *oldest_us <= from_us)
    }
}

/// True if a point in time lies in one of these spans.
pub fn is_in(windows_us: &[(u64, u64)], t_us: u64) -> bool {
    windows_us.iter().any(|(from_us, to_us)| (*from_us..=*to_us).contains(&t_us))
}

/// Counters of the machine that ran the model: this machine's for local runs, the device's otherwise.
pub fn watched<'a>(store: &'a Store, run: &'a Run) -> impl Iterator<Item = Watched<'a>> {
    let device = run.plan.device.as_str();
    let local = device == "local";
    let host = store.counters().iter().filter(move |_| local).map(|series| Watched { device: None, series });
    let of_device = store.device_counters().series().iter().filter(move |series| series.device == device);
    host.chain(of_device.map(|known| Watched { device: Some(known.device.as_str()), series: &known.series }))
}

/// The counter of that machine with this id.
pub fn counter<'a>(store: &'a Store, run: &'a Run, id: &str) -> Option<Watched<'a>> {
    watched(store, run).find(|counter| counter.info().id == id)
}

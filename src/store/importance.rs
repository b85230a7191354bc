//! Display order of counters: the most informative for a run on an accelerator first.

use super::DeviceSeries;

/// Families by their first counter, most informative first; all others follow.
const FAMILIES: [&[&str]; 12] = [
    &["npu.state", "thermal.npu"],
    &["service.thermal.status"],
    &["cooling", "service.cooling"],
    &["gpu.busy", "gpu.freq"],
    &["cpu.freq", "cpu.limit"],
    &["cpu.busy"],
    &["proc"],
    &["thermal.gpu", "gpu.temp"],
    &["thermal.cpu", "thermal.skin"],
    &["battery.power", "battery.current"],
    &["memory.available"],
    &["gpu"],
];
/// Families whose first counter represents the others, which come later.
const SPOKEN_FOR: [&str; 4] = ["thermal", "service.thermal", "cooling", "service.cooling"];
/// Votes for buses and other clocks: last.
const LAST: [&str; 2] = ["bus", "devfreq"];

/// The counters in display order. It is the same for the same counters, except that active cooling
/// comes first of its family.
pub fn by_importance<'a>(series: impl Iterator<Item = &'a DeviceSeries>) -> Vec<&'a DeviceSeries> {
    let mut ranked: Vec<(Rank, &DeviceSeries)> = series.map(|series| (Rank::of(series), series)).collect();
    // Stable: counters of one rank keep the order of the catalogue.
    ranked.sort_by_key(|(rank, _)| (rank.family, rank.place));
    // Of each family that one speaks for, the first one goes with the heads.
    let mut last_family = None;
    let mut behind = Vec::new();
    let mut heads = Vec::new();
    for (rank, series) in ranked {
        let is_first = last_family != Some(rank.family);
        last_family = Some(rank.family);
        if is_first || !rank.is_spoken_for { heads.push(series) } else { behind.push((rank.family, series)) }
    }
    // The others of these families come before the least informative ones.
    let end = heads.iter().position(|series| under_any(&series.series.info.id, &LAST)).unwrap_or(heads.len());
    heads.splice(end..end, behind.into_iter().map(|(_, series)| series));
    heads
}

struct Rank {
    family: usize,
    /// Within the family.
    place: usize,
    is_spoken_for: bool,
}

impl Rank {
    fn of(series: &DeviceSeries) -> Self {
        let id = series.series.info.id.as_str();
        let known = FAMILIES.iter().position(|names| under_any(id, names));
        let family = known.unwrap_or(FAMILIES.len() + usize::from(under_any(id, &LAST)));
        let names_npu = ["cdsp", "npu", "nsp"].iter().any(|name| id.contains(name));
        let is_active = series.series.latest().is_some_and(|value| value > 0.0);
        let place = match id {
            _ if !under_any(id, &["cooling", "service.cooling"]) => 0,
            _ if is_active => 0,
            _ => 1 + usize::from(!names_npu),
        };
        let is_spoken_for = known.is_some() && id != "service.thermal.status" && under_any(id, &SPOKEN_FOR);
        Self { family, place, is_spoken_for }
    }
}

fn under_any(id: &str, names: &[&str]) -> bool {
    names.iter().any(|name| id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::CounterInfo;
    use crate::store::CounterSeries;

    #[test]
    fn heat_of_the_npu_comes_before_votes_for_buses() {
        let series = |id: &str, value: f64| {
            let info =
                CounterInfo { id: id.into(), label: id.into(), unit: String::new(), maximum: None, unavailable: None };
            let mut series = CounterSeries::new(info);
            series.push(1, Some(value));
            DeviceSeries { device: "d".to_owned(), period_us: 1, gap: None, series }
        };
        let all = [
            series("bus.freq.DDR", 1.0),
            series("devfreq.x", 1.0),
            series("cpu.freq.policy0", 1.0),
            series("cpu.freq.policy4", 1.0),
            series("thermal.npu.nsp0", 1.0),
            series("thermal.npu.nsp1", 1.0),
            series("cooling.display", 0.0),
            series("cooling.cdsp", 0.0),
            series("cooling.cpu0", 1.0),
            series("pressure.io", 1.0),
            series("service.thermal.status", 0.0),
        ];
        let shown: Vec<&str> = by_importance(all.iter()).iter().map(|series| series.series.info.id.as_str()).collect();
        assert_eq!(
            shown,
            [
                "thermal.npu.nsp0",
                "service.thermal.status",
                "cooling.cpu0",
                "cpu.freq.policy0",
                "cpu.freq.policy4",
                "pressure.io",
                "thermal.npu.nsp1",
                "cooling.cdsp",
                "cooling.display",
                "bus.freq.DDR",
                "devfreq.x"
            ]
        );
    }
}

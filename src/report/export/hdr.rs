//! An HDR histogram log: the latencies of each run in one-second intervals, nanoseconds, for that format's
//! tools.

use super::{ExportError, MARK};
use crate::report::page::Material;
use crate::store::{Run, nanoseconds};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::time::{Duration, UNIX_EPOCH};

/// Length of an interval, microseconds.
const INTERVAL_US: u64 = 1_000_000;

/// The log.
pub fn make(material: &Material<'_>) -> Result<Vec<u8>, ExportError> {
    let failed = |reason: String| ExportError::Write { format: "histogram log", reason };
    let mut out = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let session = material.parts.iter().find_map(|part| part.store.session());
    let epoch = UNIX_EPOCH + Duration::from_micros(session.map_or(0, |session| session.epoch_us));
    let mut builder = IntervalLogWriterBuilder::new();
    // Times are in nanoseconds; the column of the maximum is in milliseconds, as readers of this format
    // expect.
    builder.add_comment(MARK).with_start_time(epoch).with_max_value_divisor(1_000_000.0);
    let names: Vec<String> =
        material.runs().map(|(number, _, run)| format!("run{number}-{}", run.plan.backend)).collect();
    let mut log = builder.begin_log_with(&mut out, &mut serializer).map_err(|error| failed(error.to_string()))?;
    let mut written = 0;
    for ((_, store, run), name) in material.runs().zip(&names) {
        let begun_us = store.session().map_or(run.started_us, |session| session.monotonic_us);
        for (start_us, histogram) in intervals(run).map_err(|error| failed(error.clone()))? {
            let since = Duration::from_micros(start_us.saturating_sub(begun_us));
            log.write_histogram(&histogram, since, Duration::from_micros(INTERVAL_US), Tag::new(name))
                .map_err(|error| failed(format!("{error:?}")))?;
            written += 1;
        }
    }
    drop(log);
    if written == 0 {
        return Err(ExportError::Nothing { reason: "no run has an inference" });
    }
    Ok(out)
}

/// Histograms of a run, each with its start. Beyond a million inferences, each sample kept represents
/// several.
fn intervals(run: &Run) -> Result<Vec<(u64, Histogram<u64>)>, String> {
    let mut found: Vec<(u64, Histogram<u64>)> = Vec::new();
    let weight = run.clean.stride();
    for (start_us, us) in run.clean.timed() {
        let is_new = found.last().is_none_or(|(begun_us, _)| start_us >= begun_us.saturating_add(INTERVAL_US));
        if is_new {
            found.push((start_us, Histogram::new(3).map_err(|error| error.to_string())?));
        }
        if let Some((_, histogram)) = found.last_mut() {
            histogram.record_n(nanoseconds(us).max(1), weight).map_err(|error| error.to_string())?;
        }
    }
    Ok(found)
}

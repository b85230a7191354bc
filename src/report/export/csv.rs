//! One row per figure, for spreadsheets and scripts.

use super::ExportError;
use crate::event::{LOCAL_DEVICE, clean_whole};
use crate::report::page::Material;
use crate::store::{CounterSeries, PERCENTILES, Run, Store};
use std::fmt::Write;

/// Header of the table. Its first word identifies files written by qnnscope.
const HEAD: &str = "qnnscope_run,backend,device,simulated,model,section,name,type,statistic,value,unit\n";

/// The table.
#[expect(clippy::unnecessary_wraps, reason = "all formats are made alike")]
pub fn make(material: &Material<'_>) -> Result<Vec<u8>, ExportError> {
    let mut out = HEAD.to_owned();
    for (number, store, run) in material.runs() {
        let mask = &material.mask;
        let head = [
            number.to_string(),
            cell(run.plan.backend.name()),
            cell(&mask.name(&run.plan.device)),
            run.plan.simulated.to_string(),
            cell(&mask.name(&run.plan.model)),
        ]
        .join(",");
        let mut rows = Rows { out: &mut out, head };
        figures(&mut rows, run);
        ops(&mut rows, run, &|name| mask.name(name).into_owned());
        counters(&mut rows, store, run);
    }
    Ok(out.into_bytes())
}

struct Rows<'a> {
    out: &'a mut String,
    head: String,
}

impl Rows<'_> {
    /// Adds a row, if there is a value.
    fn add(&mut self, section: &str, name: &str, kind: &str, statistic: &str, value: Option<f64>, unit: &str) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            let (name, kind) = (cell(name), cell(kind));
            let _ = writeln!(self.out, "{},{section},{name},{kind},{statistic},{value},{}", self.head, cell(unit));
        }
    }
}

/// Text that no spreadsheet treats as a formula, quoted if necessary.
fn cell(text: &str) -> String {
    let text = clean_whole(text);
    // A space before a sign does not stop every program from evaluating it.
    let is_formula = text.trim_start().starts_with(['=', '+', '-', '@', '|', '%']);
    let text = if is_formula { format!("'{text}") } else { text };
    if text.contains([',', '"', '\n', '\r', ';']) || text != text.trim() {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

fn figures(rows: &mut Rows<'_>, run: &Run) {
    let clean = &run.clean;
    #[expect(clippy::cast_precision_loss, reason = "counts")]
    let count = Some(clean.count() as f64).filter(|count| *count > 0.0);
    rows.add("latency", "", "", "count", count, "");
    for (name, value) in [
        ("mean", clean.mean_us()),
        ("stddev", clean.stddev_us()),
        ("min", clean.min_us()),
        ("max", clean.max_us()),
        ("first", run.first_us()),
    ] {
        rows.add("latency", "", "", name, value, "us");
    }
    for percent in PERCENTILES {
        rows.add("latency", "", "", &format!("p{percent}"), clean.percentile_us(percent), "us");
    }
    rows.add("throughput", "", "", "mean", run.throughput_ips(), "1/s");
    rows.add("memory", "resident set", "", "peak", run.memory.rss_peak.map(|bytes| bytes as f64), "bytes");
    for time in run.stages.iter().filter(|time| time.stage.is_reported()) {
        rows.add("stage", time.stage.name(), "", "time", Some(time.duration_us), "us");
    }
    for part in &run.sub_stages {
        rows.add("stage part", &part.name, part.stage.name(), "value", Some(part.value), &part.unit);
    }
    for metric in &run.metrics {
        for (statistic, value) in [("mean", metric.mean()), ("min", metric.min), ("max", metric.max)] {
            rows.add("backend", &metric.name, "", statistic, Some(value), &metric.unit);
        }
    }
}

fn ops(rows: &mut Rows<'_>, run: &Run, name: &dyn Fn(&str) -> String) {
    let unit = if run.op_time_is_derived() { "cycles" } else { "us" };
    for (row, (known, stats)) in run.ops.rows().iter().zip(run.ops.stats()).enumerate() {
        if stats.count() == 0 {
            continue;
        }
        let op = run.op(row);
        let (name, kind) = (name(&known.name), op.map_or("", |op| op.op_type.as_str()));
        rows.add("op", &name, kind, "share", Some(run.ops.share(row)), "");
        rows.add("op", &name, kind, "scaled", run.scaled_op_us(row), "us");
        rows.add("op", &name, kind, "mean", stats.mean(), unit);
        rows.add("op", &name, kind, "p95", stats.percentile(95.0), unit);
        rows.add("op", &name, kind, "macs", op.and_then(|op| op.macs).map(|macs| macs as f64), "");
    }
}

fn counters(rows: &mut Rows<'_>, store: &Store, run: &Run) {
    let of_device = store.device_counters().series().iter().filter(|series| series.device == run.plan.device);
    let own: Vec<&CounterSeries> = if run.plan.device == LOCAL_DEVICE {
        store.counters().iter().collect()
    } else {
        of_device.map(|series| &series.series).collect()
    };
    for series in own {
        if let Some((mean, min, max)) = series.summary() {
            for (statistic, value) in [("mean", mean), ("min", min), ("max", max)] {
                rows.add("counter", &series.info.id, "", statistic, Some(value), &series.info.unit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn no_cell_is_a_formula_and_all_come_back() {
        for (text, expected) in [
            ("=HYPERLINK(\"http://x\")", "\"'=HYPERLINK(\"\"http://x\"\")\""),
            ("+1", "'+1"),
            (" @SUM(A1)", "' @SUM(A1)"),
            ("-2+3", "'-2+3"),
            ("conv,1", "\"conv,1\""),
            ("a\tb\nc", "a b\u{fffd}c"),
            ("plain", "plain"),
        ] {
            assert_eq!(cell(text), expected);
        }
    }
}

//! Runs of a result document: it has their figures but no events, so each run gets a single row.

use super::table::Cell;
use crate::event::Driver;
use serde_json::Value;

/// Start of the document's session, microseconds since 1970-01-01 UTC; 0 if not recorded.
pub fn started_us(document: &Value) -> u64 {
    let started = document.get("started_at").and_then(Value::as_str).and_then(|text| text.parse().ok());
    started.and_then(|at: jiff::Timestamp| u64::try_from(at.as_microsecond()).ok()).unwrap_or(0)
}

/// A row of the table `runs` per run of the document.
pub fn rows(session: &str, document: &Value) -> Vec<Vec<Cell>> {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let mut runs = list(document.get("runs"));
    // Graphs of a tapped program.
    runs.extend(list(document.get("processes")).iter().flat_map(|process| list(process.get("graphs"))));
    (1..).zip(&runs).map(|(number, run)| row(session, number, document, run)).collect()
}

fn row(session: &str, number: i64, document: &Value, run: &Value) -> Vec<Cell> {
    let of_all = |path: &str| document.pointer(path);
    let of_run = |path: &str| run.pointer(path);
    let text = |value: Option<&Value>| Cell::some(value.and_then(Value::as_str));
    let count = |value: Option<&Value>| value.and_then(Value::as_u64).map_or(Cell::Null, Cell::count);
    let real = |value: Option<&Value>| Cell::real(value.and_then(Value::as_f64));
    let started = started_us(document);
    let driver: Option<Driver> = of_run("/driver").and_then(|driver| serde_json::from_value(driver.clone()).ok());
    let launches = of_run("/latency_us/launches").and_then(Value::as_array).map(|launches| launches.len() as u64);
    vec![
        Cell::text(session),
        Cell::Int(number),
        if started > 0 { Cell::count(started) } else { Cell::Null },
        text(of_all("/tool/version")),
        Cell::Null,
        text(of_all("/model/path").or_else(|| of_run("/name"))),
        text(of_all("/model/sha256")),
        text(of_all("/model/graph").or_else(|| of_run("/name"))),
        count(of_all("/model/op_count")),
        count(of_all("/model/macs")),
        count(of_all("/model/parameter_bytes")),
        text(of_run("/backend")),
        text(of_run("/runtime/build_id")),
        text(of_run("/device/id")),
        text(of_run("/device/model")),
        text(of_run("/device/soc")),
        text(of_run("/device/hexagon_arch")),
        of_run("/simulated").and_then(Value::as_bool).map_or(Cell::Null, Cell::Flag),
        Cell::some(driver.map(Driver::label)),
        real(of_run("/mode/rate_hz")),
        launches.map_or(Cell::Null, Cell::count),
        text(of_run("/status")),
        text(of_run("/error/stage")),
        count(of_run("/error/code")),
        text(of_run("/error/message")),
        count(of_run("/latency_us/samples")),
        real(of_run("/first_inference_us")),
        real(of_run("/latency_us/mean")),
        real(of_run("/latency_us/p50")),
        real(of_run("/latency_us/p90")),
        real(of_run("/latency_us/p95")),
        real(of_run("/latency_us/p99")),
        real(of_run("/latency_us/max")),
        real(of_run("/throughput_ips")),
        count(of_run("/memory_bytes/rss_peak")),
        real(of_run("/cpu_utilization_percent")),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::table::Table;
    use super::*;
    use serde_json::json;

    #[test]
    fn each_run_has_a_cell_for_each_column() {
        let run = json!({"backend": "cpu", "status": "ok", "latency_us": {"samples": 7, "p50": 12.5}});
        let result = json!({"started_at": "2026-11-22T10:15:00Z", "model": {"path": "m.dlc"}, "runs": [run, run]});
        let tapped = json!({"processes": [{"graphs": [{"name": "g", "backend": "htp"}]}, {}]});
        assert_eq!(started_us(&result), 1_795_342_500_000_000);
        for (document, count) in [(result, 2), (tapped, 1), (json!({}), 0), (json!([5]), 0)] {
            let rows = rows("key", &document);
            assert_eq!(rows.len(), count);
            assert!(rows.iter().all(|row| row.len() == Table::Runs.columns().len()));
        }
    }
}

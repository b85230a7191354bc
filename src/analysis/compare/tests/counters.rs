//! Counters alongside the figures of a run.

use super::*;

#[test]
fn counters_are_those_of_the_runs_machine_while_it_was_measured() {
    use crate::event::{
        Budget, CounterInfo, CounterSample, CounterSet, DeviceInfo, DeviceKind, Event, InferenceBatch, Phase, Record,
        RunId, RunPlan,
    };
    use crate::store::Store;
    let mut store = Store::new();
    let mut apply = |t_us: u64, run: Option<u32>, event: Event| {
        store.apply(&Record { seq: 0, t_us, run: run.map(RunId), event });
    };
    let info = |id: &str, unit: &str| CounterInfo {
        id: id.to_owned(),
        label: id.to_owned(),
        unit: unit.to_owned(),
        maximum: None,
        unavailable: None,
    };
    apply(0, None, Event::CountersDeclared(vec![info("host.cpu.freq", "MHz")]));
    for (set, device) in [(1, "phone"), (2, "other")] {
        apply(
            0,
            None,
            Event::DeviceSeen(DeviceInfo {
                id: device.to_owned(),
                kind: DeviceKind::Adb,
                model: None,
                soc: Some("SM8650".to_owned()),
                hexagon_arch: None,
                abi: "arm64-v8a".to_owned(),
                os: "Android".to_owned(),
            }),
        );
        let counters = vec![info("gpu.freq", "MHz"), info("memory.free", "bytes"), info("thermal.npu", "°C")];
        apply(
            0,
            None,
            Event::CounterSetDeclared(CounterSet { set, device: device.to_owned(), period_us: 10, counters }),
        );
    }
    let plan = RunPlan { device: "phone".to_owned(), ..plan() };
    apply(1, Some(0), Event::RunStarted(Box::new(plan)));
    for (t_us, mhz) in [(50, 100.0), (100, 300.0), (150, 500.0), (900, 9.0)] {
        let values = vec![Some(mhz), Some(1.0), None];
        apply(t_us, None, Event::Counters(CounterSample { set: 1, t_us, values: values.clone() }));
        apply(t_us, None, Event::Counters(CounterSample { set: 2, t_us, values }));
        apply(t_us, None, Event::Counters(CounterSample { set: 0, t_us, values: vec![Some(1.0)] }));
    }
    let batch = InferenceBatch {
        phase: Phase::Clean,
        first_index: 0,
        start_us: vec![90, 120],
        latency_ns: vec![20_000; 2],
        late_ns: Vec::new(),
    };
    apply(200, Some(0), Event::PhaseStarted { phase: Phase::Clean, budget: Budget::Iterations(2) });
    apply(200, Some(0), Event::Inferences(batch));
    let run = &store.runs()[0];
    let expected = SideCounter {
        id: "gpu.freq".to_owned(),
        unit: "MHz".to_owned(),
        mean: 300.0,
        min: 300.0,
        max: 300.0,
        samples: 1,
    };
    assert_eq!(counters(&store, run), [expected]);
    let side = Side::of(&store, run);
    assert_eq!((side.device_model.as_deref(), side.counters.len()), (Some("SM8650"), 1));
    let comparison = compare(&[side.clone(), side], &CompareOptions::default());
    assert_eq!(row(&comparison, "counter.gpu.freq").better, Better::Neither);
}

fn plan() -> crate::event::RunPlan {
    serde_json::from_value(serde_json::json!({
        "device": "local", "backend": "gpu", "model": "m.dlc", "warmup": 0, "budget": {"iterations": 2},
        "profiling": "off", "profiling_budget": null, "simulated": false
    }))
    .unwrap()
}

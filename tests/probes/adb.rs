//! The same through the real adb server, on the virtual device.

use crate::discovery::block_on;
use crate::sampling::Session;
use crate::virtual_device::{AdbServer, Options as DeviceOptions, Scene, Snapshot, VirtualDevice};
use qnnscope::devices::{Device, Root};
use qnnscope::event::{Event, Gap};
use qnnscope::probes::{Cadence, Counter, Options, Rate, discover};
use std::time::{Duration, Instant};

struct Bench {
    device: VirtualDevice,
    server: AdbServer,
}

impl Bench {
    fn new(snapshot: Snapshot) -> Self {
        let bench =
            Self { device: VirtualDevice::start(snapshot, DeviceOptions::default()), server: AdbServer::start() };
        bench.server.connect(&bench.device);
        bench
    }

    fn device(&self) -> Device {
        use qnnscope::devices::{AdbServer, AdbTransport};
        let server = AdbServer::parse(&format!("127.0.0.1:{}", self.server.port())).unwrap();
        Device::new(AdbTransport::new(server, &self.device.serial()))
    }
}

async fn counters(device: &Device, patterns: &[&str]) -> Vec<Counter> {
    let found = discover(device, Root::None, &[]).await.unwrap();
    let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
    let (counters, unknown) = found.select(&patterns);
    assert!(unknown.is_empty(), "{unknown:?}");
    counters
}

#[test]
fn a_device_behind_adb_is_sampled_and_its_end_is_told() {
    let bench = Bench::new(Snapshot::Sm8650User);
    block_on(async {
        let device = bench.device();
        let found = discover(&device, Root::None, &[]).await.unwrap();
        let mut session = Session::start(&device, found.chosen(), Rate::default());
        session.until_value("gpu.freq", 231.0).await;
        session.until("a service", |session, record| session.value(record, "service.battery.level")?).await;
        bench.device.set_scene(Scene::Load);
        session.until("load", |session, record| session.value(record, "gpu.freq")?.filter(|mhz| *mhz > 231.0)).await;
        bench.device.refuse("/sys/kernel/gpu/gpu_clock");
        session.until_gap("gpu.freq", Gap::Refused).await;
        bench.device.drop_link();
        let reason = session
            .until("the end", |_, record| match &record.event {
                Event::SamplerEnded(ended) => Some(ended.reason.clone()),
                _ => None,
            })
            .await;
        assert!(reason.unwrap().contains("lost"));
    });
}

#[test]
fn a_slow_zone_on_a_phone_is_sampled_apart() {
    let bench = Bench::new(Snapshot::Sm8650User);
    bench.device.slow_down("/sys/class/thermal/thermal_zone20/temp", Duration::from_millis(40), "45000\n");
    block_on(async {
        let device = bench.device();
        let counters = counters(&device, &["thermal.npu", "cpu.freq"]).await;
        let mut session = Session::start(&device, counters, Rate::default());
        session.until_value("thermal.npu.nsphvx-0", 45.0).await;
        session.until("another zone", |session, record| session.value(record, "thermal.npu.nsphvx-1")?).await;
        assert_ne!(session.set_of("thermal.npu.nsphvx-0"), session.set_of("thermal.npu.nsphvx-1"));
        assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
    });
}

#[test]
fn the_clock_is_found_through_a_slow_link() {
    let bench = Bench::new(Snapshot::Qcs6490Linux);
    bench.device.set_delay(Duration::from_millis(30));
    block_on(async {
        let device = bench.device();
        let counters = counters(&device, &["cpu.freq"]).await;
        let mut session = Session::start(&device, counters, Rate::Hertz(50.0));
        session.until_ticks(100).await;
        let clock = session.sampler().clock().borrow().unwrap();
        // The device's timestamp is before its arrival, and by no more than the link and batching explain.
        for record in &session.records {
            if let Event::Counters(sample) = &record.event {
                assert!(sample.t_us <= record.t_us + clock.uncertainty_us());
            }
        }
        println!("uncertainty at 30 ms each way: {} us", clock.uncertainty_us());
        assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
    });
}

#[test]
fn throughput_through_adb_is_measured() {
    let bench = Bench::new(Snapshot::Sm8650User);
    block_on(async {
        let device = bench.device();
        let mut counters = counters(&device, &["thermal.cpu", "thermal.npu", "cpu.freq.policy*", "gpu.freq"]).await;
        counters.retain(|counter| !counter.id.contains("mean"));
        counters.truncate(30);
        counters.iter_mut().for_each(|counter| counter.cadence = Cadence::Fast);
        assert_eq!(counters.len(), 30);
        let (began, mut reads) = (Instant::now(), 0);
        while began.elapsed() < Duration::from_secs(2) {
            let output = bench.server.on(&bench.device, ["shell", "cat", "/sys/class/thermal/thermal_zone1/temp"]);
            assert!(output.status.success() && !output.stdout.is_empty(), "{output:?}");
            reads += 1;
        }
        println!("adb shell cat: {:.0} values/s", f64::from(reads) / began.elapsed().as_secs_f64());
        for rate in [Rate::Max, Rate::Hertz(20.0)] {
            let mut session =
                Session::through(&device, Root::None, counters.clone(), Options { rate, ..Options::default() });
            let mut reports = Vec::new();
            session
                .until("three reports", |_, record| {
                    if let Event::SamplerReported(report) = &record.event {
                        reports.push(report.clone());
                    }
                    (reports.len() == 3).then_some(())
                })
                .await;
            let report = reports.last().unwrap();
            let cpu_us = report.cpu_us_per_tick.unwrap();
            println!(
                "adb {rate:?}: {:.0} ticks/s of 30 counters, {cpu_us:.0} us of processor time per tick",
                report.rate_hz
            );
            assert!(report.ticks > 0 && cpu_us > 0.0);
            assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
        }
    });
}

use crate::device::{device, shell_device, tool};
use crate::discovery::block_on;
use crate::tree::Tree;
use qnnscope::devices::{Device, Root};
use qnnscope::event::{CounterSet, DeviceKind, Event, Gap, Record, now_us};
use qnnscope::probes::{Cadence, Counter, Discovery, Options, Rate, Sampler, discover, load_custom};
use qnnscope::session::Hub;
use qnnscope::store::Store;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest that anything may take before the test fails; no times are asserted.
const LIMIT: Duration = Duration::from_secs(60);

/// A sampler and everything it reported.
pub struct Session {
    hub: Hub,
    pub sampler: Option<Sampler>,
    pub records: Vec<Record>,
    sets: BTreeMap<u32, CounterSet>,
    store: Store,
    source: qnnscope::session::Source,
}

impl Session {
    pub fn start(device: &Device, counters: Vec<Counter>, rate: Rate) -> Self {
        Self::through(device, Root::None, counters, Options { rate, ..Options::default() })
    }

    pub fn through(device: &Device, root: Root, counters: Vec<Counter>, options: Options) -> Self {
        let (hub, source) = Hub::new(None);
        let sampler = Some(Sampler::start(device, root, counters, options, source.clone()));
        Self { hub, sampler, records: Vec::new(), sets: BTreeMap::new(), store: Store::new(), source }
    }

    pub fn sampler(&self) -> &Sampler {
        self.sampler.as_ref().unwrap()
    }

    /// Receives events until `ready` returns something.
    pub async fn until<T>(&mut self, what: &str, mut ready: impl FnMut(&Session, &Record) -> Option<T>) -> T {
        let end = Instant::now() + LIMIT;
        loop {
            let next = tokio::time::timeout(end.saturating_duration_since(Instant::now()), self.hub.next()).await;
            let record = next.unwrap_or_else(|_| panic!("no {what}; the last: {:?}", self.records.last())).unwrap();
            if let Event::CounterSetDeclared(set) = &record.event {
                self.sets.insert(set.set, set.clone());
            }
            self.store.apply(&record);
            self.records.push(record.clone());
            if let Some(value) = ready(self, &record) {
                return value;
            }
        }
    }

    /// The value of a counter in a record, if it is a tick of its set.
    pub fn value(&self, record: &Record, id: &str) -> Option<Option<f64>> {
        let Event::Counters(sample) = &record.event else { return None };
        let set = self.sets.get(&sample.set)?;
        let index = set.counters.iter().position(|info| info.id == id)?;
        Some(sample.values[index])
    }

    fn gap(&self, record: &Record, id: &str) -> Option<Option<Gap>> {
        let Event::CounterGap(gap) = &record.event else { return None };
        (self.sets.get(&gap.set)?.counters[gap.counter as usize].id == id).then_some(gap.reason)
    }

    pub async fn until_value(&mut self, id: &str, expected: f64) {
        self.until(&format!("{id} of {expected}"), |session, record| {
            let value = session.value(record, id)??;
            ((value - expected).abs() < 1e-6).then_some(())
        })
        .await;
    }

    pub async fn until_gap(&mut self, id: &str, expected: Gap) {
        while self.current_gap(id) != Some(expected) {
            self.until(&format!("gap of {id}"), |_, record| matches!(record.event, Event::CounterGap(_)).then_some(()))
                .await;
        }
    }

    fn current_gap(&self, id: &str) -> Option<Gap> {
        self.store.device_counters().series().iter().find(|known| known.series.info.id == id)?.gap
    }

    pub async fn until_ticks(&mut self, count: usize) {
        let mut left = count;
        self.until("ticks", |_, record| {
            left -= usize::from(matches!(record.event, Event::Counters(_)));
            (left == 0).then_some(())
        })
        .await;
    }

    pub fn set_of(&self, id: &str) -> u32 {
        let of = |set: &&CounterSet| set.counters.iter().any(|info| info.id == id);
        self.sets.values().rev().find(of).unwrap_or_else(|| panic!("{id} is in no set")).set
    }
}

/// Counters for files in a folder: `name` → `my.name`.
fn files(folder: &Path, names: &[&str]) -> Vec<Counter> {
    let row = |name: &&str| {
        let path = folder.join(name);
        format!("[[counter]]\nid = \"my.{name}\"\npath = '{}'\n", path.display())
    };
    let toml: String = names.iter().map(row).collect();
    let file = folder.join("counters.toml");
    std::fs::write(&file, toml).unwrap();
    load_custom(&file).unwrap()
}

fn find(device: &Device) -> impl Future<Output = Discovery> {
    let device = device.clone();
    async move { discover(&device, Root::None, &[]).await.unwrap() }
}

/// Processes whose environment has this folder in PATH, that is, the shells of one test.
fn processes_with_path(path: &str) -> Vec<u32> {
    let environment = format!("PATH={path}\0");
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.windows(environment.len()).any(|window| window == environment.as_bytes())
        })
        .collect()
}

const SHELLS: [&[&str]; 3] = [&["mksh"], &["bash"], &["busybox", "ash"]];

#[test]
fn every_shell_samples_and_takes_commands() {
    block_on(async {
        for shell in SHELLS {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("a"), "1\n").unwrap();
            std::fs::write(folder.path().join("b"), "no line end: 7").unwrap();
            std::fs::write(folder.path().join("c"), "5").unwrap();
            let device = device(shell);
            let mut counters = files(folder.path(), &["a", "b", "c"]);
            counters
                .extend(find(&device).await.select(&["cpu.busy".into(), "memory.available".into(), "proc.*".into()]).0);
            let mut session = Session::start(&device, counters, Rate::Hertz(100.0));
            session.until_value("my.a", 1.0).await;
            session.until_gap("my.b", Gap::NotANumber).await;
            session.until_value("my.c", 5.0).await;
            session.until_gap("proc.rss", Gap::NoProcess).await;
            std::fs::write(folder.path().join("a"), "2\n").unwrap();
            session.until_value("my.a", 2.0).await;
            // The process is set while sampling runs, and removed again.
            session.sampler().watch(Some(std::process::id()));
            let rss = session.until("RSS", |session, record| session.value(record, "proc.rss")?).await;
            assert!(rss > 1e6, "{rss}");
            session.until("PSS", |session, record| session.value(record, "proc.pss")?).await;
            session.sampler().watch(None);
            session.until_gap("proc.rss", Gap::NoProcess).await;
            let busy = session.until("busy", |session, record| session.value(record, "cpu.busy")?).await;
            assert!((0.0..=100.0).contains(&busy));
            // Another rate means a new declaration.
            session.sampler().set_rate(Rate::Hertz(10.0));
            session
                .until("slower set", |_, record| match &record.event {
                    Event::CounterSetDeclared(set) if set.period_us == 100_000 => Some(()),
                    _ => None,
                })
                .await;
            session.until_value("my.a", 2.0).await;
            // Other counters.
            session.sampler().choose(files(folder.path(), &["c"]));
            session
                .until("the new choice", |session, record| {
                    let Event::Counters(sample) = &record.event else { return None };
                    (session.sets[&sample.set].counters.len() == 1 && sample.values == [Some(5.0)]).then_some(())
                })
                .await;
            let ended = session.sampler.take().unwrap().stop().await;
            assert_eq!(ended.reason, None, "{shell:?}");
        }
    });
}

/// What happens to a command on a busy device: the shell's time limit expires in the middle of the line.
#[test]
fn a_command_that_arrives_in_pieces_is_carried_out() {
    let script = include_str!("../../src/probes/sampler/loop.sh");
    for shell in ["bash", "mksh"] {
        let mut child = std::process::Command::new(tool(shell))
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut told = |part: &str| {
            let mut line = String::new();
            while !line.contains(part) {
                line.clear();
                assert_ne!(
                    std::io::BufRead::read_line(&mut output, &mut line).unwrap(),
                    0,
                    "{shell} ended without {part}"
                );
            }
        };
        input.write_all(b"f(){ L=:k=$k:; }\np=20000\ngo\n").unwrap();
        told(":k=0:");
        for piece in ["k", "=4", "2\n"] {
            input.write_all(piece.as_bytes()).unwrap();
            // Ticks continue meanwhile.
            (0..3).for_each(|_| told("T\u{1f}"));
        }
        told(":k=42:");
        drop(input);
        child.wait().unwrap();
    }
}

#[test]
fn a_shell_that_cannot_wait_samples_too() {
    block_on(async {
        // No better shell can be found.
        let tools = tempfile::tempdir().unwrap();
        for name in ["sleep", "cat", "dash"] {
            std::os::unix::fs::symlink(tool(name), tools.path().join(name)).unwrap();
        }
        let printf = tool("printf");
        std::os::unix::fs::symlink(printf, tools.path().join("printf")).unwrap();
        let path = tools.path().to_str().unwrap();
        let device = shell_device("dash", DeviceKind::Adb, &["dash"], path);
        std::fs::write(tools.path().join("a"), "1\n").unwrap();
        let counters = files(tools.path(), &["a"]);
        let mut session = Session::start(&device, counters, Rate::Hertz(20.0));
        session.until_value("my.a", 1.0).await;
        std::fs::write(tools.path().join("a"), "2\n").unwrap();
        session.until_value("my.a", 2.0).await;
        session.sampler().set_rate(Rate::Hertz(5.0));
        session
            .until("slower set", |_, record| match &record.event {
                Event::CounterSetDeclared(set) if set.period_us == 200_000 => Some(()),
                _ => None,
            })
            .await;
        session.until_value("my.a", 2.0).await;
        assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
        until_no_process(path).await;
    });
}

async fn until_no_process(path: &str) {
    let end = Instant::now() + LIMIT;
    while !processes_with_path(path).is_empty() {
        assert!(Instant::now() < end, "processes are left: {:?}", processes_with_path(path));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn stop_and_drop_leave_no_process() {
    block_on(async {
        for shell in SHELLS {
            for stop in [true, false] {
                let tools = tempfile::tempdir().unwrap();
                let path = format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap());
                let device = shell_device("x", DeviceKind::Adb, shell, &path);
                std::fs::write(tools.path().join("a"), "1\n").unwrap();
                let mut session = Session::start(&device, files(tools.path(), &["a"]), Rate::Hertz(50.0));
                session.until_ticks(3).await;
                assert!(!processes_with_path(&path).is_empty());
                let sampler = session.sampler.take().unwrap();
                if stop {
                    assert_eq!(sampler.stop().await.reason, None);
                } else {
                    drop(sampler);
                }
                until_no_process(&path).await;
            }
        }
    });
}

#[test]
fn a_refused_or_vanished_file_is_a_gap_and_never_the_old_value() {
    block_on(async {
        let tree = Tree::new("sm8650-user", false);
        let device = tree.device();
        let found = find(&device).await;
        let patterns =
            ["thermal.npu.nsphvx-0", "thermal.npu.nsphvx-1", "gpu.freq", "cpu.freq.policy0"].map(String::from);
        let (mut counters, unknown) = found.select(&patterns);
        assert_eq!(unknown.len(), 0);
        counters.retain(|counter| patterns.contains(&counter.id));
        counters.iter_mut().for_each(|counter| counter.cadence = Cadence::Fast);
        let mut session = Session::start(&device, counters, Rate::Hertz(50.0));
        session.until_value("gpu.freq", 231.0).await;
        tree.write("/sys/kernel/gpu/gpu_clock", b"680\n");
        session.until_value("gpu.freq", 680.0).await;
        let changed = session.records.len();
        tree.refuse("/sys/kernel/gpu/gpu_clock");
        tree.remove("/sys/class/thermal/thermal_zone20/temp");
        tree.write("/sys/class/thermal/thermal_zone21/temp", b"-273000\n");
        tree.write("/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", b"<unknown>\n");
        let mut gaps = BTreeMap::new();
        session
            .until("four gaps", |session, record| {
                for id in &patterns {
                    gaps.extend(session.gap(record, id).flatten().map(|gap| (id.clone(), gap)));
                }
                (gaps.len() == 4).then_some(())
            })
            .await;
        let expected = [Gap::Absent, Gap::Placeholder, Gap::Refused, Gap::NotANumber];
        assert_eq!(patterns.iter().map(|id| gaps[id]).collect::<Vec<_>>(), expected);
        let values =
            |session: &Session, record: &Record| session.value(record, "gpu.freq").into_iter().collect::<Vec<_>>();
        session.until_ticks(10).await;
        let after: Vec<_> = session.records[changed..].iter().flat_map(|record| values(&session, record)).collect();
        let first_gap = after.iter().position(Option::is_none).unwrap();
        assert!(after[first_gap..].iter().all(Option::is_none), "{after:?}");
        let gpu =
            session.store.device_counters().series().iter().find(|known| known.series.info.id == "gpu.freq").unwrap();
        assert_eq!((gpu.gap, gpu.series.latest()), (Some(Gap::Refused), None));
        // And back again.
        std::fs::remove_file(tree.here("/sys/kernel/gpu/gpu_clock")).unwrap();
        tree.write("/sys/kernel/gpu/gpu_clock", b"310\n");
        session.until_value("gpu.freq", 310.0).await;
        assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
    });
}

#[test]
fn scenes_of_the_snapshots_are_seen() {
    block_on(async {
        let tree = Tree::new("sm8550-root", true);
        let device = tree.device();
        let found = find(&device).await;
        let mut session = Session::start(&device, found.readable.clone(), Rate::Hertz(20.0));
        session.until_value("gpu.freq", 220.0).await;
        session.until_value("battery.current", -234.317).await;
        session.until_value("npu.state.32300000.remoteproc-cdsp", 1.0).await;
        session.until_value("cooling.gpu", 0.0).await;
        session.until("a service", |session, record| session.value(record, "service.thermal.nsp0")?).await;
        tree.overlay("sm8550-root", "load");
        session.until_value("gpu.freq", 475.0).await;
        // Time counters have grown: busy shares and mean clocks are differences.
        session.until("load", |session, record| session.value(record, "cpu.busy")?.filter(|busy| *busy > 5.0)).await;
        // Reported once, for the time in which the driver's counters grew.
        session
            .until("mean clock", |session, _| {
                let mut series = session.store.device_counters().series().iter();
                let mean = series.find(|known| known.series.info.id == "gpu.freq.mean")?.series.summary()?.0;
                (mean - 475.0).abs().lt(&1.0).then_some(())
            })
            .await;
        tree.overlay("sm8550-root", "throttle");
        session.until_value("gpu.freq", 348.0).await;
        session
            .until("throttling", |session, record| session.value(record, "cooling.gpu")?.filter(|state| *state > 0.0))
            .await;
        session
            .until("sum", |session, record| session.value(record, "memory.dmabuf")?.filter(|bytes| *bytes > 33e6))
            .await;
        assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
    });
}

#[test]
fn this_machine_is_sampled_like_a_device() {
    block_on(async {
        let device = Device::local();
        let found = find(&device).await;
        let mut session = Session::start(&device, found.chosen(), Rate::default());
        let memory = session.until("memory", |session, record| session.value(record, "memory.available")?).await;
        assert!(memory > 1e6);
        session.until("busy", |session, record| session.value(record, "cpu.busy")?).await;
        assert_eq!(session.sampler().clock().borrow().unwrap().uncertainty_us(), 0);
        assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
    });
}

#[test]
fn counters_that_need_root_are_sampled_through_su() {
    block_on(async {
        let tree = Tree::new("sm8550-root", false);
        let device = tree.rooted_device();
        let found = discover(&device, Root::SuC, &[]).await.unwrap();
        let (counters, _) = found.select(&["gpu.busy".into(), "cpu.freq.policy0".into()]);
        let mut session = Session::through(&device, Root::SuC, counters, Options::default());
        session.until_value("gpu.busy", 0.0).await;
        tree.write("/sys/class/kgsl/kgsl-3d0/gpubusy", b" 250000 1000000\n");
        session.until_value("gpu.busy", 25.0).await;
        // A choice without such counters does not need root, and the next one does again.
        session.sampler().choose(found.select(&["cpu.limit.policy0".into()]).0);
        session.until("the limit", |session, record| session.value(record, "cpu.limit.policy0")?).await;
        session.sampler().choose(found.select(&["gpu.level".into()]).0);
        session.until("the level", |session, record| session.value(record, "gpu.level")?).await;
        assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
    });
}

/// A file that takes 40 ms to read: a FIFO whose writer waits.
fn slow_file(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let path = path.to_owned();
    std::thread::spawn(move || {
        // Opening blocks until there is a reader; the folder is gone at the end of the test.
        while let Ok(mut fifo) = std::fs::OpenOptions::new().write(true).open(&path) {
            std::thread::sleep(Duration::from_millis(40));
            let _ = std::io::Write::write_all(&mut fifo, b"42\n");
            drop(fifo);
            // The reader must see the end of the file before the next one is served.
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn a_slow_file_is_sampled_apart() {
    block_on(async {
        for shell in SHELLS {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("quick"), "1\n").unwrap();
            slow_file(&folder.path().join("slow"));
            let counters = files(folder.path(), &["quick", "slow"]);
            let mut session = Session::start(&device(shell), counters, Rate::Hertz(50.0));
            session.until_value("my.slow", 42.0).await;
            session.until_value("my.quick", 1.0).await;
            assert_ne!(session.set_of("my.slow"), session.set_of("my.quick"), "{shell:?}");
            let said = session.records.iter().any(|record| {
                matches!(&record.event, Event::Log(line) if line.text.contains("slow") && line.text.contains("apart"))
            });
            assert!(said, "{shell:?}: it was not said");
            session
                .until("a report", |_, record| matches!(&record.event, Event::SamplerReported(_)).then_some(()))
                .await;
            assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
        }
    });
}

#[test]
fn a_file_that_hangs_is_given_up_and_the_others_go_on() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("quick"), "1\n").unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        let fifo = folder.path().join("stuck");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let mut session =
            Session::start(&device(&["mksh"]), files(folder.path(), &["quick", "stuck"]), Rate::Hertz(50.0));
        session.until_value("my.quick", 1.0).await;
        session.until_gap("my.stuck", Gap::Hangs).await;
        let set = &session.sets[&session.set_of("my.stuck")];
        let info = set.counters.iter().find(|info| info.id == "my.stuck").unwrap();
        assert_eq!(info.unavailable.as_deref(), Some("does not answer"));
        assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
    });
}

#[test]
fn hostile_contents_stay_in_their_counter() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).unwrap();
        write("good", b"7\n");
        write("fake", b"5\x1f0=666\x1f0=666\n");
        write("long", &vec![b'1'; 10 << 20]);
        write("escape", b"\x1b]0;x\x07 3\n");
        write("binary", &(0..=255).collect::<Vec<u8>>());
        write("command", b"$(touch hacked)`touch hacked`\";touch hacked;'\n");
        write("lines", b"text\nT\x1f9\x1f\x1f9.99\x1ff\x1f0=666\nmore\n");
        for shell in SHELLS {
            let counters = files(folder.path(), &["good", "fake", "long", "escape", "binary", "command", "lines"]);
            let mut session = Session::start(&device(shell), counters, Rate::Hertz(100.0));
            session.until_ticks(20).await;
            for record in &session.records {
                assert!(!matches!(session.value(record, "my.good"), Some(value) if value != Some(7.0)), "{shell:?}");
                for id in ["my.fake", "my.long", "my.escape", "my.command", "my.lines"] {
                    assert!(session.value(record, id).is_none_or(|value| value.is_none()), "{shell:?} {id}");
                }
            }
            assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
        }
        assert!(!folder.path().join("hacked").exists() && !Path::new("hacked").exists());
    });
}

#[test]
fn samples_lie_on_the_hosts_axis() {
    block_on(async {
        for kind in [DeviceKind::Adb, DeviceKind::Local] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("a"), "1\n").unwrap();
            let path = std::env::var("PATH").unwrap();
            let device = shell_device("x", kind, &["mksh"], &path);
            let before = now_us();
            let mut session = Session::start(&device, files(folder.path(), &["a"]), Rate::Hertz(100.0));
            session.until_ticks(50).await;
            let after = now_us();
            let uncertainty = session
                .records
                .iter()
                .find_map(|record| match &record.event {
                    Event::ClockAligned(clock) => Some(clock.uncertainty_us),
                    _ => None,
                })
                .unwrap();
            let mut last = 0;
            for record in &session.records {
                if let Event::Counters(sample) = &record.event {
                    assert!(sample.t_us + uncertainty >= before && sample.t_us <= after + uncertainty, "{kind:?}");
                    // A sample cannot be later than its arrival.
                    assert!(sample.t_us <= record.t_us + uncertainty, "{kind:?}");
                    assert!(sample.t_us > last, "{kind:?}: time stands still");
                    last = sample.t_us;
                }
            }
            // A timestamp of the device's own clock, such as programs on it put into their logs, is mapped to
            // the host's axis.
            let clock = session.sampler().clock().borrow().unwrap();
            let boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
            let boot_us = boot.tv_sec as u64 * 1_000_000 + boot.tv_nsec as u64 / 1000;
            let (now, placed) = (now_us(), clock.from_boot_us(boot_us));
            let slack = clock.boot_uncertainty_us() + 50_000;
            assert!(placed.abs_diff(now) <= slack, "{kind:?}: {placed} {now}");
            if kind == DeviceKind::Local {
                assert_eq!(clock.uncertainty_us(), 0);
                assert!(clock.from_steady_us(now).unwrap().abs_diff(now) <= 1000);
            }
            assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
        }
    });
}

#[test]
fn a_lost_link_is_told_and_the_data_kept() {
    block_on(async {
        let tools = tempfile::tempdir().unwrap();
        let path = format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap());
        let device = shell_device("x", DeviceKind::Adb, &["mksh"], &path);
        std::fs::write(tools.path().join("a"), "1\n").unwrap();
        let mut session = Session::start(&device, files(tools.path(), &["a"]), Rate::Hertz(50.0));
        session.until_ticks(5).await;
        for pid in processes_with_path(&path) {
            let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let reason = session
            .until("the end", |_, record| match &record.event {
                Event::SamplerEnded(ended) => Some(ended.reason.clone()),
                _ => None,
            })
            .await;
        assert!(reason.unwrap().contains("connection to x was lost"));
        assert!(session.sampler().is_ended());
        let series = &session.store.device_counters().series()[0].series;
        assert!(series.count() >= 5);
        // Sampling is resumed with the same counters.
        let sampler = Sampler::start(
            &device,
            Root::None,
            files(tools.path(), &["a"]),
            Options::default(),
            session.source.clone(),
        );
        session.sampler = Some(sampler);
        session.until_ticks(2).await;
        assert_eq!(session.store.device_counters().series().len(), 1);
        assert!(session.store.device_counters().sampler("x").unwrap().ended.is_none());
        assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
    });
}

#[test]
fn as_fast_as_it_goes_is_measured() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..30).map(|index| format!("f{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for name in &names {
            std::fs::write(folder.path().join(name), format!("{}000\n", name.len())).unwrap();
        }
        for (shell, rate) in
            [(SHELLS[0], Rate::Max), (SHELLS[1], Rate::Max), (SHELLS[2], Rate::Max), (SHELLS[0], Rate::Hertz(20.0))]
        {
            let mut session = Session::start(&device(shell), files(folder.path(), &names), rate);
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
            println!(
                "{shell:?} {rate:?}: {:.0} ticks/s of 30 counters, {:.0} us of processor time per tick, {} late",
                report.rate_hz,
                report.cpu_us_per_tick.unwrap(),
                report.late
            );
            assert!(report.ticks > 0 && report.cpu_us_per_tick.unwrap() > 0.0);
            // Measuring the clock again does not stop a loop that never waits.
            assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
        }
    });
}

/// `/proc/stat` of some processors that were busy for these percentages of `time`.
fn stat(busy: &[u64], time: u64) -> String {
    let line = |name: &str, busy: u64| format!("{name} {} 0 0 {} 0 0 0 0 0 0\n", busy * time, (100 - busy) * time);
    let mean = busy.iter().sum::<u64>() / busy.len() as u64;
    let each = busy.iter().enumerate().map(|(number, busy)| line(&format!("cpu{number}"), *busy));
    line("cpu ", mean) + &each.collect::<String>()
}

#[test]
fn processors_come_and_go() {
    block_on(async {
        let tree = Tree::new("sm8650-user", false);
        tree.write("/proc/stat", (stat(&[10; 8], 1) + "intr 7 0 0\nctxt 9\n").as_bytes());
        let device = tree.device();
        let (counters, _) = find(&device).await.select(&["cpu.busy".into(), "cpu.busiest".into()]);
        let mut session = Session::start(&device, counters, Rate::Hertz(50.0));
        session.until_ticks(3).await;
        let more = "intr 7 0 0\nctxt 9\n";
        // More and fewer lines, longer and shorter ones, with and without anything after them.
        let (eight, two, nine) = ([10, 20, 30, 40, 50, 60, 70, 80], [20, 40], [10, 20, 30, 40, 50, 60, 70, 80, 90]);
        let scenes: [(&[u64], u64, &str); 6] = [
            (&eight, 1, more),
            (&eight, 1_000_000_000, more),
            (&nine, 1_000_000, more),
            (&two, 100, more),
            (&nine, 100, ""),
            (&eight, 1_000, more),
        ];
        for (busy, scale, behind) in scenes {
            let expected = (busy.iter().sum::<u64>() / busy.len() as u64) as f64;
            let busiest = *busy.iter().max().unwrap() as f64;
            // A reading may fall between the two halves of a write, and its difference is then lost.
            for step in 1.. {
                assert!(step < 1000, "{busy:?} {scale} {behind:?}: {:?}", session.records.last());
                tree.write("/proc/stat", (stat(busy, step * scale) + behind).as_bytes());
                let before = session.records.len();
                session.until_ticks(8).await;
                let seen = |id: &str, expected: f64| {
                    let mut values = session.records[before..].iter().filter_map(|record| session.value(record, id)?);
                    values.any(|value| (value - expected).abs() < 0.5)
                };
                if step > 2 && seen("cpu.busy", expected) && seen("cpu.busiest", busiest) {
                    break;
                }
            }
        }
        assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
    });
}

#[test]
fn what_commands_cost_is_counted() {
    block_on(async {
        let tree = Tree::new("sm8650-user", false);
        let device = tree.device();
        let mut counters = find(&device).await.readable;
        counters.retain(|counter| counter.cadence == Cadence::Slow || counter.id == "gpu.freq");
        assert!(counters.len() > 1, "{counters:?}");
        let busy = "#!/tools/mksh\ni=0;while [ $i -lt 1000000 ];do i=$((i+1));done\n";
        std::fs::write(tree.root().join("tools/dumpsys"), busy).unwrap();
        let mut session = Session::start(&device, counters, Rate::Hertz(5.0));
        // The loop itself costs a few milliseconds per second.
        session
            .until("what dumpsys costs", |_, record| match &record.event {
                Event::SamplerReported(report) => {
                    (report.cpu_us_per_tick? * report.ticks as f64 > 100_000.0).then_some(())
                }
                _ => None,
            })
            .await;
        assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
    });
}

/// The cost of what is sampled on a phone by default.
#[test]
fn the_default_choice_is_measured() {
    block_on(async {
        let tree = Tree::new("sm8650-user", false);
        let device = tree.device();
        let counters = find(&device).await.chosen();
        let count = counters.len();
        let mut session = Session::start(&device, counters, Rate::Hertz(20.0));
        let mut reports = Vec::new();
        // The first report includes the start; the others include two rounds of services.
        session
            .until("reports of ten seconds", |_, record| {
                if let Event::SamplerReported(report) = &record.event {
                    reports.push(report.clone());
                }
                (reports.len() == 11).then_some(())
            })
            .await;
        let ticks: u64 = reports[1..].iter().map(|report| report.ticks).sum();
        let cpu_us: f64 = reports[1..].iter().map(|report| report.cpu_us_per_tick.unwrap() * report.ticks as f64).sum();
        println!(
            "{count} counters at 20 Hz: {:.0} us of processor time per tick, services included",
            cpu_us / ticks as f64
        );
        assert!(count > 50 && ticks > 0 && cpu_us > 0.0);
        assert_eq!(session.sampler.take().unwrap().stop().await.reason, None);
    });
}

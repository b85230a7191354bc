//! The virtual device itself, under the real adb client and server: what other tests rely on.

use crate::support::virtual_device::{AdbServer, LinkState, Options, Scene, Snapshot, VirtualDevice};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything; generous, because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A device and the server it is connected to.
struct Bench {
    device: VirtualDevice,
    server: AdbServer,
}

impl Bench {
    fn new(snapshot: Snapshot) -> Self {
        Self::with(snapshot, Options::default())
    }

    fn with(snapshot: Snapshot, options: Options) -> Self {
        let bench = Self { device: VirtualDevice::start(snapshot, options), server: AdbServer::start() };
        bench.server.connect(&bench.device);
        bench
    }

    fn adb(&self, args: &[&str]) -> Output {
        self.server.on(&self.device, args)
    }

    fn shell(&self, command: &str) -> Output {
        self.adb(&["shell", command])
    }

    /// Standard output of a command that must succeed.
    #[track_caller]
    fn says(&self, command: &str) -> String {
        let output = self.shell(command);
        assert!(output.status.success(), "{command}: {output:?}");
        out(&output)
    }

    /// A running `adb shell COMMAND` with pipes.
    fn start(&self, command: &str) -> Child {
        let mut adb = self.server.command();
        adb.args(["-s", &self.device.serial(), "shell", command]);
        adb.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !reached() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn first_line(child: &mut Child) -> (String, BufReader<std::process::ChildStdout>) {
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    (line.trim().to_owned(), reader)
}

/// This machine's processes with `text` in their command line, including those in the device's namespaces.
fn processes_with(text: &str) -> usize {
    let has =
        |pid: &Path| std::fs::read(pid.join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(text));
    std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| has(&entry.path())).count()
}

fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x1234_5678_9abc_def1_u64;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[0]
        })
        .collect()
}

#[test]
fn adb_lists_devices_with_state_and_model() {
    let phone = Bench::new(Snapshot::Sm8650User);
    let board = VirtualDevice::start(Snapshot::Qcs6490Linux, Options::default());
    phone.server.connect(&board);
    let list = out(&phone.server.adb(["devices", "-l"]));
    let line = |serial: &str| list.lines().find(|line| line.starts_with(serial)).unwrap().to_owned();
    assert!(
        line(&phone.device.serial()).contains(" device product:ph8650_global model:PH_8650 device:ph8650 "),
        "{list}"
    );
    assert!(line(&board.serial()).contains(" device transport_id:"), "{list}");
    assert_eq!(out(&phone.adb(&["get-state"])), "device\n");
    let features = out(&phone.adb(&["features"]));
    assert!(["shell_v2", "stat_v2", "ls_v2", "cmd"].iter().all(|name| features.contains(name)), "{features}");
}

#[test]
fn a_phone_says_who_it_is() {
    let bench = Bench::new(Snapshot::Sm8650User);
    assert_eq!(bench.says("getprop ro.soc.model"), "SM8650\n");
    assert_eq!(bench.says("getprop no.such.name"), "\n");
    assert_eq!(bench.says("getprop no.such.name fallback"), "fallback\n");
    assert!(bench.says("getprop").contains("[ro.product.cpu.abi]: [arm64-v8a]\n"));
    assert!(bench.says("id").starts_with("uid=2000(shell) gid=2000(shell)"));
    assert!(bench.says("id").contains("context=u:r:shell:s0"));
    assert_eq!(bench.says("id -u"), "2000\n");
    assert_eq!(bench.says("uname -m"), "aarch64\n");
    assert_eq!(bench.says("uname -r"), "6.1.75-android14-11-g0123456789ab-ab12345678\n");
    assert_eq!(bench.says("getenforce"), "Enforcing\n");
    assert_eq!(bench.says("cat /sys/devices/soc0/soc_id"), "557\n");
    assert!(bench.says("cat /proc/meminfo").starts_with("MemTotal:       11389704 kB\n"));
    assert!(bench.says("dumpsys battery").contains("  level: 81\n"));
    assert!(bench.says("dumpsys gpu").contains("Memory snapshot for GPU 0"));
    let unknown = bench.shell("dumpsys nothing");
    assert_eq!((out(&unknown).as_str(), err(&unknown).as_str()), ("", "Can't find service: nothing\n"));
    // The namespaces show a real clock, which starts at the snapshot's time since boot.
    let uptime: f64 = bench.says("cat /proc/uptime").split(' ').next().unwrap().parse().unwrap();
    assert!((21833.0..21833.0 + PATIENCE.as_secs_f64()).contains(&uptime), "{uptime}");
    // Tools of this machine are not on the phone's path.
    assert_eq!(bench.shell("apt-get --version").status.code(), Some(127));
}

#[test]
fn a_board_is_root_without_android() {
    let bench = Bench::new(Snapshot::Qcs6490Linux);
    assert_eq!(bench.says("id -u"), "0\n");
    assert_eq!(bench.says("uname -m"), "aarch64\n");
    for name in ["getprop", "dumpsys", "logcat", "su"] {
        let there =
            bench.shell(&format!("case $(command -v {name}) in /usr/local/*|/system/*) exit 0;; *) exit 3;; esac"));
        assert_eq!(there.status.code(), Some(3), "{name}: {there:?}");
    }
    assert!(bench.says("cat /etc/os-release").contains("="));
    assert_eq!(bench.says("cat /sys/class/devfreq/3d00000.gpu/cur_freq | wc -l"), "1\n");
    let root = bench.adb(&["root"]);
    assert!(out(&root).contains("already running as root"), "{root:?}");
}

#[test]
fn refused_and_missing_files_are_told_apart() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let why = |path: &str| {
        let cat = bench.shell(&format!("cat '{path}'"));
        let read = bench.shell(&format!("v=; read -r v 2>/dev/null <'{path}' || exit 7; echo \"$v\""));
        assert_eq!(cat.status.success(), read.status.success(), "{path}: {cat:?} {read:?}");
        if cat.status.success() { "read" } else { err(&cat).trim().rsplit(": ").next().unwrap().to_owned().leak() }
    };
    assert_eq!(why("/sys/class/kgsl/kgsl-3d0/gpuclk"), "Permission denied");
    assert_eq!(why("/proc/pressure/cpu"), "Permission denied");
    assert_eq!(why("/sys/class/kgsl/kgsl-3d0/gpu_model"), "read");
    assert_eq!(why("/sys/class/kgsl/kgsl-3d0/none"), "No such file or directory");
    assert!(err(&bench.shell("echo 1 >/sys/class/thermal/thermal_zone0/temp")).contains("Permission denied"));
    assert!(err(&bench.shell("echo 1 >/sys/class/thermal/new")).contains("Permission denied"));
    assert!(err(&bench.shell("ls /data")).contains("Permission denied"));
    assert!(err(&bench.shell("echo 1 >/proc/sys/kernel/hostname")).contains("Read-only file system"));
    bench.says("echo 1 >/data/local/tmp/mine && rm /data/local/tmp/mine");
    assert!(err(&bench.adb(&["root"])).is_empty());
    assert!(out(&bench.adb(&["root"])).contains("cannot run as root in production builds"));
}

#[test]
fn su_reads_what_the_shell_may_not() {
    let bench = Bench::new(Snapshot::Sm8550Root);
    let gpu = "/sys/class/kgsl/kgsl-3d0/gpubusy";
    assert!(err(&bench.shell(&format!("cat {gpu}"))).contains("Permission denied"));
    assert_eq!(bench.says("cat /sys/class/kgsl/kgsl-3d0/gpu_model"), "Adreno740v2\n");
    for su in [format!("su -c 'cat {gpu}'"), format!("su 0 cat {gpu}"), format!("echo cat {gpu} | su")] {
        assert_eq!(bench.says(&su).split_whitespace().count(), 2, "{su}");
    }
    assert_eq!(bench.says("su -c id").trim(), "uid=0(root) gid=0(root) groups=0(root) context=u:r:su:s0");
    assert!(bench.says("su -c 'cat /proc/pressure/cpu'").contains("avg10="));
    assert_eq!(bench.shell("su -c 'exit 9'").status.code(), Some(9));

    let refused = Bench::with(Snapshot::Sm8550Root, Options { su_refused: true, ..Options::default() });
    let answer = refused.shell("su -c id");
    assert_eq!((answer.status.code(), err(&answer).as_str()), (Some(1), "Permission denied\n"));
    let without = Bench::new(Snapshot::Sm8650User);
    assert_eq!(without.shell("su -c id").status.code(), Some(127));
}

#[test]
fn files_of_any_name_and_size_come_back_as_they_went() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let host = tempfile::tempdir().unwrap();
    let names =
        ["plain", "two words", "it's \"quoted\"", "$(reboot)`id`;*?", "line\nbreak", "наука", "-dash", "comma,0644"];
    for (name, length) in names.iter().zip([0, 1, 65_535, 65_536, 65_537, 3_000_001, 20, 21]) {
        let (from, back) = (host.path().join(name), host.path().join("back"));
        std::fs::write(&from, noise(length)).unwrap();
        let on_device = format!("/data/local/tmp/{name}");
        let push = bench.adb(&["push", from.to_str().unwrap(), &on_device]);
        assert!(push.status.success(), "{push:?}");
        let listed = bench.says("cd /data/local/tmp && for f in *; do print -rn -- \"$f\"; done");
        assert_eq!(&listed, name);
        let sum = bench.says("cd /data/local/tmp && for f in *; do sha256sum <\"$f\"; done");
        let expected: String =
            <sha2::Sha256 as sha2::Digest>::digest(noise(length)).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sum.split(' ').next(), Some(expected.as_str()), "{name}");
        assert!(out(&bench.adb(&["ls", "/data/local/tmp"])).contains(name));
        let pull = bench.adb(&["pull", &on_device, back.to_str().unwrap()]);
        assert!(pull.status.success(), "{pull:?}");
        assert!(std::fs::read(&back).unwrap() == noise(length), "{name} came back changed");
        bench.says("cd /data/local/tmp && for f in *; do rm -- \"./$f\"; done");
    }
}

#[test]
fn folders_modes_and_times_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(Snapshot::Sm8650User);
    let host = tempfile::tempdir().unwrap();
    let folder = host.path().join("pack");
    std::fs::create_dir_all(folder.join("inner/empty")).unwrap();
    let program = folder.join("inner/run me");
    std::fs::write(&program, "#!/system/bin/sh\necho ran as $(id -u)\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(folder.join("data"), "data").unwrap();
    let time = std::time::UNIX_EPOCH + Duration::from_secs(1_234_567_890);
    std::fs::File::open(folder.join("data")).unwrap().set_modified(time).unwrap();
    let push = bench.adb(&["push", folder.to_str().unwrap(), "/data/local/tmp/new/deep/"]);
    assert!(push.status.success(), "{push:?}");
    let found = bench.says("cd /data/local/tmp && find . -type f | sort");
    assert!(found.ends_with("/data\n") || found.contains("/inner/run me"), "{found}");
    let root = found.lines().next().unwrap().trim_end_matches("/data").to_owned();
    assert_eq!(bench.says(&format!("cd /data/local/tmp && '{root}/inner/run me'")), "ran as 2000\n");
    // adb sends the modification time of single files.
    let push = bench.adb(&["push", folder.join("data").to_str().unwrap(), "/data/local/tmp/stamped"]);
    assert!(push.status.success(), "{push:?}");
    assert_eq!(bench.says("stat -c '%Y %a %u %s' /data/local/tmp/stamped"), "1234567890 644 2000 4\n");
    // A second push replaces the file.
    std::fs::write(folder.join("data"), "x").unwrap();
    bench.adb(&["push", folder.join("data").to_str().unwrap(), "/data/local/tmp/stamped"]);
    assert_eq!(bench.says("cat /data/local/tmp/stamped"), "x");
    // Links point to where they do on the device, not on this machine.
    bench.says("ln -s /data/local/tmp/stamped /data/local/tmp/link");
    let pull = bench.adb(&["pull", "/data/local/tmp/link", host.path().join("linked").to_str().unwrap()]);
    assert!(pull.status.success(), "{pull:?}");
    assert_eq!(std::fs::read(host.path().join("linked")).unwrap(), b"x");
    let back = bench.adb(&["pull", &format!("/data/local/tmp/{root}"), host.path().join("back").to_str().unwrap()]);
    assert!(back.status.success(), "{back:?}");
    assert_eq!(std::fs::read(host.path().join("back/inner/run me")).unwrap(), std::fs::read(program).unwrap());
}

#[test]
fn transfers_are_refused_what_the_shell_is() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let host = tempfile::tempdir().unwrap();
    let file = host.path().join("file");
    std::fs::write(&file, "text").unwrap();
    let push = bench.adb(&["push", file.to_str().unwrap(), "/sys/class/file"]);
    assert!(
        !push.status.success() && format!("{}{}", out(&push), err(&push)).contains("Permission denied"),
        "{push:?}"
    );
    let pull = |path: &str| {
        let pull = bench.adb(&["pull", path, host.path().join("got").to_str().unwrap()]);
        assert!(!pull.status.success(), "{pull:?}");
        format!("{}{}", out(&pull), err(&pull))
    };
    assert!(pull("/sys/class/kgsl/kgsl-3d0/gpuclk").contains("Permission denied"));
    let missing = pull("/data/local/tmp/none");
    assert!(missing.contains("No such file or directory"), "{missing}");
}

#[test]
fn a_full_disk_makes_push_fail_and_leaves_no_part() {
    let bench = Bench::with(Snapshot::Sm8650User, Options { disk_bytes: Some(1 << 20), ..Options::default() });
    let host = tempfile::tempdir().unwrap();
    let file = host.path().join("big");
    std::fs::write(&file, noise(3 << 20)).unwrap();
    let push = bench.adb(&["push", file.to_str().unwrap(), "/data/local/tmp/big"]);
    assert!(!push.status.success(), "{push:?}");
    assert!(format!("{}{}", out(&push), err(&push)).contains("No space left on device"), "{push:?}");
    assert_eq!(bench.says("ls /data/local/tmp"), "");
    assert!(bench.says("df -k /data/local/tmp").contains(" 1024 "));
    let shell = bench.shell("head -c 3000000 /dev/zero >/data/local/tmp/zeros");
    assert!(err(&shell).contains("No space left on device"), "{shell:?}");
    bench.says("rm /data/local/tmp/zeros");
    std::fs::write(&file, noise(500_000)).unwrap();
    assert!(bench.adb(&["push", file.to_str().unwrap(), "/data/local/tmp/small"]).status.success());
}

#[test]
fn shell_v2_has_exit_codes_and_two_streams() {
    let bench = Bench::new(Snapshot::Sm8650User);
    assert_eq!(bench.shell("exit 0").status.code(), Some(0));
    assert_eq!(bench.shell("exit 42").status.code(), Some(42));
    assert_eq!(bench.shell("kill -KILL $$").status.code(), Some(137));
    assert_eq!(bench.shell("no-such-program").status.code(), Some(127));
    let both = bench.shell("echo one; echo two >&2");
    assert_eq!((out(&both).as_str(), err(&both).as_str()), ("one\n", "two\n"));
    let raw = bench.adb(&["exec-out", "printf 'a\\nb\\r\\n\\0\\377'"]);
    assert_eq!(raw.stdout, b"a\nb\r\n\0\xff");
    assert_eq!(bench.says("echo $TERM $TMPDIR $USER; pwd"), format!("{} /data/local/tmp shell\n/\n", term()));
}

/// The value of TERM that adb sends.
fn term() -> String {
    std::env::var("TERM").unwrap_or_default()
}

#[test]
fn an_old_shell_has_neither() {
    let bench = Bench::with(Snapshot::Sm8650User, Options { shell_v1: true, ..Options::default() });
    assert!(!out(&bench.adb(&["features"])).contains("shell_v2"));
    let both = bench.shell("echo one; echo two >&2; exit 42");
    assert_eq!((both.status.code(), out(&both).as_str(), err(&both).as_str()), (Some(0), "one\r\ntwo\r\n", ""));
    assert_eq!(bench.adb(&["exec-out", "printf 'a\\nb'; echo e >&2"]).stdout, b"a\nbe\n");
    let host = tempfile::tempdir().unwrap();
    let (from, back) = (host.path().join("from"), host.path().join("back"));
    std::fs::write(&from, noise(200_000)).unwrap();
    assert!(bench.adb(&["push", from.to_str().unwrap(), "/data/local/tmp/x y"]).status.success());
    assert!(bench.adb(&["pull", "/data/local/tmp/x y", back.to_str().unwrap()]).status.success());
    assert_eq!(std::fs::read(back).unwrap(), noise(200_000));
}

#[test]
fn standard_input_reaches_the_command_to_its_end() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let data = noise(1_000_003);
    let mut child = bench.start("cat; echo end >&2");
    let (mut stdin, sent) = (child.stdin.take().unwrap(), data.clone());
    let writer = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.stdout == data, "{} of {} bytes", output.stdout.len(), data.len());
    assert_eq!(err(&output), "end\n");
    // Without a command, the shell reads commands from its input.
    let mut adb = bench.server.command();
    adb.args(["-s", &bench.device.serial(), "shell"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = adb.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"x=5\necho $((x * 5))\nexit 6\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((out(&output).trim(), output.status.code()), ("25", Some(6)));
}

#[test]
fn processes_are_seen_from_other_shells_and_none_stays_a_zombie() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let mut busy = bench.start("echo $$; exec sleep 1000");
    let (pid, _reader) = first_line(&mut busy);
    assert!(bench.says(&format!("cat /proc/{pid}/cmdline | tr '\\0' ' '")).contains("sleep 1000"));
    assert!(bench.says(&format!("cat /proc/{pid}/statm")).split(' ').count() == 7);
    assert_eq!(bench.says(&format!("stat -c %u /proc/{pid}")), "2000\n");
    bench.says("(sleep 0.01 </dev/null >/dev/null 2>&1 &)");
    wait_until("orphans collected", || {
        bench.says("for s in /proc/[0-9]*/stat; do read -r l <$s; echo \"$l\"; done").matches(") Z ").count() == 0
    });
    bench.says(&format!("kill {pid}"));
    assert_eq!(busy.wait().unwrap().code(), Some(143));
}

#[test]
fn a_lost_link_ends_the_shell_and_adb_connects_again() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let mut looping = bench.start("echo $$; while :; do echo tick; sleep 0.05; done");
    let (pid, _reader) = first_line(&mut looping);
    bench.device.drop_link();
    // The exit code is meaningless here: adb reports success for a lost link.
    looping.wait().unwrap();
    bench.server.wait_for(&bench.device, "device", "after a lost link");
    wait_until("the loop is gone", || !bench.shell(&format!("test -d /proc/{pid}")).status.success());
}

#[test]
fn a_killed_client_ends_its_shell_and_only_it() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let mut silent =
        bench.start("(exec sleep 1000 </dev/null >/dev/null 2>&1) & echo $! $$; while :; do sleep 0.05; done");
    let (pids, _reader) = first_line(&mut silent);
    let (child, shell) = pids.split_once(' ').unwrap();
    silent.kill().unwrap();
    silent.wait().unwrap();
    wait_until("the shell is gone", || !bench.shell(&format!("test -d /proc/{shell}")).status.success());
    // As on a phone, where adbd signals only the shell.
    bench.says(&format!("test -d /proc/{child}"));
}

#[test]
fn a_link_that_ends_in_the_middle_cuts_the_output() {
    let bench = Bench::new(Snapshot::Sm8650User);
    bench.device.drop_after_bytes(300_000);
    let output = bench.adb(&["exec-out", "head -c 50000000 /dev/zero"]);
    assert!((1..=300_000).contains(&output.stdout.len()), "{}", output.stdout.len());
    bench.server.wait_for(&bench.device, "device", "after the cut");
    assert_eq!(bench.adb(&["exec-out", "head -c 500000 /dev/zero"]).stdout.len(), 500_000);
}

#[test]
fn a_device_out_of_reach_comes_back() {
    let bench = Bench::new(Snapshot::Sm8650User);
    bench.device.refuse_connections(true);
    bench.device.drop_link();
    wait_until("not usable", || bench.server.state(&bench.device).as_deref() != Some("device"));
    assert!(!bench.shell("true").status.success());
    bench.device.refuse_connections(false);
    bench.server.wait_for(&bench.device, "device", "in reach again");
    bench.says("true");
}

#[test]
fn states_are_shown_as_adb_calls_them() {
    let device = |state| VirtualDevice::start(Snapshot::Sm8650User, Options { state, ..Options::default() });
    let server = AdbServer::start();
    let (locked, mute, recovery) =
        (device(LinkState::Unauthorized), device(LinkState::Offline), device(LinkState::Recovery));
    server.adb(["connect", &locked.serial()]);
    server.wait_for(&locked, "unauthorized", "never allowed");
    let refused = server.on(&locked, ["shell", "true"]);
    assert!(!refused.status.success() && err(&refused).contains("unauthorized"), "{refused:?}");
    server.adb(["connect", &recovery.serial()]);
    server.wait_for(&recovery, "recovery", "booted so");
    // adb waits for the device's first message, so this keeps running while the state is checked.
    let mut connecting = server.command().args(["connect", &mute.serial()]).spawn().unwrap();
    server.wait_for(&mute, "offline", "says nothing");
    assert!(!server.on(&mute, ["shell", "true"]).status.success());
    locked.set_state(LinkState::Device);
    server.wait_for(&locked, "device", "allowed at last");
    assert!(server.on(&locked, ["shell", "true"]).status.success());
    let _ = connecting.kill();
    connecting.wait().unwrap();
}

#[test]
fn delay_is_seen() {
    let delay = Duration::from_millis(100);
    let bench = Bench::with(Snapshot::Sm8650User, Options { delay, ..Options::default() });
    let begun = Instant::now();
    bench.says("true");
    // Opening the stream and the end of the command each take at least one packet there and one back.
    assert!(begun.elapsed() >= 2 * delay, "{:?}", begun.elapsed());
    bench.device.set_delay(Duration::ZERO);
    bench.says("true");
}

#[test]
fn readings_follow_the_scene_and_the_test() {
    let bench = Bench::new(Snapshot::Sm8550Root);
    let cooling = "/sys/class/thermal/cooling_device37/cur_state";
    let idle = bench.says(&format!("su -c 'cat /sys/class/kgsl/kgsl-3d0/gpuclk {cooling} /proc/stat'"));
    bench.device.set_scene(Scene::Load);
    let load = bench.says(&format!("su -c 'cat /sys/class/kgsl/kgsl-3d0/gpuclk {cooling} /proc/stat'"));
    assert_ne!(idle, load);
    assert!(err(&bench.shell("cat /sys/class/kgsl/kgsl-3d0/gpuclk")).contains("Permission denied"));
    bench.device.set_scene(Scene::Throttle);
    assert!(bench.says("dumpsys thermalservice").contains("Thermal Status: 3\n"));
    let hot: i64 = bench.says(&format!("cat {cooling}")).trim().parse().unwrap();
    assert!(hot > 0, "{hot}");
    bench.device.set_scene(Scene::Idle);
    assert!(bench.says("dumpsys thermalservice").contains("Thermal Status: 0\n"));
    assert_eq!(bench.says(&format!("su -c 'cat /sys/class/kgsl/kgsl-3d0/gpuclk {cooling} /proc/stat'")), idle);

    let zone = "/sys/class/thermal/thermal_zone0/temp";
    bench.device.write(zone, "99000\n");
    assert_eq!(bench.says(&format!("cat {zone}")), "99000\n");
    bench.device.refuse(zone);
    assert!(err(&bench.shell(&format!("cat {zone}"))).contains("Permission denied"));
    bench.device.allow(zone);
    bench.says(&format!("cat {zone}"));
    bench.device.remove(zone);
    assert!(err(&bench.shell(&format!("cat {zone}"))).contains("No such file"));
    bench.device.write("/sys/class/made/up/here", "new\n");
    assert_eq!(bench.says("cat /sys/class/made/up/here"), "new\n");
    bench.device.remove("/sys/class/made");
    bench.device.write("/proc/loadavg", "9.99 1.00 1.00 1/2 3\n");
    assert_eq!(bench.says("cat /proc/loadavg"), "9.99 1.00 1.00 1/2 3\n");
    bench.device.dumpsys("power", "mWakefulness=Awake\n");
    assert_eq!(bench.says("dumpsys power"), "mWakefulness=Awake\n");
}

#[test]
fn moving_readings_move_and_counters_only_grow() {
    let bench = Bench::new(Snapshot::Sm8650User);
    bench.device.refuse("/sys/class/thermal/thermal_zone2/temp");
    bench.device.remove("/sys/class/thermal/thermal_zone3");
    bench.device.set_moving(true);
    let policy = "/sys/devices/system/cpu/cpufreq/policy0";
    let steps = bench.says(&format!("cat {policy}/scaling_available_frequencies"));
    let watched =
        format!("cat {policy}/scaling_cur_freq /sys/class/thermal/thermal_zone1/temp /sys/kernel/gpu/gpu_busy");
    let user = || bench.says("read -r cpu user rest </proc/stat; echo $user").trim().parse::<u64>().unwrap();
    let (first, mut last) = (bench.says(&watched), user());
    let begun = last;
    let mut clocks = std::collections::BTreeSet::new();
    wait_until("three clocks, another temperature, one second of /proc/stat", || {
        let now = user();
        assert!(now >= last, "{now} after {last}");
        last = now;
        let readings = bench.says(&watched);
        clocks.insert(readings.lines().next().unwrap().to_owned());
        let temperature = |text: &str| text.lines().nth(1).unwrap().to_owned();
        clocks.len() >= 3 && temperature(&readings) != temperature(&first) && last > begun + 400
    });
    assert!(clocks.iter().all(|clock| steps.split_whitespace().any(|step| step == clock)), "{clocks:?} of {steps}");
    assert!(err(&bench.shell("cat /sys/class/thermal/thermal_zone2/temp")).contains("Permission denied"));
    assert!(err(&bench.shell("cat /sys/class/thermal/thermal_zone3/temp")).contains("No such file"));
    // Files become slow and fast again while the thread that moves them is running.
    let zone = "/sys/class/thermal/thermal_zone4/temp";
    for _ in 0..2000 {
        bench.device.slow_down(zone, Duration::from_millis(1), "40000\n");
        bench.device.write(zone, "30000\n");
    }
    bench.says(&format!("cat {zone}"));
    bench.device.set_moving(false);
    assert_eq!(bench.says(&watched), bench.says(&watched));
}

#[test]
fn a_slow_file_takes_its_time_for_each_reader() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let zone = "/sys/class/thermal/thermal_zone0/temp";
    let delay = Duration::from_millis(40);
    bench.device.slow_down(zone, delay, "41000\n");
    let begun = Instant::now();
    let ten = bench.says(&format!("i=0; while [ $i -lt 10 ]; do v=; read -r v <{zone}; echo $v; i=$((i+1)); done"));
    assert_eq!(ten, "41000\n".repeat(10));
    assert!(begun.elapsed() >= 10 * delay, "{:?}", begun.elapsed());
    bench.device.write(zone, "42000\n");
    assert_eq!(bench.says(&format!("cat {zone}")), "42000\n");
}

#[test]
fn hostile_text_arrives_byte_by_byte() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let text = b"\x1b]0;owned\x07\x1b[2J\xff\xfe\xc0 $(id) \\n 'q'";
    bench.device.set_property("ro.product.model", text);
    assert_eq!(bench.shell("getprop ro.product.model").stdout, [&text[..], b"\n"].concat());
    bench.device.write("/sys/class/thermal/thermal_zone0/temp", text);
    assert_eq!(bench.shell("cat /sys/class/thermal/thermal_zone0/temp").stdout, text);
    let long = vec![b'9'; 10_000_000];
    bench.device.write("/sys/class/thermal/thermal_zone1/temp", &long);
    assert!(bench.shell("cat /sys/class/thermal/thermal_zone1/temp").stdout == long);
}

#[test]
fn logcat_prints_and_follows() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let all = bench.says("logcat -d");
    assert!(all.contains("adsprpc") && all.contains("thermal-engine"), "{all}");
    let some = bench.says("logcat -d -v threadtime -b main -s adsprpc:I");
    assert!(some.contains(" I adsprpc") && !some.contains(" V adsprpc") && !some.contains("thermal"), "{some}");
    assert_eq!(bench.says("logcat -d -T 1").lines().count(), 1);
    let mut following = bench.start("logcat -T 1 -s QNN:V thermal-engine:V");
    let (line, mut reader) = first_line(&mut following);
    assert!(line.contains("thermal-engine"), "{line}");
    bench.device.log("11-21 06:41:00.000  2210  2210 I other   : not asked for");
    bench.device.log("11-21 06:41:00.001  2210  2210 E QNN     : something failed");
    let mut next = String::new();
    reader.read_line(&mut next).unwrap();
    assert!(next.ends_with("E QNN     : something failed\n"), "{next}");
    following.kill().unwrap();
    following.wait().unwrap();
}

#[test]
fn a_reboot_kills_everything_and_keeps_the_files() {
    let bench = Bench::with(Snapshot::Sm8650User, Options { reboot_time: Duration::ZERO, ..Options::default() });
    bench.says("echo kept >/data/local/tmp/kept");
    let mark = format!("10{}", bench.device.serial().rsplit(':').next().unwrap());
    let mut running = bench.start(&format!("echo up; exec sleep {mark}"));
    let (_, mut reader) = first_line(&mut running);
    assert!(processes_with(&mark) > 0);
    assert!(bench.adb(&["reboot"]).status.success());
    reader.read_to_end(&mut Vec::new()).unwrap();
    running.wait().unwrap();
    wait_until("the process is gone", || processes_with(&mark) == 0);
    bench.server.wait_for(&bench.device, "device", "booted again");
    let uptime: f64 = bench.says("cat /proc/uptime").split(' ').next().unwrap().parse().unwrap();
    assert!(uptime < PATIENCE.as_secs_f64() + 10.0, "{uptime}");
    assert_eq!(bench.says("cat /data/local/tmp/kept"), "kept\n");
    bench.device.reboot(Duration::from_millis(300));
    wait_until("away", || !bench.shell("true").status.success());
    bench.server.wait_for(&bench.device, "device", "booted a third time");
}

#[test]
fn nothing_is_left_even_after_a_panic() {
    let (mut mark, mut tree, mut home) = (String::new(), None, None);
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let bench = Bench::new(Snapshot::Sm8650User);
        mark = format!("11{}", bench.device.serial().rsplit(':').next().unwrap());
        tree = Some(bench.device.tree());
        home = Some(bench.server.home());
        bench.says(&format!(
            "mkdir /data/local/tmp/locked; chmod 0 /data/local/tmp/locked; sleep {mark} </dev/null >/dev/null 2>&1 &"
        ));
        wait_until("the process runs", || processes_with(&mark) == 1);
        assert!(tree.as_ref().unwrap().exists());
        bench.device.set_moving(true);
        bench.device.slow_down("/sys/class/thermal/thermal_zone0/temp", Duration::from_millis(40), "1\n");
        panic!("as a failing test does");
    }));
    assert_eq!(failed.unwrap_err().downcast_ref(), Some(&"as a failing test does"));
    assert_eq!(processes_with(&mark), 0);
    assert!(!tree.unwrap().parent().unwrap().exists());
    assert!(!home.unwrap().exists());
}

/// Prints the device's throughput; asserts only that the data arrives, since the time depends on the machine.
#[test]
fn throughput() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let ticks = 3000;
    let (mut reads, mut count) = (String::new(), 0);
    for zone in 0..30 {
        reads += &format!("v=; read -r v 2>/dev/null </sys/class/thermal/thermal_zone{zone}/temp; o=\"$o $v\"\n");
        count += 1;
    }
    let sampler = format!("i=0\nwhile [ $i -lt {ticks} ]; do\no=$EPOCHREALTIME\n{reads}echo \"$o\"\ni=$((i+1))\ndone");
    let begun = Instant::now();
    let text = bench.says(&sampler);
    let seconds = begun.elapsed().as_secs_f64();
    assert_eq!(text.lines().filter(|line| line.split(' ').count() == count + 1).count(), ticks);
    println!("sampler: {:.0} ticks/s of {count} files", ticks as f64 / seconds);

    let begun = Instant::now();
    for _ in 0..50 {
        bench.says("true");
    }
    println!("adb shell true: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3 / 50.0);

    let host = tempfile::tempdir().unwrap();
    let (from, back) = (host.path().join("from"), host.path().join("back"));
    let data = noise(50_000_000);
    std::fs::write(&from, &data).unwrap();
    for (what, args) in [
        ("push", ["push", from.to_str().unwrap(), "/data/local/tmp/big"]),
        ("pull", ["pull", "/data/local/tmp/big", back.to_str().unwrap()]),
    ] {
        let begun = Instant::now();
        let done = bench.adb(&args);
        assert!(done.status.success(), "{done:?}");
        println!("{what}: {:.0} MB/s", 50.0 / begun.elapsed().as_secs_f64());
    }
    assert!(std::fs::read(back).unwrap() == data);
    let begun = Instant::now();
    assert!(bench.adb(&["exec-out", "cat /data/local/tmp/big"]).stdout == data);
    println!("exec-out: {:.0} MB/s", 50.0 / begun.elapsed().as_secs_f64());
}

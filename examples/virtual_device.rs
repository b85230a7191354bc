//! A virtual phone: runs the tests' virtual device as a program, for trying qnnscope without hardware.
//!
//!     cargo run --example virtual_device -- [OPTIONS]
//!     adb connect 127.0.0.1:PORT
//!
//! Reads commands that set readings and faults from standard input; `help` lists them.

#![allow(clippy::pedantic, clippy::unwrap_used, clippy::expect_used, reason = "a test tool fails by panicking")]
#![allow(dead_code, unused_imports, reason = "the tests use more of the device than this program")]

#[path = "../tests/support/virtual_device/mod.rs"]
mod virtual_device;

use std::io::BufRead;
use std::time::Duration;
use virtual_device::{LinkState, Options, Scene, Snapshot, VirtualDevice};

const USAGE: &str = "\
options:
  --snapshot sm8650-user|sm8550-root|qcs6490-linux   which device to be (default sm8650-user)
  --delay MS       added to each packet, both ways (USB about 4, Wi-Fi about 30)
  --disk MB        size of the folder that the shell can write to
  --shell-v1       a device before Android 7
  --su-refused     su is there and says no
  --still          readings that do not move

commands on standard input:
  scene idle|load|throttle      move on|off        delay MS
  write PATH TEXT               remove PATH        refuse PATH      allow PATH
  slow PATH MS TEXT             log LINE           dumpsys SERVICE TEXT
  state device|recovery|unauthorized|offline       drop             drop-after BYTES
  unreachable on|off            reboot SECONDS     help             quit";

fn main() {
    let (snapshot, options, moving) = match arguments(std::env::args().skip(1)) {
        Ok(parsed) => parsed,
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            std::process::exit(2);
        }
    };
    let device = VirtualDevice::start(snapshot, options);
    device.set_moving(moving);
    println!("adb connect {}", device.serial());
    println!("files: {}   (help for commands, quit or end of input to stop)", device.tree().display());
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if line.trim() == "quit" {
            break;
        }
        if let Err(problem) = obey(&device, line.trim()) {
            eprintln!("{problem}");
        }
    }
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<(Snapshot, Options, bool), String> {
    let (mut snapshot, mut options, mut moving) = (Snapshot::Sm8650User, Options::default(), true);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--snapshot" => {
                snapshot = match value()?.as_str() {
                    "sm8650-user" => Snapshot::Sm8650User,
                    "sm8550-root" => Snapshot::Sm8550Root,
                    "qcs6490-linux" => Snapshot::Qcs6490Linux,
                    other => return Err(format!("there is no snapshot {other}")),
                }
            }
            "--delay" => options.delay = Duration::from_millis(number(&value()?)?),
            "--disk" => options.disk_bytes = Some(number(&value()?)? << 20),
            "--shell-v1" => options.shell_v1 = true,
            "--su-refused" => options.su_refused = true,
            "--still" => moving = false,
            "--help" => return Err("Runs a virtual device until standard input ends.".to_owned()),
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok((snapshot, options, moving))
}

fn obey(device: &VirtualDevice, line: &str) -> Result<(), String> {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
    if matches!(verb, "remove" | "refuse" | "allow") && !device.has(first) {
        return Err(format!("there is no {first}"));
    }
    if matches!(verb, "write" | "slow") && !device.can_write(first) {
        return Err(format!(
            "{first} cannot be changed: it must be an absolute path, and in /proc one of the snapshot's"
        ));
    }
    match verb {
        "" => {}
        "scene" => device.set_scene(match first {
            "idle" => Scene::Idle,
            "load" => Scene::Load,
            "throttle" => Scene::Throttle,
            _ => return Err("scene idle|load|throttle".to_owned()),
        }),
        "move" => device.set_moving(on(first)?),
        "delay" => device.set_delay(Duration::from_millis(number(first)?)),
        "write" => device.write(first, format!("{second}\n")),
        "remove" | "slow" if first.starts_with("/proc/") => {
            return Err("files over /proc can only be written and refused".to_owned());
        }
        "remove" => device.remove(first),
        "refuse" => device.refuse(first),
        "allow" => device.allow(first),
        "slow" => {
            let (ms, text) = second.split_once(' ').ok_or("slow PATH MS TEXT")?;
            device.slow_down(first, Duration::from_millis(number(ms)?), &format!("{text}\n"));
        }
        "log" => device.log(rest),
        "dumpsys" if first.contains('/') || first.is_empty() => return Err("dumpsys SERVICE TEXT".to_owned()),
        "dumpsys" => device.dumpsys(first, &format!("{second}\n")),
        "state" => device.set_state(match first {
            "device" => LinkState::Device,
            "recovery" => LinkState::Recovery,
            "unauthorized" => LinkState::Unauthorized,
            "offline" => LinkState::Offline,
            _ => return Err("state device|recovery|unauthorized|offline".to_owned()),
        }),
        "drop" => device.drop_link(),
        "drop-after" => device.drop_after_bytes(usize::try_from(number(first)?).map_err(|error| error.to_string())?),
        "unreachable" => device.refuse_connections(on(first)?),
        "reboot" => device.reboot(Duration::from_secs(number(first)?)),
        _ => println!("{USAGE}"),
    }
    Ok(())
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a whole number"))
}

fn on(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("on or off".to_owned()),
    }
}

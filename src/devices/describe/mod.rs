//! Identity and state of a device: everything is read with one command, by reading files and querying
//! Android's services.
//!
//! All of it is read-only. What a device does not report stays unknown.

mod android;
mod cpu;
mod root;

use super::device::Device;
use super::error::DeviceError;
use super::soc::{Soc, soc_by_id, soc_by_part};
use crate::event::{DeviceFacts, DeviceKind, SocFacts, clean_text};
use android::Properties;

pub use android::thermal_status;
use std::time::Duration;

/// Treats one text as the answer to every query to a device.
pub(crate) fn read_answers(text: &str) {
    let properties = Properties::parse(text);
    let _ = (android::version(&properties), soc_facts(&properties, text), model(&properties), linux_name(text));
    let _ = (android::battery(text), android::hottest(text), android::screen_on(text), thermal_status(text));
    let _ = (cpu::clusters(text), cpu::busy(text), root::user(text), free_bytes(text), meminfo(text, "MemTotal"));
}

/// Parts of the one script, in order. Each is its own command with its own exit status.
const PARTS: [(&str, &str); 17] = [
    ("getprop", "getprop"),
    ("soc0", "for f in soc_id machine family; do read -r v 2>/dev/null </sys/devices/soc0/$f && echo \"$f=$v\"; done"),
    ("id", "id"),
    ("getenforce", "getenforce"),
    ("kernel", "uname -r -m"),
    ("os_release", "cat /etc/os-release"),
    ("device_tree", "tr '\\0' '\\n' </proc/device-tree/model"),
    ("meminfo", "head -n 5 /proc/meminfo"),
    ("free", "if [ -d /data/local/tmp ]; then df -k /data/local/tmp; else df -k /var/tmp; fi"),
    (
        "cpus",
        "for p in /sys/devices/system/cpu/cpufreq/policy*; do for f in related_cpus cpuinfo_min_freq cpuinfo_max_freq \
         scaling_governor; do v=; read -r v 2>/dev/null <$p/$f; echo \"$p/$f=$v\"; done; done",
    ),
    (
        "gpu",
        "for f in /sys/class/kgsl/kgsl-3d0/gpu_model /sys/kernel/gpu/gpu_model; do cat $f 2>/dev/null && break; done",
    ),
    (
        "nodes",
        "ls -ld /dev/adsprpc-smd /dev/adsprpc-smd-secure /dev/fastrpc-cdsp /dev/fastrpc-cdsp-secure /dev/kgsl-3d0 \
         /vendor/lib64/libcdsprpc.so /usr/lib/libcdsprpc.so.1 2>/dev/null",
    ),
    ("battery", "dumpsys battery"),
    ("thermal", "dumpsys thermalservice"),
    ("low_power", "settings get global low_power"),
    ("screen", "dumpsys power | grep -m 1 mWakefulness="),
    ("top", "top -b -n 1 -m 8 -o %CPU,ARGS || ps -eo pcpu,args"),
];

/// Each dumpsys takes tens of milliseconds on a phone; on a loaded one, all of them may need seconds.
const LIMIT: Duration = Duration::from_secs(30);

impl Device {
    /// Determines identity and state of this device. Takes one round trip, and a second one if there is a `su`.
    pub async fn describe(&self) -> Result<DeviceFacts, DeviceError> {
        let scripts: Vec<&str> = PARTS.iter().map(|(_, script)| *script).collect();
        let outputs = self.run_each(&scripts, "finding out what it is", LIMIT).await?;
        let (shell_uid, shell_is_root) = root::user(&part(&outputs, "id", false));
        let root = if shell_is_root { super::Root::Shell } else { root::find(self).await? };
        let answer = |name: &str| part(&outputs, name, false);
        let printed = |name: &str| part(&outputs, name, true);
        let properties = Properties::parse(&answer("getprop"));
        let soc0 = printed("soc0");
        let soc = soc_facts(&properties, &soc0);
        let kernel = answer("kernel");
        let (release, machine) = kernel.trim().split_once(' ').unwrap_or((kernel.trim(), ""));
        let os_release = answer("os_release");
        let is_android = properties.get("ro.build.version.release").is_some();
        let table = soc.part.as_deref().and_then(soc_by_part);
        let known = |text: String| Some(text).filter(|text| !text.is_empty());
        let battery = android::battery(&answer("battery"));
        Ok(DeviceFacts {
            id: self.id().to_owned(),
            model: model(&properties).or_else(|| known(answer("device_tree").trim().to_owned())),
            os: if is_android { android::version(&properties) } else { linux_name(&os_release) },
            build: properties
                .get("ro.build.fingerprint")
                .or_else(|| properties.get("ro.build.id"))
                .map(ToOwned::to_owned),
            kernel: known(release.to_owned()),
            abi: properties.get("ro.product.cpu.abi").map_or_else(|| machine.to_owned(), ToOwned::to_owned),
            gpu: known(printed("gpu").trim().to_owned()).or_else(|| table?.gpu.map(ToOwned::to_owned)),
            clusters: cpu::clusters(&printed("cpus")),
            shell_uid,
            root,
            selinux: known(answer("getenforce").trim().to_owned()),
            free_bytes: free_bytes(&answer("free")),
            memory_bytes: meminfo(&answer("meminfo"), "MemTotal"),
            memory_available_bytes: meminfo(&answer("meminfo"), "MemAvailable"),
            nodes: printed("nodes").lines().map(ToOwned::to_owned).collect(),
            battery,
            thermal_status: android::thermal_status(&answer("thermal")),
            hottest_celsius: android::hottest(&answer("thermal")),
            power_save: match answer("low_power").trim() {
                "0" => Some(false),
                "1" => Some(true),
                _ => None,
            },
            screen_on: android::screen_on(&answer("screen")),
            busy_processes: cpu::busy(&answer("top")),
            soc,
        })
    }

    /// The part of [`Device::describe`]'s result that every session needs.
    pub fn identity(&self, facts: &DeviceFacts) -> crate::event::DeviceInfo {
        crate::event::DeviceInfo {
            id: facts.id.clone(),
            kind: self.kind(),
            model: facts.model.clone(),
            soc: facts.soc.part.clone(),
            hexagon_arch: facts.soc.hexagon_arch.clone(),
            abi: facts.abi.clone(),
            os: match self.kind() {
                DeviceKind::Local => facts
                    .kernel
                    .as_ref()
                    .map_or_else(|| facts.os.clone(), |kernel| format!("{}, kernel {kernel}", facts.os)),
                DeviceKind::Adb => facts.os.clone(),
            },
        }
    }
}

/// The output of a part of the script. Output of a failed part is useless unless `any` is set: a loop's status is that
/// of its last command, so its output counts regardless.
fn part(outputs: &[super::device::Output], name: &str, any: bool) -> String {
    let output = PARTS.iter().zip(outputs).find(|((part, _), _)| *part == name).map(|(_, output)| output);
    output.filter(|output| any || output.status == 0).map(super::device::Output::text).unwrap_or_default()
}

fn model(properties: &Properties) -> Option<String> {
    let maker = properties.get("ro.product.manufacturer");
    let model = properties.get("ro.product.model")?;
    Some(match maker {
        Some(maker) if !model.to_lowercase().starts_with(&maker.to_lowercase()) => format!("{maker} {model}"),
        _ => model.to_owned(),
    })
}

/// The SoC from the device's own data: its part name first, then the kernel's number.
fn soc_facts(properties: &Properties, soc0: &str) -> SocFacts {
    let value = |key: &str| {
        soc0.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::trim).filter(|v| !v.is_empty())
    };
    let soc_id = value("soc_id").and_then(|id| id.parse().ok());
    let named = ["ro.soc.model", "ro.vendor.qti.soc_model"].iter().find_map(|key| properties.get(key));
    // On boards `machine` is the part; on phones it is a code name that no table has.
    let machine = value("machine").filter(|name| soc_by_part(name).is_some());
    let entry: Option<&Soc> =
        named.and_then(soc_by_part).or_else(|| soc_id.and_then(soc_by_id)).or_else(|| machine.and_then(soc_by_part));
    SocFacts {
        part: named
            .map(ToOwned::to_owned)
            .or_else(|| entry.map(|soc| soc.part.to_owned()))
            .or_else(|| value("machine").map(clean_text)),
        name: entry.and_then(|soc| soc.name).map(ToOwned::to_owned),
        soc_id,
        soc_model: entry.and_then(|soc| soc.soc_model),
        hexagon_arch: entry.and_then(Soc::arch_name),
        vtcm_mb: entry.and_then(|soc| soc.vtcm_mb),
        htp_fp16: entry.and_then(|soc| soc.fp16),
    }
}

fn linux_name(os_release: &str) -> String {
    let value = |key: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    value("PRETTY_NAME").or_else(|| value("NAME")).unwrap_or_else(|| "Linux".to_owned())
}

/// Free bytes from the last line of `df -k`: its last plain number.
pub fn free_bytes(df: &str) -> Option<u64> {
    let line = df.lines().last()?;
    let numbers: Vec<u64> = line.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    // Blocks, used, available; the name before them may be a number too, which makes four.
    let available = numbers.len().checked_sub(1)?;
    if numbers.len() < 3 { None } else { numbers[available].checked_mul(1024) }
}

/// A row of `/proc/meminfo`, bytes.
pub fn meminfo(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socs_are_named_by_the_best_source() {
        let properties = Properties::parse("[ro.soc.model]: [SM8650]\n[ro.soc.manufacturer]: [QTI]");
        let soc = soc_facts(&properties, "soc_id=696\nmachine=PINEAPPLE\n");
        assert_eq!(
            (soc.part.as_deref(), soc.soc_model, soc.hexagon_arch.as_deref()),
            (Some("SM8650"), Some(57), Some("v75"))
        );
        let none = Properties::parse("");
        let board = soc_facts(&none, "soc_id=498\nmachine=QCS6490\n");
        assert_eq!((board.part.as_deref(), board.soc_model), (Some("QCS6490"), Some(93)));
        let unknown = soc_facts(&Properties::parse("[ro.soc.model]: [SM9999]"), "soc_id=9999\n");
        assert_eq!((unknown.part.as_deref(), unknown.soc_model, unknown.hexagon_arch), (Some("SM9999"), None, None));
        assert_eq!(soc_facts(&none, ""), SocFacts::default());
    }

    #[test]
    fn free_space_is_read_from_each_form_of_df() {
        let toybox = "Filesystem     1K-blocks     Used Available Use% Mounted on\n/dev/block/dm-9 229018600 60123456 168764000  27% /data\n";
        assert_eq!(free_bytes(toybox), Some(168_764_000 * 1024));
        let number = "Filesystem 1K-blocks Used Available Use% Mounted on\n64 100 40 60 40% /tmp\n";
        assert_eq!(free_bytes(number), Some(60 * 1024));
        assert_eq!(free_bytes("df: /x: No such file or directory"), None);
        assert_eq!(free_bytes(""), None);
    }
}

//! A device: its identity, whether its DSP is reachable, the vendor's libraries on it, and the tools for runs on it.

use super::Doctor;
use super::item::Item;
use crate::backends::device_runner::{RunnerSearch, find_libraries, locate};
use crate::backends::on_device::Sdk;
use crate::devices::Device;
use crate::event::DeviceFacts;
use crate::facts::{BuildId, DSP_FOLDERS, DspLook, LIBRARY_FOLDERS, Listing, build_id_of, details, look};
use std::collections::BTreeSet;
use std::path::Path;

/// Free space below which the files of a run do not fit, and below which space is tight, bytes.
const NO_ROOM: u64 = 64 << 20;
const LITTLE_ROOM: u64 = 1 << 30;
/// Available memory below which models fail to load, bytes.
const LITTLE_MEMORY: u64 = 512 << 20;
/// Thermal status from which runs are refused.
const TOO_HOT: u32 = 4;

/// Examines a device; also returns whether it can run a model.
pub async fn examine(device: &Device, doctor: &Doctor, sdk: Option<&Path>) -> (Vec<Item>, bool) {
    let facts = match device.describe().await {
        Ok(facts) => facts,
        Err(error) => {
            let item = Item::problem("device", "device", error.to_string(), error.advice().unwrap_or_default());
            return (vec![item], false);
        }
    };
    let mut items = vec![identity(&facts)];
    let (runs_with, runs) = means(device, doctor, &facts).await;
    let folders: Vec<String> = LIBRARY_FOLDERS.iter().chain(&DSP_FOLDERS).map(|&folder| folder.to_owned()).collect();
    items.push(arch(&facts));
    match look(device, &folders, None, facts.root, None).await {
        Ok(told) => {
            items.push(nodes(&told));
            items.push(client(&told));
            items.push(remoteproc(&told));
            items.push(vendor(device, &told, sdk).await);
            items.push(denials(&told));
        }
        Err(error) => items.push(Item::problem("dsp", "DSP", error.to_string(), error.advice().unwrap_or_default())),
    }
    items.extend(runs_with);
    items.push(space(&facts));
    items.push(memory(&facts));
    items.push(thermal(&facts));
    items.push(access(&facts));
    (items, runs)
}

fn identity(facts: &DeviceFacts) -> Item {
    let model = facts.model.clone().unwrap_or_else(|| "model unknown".to_owned());
    let part = facts.soc.part.clone().unwrap_or_else(|| "SoC unknown".to_owned());
    Item::ok("device", "device", format!("{model}, {part}, {}, {}", facts.os, facts.abi))
}

fn arch(facts: &DeviceFacts) -> Item {
    let what = "DSP architecture";
    let number = facts.soc.hexagon_arch.as_deref().and_then(|arch| arch.strip_prefix('v')?.parse::<u32>().ok());
    match number {
        Some(arch) if arch < 68 => {
            Item::problem("dsp-arch", what, format!("Hexagon v{arch}; HTP starts at v68"), "run on cpu or gpu")
        }
        Some(arch) => {
            let vtcm = facts.soc.vtcm_mb.map_or_else(|| "VTCM unknown".to_owned(), |mb| format!("{mb} MB of VTCM"));
            let float = match facts.soc.htp_fp16 {
                Some(true) => "float graphs run",
                Some(false) => "no float graphs",
                None => "float graphs unknown",
            };
            Item::ok("dsp-arch", what, format!("Hexagon v{arch}, {vtcm}, {float}"))
        }
        None => Item::warning(
            "dsp-arch",
            what,
            "not known for this SoC",
            "name it with --htp-arch, such as v75, to run HTP",
        ),
    }
}

fn nodes(told: &DspLook) -> Item {
    let what = "FastRPC nodes";
    let compute: Vec<_> = told.nodes.iter().filter(|node| node.is_compute()).collect();
    let open: Vec<&str> = compute.iter().filter(|node| node.readable).map(|node| node.path.as_str()).collect();
    if compute.is_empty() {
        let fix = "without one, HTP is unreachable: on a board load the fastrpc driver; on a phone SELinux may hide it from the shell";
        return Item::warning("fastrpc", what, "no fastrpc-cdsp or adsprpc-smd in /dev", fix);
    }
    if open.is_empty() {
        let shown: Vec<&str> = compute.iter().map(|node| node.shown.as_str()).collect();
        let fix = "Linux: add the user to the fastrpc group or a udev rule; Android: run as the shell user under /data/local/tmp";
        return Item::problem("fastrpc", what, format!("this user may open none: {}", shown.join("; ")), fix);
    }
    Item::ok("fastrpc", what, format!("may be opened: {}", open.join(", ")))
}

fn client(told: &DspLook) -> Item {
    let found: Vec<String> = told
        .files(|name| name.starts_with("libcdsprpc.so"))
        .map(|(folder, file)| format!("{folder}/{}", file.name))
        .collect();
    if found.is_empty() {
        let fix = "Linux board: install Qualcomm's fastrpc package; Android: the firmware has it under /vendor/lib64";
        return Item::warning("libcdsprpc", "libcdsprpc", "in no readable library folder", fix);
    }
    Item::ok("libcdsprpc", "libcdsprpc", found.join(", "))
}

fn remoteproc(told: &DspLook) -> Item {
    let what = "compute DSP";
    match told.remoteprocs.iter().find(|remote| remote.is_compute()) {
        Some(cdsp) if matches!(cdsp.state.as_str(), "running" | "attached") => {
            Item::ok("remoteproc", what, format!("{} ({})", cdsp.state, cdsp.name))
        }
        Some(cdsp) => {
            let detail = format!("{} is {}", cdsp.name, cdsp.state);
            Item::problem("remoteproc", what, detail, "restart the device; a Linux board may lack the DSP firmware")
        }
        None if told.remoteproc_refused => Item::ok("remoteproc", what, "this user may not read its state"),
        None => Item::ok("remoteproc", what, "the kernel does not report its state"),
    }
}

/// The system's stubs, skels and backends with their builds; if the loader finds them first, they shadow the
/// files sent for a run.
async fn vendor(device: &Device, told: &DspLook, sdk: Option<&Path>) -> Item {
    let what = "QNN of the system";
    let is_qnn = |name: &str| name.starts_with("libQnnHtp") || name == "libQnnSystem.so";
    let files: Vec<(String, u64)> = told
        .files(is_qnn)
        .filter(|(_, file)| file.readable)
        .map(|(folder, file)| (format!("{folder}/{}", file.name), file.bytes))
        .collect();
    if files.is_empty() {
        let refused = told.folders.iter().filter(|folder| folder.listing == Listing::Refused);
        let refused: Vec<&str> = refused.map(|folder| folder.path.as_str()).collect();
        let note = if refused.is_empty() { String::new() } else { format!("; not listed: {}", refused.join(", ")) };
        return Item::ok("vendor", what, format!("no stub or skel under /vendor, /odm, /system or /dsp{note}"));
    }
    let read = details(device, &files).await.unwrap_or_default();
    let shown: Vec<String> = files
        .iter()
        .map(|(path, _)| {
            let build = read.get(path).and_then(|(_, build)| build.as_ref());
            build.map_or_else(|| format!("{path} (build unknown)"), |build| format!("{path} {build}"))
        })
        .collect();
    let builds: BTreeSet<&BuildId> = read.values().filter_map(|(_, build)| build.as_ref()).collect();
    let own = sdk.and_then(sdk_build);
    let detail = shown.join(", ");
    match own {
        Some(own) if builds.iter().any(|build| **build != own) => {
            let fix = format!(
                "the SDK is {own}: keep the run's folder first on LD_LIBRARY_PATH and ADSP_LIBRARY_PATH (qnnscope does), or --no-vendor-libs"
            );
            Item::warning("vendor", what, detail, fix)
        }
        _ => Item::ok("vendor", what, detail),
    }
}

/// Build of the SDK's device libraries.
fn sdk_build(sdk: &Path) -> Option<BuildId> {
    let folders = super::sdk::names(&sdk.join("lib")).into_iter().filter(|name| name.starts_with("aarch64"));
    let files = folders.map(|name| sdk.join("lib").join(name).join("libQnnHtp.so")).filter(|file| file.is_file());
    files.into_iter().find_map(|file| build_id_of(&file).ok().flatten())
}

fn denials(told: &DspLook) -> Item {
    let what = "SELinux denials";
    let enforcing = told.selinux.as_deref() != Some("Permissive");
    match told.denials.as_deref() {
        Some([.., last]) if enforcing => {
            let fix = "run from the shell user under /data/local/tmp, or from an app that declares libcdsprpc.so";
            Item::warning("denials", what, format!("the log has denials about the DSP, the last: {last}"), fix)
        }
        Some(_) => Item::ok("denials", what, "no denials about the DSP in the logs"),
        None => Item::ok("denials", what, "this user may not read the logs"),
    }
}

/// The tools for runs: a runner built for the device, or the SDK's qnn-net-run.
async fn means(device: &Device, doctor: &Doctor, facts: &DeviceFacts) -> (Vec<Item>, bool) {
    let mut items = Vec::new();
    let search = RunnerSearch { named: doctor.runner.as_deref(), data_dir: doctor.env.data_dir.as_deref() };
    let libraries = find_libraries(doctor.runtime.as_deref(), &doctor.env, facts);
    let runner = locate(search, device, facts).await;
    let mut runs = runner.is_ok() && libraries.is_ok();
    if let Ok(path) = &runner {
        items.push(Item::ok("runner", "runner for it", path.display().to_string()));
    } else if doctor.runner.is_some()
        && let Err(error) = &runner
    {
        items.push(Item::problem("runner", "runner for it", error.to_string(), error.advice().unwrap_or_default()));
    }
    let target = Sdk::locate(doctor.runtime.as_deref(), &doctor.env).and_then(|sdk| sdk.target(facts));
    match &target {
        Ok(target) => {
            runs = true;
            items.push(Item::ok("net-run", "qnn-net-run for it", target.tool().display().to_string()));
        }
        Err(_) if runs => items.push(Item::ok("net-run", "qnn-net-run for it", "none; not needed with the runner")),
        Err(error) => {
            items.push(Item::problem(
                "net-run",
                "qnn-net-run for it",
                error.to_string(),
                error.advice().unwrap_or_default(),
            ));
        }
    }
    let arch = facts.soc.hexagon_arch.as_deref().and_then(|arch| arch.strip_prefix('v')?.parse().ok());
    let place = target.ok().or(libraries.ok());
    if let (Some(place), Some(arch)) = (place, arch.filter(|arch| *arch >= 68)) {
        let stub = place.needed(&format!("libQnnHtpV{arch}Stub.so"), "speaks to the DSP");
        items.push(match (stub, place.skel(arch)) {
            (Ok(_), Ok(_)) => Item::ok("stub-skel", "stub and skel for it", format!("there for v{arch}")),
            (Err(error), _) | (_, Err(error)) => Item::warning(
                "stub-skel",
                "stub and skel for it",
                error.to_string(),
                error.advice().unwrap_or_default(),
            ),
        });
    }
    (items, runs)
}

fn mib(bytes: u64) -> String {
    if bytes >= 10 << 30 { format!("{} GB", bytes >> 30) } else { format!("{} MB", bytes >> 20) }
}

fn space(facts: &DeviceFacts) -> Item {
    let fix = "free space; `qnnscope clean --device SERIAL` removes what qnnscope put there";
    match facts.free_bytes {
        Some(free) if free < NO_ROOM => Item::problem("space", "free space", mib(free), fix),
        Some(free) if free < LITTLE_ROOM => Item::warning("space", "free space", mib(free), fix),
        Some(free) => Item::ok("space", "free space", mib(free)),
        None => Item::ok("space", "free space", "not reported"),
    }
}

fn memory(facts: &DeviceFacts) -> Item {
    match facts.memory_available_bytes {
        Some(free) if free < LITTLE_MEMORY => {
            Item::warning("memory", "memory", format!("{} available", mib(free)), "close apps, or restart the device")
        }
        Some(free) => Item::ok("memory", "memory", format!("{} available", mib(free))),
        None => Item::ok("memory", "memory", "not reported"),
    }
}

fn thermal(facts: &DeviceFacts) -> Item {
    let hottest = facts.hottest_celsius.map_or_else(String::new, |celsius| format!(", hottest sensor {celsius:.0} °C"));
    match facts.thermal_status {
        Some(0) => Item::ok("thermal", "thermal state", format!("not throttling{hottest}")),
        Some(status) if status >= TOO_HOT => Item::problem(
            "thermal",
            "thermal state",
            format!("status {status}{hottest}"),
            "let it cool down; runs are refused",
        ),
        Some(status) => Item::warning(
            "thermal",
            "thermal state",
            format!("throttling, status {status}{hottest}"),
            "let it cool down first",
        ),
        None => Item::ok("thermal", "thermal state", "not reported"),
    }
}

fn access(facts: &DeviceFacts) -> Item {
    use crate::devices::Root;
    let root = match facts.root {
        Root::None => "no root: some counters cannot be read, and runs have the shell's priority",
        Root::Shell => "the shell is root",
        Root::SuC | Root::Su0 => "root via su",
    };
    let selinux = facts
        .selinux
        .as_ref()
        .map_or_else(|| "SELinux not reported".to_owned(), |mode| format!("SELinux {}", mode.to_lowercase()));
    Item::ok("access", "access", format!("{root}; {selinux}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;
    use crate::facts::{Node, RemoteFile};

    #[test]
    fn what_stands_in_the_way_of_the_dsp_is_told() {
        let mut told = DspLook::default();
        assert_eq!(nodes(&told).status, Status::Warning);
        told.nodes = vec![Node { path: "/dev/fastrpc-cdsp".into(), readable: false, shown: "crw------- root".into() }];
        assert_eq!(nodes(&told).status, Status::Problem);
        told.nodes[0].readable = true;
        assert_eq!(nodes(&told).status, Status::Ok);
        assert_eq!(client(&told).status, Status::Warning);
        let file = RemoteFile { name: "libcdsprpc.so".into(), bytes: 1, readable: true };
        told.folders = vec![crate::facts::Folder { path: "/vendor/lib64".into(), listing: Listing::Files(vec![file]) }];
        assert_eq!(client(&told).detail, "/vendor/lib64/libcdsprpc.so");
        told.selinux = Some("Enforcing".into());
        told.denials = Some(vec!["avc: denied { read }".into()]);
        assert_eq!(denials(&told).status, Status::Warning);
    }
}

//! This machine.

use crate::event::{DeviceInfo, DeviceKind, clean_text};
use sysinfo::{CpuRefreshKind, RefreshKind, System};

/// Identity of this machine.
pub fn local_device() -> DeviceInfo {
    let system = System::new_with_specifics(RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing())).ok();
    let cpu = system.as_ref().and_then(|system| system.cpus().first());
    let brand = cpu.map(|cpu| clean_text(cpu.brand().trim())).filter(|brand| !brand.is_empty());
    let name =
        System::long_os_version().or_else(|_| System::name()).unwrap_or_else(|_| std::env::consts::OS.to_owned());
    let kernel = System::kernel_version().map_or_else(|_| String::new(), |version| format!(", kernel {version}"));
    DeviceInfo {
        id: "local".to_owned(),
        kind: DeviceKind::Local,
        model: brand,
        soc: soc_name(),
        hexagon_arch: None,
        abi: std::env::consts::ARCH.to_owned(),
        os: clean_text(&format!("{name}{kernel}")),
    }
}

/// Name of the SoC where the kernel tells it (Snapdragon boards that run qnnscope themselves).
fn soc_name() -> Option<String> {
    let name = std::fs::read_to_string("/sys/devices/soc0/machine").ok()?;
    Some(clean_text(name.trim())).filter(|name| !name.is_empty())
}

//! Options and queries of the HTP backend beyond the core API.

#![expect(unsafe_code, reason = "FFI")]

use super::raw::NULL;
use super::{Backend, Device, QnnError};
use crate::sys;
use std::ffi::c_void;
use std::rc::Rc;

/// Backend id of HTP.
const HTP: u32 = 6;

/// The hardware a device represents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceTarget {
    /// QNN's SoC number.
    pub soc_model: Option<u32>,
    /// Hexagon architecture number, such as 75.
    pub arch: Option<u32>,
}

impl Device {
    /// deviceCreate for a target, which only HTP receives. Returns whether the backend has devices at all.
    pub fn create(backend: &Rc<Backend>, target: DeviceTarget) -> Result<(Rc<Self>, bool), QnnError> {
        let mut records = Vec::new();
        if backend.library().table().backend_id() == HTP {
            // The value is stored in both places the field ever had; for ARCH the first word of the new union is the
            // device id and the second the arch; the old layout does not need the reverse.
            if let Some(soc) = target.soc_model {
                records.push(sys::HtpDeviceCustomConfig {
                    option: sys::HTP_DEVICE_OPTION_SOC,
                    old_value: soc,
                    value: soc,
                    value_tail: 0,
                });
            }
            if let Some(arch) = target.arch {
                records.push(sys::HtpDeviceCustomConfig {
                    option: sys::HTP_DEVICE_OPTION_ARCH,
                    old_value: 0,
                    value: arch,
                    value_tail: arch,
                });
            }
        }
        Self::create_with(backend, &mut records)
    }
}

/// Graph options, passed at creation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GraphOptions {
    /// QNN priority (0 low, 100 normal, 200 high).
    pub priority: Option<u32>,
    /// 0 float32, 1 float16 (HTP).
    pub precision: Option<u32>,
    /// VTCM, MB; 0 is the SoC's maximum (HTP).
    pub vtcm_mb: Option<u32>,
    /// HVX threads (HTP).
    pub hvx_threads: Option<u64>,
    /// Finalize optimisation level 1 to 3 (HTP).
    pub optimization_level: Option<u32>,
    /// Compression of activations in DDR (HTP).
    pub dlbc: Option<bool>,
}

impl GraphOptions {
    /// The HTP records of these options.
    pub(super) fn htp_records(self) -> Vec<sys::HtpGraphCustomConfig> {
        use sys::HtpGraphUnion as U;
        let mut records = Vec::new();
        let mut push = |option, set: &dyn Fn(&mut U)| {
            let mut value = U { raw: [0; 6] };
            set(&mut value);
            records.push(sys::HtpGraphCustomConfig { option, value });
        };
        if let Some(precision) = self.precision {
            push(sys::HTP_GRAPH_OPTION_PRECISION, &|u| u.precision = precision);
        }
        if let Some(mb) = self.vtcm_mb {
            push(sys::HTP_GRAPH_OPTION_VTCM_MB, &|u| u.vtcm_mb = mb);
        }
        if let Some(threads) = self.hvx_threads {
            push(sys::HTP_GRAPH_OPTION_HVX_THREADS, &|u| u.hvx_threads = threads);
        }
        if let Some(level) = self.optimization_level {
            push(sys::HTP_GRAPH_OPTION_OPTIMIZATION, &|u| {
                u.optimization = sys::HtpOptimization { kind: sys::HTP_OPTIMIZATION_LEVEL, value: level as f32 };
            });
        }
        if let Some(dlbc) = self.dlbc {
            push(sys::HTP_GRAPH_OPTION_OPTIMIZATION, &|u| {
                u.optimization =
                    sys::HtpOptimization { kind: sys::HTP_OPTIMIZATION_DLBC, value: f32::from(u8::from(dlbc)) };
            });
        }
        records
    }

    /// The configs that carry `htp` and the priority; they point into `htp`.
    pub(super) fn configs(self, htp: &mut [sys::HtpGraphCustomConfig]) -> Vec<sys::CustomConfig> {
        let mut configs: Vec<sys::CustomConfig> = htp
            .iter_mut()
            .map(|record| sys::CustomConfig { option: 0, custom: std::ptr::from_mut(record).cast() })
            .collect();
        if let Some(priority) = self.priority {
            // The priority is in the first word of the union, where the custom pointer would be.
            configs.push(sys::CustomConfig {
                option: sys::GRAPH_OPTION_PRIORITY,
                custom: std::ptr::without_provenance_mut(priority as usize),
            });
        }
        configs
    }
}

/// What deviceGetPlatformInfo reports about an HTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HtpPlatform {
    /// VTCM, MB.
    pub vtcm_mb: u64,
    /// QNN's SoC number.
    pub soc_model: u32,
    /// Hexagon architecture number.
    pub arch: u32,
}

impl HtpPlatform {
    /// Queries the backend; `None` if it does not report it.
    pub fn read(backend: &Backend) -> Option<Self> {
        let library = backend.library();
        if library.table().backend_id() != HTP {
            return None;
        }
        let get: sys::GetPlatformInfoFn =
            library.function(sys::slots::core::DEVICE_GET_PLATFORM_INFO, "deviceGetPlatformInfo").ok()?;
        let free: sys::FreePlatformInfoFn =
            library.function(sys::slots::core::DEVICE_FREE_PLATFORM_INFO, "deviceFreePlatformInfo").ok()?;
        let mut info: *const sys::PlatformInfo = std::ptr::null();
        // SAFETY: the logger is alive, the out pointer is valid.
        let code = unsafe { get(backend.logger_handle(), &raw mut info) };
        if code != 0 || info.is_null() {
            return None;
        }
        // SAFETY: a version 1 record with `device_count` devices; for backend id 6 the extension is the HTP record.
        let platform = unsafe {
            let v1 = (*info).v1;
            let device = if v1.device_count > 0 { v1.devices.as_ref() } else { None };
            device.and_then(|device| device.v1.extension.cast::<sys::HtpDeviceInfoExtension>().as_ref()).and_then(
                |extension| {
                    (extension.kind == 0).then_some(Self {
                        vtcm_mb: extension.on_chip.vtcm_mb as u64,
                        soc_model: extension.on_chip.soc_model,
                        arch: extension.on_chip.arch,
                    })
                },
            )
        };
        // SAFETY: frees what `get` made; nothing of it is kept.
        unsafe { free(backend.logger_handle(), info) };
        platform
    }
}

/// QNN's performance profiles, and the corresponding HTP votes (from public sources of ONNX Runtime and `LiteRT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerProfile {
    /// QNN's name.
    pub name: &'static str,
    dcvs: bool,
    sleep_latency_us: u32,
    corner: u32,
    power_mode: u32,
    rpc_polling_us: u32,
}

const fn profile(name: &'static str, dcvs: bool, sleep_latency_us: u32, corner: u32, polling: u32) -> PowerProfile {
    PowerProfile { name, dcvs, sleep_latency_us, corner, power_mode: 0x10, rpc_polling_us: polling }
}

const MAX_POLLING_US: u32 = 9999;

const PROFILES: [PowerProfile; 9] = [
    profile("burst", false, 40, 0xa0, MAX_POLLING_US),
    profile("sustained_high_performance", false, 100, 0x80, MAX_POLLING_US),
    profile("high_performance", false, 100, 0x80, MAX_POLLING_US),
    profile("balanced", true, 1000, 0x70, 0),
    profile("low_balanced", true, 1000, 0x60, 0),
    profile("high_power_saver", true, 1000, 0x50, 0),
    profile("power_saver", true, 1000, 0x40, 0),
    profile("low_power_saver", true, 1000, 0x30, 0),
    PowerProfile {
        name: "extreme_power_saver",
        dcvs: true,
        sleep_latency_us: 1000,
        corner: 0x10,
        power_mode: 4,
        rpc_polling_us: 0,
    },
];

impl PowerProfile {
    /// A profile by QNN's name; `default` and `system_settings` have no votes and are not included.
    pub fn by_name(name: &str) -> Option<Self> {
        PROFILES.into_iter().find(|profile| profile.name == name)
    }

    fn dcvs(self) -> sys::DcvsV3 {
        sys::DcvsV3 {
            context_id: 0,
            set_dcvs_enable: 1,
            dcvs_enable: u32::from(self.dcvs),
            power_mode: self.power_mode,
            set_sleep_latency: 1,
            sleep_latency_us: self.sleep_latency_us,
            set_sleep_disable: 0,
            sleep_disable: 0,
            set_bus_params: 1,
            bus_min: self.corner,
            bus_target: self.corner,
            bus_max: self.corner,
            set_core_params: 1,
            core_min: self.corner,
            core_target: self.corner,
            core_max: self.corner,
        }
    }
}

/// An active vote for clocks; withdrawn on drop.
pub struct PowerVote {
    // Votes are per device, so the device must outlive them.
    _device: Rc<Device>,
    perf: sys::PerfInfrastructure,
    id: u32,
}

impl PowerVote {
    /// Votes for a profile on device 0, core 0.
    ///
    /// # Errors
    /// The backend is not HTP, lacks the calls, or refuses.
    pub fn cast(device: &Rc<Device>, profile: PowerProfile) -> Result<Self, QnnError> {
        let library = device.backend().library();
        if library.table().backend_id() != HTP {
            return Err(QnnError::Unexpected { what: "only the HTP backend takes power votes".to_owned() });
        }
        let get: sys::GetInfrastructureFn =
            library.function(sys::slots::core::DEVICE_GET_INFRASTRUCTURE, "deviceGetInfrastructure")?;
        let mut infrastructure: *const c_void = NULL;
        // SAFETY: the out pointer is valid; the record belongs to the library.
        library.check("deviceGetInfrastructure", unsafe { get(&raw mut infrastructure) })?;
        // SAFETY: for backend id 6 it is the HTP record.
        let infrastructure = unsafe { infrastructure.cast::<sys::HtpInfrastructure>().as_ref() };
        let perf = infrastructure
            .filter(|record| record.kind == 0)
            .map(|record| record.perf)
            .ok_or_else(|| QnnError::Unexpected { what: "the HTP backend has no perf infrastructure".to_owned() })?;
        let missing =
            || QnnError::Unexpected { what: "the HTP backend's perf infrastructure is incomplete".to_owned() };
        let create = perf.create_power_config_id.ok_or_else(missing)?;
        let set = perf.set_power_config.ok_or_else(missing)?;
        let mut id = 0u32;
        // SAFETY: device 0 and core 0 exist; the out pointer is valid.
        library.check("createPowerConfigId", unsafe { create(0, 0, &raw mut id) })?;
        let vote = Self { _device: device.clone(), perf, id };
        let configs = [
            sys::PowerConfig {
                option: sys::POWER_OPTION_DCVS_V3,
                value: sys::PowerUnion { dcvs_v3: sys::DcvsV3 { context_id: id, ..profile.dcvs() } },
            },
            power_number(sys::POWER_OPTION_RPC_CONTROL_LATENCY, 100),
            power_number(sys::POWER_OPTION_RPC_POLLING_TIME, profile.rpc_polling_us),
        ];
        let list = [&raw const configs[0], &raw const configs[1], &raw const configs[2], std::ptr::null()];
        // SAFETY: the list is null-terminated and, with its records, outlives the call.
        library.check("setPowerConfig", unsafe { set(id, list.as_ptr()) })?;
        Ok(vote)
    }
}

fn power_number(option: u32, number: u32) -> sys::PowerConfig {
    let mut value = sys::PowerUnion { dcvs_v3: sys::DcvsV3::default() };
    value.rpc_polling_time_us = number;
    sys::PowerConfig { option, value }
}

impl Drop for PowerVote {
    fn drop(&mut self) {
        if let Some(destroy) = self.perf.destroy_power_config_id {
            // SAFETY: the id is ours and not used again; the device is alive.
            unsafe { destroy(self.id) };
        }
    }
}

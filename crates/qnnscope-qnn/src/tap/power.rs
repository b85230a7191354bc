//! Power votes, which bypass the function table and use functions of the HTP backend's infrastructure record.

#![expect(unsafe_code, reason = "FFI")]

use super::process::current;
use super::{guard, providers, system};
use crate::sys;
use qnnscope_core::tap::{TapMessage, Vote};
use serde_json::{Map, Value};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Maximum plausible number of settings per vote.
const MOST: usize = 32;

struct Copy {
    real: AtomicPtr<sys::HtpInfrastructure>,
    ours: UnsafeCell<Option<sys::HtpInfrastructure>>,
}

// SAFETY: written with the same content whenever the program asks for the record; see `infrastructure`.
unsafe impl Sync for Copy {}

static COPIES: [Copy; providers::MOST] =
    [const { Copy { real: AtomicPtr::new(std::ptr::null_mut()), ours: UnsafeCell::new(None) } }; providers::MOST];

pub(super) unsafe extern "C" fn get_infrastructure<const P: usize>(out: *mut *const c_void) -> u64 {
    let Some(real) = providers::real::<sys::GetInfrastructureFn>(P, sys::slots::core::DEVICE_GET_INFRASTRUCTURE) else {
        return sys::NOT_SUPPORTED;
    };
    // SAFETY: forwards the caller's argument.
    let code = unsafe { real(out) };
    if code == 0 && !out.is_null() {
        guard(|| {
            // SAFETY: the call succeeded, so it was written.
            let record = unsafe { *out }.cast::<sys::HtpInfrastructure>();
            if let Some(ours) = infrastructure::<P>(record) {
                // SAFETY: the caller's out pointer.
                unsafe { *out = ours.cast() };
            }
        });
    }
    code
}

/// Our copy of HTP's record, if its kind is known.
fn infrastructure<const P: usize>(record: *const sys::HtpInfrastructure) -> Option<*const sys::HtpInfrastructure> {
    const HTP: u32 = 6;
    if providers::table(P)?.backend_id() != HTP || record.is_null() {
        return None;
    }
    // SAFETY: HTP's record has this shape if its kind is 0 (perf).
    let mut copy = unsafe { *record };
    if copy.kind != 0 {
        return None;
    }
    copy.perf.create_power_config_id =
        copy.perf.create_power_config_id.map(|_| create::<P> as sys::CreatePowerConfigIdFn);
    copy.perf.destroy_power_config_id =
        copy.perf.destroy_power_config_id.map(|_| destroy::<P> as sys::DestroyPowerConfigIdFn);
    copy.perf.set_power_config = copy.perf.set_power_config.map(|_| set::<P> as sys::SetPowerConfigFn);
    let place = &COPIES[P];
    let known = place.real.swap(record.cast_mut(), Ordering::AcqRel);
    // SAFETY: the first caller writes it, before anybody has its address; a library's record stays the same.
    unsafe {
        if !std::ptr::eq(known, record) {
            *place.ours.get() = Some(copy);
        }
        (*place.ours.get()).as_ref().map(std::ptr::from_ref)
    }
}

fn real(provider: usize) -> Option<sys::PerfInfrastructure> {
    let record = COPIES.get(provider)?.real.load(Ordering::Acquire);
    // SAFETY: null, or the library's own record.
    unsafe { record.as_ref() }.map(|record| record.perf)
}

unsafe extern "C" fn create<const P: usize>(device: u32, part: u32, id: *mut u32) -> u64 {
    let Some(real) = real(P).and_then(|perf| perf.create_power_config_id) else { return sys::NOT_SUPPORTED };
    // SAFETY: forwards the caller's arguments.
    let code = unsafe { real(device, part, id) };
    // SAFETY: the caller's out pointer, written if the call succeeded.
    let id = if code == 0 && !id.is_null() { unsafe { *id } } else { 0 };
    tell(P, "create", id, code, Map::new);
    code
}

unsafe extern "C" fn destroy<const P: usize>(id: u32) -> u64 {
    let Some(real) = real(P).and_then(|perf| perf.destroy_power_config_id) else { return sys::NOT_SUPPORTED };
    // SAFETY: forwards the caller's argument.
    let code = unsafe { real(id) };
    tell(P, "destroy", id, code, Map::new);
    code
}

unsafe extern "C" fn set<const P: usize>(id: u32, list: *const *const sys::PowerConfig) -> u64 {
    let Some(real) = real(P).and_then(|perf| perf.set_power_config) else { return sys::NOT_SUPPORTED };
    // SAFETY: forwards the caller's arguments.
    let code = unsafe { real(id, list) };
    // SAFETY: what the caller passed is still there.
    tell(P, "set", id, code, || unsafe { settings(list) });
    code
}

fn tell(provider: usize, action: &str, id: u32, code: u64, settings: impl FnOnce() -> Map<String, Value>) {
    guard(|| {
        let Some(tap) = current() else { return };
        tap.writer.say(&TapMessage::Voted(Vote {
            t_ns: system::now_ns(),
            provider: u32::try_from(provider).unwrap_or(u32::MAX),
            action: action.to_owned(),
            id,
            code,
            settings: settings(),
        }));
    });
}

/// # Safety
/// `list` is null or a null-ended list of power options.
unsafe fn settings(list: *const *const sys::PowerConfig) -> Map<String, Value> {
    let mut settings = Map::new();
    if list.is_null() {
        return settings;
    }
    for at in 0..MOST {
        // SAFETY: the list ends with a null, which ends this loop; a value is as long as its option says.
        unsafe {
            let record = *list.add(at);
            if record.is_null() {
                break;
            }
            let value = &raw const (*record).value;
            let number = || value.cast::<u32>().read_unaligned();
            match (*record).option {
                sys::POWER_OPTION_DCVS_V3 => dcvs(&mut settings, &value.cast::<sys::DcvsV3>().read_unaligned()),
                sys::POWER_OPTION_RPC_CONTROL_LATENCY => {
                    drop(settings.insert("rpc_latency_us".into(), number().into()));
                }
                sys::POWER_OPTION_RPC_POLLING_TIME => drop(settings.insert("rpc_polling_us".into(), number().into())),
                4 => drop(settings.insert("hmx_timeout_us".into(), number().into())),
                6 => drop(settings.insert("adaptive_polling_us".into(), number().into())),
                other => drop(settings.insert(format!("option_{other}"), number().into())),
            }
        }
    }
    settings
}

/// Only what the vote sets: the rest of the record is meaningless.
fn dcvs(settings: &mut Map<String, Value>, vote: &sys::DcvsV3) {
    let mut put = |is_set: u32, rows: &[(&str, u32)]| {
        if is_set != 0 {
            settings.extend(rows.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))));
        }
    };
    put(vote.set_dcvs_enable, &[("dcvs_enable", vote.dcvs_enable)]);
    put(1, &[("power_mode", vote.power_mode)]);
    put(vote.set_sleep_latency, &[("sleep_latency_us", vote.sleep_latency_us)]);
    put(vote.set_sleep_disable, &[("sleep_disable", vote.sleep_disable)]);
    put(vote.set_bus_params, &[("bus_min", vote.bus_min), ("bus_target", vote.bus_target), ("bus_max", vote.bus_max)]);
    put(
        vote.set_core_params,
        &[("core_min", vote.core_min), ("core_target", vote.core_target), ("core_max", vote.core_max)],
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn votes_are_told_by_what_they_set() {
        let burst = sys::DcvsV3 {
            set_dcvs_enable: 1,
            power_mode: 0x10,
            set_sleep_latency: 1,
            sleep_latency_us: 40,
            set_bus_params: 1,
            bus_min: 0xa0,
            bus_target: 0xa0,
            bus_max: 0xa0,
            core_max: 7,
            ..sys::DcvsV3::default()
        };
        let dcvs = sys::PowerConfig { option: 1, value: sys::PowerUnion { dcvs_v3: burst } };
        let polling = sys::PowerConfig { option: 3, value: sys::PowerUnion { rpc_polling_time_us: 9999 } };
        let list = [&raw const polling, &raw const dcvs, std::ptr::null()];
        // SAFETY: a null-ended list.
        let settings = unsafe { settings(list.as_ptr()) };
        assert_eq!(settings["rpc_polling_us"], 9999);
        assert_eq!((&settings["dcvs_enable"], &settings["bus_max"]), (&Value::from(0), &Value::from(0xa0)));
        assert_eq!(settings["sleep_latency_us"], 40);
        assert!(!settings.contains_key("core_max"), "it was not set");
    }
}

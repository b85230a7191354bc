//! Options passed by programs, by name if known. Numbers and layouts as in the ABI table of this package.

#![expect(unsafe_code, reason = "FFI")]

use crate::sys;
use serde_json::{Map, Value, json};
use std::ffi::c_void;

/// Maximum plausible length of an option list.
const MOST: usize = 64;
/// QNN's backend id of HTP, whose custom options are known.
const HTP: u32 = 6;

/// Number of an option, and the address of its value.
type Raw = (u32, *const u8);

/// The entries of a null-terminated list of records that begin with a number and have their value at offset 8.
///
/// # Safety
/// `list` is null or a null-terminated list of such records.
unsafe fn entries(list: *const *const c_void) -> Vec<Raw> {
    let mut found = Vec::new();
    if list.is_null() {
        return found;
    }
    for at in 0..MOST {
        // SAFETY: the list ends with a null, which ends this loop.
        let record = unsafe { *list.add(at) }.cast::<u8>();
        if record.is_null() {
            break;
        }
        // SAFETY: every record begins with its number, followed by 8 bytes at offset 8.
        found.push((unsafe { record.cast::<u32>().read_unaligned() }, record.wrapping_add(8)));
    }
    found
}

/// # Safety
/// `size_of::<T>()` bytes are readable there.
unsafe fn value<T: Copy>(at: *const u8) -> T {
    // SAFETY: promised by the caller.
    unsafe { at.cast::<T>().read_unaligned() }
}

/// Options of graphCreate.
///
/// # Safety
/// `list` is what a program passed to graphCreate of this backend.
pub(super) unsafe fn of_graph(backend_id: u32, list: *const *const c_void) -> Map<String, Value> {
    let mut options = Map::new();
    // SAFETY: promised by the caller; each value is read as what its number says it is.
    unsafe {
        for (option, at) in entries(list) {
            match option {
                0 => {
                    let custom: *const u8 = value(at);
                    if !custom.is_null() && backend_id == HTP {
                        htp_graph(&mut options, custom);
                    } else {
                        options.insert("custom".into(), true.into());
                    }
                }
                sys::GRAPH_OPTION_PRIORITY => drop(options.insert("priority".into(), value::<u32>(at).into())),
                4 => drop(options.insert("profile_handle".into(), true.into())),
                5 => drop(options.insert("profiling_state".into(), value::<u32>(at).into())),
                6 => drop(options.insert("profiled_executions".into(), value::<u32>(at).into())),
                other => drop(options.insert(format!("option_{other}"), Value::Null)),
            }
        }
    }
    options
}

unsafe fn htp_graph(options: &mut Map<String, Value>, custom: *const u8) {
    // SAFETY: an HTP graph option: its number at 0, its value at 8 (24 bytes of room at least).
    unsafe {
        let at = custom.wrapping_add(8);
        let (name, value): (String, Value) = match value::<u32>(custom) {
            sys::HTP_GRAPH_OPTION_OPTIMIZATION => {
                let amount = f64::from(value::<f32>(at.wrapping_add(4)));
                match value::<u32>(at) {
                    sys::HTP_OPTIMIZATION_LEVEL => ("optimization_level".into(), amount.into()),
                    sys::HTP_OPTIMIZATION_DLBC => ("dlbc".into(), (amount != 0.0).into()),
                    5 => ("dlbc_weights".into(), (amount != 0.0).into()),
                    other => (format!("optimization_{other}"), amount.into()),
                }
            }
            sys::HTP_GRAPH_OPTION_PRECISION => (
                "precision".into(),
                match value::<u32>(at) {
                    0 => "float32".into(),
                    1 => "float16".into(),
                    n => json!(n),
                },
            ),
            sys::HTP_GRAPH_OPTION_VTCM_MB => ("vtcm_mb".into(), value::<u32>(at).into()),
            4 => ("fold_relu_off".into(), (value::<u8>(at) != 0).into()),
            5 => ("short_depth_conv_on_hmx_off".into(), (value::<u8>(at) != 0).into()),
            sys::HTP_GRAPH_OPTION_HVX_THREADS => ("hvx_threads".into(), value::<u64>(at).into()),
            8 => ("cores".into(), value::<u32>(at).into()),
            10 => ("vtcm_bytes".into(), value::<u32>(at).into()),
            12 => ("weights_packing".into(), (value::<u8>(at) != 0).into()),
            13 => ("assume_same_quant".into(), (value::<u8>(at) != 0).into()),
            14 => ("share_io_buffer".into(), (value::<u8>(at) != 0).into()),
            other => (format!("htp_option_{other}"), Value::Null),
        };
        options.insert(name, value);
    }
}

/// Options of contextCreate and contextCreateFromBinary.
///
/// # Safety
/// `list` is what a program passed to one of them, of this backend.
pub(super) unsafe fn of_context(backend_id: u32, list: *const *const c_void) -> Map<String, Value> {
    let mut options = Map::new();
    // SAFETY: as in `of_graph`.
    unsafe {
        for (option, at) in entries(list) {
            let (name, value): (String, Value) = match option {
                0 => {
                    let custom: *const u8 = value(at);
                    if custom.is_null() || backend_id != HTP {
                        ("custom".into(), true.into())
                    } else {
                        htp_context(custom)
                    }
                }
                1 => ("priority".into(), value::<u32>(at).into()),
                2 => ("error_reporting".into(), true.into()),
                3 => ("oem_string".into(), true.into()),
                4 => ("async_queue_depth".into(), value::<u32>(at.wrapping_add(4)).into()),
                5 => ("enable_graphs".into(), true.into()),
                6 => ("memory_limit_hint".into(), value::<u64>(at).into()),
                7 => ("persistent_binary".into(), (value::<u8>(at) != 0).into()),
                8 => ("binary_compatibility".into(), value::<u32>(at).into()),
                9 => ("deferred_graph_init".into(), (value::<u8>(at) != 0).into()),
                other => (format!("option_{other}"), Value::Null),
            };
            options.insert(name, value);
        }
    }
    options
}

unsafe fn htp_context(custom: *const u8) -> (String, Value) {
    // SAFETY: an HTP context option: its number at 0, its value at 8.
    unsafe {
        let at = custom.wrapping_add(8);
        match value::<u32>(custom) {
            1 => ("weight_sharing".into(), (value::<u8>(at) != 0).into()),
            2 => ("group_registration".into(), true.into()),
            3 => ("file_read_budget_mb".into(), value::<u64>(at).into()),
            5 => ("share_resources".into(), (value::<u8>(at) != 0).into()),
            6 => ("io_mem_estimation".into(), (value::<u8>(at) != 0).into()),
            7 => ("prepare_only".into(), (value::<u8>(at) != 0).into()),
            8 => ("init_acceleration".into(), (value::<u8>(at) != 0).into()),
            9 => ("skip_binary_validation".into(), (value::<u8>(at) != 0).into()),
            11 => ("extended_udma".into(), (value::<u8>(at) != 0).into()),
            other => (format!("htp_option_{other}"), Value::Null),
        }
    }
}

/// QNN's SoC numbers are small.
const SOC_NUMBERS: std::ops::Range<u32> = 1..4096;

/// Converts an HTP device option from the layout before HTP API 5.47 (12 bytes) to the later one (16 bytes, the value
/// at 8 instead of 4); `None` if it is already in the new layout, or if that is unclear.
pub(super) fn repaired(words: [u32; 3]) -> Option<sys::HtpDeviceCustomConfig> {
    let [option, first, second] = words;
    match option {
        // The SoC's number: at 4 in the old layout; at 8, behind padding, in the new one.
        sys::HTP_DEVICE_OPTION_SOC if SOC_NUMBERS.contains(&first) => {
            Some(sys::HtpDeviceCustomConfig { option, old_value: first, value: first, value_tail: 0 })
        }
        // Device id and architecture at 4 and 8; in the new layout at 8 and 12, with padding (0) at 4,
        // indistinguishable from device 0 unless there is an architecture where the device id would be.
        sys::HTP_DEVICE_OPTION_ARCH if (60..200).contains(&second) => {
            Some(sys::HtpDeviceCustomConfig { option, old_value: first, value: first, value_tail: second })
        }
        _ => None,
    }
}

/// Options of deviceCreate, with the raw words of each HTP option.
///
/// # Safety
/// `list` is what a program passed to deviceCreate of this backend.
pub(super) unsafe fn of_device(
    backend_id: u32,
    list: *const *const c_void,
) -> (Map<String, Value>, Vec<Option<[u32; 3]>>) {
    let (mut options, mut customs) = (Map::new(), Vec::new());
    // SAFETY: as in `of_graph`; an HTP device option has 12 bytes in its shortest form.
    unsafe {
        for (option, at) in entries(list) {
            let custom: *const u8 = if option == 0 { value(at) } else { std::ptr::null() };
            if option != 0 || custom.is_null() || backend_id != HTP {
                options.insert(format!("option_{option}"), Value::Null);
                customs.push(None);
                continue;
            }
            let words: [u32; 3] = value(custom);
            customs.push(Some(words));
            let old_layout = repaired(words).is_some();
            let name = match words[0] {
                0 => "soc_model".to_owned(),
                1 => "arch".to_owned(),
                2 => "signed_pd".to_owned(),
                3 => "secure_pd".to_owned(),
                4 => "async_execute".to_owned(),
                other => format!("htp_option_{other}"),
            };
            let value = match (words[0], old_layout) {
                (0, true) => json!(words[1]),
                (0, false) | (1, true) => json!(words[2]),
                (1, false) => json!(value::<u32>(custom.wrapping_add(12))),
                _ => Value::Null,
            };
            options.insert(name, value);
            if old_layout {
                options.insert("layout".to_owned(), "before HTP API 5.47".into());
            }
        }
    }
    (options, customs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_records_of_the_old_layout_are_repaired() {
        let soc = repaired([0, 57, 0xdead_beef]).unwrap();
        assert_eq!((soc.option, soc.old_value, soc.value, soc.value_tail), (0, 57, 57, 0));
        assert!(repaired([0, 0, 57]).is_none(), "the new layout");
        assert!(repaired([0, 0xffff_0000, 57]).is_none(), "padding that is not zero");
        let arch = repaired([1, 0, 75]).unwrap();
        assert_eq!((arch.value, arch.value_tail), (0, 75));
        assert!(repaired([1, 0, 0]).is_none(), "the new layout");
        assert!(repaired([2, 1, 0]).is_none());
    }

    #[test]
    fn lists_are_read_by_number() {
        let mut htp = sys::HtpGraphCustomConfig {
            option: sys::HTP_GRAPH_OPTION_VTCM_MB,
            value: sys::HtpGraphUnion { raw: [0; 6] },
        };
        htp.value.vtcm_mb = 8;
        let custom = sys::CustomConfig { option: 0, custom: (&raw mut htp).cast() };
        let priority = sys::CustomConfig { option: 3, custom: std::ptr::without_provenance_mut(200) };
        let unknown = sys::CustomConfig { option: 99, custom: std::ptr::null_mut() };
        let pointer = |config: &sys::CustomConfig| std::ptr::from_ref(config).cast();
        let list: [*const c_void; 4] = [pointer(&custom), pointer(&priority), pointer(&unknown), std::ptr::null()];
        // SAFETY: a null-ended list of records of this kind.
        let options = unsafe { of_graph(6, list.as_ptr()) };
        assert_eq!(Value::from(options), json!({"vtcm_mb": 8, "priority": 200, "option_99": null}));
        // SAFETY: as above, and null.
        let other = unsafe { (of_graph(3, list.as_ptr()), of_graph(6, std::ptr::null())) };
        assert_eq!((other.0["custom"] == json!(true), other.1.is_empty()), (true, true));
    }
}

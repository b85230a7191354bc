//! Checks of the model, its inputs, memory and storage.

use super::scene::Scene;
use super::verdict::CheckVerdict;
use crate::devices::socs;
use std::path::Path;

/// Free space below which writes fail, bytes.
const FULL: u64 = 1 << 20;
/// Free space with which no run fails for lack of it, bytes.
const ROOMY: u64 = 256 << 20;
/// Available memory below which the DSP's further requests are refused, bytes.
const SHORT_MEMORY: u64 = 200 << 20;
/// Memory that one DSP process can map, bytes (QNN's multi-session guidelines: 3.75 GB of 4).
const DSP_SPACE: u64 = 15 << 28;

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Whether the storage that holds the run's files is full.
pub fn space(scene: &Scene) -> CheckVerdict {
    match scene.look() {
        Err(unknown) => unknown,
        Ok(look) => match look.free_bytes {
            Some(free) if free < FULL => CheckVerdict::confirms(format!("{free} bytes are free")),
            Some(free) if free > ROOMY => CheckVerdict::refutes(format!("{} are free", mib(free))),
            Some(free) => CheckVerdict::neutral(format!("{} are free", mib(free))),
            None => CheckVerdict::unknown("free space could not be read"),
        },
    }
}

/// Whether memory is short.
pub fn memory(scene: &Scene) -> CheckVerdict {
    match scene.dsp() {
        Err(unknown) => unknown,
        Ok(look) => match look.memory_available_bytes {
            Some(free) if free < SHORT_MEMORY => {
                CheckVerdict::confirms(format!("only {} of memory is available", mib(free)))
            }
            Some(free) => CheckVerdict::neutral(format!("{} of memory is available now", mib(free))),
            None => CheckVerdict::unknown("/proc/meminfo could not be read"),
        },
    }
}

/// Whether the SoC is missing from all tables, or does not identify itself.
pub fn known_part(scene: &Scene) -> CheckVerdict {
    let Some(soc) = scene.about.facts.as_ref().map(|facts| &facts.soc).filter(|_| scene.dsp().is_ok()) else {
        return CheckVerdict::unknown("the SoC is unknown");
    };
    let Some(id) = soc.soc_id else {
        return CheckVerdict::confirms("the device has no number in /sys/devices/soc0/soc_id");
    };
    if socs().iter().any(|known| known.soc_ids.contains(&id)) || soc.hexagon_arch.is_some() {
        return CheckVerdict::neutral(format!(
            "the soc_id {id} is that of a known SoC, which an older SDK may not know"
        ));
    }
    CheckVerdict::confirms(format!("no SoC known to qnnscope has the soc_id {id}"))
}

/// Whether the binary alone exceeds what a DSP process can map.
pub fn binary_size(scene: &Scene) -> CheckVerdict {
    match scene.about.model.as_ref().map(|model| model.bytes) {
        Some(bytes) if bytes > DSP_SPACE => {
            CheckVerdict::confirms(format!("the model has {}; a DSP process can map {}", mib(bytes), mib(DSP_SPACE)))
        }
        Some(bytes) => {
            CheckVerdict::neutral(format!("the model has {}; a DSP process can map {}", mib(bytes), mib(DSP_SPACE)))
        }
        None => CheckVerdict::unknown("the size of the model is unknown"),
    }
}

/// Whether the user may open the shared-memory heaps.
pub fn heaps(scene: &Scene) -> CheckVerdict {
    let look = match scene.dsp() {
        Ok(look) => look,
        Err(unknown) => return unknown,
    };
    if look.heaps.is_empty() {
        return CheckVerdict::unknown("there is neither /dev/dma_heap nor /dev/ion, or listing them is not permitted");
    }
    match look.heaps.iter().find(|heap| heap.readable) {
        Some(heap) => CheckVerdict::neutral(format!("this user may open {}", heap.path)),
        None => CheckVerdict::confirms(format!("this user may open none of them: {}", look.heaps[0].shown)),
    }
}

/// Whether the files given for inputs match the sizes of the tensors.
pub fn input_bytes(scene: &Scene) -> CheckVerdict {
    let about = &scene.about;
    let given: Vec<_> = about.inputs.iter().filter(|input| input.source != "random").collect();
    if given.is_empty() {
        return if about.inputs.is_empty() {
            CheckVerdict::unknown("the input data is unknown")
        } else {
            CheckVerdict::refutes("all inputs are random data of the right size")
        };
    }
    let mut known = 0;
    for input in &given {
        let tensor = about.graph_inputs.iter().find(|tensor| tensor.name == input.name);
        let Some(wanted) = tensor.and_then(crate::models::Tensor::bytes) else { continue };
        known += 1;
        if wanted != input.bytes {
            let text = format!("{} needs {wanted} bytes and got {} from {}", input.name, input.bytes, input.source);
            return CheckVerdict::confirms(text);
        }
    }
    if known == given.len() {
        CheckVerdict::refutes("every input got as many bytes as its tensor has")
    } else {
        CheckVerdict::unknown("the sizes of the graph's inputs are unknown")
    }
}

/// Whether the SoC runs float graphs, if the graph is float.
pub fn float_on_part(scene: &Scene) -> CheckVerdict {
    let inputs = &scene.about.graph_inputs;
    let part = scene.about.facts.as_ref().and_then(|facts| Some((facts.soc.part.clone()?, facts.soc.htp_fp16)));
    match part {
        Some((part, Some(true))) => CheckVerdict::refutes(format!("{part} runs float graphs on HTP")),
        Some((part, Some(false))) if inputs.iter().any(|tensor| tensor.dtype.is_float()) => {
            CheckVerdict::confirms(format!("{part} has no float support on HTP, and the graph's inputs are float"))
        }
        Some((part, Some(false))) => CheckVerdict::neutral(format!(
            "{part} has no float support on HTP; look for float tensors inside the graph"
        )),
        Some((part, None)) => CheckVerdict::unknown(format!("whether {part} runs float graphs is unknown")),
        None => CheckVerdict::unknown("the SoC is unknown"),
    }
}

/// Whether a setting requests an architecture above the device's.
pub fn asked_arch(scene: &Scene) -> CheckVerdict {
    let Some(device) = scene.about.arch() else {
        return CheckVerdict::unknown("the Hexagon architecture of this device is unknown");
    };
    let asked = scene.about.settings.iter().filter_map(|setting| {
        let key = setting.key.to_lowercase().replace('-', "_");
        let number: Option<u32> = setting.value.trim_start_matches(['v', 'V']).parse().ok();
        if key.contains("arch") {
            return Some((setting, number?));
        }
        if key.contains("soc_model") {
            return Some((setting, crate::devices::socs_by_model(number?).find_map(|soc| soc.arch)?));
        }
        None
    });
    let mut asked: Vec<_> = asked.collect();
    asked.sort_by_key(|(_, arch)| std::cmp::Reverse(*arch));
    match asked.first() {
        Some((setting, arch)) if *arch > device => CheckVerdict::confirms(format!(
            "{} {} asks for v{arch}, this device has v{device}",
            setting.key, setting.value
        )),
        Some((setting, arch)) => CheckVerdict::refutes(format!(
            "{} {} asks for v{arch}, this device has v{device}",
            setting.key, setting.value
        )),
        None => CheckVerdict::refutes("no setting of this run names an architecture"),
    }
}

/// Whether the model file exists.
pub fn model_file(scene: &Scene) -> CheckVerdict {
    if scene.about.model.is_some() {
        return CheckVerdict::refutes("the model was read and identified");
    }
    match &scene.about.model_path {
        Some(path) if Path::new(path).is_file() => CheckVerdict::refutes(format!("{path} exists")),
        Some(path) if !Path::new(path).exists() => CheckVerdict::confirms(format!("{path} does not exist")),
        Some(path) => CheckVerdict::confirms(format!("{path} is not a file")),
        None => CheckVerdict::unknown("the requested model is unknown"),
    }
}

//! Parses the output of Android's services, for devices that deny access to the files.

use super::numbers::first_number;
use crate::event::Gap;

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii)
}

/// The number in the first line `KEY: N`. A service that does not exist prints a sentence without one.
pub fn value(text: &[u8], key: &str) -> Result<f64, Gap> {
    let of_key = |line: &[u8]| line.strip_prefix(key.as_bytes())?.strip_prefix(b":").map(first_number);
    lines(text).find_map(of_key).unwrap_or(Err(Gap::Absent))
}

/// A field of `Temperature{mValue=31.2, mType=0, mName=CPU0, mStatus=0}`.
fn field<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let start = line.iter().position(|byte| *byte == b'{')? + 1;
    let inner = &line[start..line.iter().rposition(|byte| *byte == b'}').filter(|end| *end >= start)?];
    let mut fields = inner.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    fields.find_map(|field| field.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

/// A row of one kind by name; if the service prints a cached and a current list, the current one comes last
/// and wins.
fn row<'a>(text: &'a [u8], kind: &str, name: &str) -> Option<&'a [u8]> {
    let of_name = |line: &&[u8]| line.starts_with(kind.as_bytes()) && field(line, "mName") == Some(name.as_bytes());
    lines(text).filter(of_name).last()
}

/// Temperature from the thermal service's sensor, in °C.
pub fn temperature(text: &[u8], name: &str) -> Result<f64, Gap> {
    let line = row(text, "Temperature{", name).ok_or(Gap::Absent)?;
    let value = field(line, "mValue").ok_or(Gap::NotANumber)?;
    if value == b"NaN" {
        return Err(Gap::Placeholder);
    }
    first_number(value)
}

/// State of the thermal service's cooling device.
pub fn cooling(text: &[u8], name: &str) -> Result<f64, Gap> {
    let line = row(text, "CoolingDevice{", name).ok_or(Gap::Absent)?;
    field(line, "mValue").ok_or(Gap::NotANumber).and_then(first_number)
}

/// Names of the temperature sensors (CPU, GPU, battery, skin, USB, NPU; all others report volts and amperes)
/// or of the cooling devices.
pub fn names(text: &[u8], kind: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in lines(text).filter(|line| line.starts_with(kind.as_bytes())) {
        let type_ = field(line, "mType").and_then(|type_| first_number(type_).ok());
        let is_temperature = type_.is_some_and(|number| [0.0, 1.0, 2.0, 3.0, 4.0, 9.0].contains(&number));
        let name = field(line, "mName").map(|name| String::from_utf8_lossy(name).into_owned());
        if let Some(name) = name.filter(|name| !name.is_empty() && !names.contains(name))
            && (kind != "Temperature{" || is_temperature)
        {
            names.push(name);
        }
    }
    names
}

/// GPU time of a user id on all GPUs, in nanoseconds.
pub fn gpu_active_ns(text: &[u8], uid: &str) -> Result<f64, Gap> {
    let mut rows = lines(text).skip_while(|line| !line.starts_with(b"gpu_id uid total_active_duration_ns"));
    rows.next().ok_or(Gap::Absent)?;
    let words = |line: &[u8]| {
        // A row may start with `[errors:N]`.
        let words = String::from_utf8_lossy(line).into_owned();
        words.split_whitespace().filter(|word| !word.starts_with('[')).map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let active = |line: &[u8]| {
        let words = words(line);
        (words.get(1).map(String::as_str) == Some(uid)).then(|| words.get(2)?.parse::<f64>().ok()).flatten()
    };
    // A user id that has not used the GPU yet has no row.
    Ok(rows.take_while(|line| !line.is_empty()).filter_map(active).filter(|ns| ns.is_finite()).sum())
}

/// GPU memory of a process, in bytes; a process without any has no row.
pub fn gpu_process(text: &[u8], pid: u32) -> Result<f64, Gap> {
    value(text, "Global total")?;
    match value(text, &format!("Proc {pid} total")) {
        Err(Gap::Absent) => Ok(0.0),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_understood() {
        let battery = b"Current Battery Service state:\n  status: 3\n  level: 81\n  temperature: 290\n";
        assert_eq!(value(battery, "temperature"), Ok(290.0));
        assert_eq!(value(b"Can't find service: battery", "level"), Err(Gap::Absent));
        let thermal = b"Cached temperatures:\n\tTemperature{mValue=31.2, mType=9, mName=nsp0, mStatus=0}\n\
            Current temperatures from HAL:\n\tTemperature{mValue=40.5, mType=9, mName=nsp0, mStatus=0}\n\
            \tTemperature{mValue=NaN, mType=3, mName=skin, mStatus=0}\n\
            \tTemperature{mValue=4.1, mType=6, mName=vbat, mStatus=0}\n\
            \tCoolingDevice{mValue=2, mType=4, mName=cdsp}\n\tTemperature{\n\tTemperature}{\n";
        assert_eq!(temperature(thermal, "nsp0"), Ok(40.5));
        assert_eq!(temperature(thermal, "skin"), Err(Gap::Placeholder));
        assert_eq!(cooling(thermal, "cdsp"), Ok(2.0));
        assert_eq!(names(thermal, "Temperature{"), ["nsp0", "skin"]);
        let gpu = b"Memory snapshot for GPU 0:\nGlobal total: 120\nProc 7 total: 20\n\nGPU work information.\n\
            gpu_id uid total_active_duration_ns total_inactive_duration_ns\n0 1000 5 6\n[errors:2] 0 2000 800 200\n1 2000 1 1\n";
        assert_eq!(gpu_active_ns(gpu, "2000"), Ok(801.0));
        assert_eq!(gpu_active_ns(battery, "2000"), Err(Gap::Absent));
        assert_eq!((gpu_process(gpu, 7), gpu_process(gpu, 8)), (Ok(20.0), Ok(0.0)));
    }
}

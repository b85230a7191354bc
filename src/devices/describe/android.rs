//! Parses Android's properties and services.

use crate::event::Battery;
use std::collections::HashMap;

/// System properties.
#[derive(Debug, Default)]
pub struct Properties(HashMap<String, String>);

impl Properties {
    /// Properties as `getprop` prints them: `[key]: [value]`.
    pub fn parse(text: &str) -> Self {
        let pair = |line: &str| {
            let (key, value) = line.strip_prefix('[')?.split_once("]: [")?;
            Some((key.to_owned(), value.strip_suffix(']').unwrap_or(value).to_owned()))
        };
        Self(text.lines().filter_map(pair).collect())
    }

    /// The value of a property; an empty one counts as absent.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// `Android 14 (API 34)`.
pub fn version(properties: &Properties) -> String {
    let release = properties.get("ro.build.version.release").unwrap_or("?");
    let sdk = properties.get("ro.build.version.sdk").unwrap_or("?");
    format!("Android {release} (API {sdk})")
}

/// `dumpsys battery`.
pub fn battery(text: &str) -> Option<Battery> {
    let value = |key: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.trim().split_once(':')?;
            (name == key).then_some(value.trim())
        })
    };
    if value("present") == Some("false") {
        return None;
    }
    let number = |key: &str| value(key).and_then(|value| value.parse::<f64>().ok());
    let status = match value("status")? {
        "2" => "charging",
        "3" => "discharging",
        "4" => "not charging",
        "5" => "full",
        _ => "unknown",
    };
    let sources =
        [("AC powered", "ac"), ("USB powered", "usb"), ("Wireless powered", "wireless"), ("Dock powered", "dock")];
    let powered = sources.into_iter().filter(|(key, _)| value(key) == Some("true"));
    let scale = number("scale").filter(|scale| *scale > 0.0).unwrap_or(100.0);
    Some(Battery {
        level_percent: number("level").map(|level| level / scale * 100.0),
        status: status.to_owned(),
        powered_by: powered.map(|(_, name)| name.to_owned()).collect(),
        temperature_celsius: number("temperature").map(|tenths| tenths / 10.0),
        // Millivolts; some builds print volts.
        voltage_v: number("voltage").map(|value| if value > 100.0 { value / 1000.0 } else { value }),
    })
}

/// `Thermal Status: N` of `dumpsys thermalservice`.
pub fn thermal_status(text: &str) -> Option<u32> {
    text.lines().find_map(|line| line.trim().strip_prefix("Thermal Status:"))?.trim().parse().ok()
}

/// The hottest CPU, GPU, NPU, skin or battery of `dumpsys thermalservice`, °C. Voltages and currents are listed there too.
pub fn hottest(text: &str) -> Option<f64> {
    let temperature = |line: &str| {
        let fields = line.trim().strip_prefix("Temperature{")?.strip_suffix('}')?;
        let field = |key: &str| fields.split(", ").find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        let is_temperature = matches!(field("mType")?, "0" | "1" | "2" | "3" | "4" | "5" | "9");
        let value: f64 = field("mValue")?.parse().ok()?;
        (is_temperature && value > 0.0 && value < 150.0).then_some(value)
    };
    text.lines().filter_map(temperature).reduce(f64::max)
}

/// `mWakefulness=Awake` of `dumpsys power`.
pub fn screen_on(text: &str) -> Option<bool> {
    match text.trim().strip_prefix("mWakefulness=")? {
        "Awake" => Some(true),
        "Asleep" | "Dozing" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_read_as_android_prints_them() {
        let text = "Current Battery Service state:\n  AC powered: false\n  USB powered: true\n  status: 2\n  present: true\n  \
                    level: 78\n  scale: 100\n  voltage: 4121\n  temperature: 290\n";
        let battery = battery(text).unwrap();
        assert_eq!(battery.status, "charging");
        assert_eq!(battery.powered_by, ["usb"]);
        assert_eq!((battery.level_percent, battery.voltage_v), (Some(78.0), Some(4.121)));
        assert_eq!(battery.temperature_celsius, Some(29.0));
        assert!(battery.is_externally_powered());
        assert!(super::battery("Can't find service: battery").is_none());
        let thermal = "Thermal Status: 2\n\tTemperature{mValue=NaN, mType=3, mName=x, mStatus=0}\n\
                       \tTemperature{mValue=61.5, mType=9, mName=nsp0, mStatus=0}\n\
                       \tTemperature{mValue=4121.0, mType=6, mName=vbat, mStatus=0}\n";
        assert_eq!((thermal_status(thermal), hottest(thermal)), (Some(2), Some(61.5)));
        assert_eq!(screen_on("  mWakefulness=Awake\n"), Some(true));
        assert_eq!(screen_on(""), None);
    }
}

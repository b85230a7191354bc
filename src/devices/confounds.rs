//! Device conditions that may disturb the figures of a run; reported before it starts.

use crate::event::{Confound, DeviceFacts};

/// Below this charge, phones limit their clocks.
const LOW_BATTERY_PERCENT: f64 = 20.0;

/// A device this warm before the run is close to throttling.
const WARM_CELSIUS: f64 = 45.0;

/// What may disturb a run, worst first. Unreported conditions are skipped.
pub fn confounds(facts: &DeviceFacts) -> Vec<Confound> {
    let mut found = Vec::new();
    let mut add = |id: &str, observation: String, advice: &str| {
        found.push(Confound { id: id.to_owned(), observation, advice: advice.to_owned() });
    };
    if let Some(status) = facts.thermal_status.filter(|status| *status > 0) {
        let names = ["none", "light", "moderate", "severe", "critical", "emergency", "shutdown"];
        let name = usize::try_from(status).ok().and_then(|index| names.get(index)).unwrap_or(&"unknown");
        add(
            "thermal_status",
            format!("the system is throttling already: thermal status {status} ({name})"),
            "let it cool down first",
        );
    }
    if let Some(celsius) = facts.hottest_celsius.filter(|celsius| *celsius >= WARM_CELSIUS) {
        add(
            "start_temperature",
            format!("the hottest sensor is at {celsius:.1} °C before the run"),
            "let it cool down for a steady comparison",
        );
    }
    if facts.power_save == Some(true) {
        add("power_save", "power-save mode is on and lowers the clocks".to_owned(), "turn battery saver off");
    }
    if let Some(battery) = &facts.battery {
        if battery.is_externally_powered() {
            let source =
                if battery.powered_by.is_empty() { "the tether".to_owned() } else { battery.powered_by.join(" and ") };
            // If the supply is weaker than the device's consumption, the battery still discharges.
            let state = match battery.status.as_str() {
                "discharging" => format!("power comes over {source} while the battery is discharging"),
                "full" | "not charging" => format!("power comes over {source}; the battery is {}", battery.status),
                status => format!("the battery is {status} over {source}"),
            };
            add(
                "charging",
                format!("{state}: charging warms the device and hides the chip's power draw"),
                "use wireless adb and unplug it to measure energy",
            );
        }
        if let Some(level) = battery.level_percent.filter(|level| *level < LOW_BATTERY_PERCENT) {
            add(
                "battery_low",
                format!("the battery is at {level:.0} %; many phones lower their clocks then"),
                "charge it above 20 %",
            );
        }
    }
    if facts.screen_on == Some(true) {
        add(
            "screen_on",
            "the screen is on: it draws power and uses the GPU".to_owned(),
            "turn the screen off, or keep it on for all runs",
        );
    }
    for process in &facts.busy_processes {
        add(
            "busy_process",
            format!("{} uses {:.0} % of a core", process.name, process.cpu_percent),
            "close it, or wait until it finishes",
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::Root;
    use crate::event::{Battery, BusyProcess, SocFacts};

    fn facts() -> DeviceFacts {
        DeviceFacts {
            id: "X".to_owned(),
            model: None,
            soc: SocFacts::default(),
            os: String::new(),
            build: None,
            kernel: None,
            abi: String::new(),
            gpu: None,
            clusters: Vec::new(),
            shell_uid: None,
            root: Root::None,
            selinux: None,
            free_bytes: None,
            memory_bytes: None,
            memory_available_bytes: None,
            nodes: Vec::new(),
            battery: None,
            thermal_status: None,
            hottest_celsius: None,
            power_save: None,
            screen_on: None,
            busy_processes: Vec::new(),
        }
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        assert!(confounds(&facts()).is_empty());
    }

    #[test]
    fn each_disturbance_is_told_and_its_opposite_is_not() {
        let battery = |status: &str, powered: &[&str], level| Battery {
            level_percent: Some(level),
            status: status.to_owned(),
            powered_by: powered.iter().map(ToString::to_string).collect(),
            temperature_celsius: Some(30.0),
            voltage_v: Some(4.0),
        };
        let bad = DeviceFacts {
            thermal_status: Some(2),
            hottest_celsius: Some(61.5),
            power_save: Some(true),
            screen_on: Some(true),
            battery: Some(battery("charging", &["usb"], 12.0)),
            busy_processes: vec![BusyProcess { name: "game".to_owned(), cpu_percent: 93.0 }],
            ..facts()
        };
        let discharging = DeviceFacts { battery: Some(battery("discharging", &["usb"], 80.0)), ..facts() };
        let text = &confounds(&discharging)[0].observation;
        assert!(text.starts_with("power comes over usb while the battery is discharging:"), "{text}");
        let ids: Vec<String> = confounds(&bad).into_iter().map(|confound| confound.id).collect();
        let expected = [
            "thermal_status",
            "start_temperature",
            "power_save",
            "charging",
            "battery_low",
            "screen_on",
            "busy_process",
        ];
        assert_eq!(ids, expected);
        let good = DeviceFacts {
            thermal_status: Some(0),
            hottest_celsius: Some(31.0),
            power_save: Some(false),
            screen_on: Some(false),
            battery: Some(battery("discharging", &[], 80.0)),
            ..facts()
        };
        assert!(confounds(&good).is_empty());
    }
}

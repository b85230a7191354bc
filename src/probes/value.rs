//! Turns the contents of a file into a value, or into the reason why there is none.

use super::catalogue::Parse;
use super::dumpsys;
use super::numbers::{LINE, first_number, number, numbers};
use crate::event::Gap;
use std::collections::BTreeMap;

/// The result of a read: the content (table lines separated by [`LINE`]), or why there is none.
pub type Content<'a> = Result<&'a [u8], Gap>;

/// A battery current above this is in µA: no phone draws 20 A.
const MICROAMPERES_FROM: f64 = 20_000.0;
/// A battery voltage above this is in µV.
const MICROVOLTS_FROM: f64 = 100_000.0;
/// Ticks of CPU time per second; the kernel reports 100 to user space, whatever it uses internally.
const TICKS_PER_SECOND: f64 = 100.0;

/// Turns the contents of a counter's files into values. Rates, and units inferred from magnitude, depend on
/// earlier readings.
#[derive(Debug, Clone)]
pub struct Parser {
    /// How to parse the contents.
    pub parse: Parse,
    /// What to look for in files with many lines.
    pub keys: Vec<String>,
    /// Factor that converts from the file's unit.
    pub scale: f64,
    /// Values for words.
    pub words: BTreeMap<String, f64>,
    /// Clock of each level, in MHz.
    pub levels_mhz: Vec<f64>,
    /// Plausible values.
    pub range: [f64; 2],
    /// Values that stand for "no reading".
    pub placeholders: Vec<f64>,
    /// Size of a memory page, in bytes.
    pub page_bytes: f64,
    /// The watched process.
    pub pid: Option<u32>,
    before: Option<Before>,
    in_micro: bool,
}

/// The previous reading, for differences.
#[derive(Debug, Clone, Default)]
struct Before {
    t_us: u64,
    numbers: Vec<(u64, f64)>,
}

impl Parser {
    /// A parser for plain numbers, as a starting point.
    pub fn new(parse: Parse) -> Self {
        Self {
            parse,
            keys: Vec::new(),
            scale: 1.0,
            words: BTreeMap::new(),
            levels_mhz: Vec::new(),
            range: [f64::MIN, f64::MAX],
            placeholders: Vec::new(),
            page_bytes: 4096.0,
            pid: None,
            before: None,
            in_micro: false,
        }
    }

    /// Forgets the previous reading: the next one counts as the first.
    pub fn forget(&mut self) {
        self.before = None;
    }

    /// The value of a reading at `t_us` (the device's clock, in microseconds). `contents` are the counter's
    /// files, in order. `Ok(None)`: the first reading of a rate, or no time has passed on the device.
    pub fn value(&mut self, t_us: u64, contents: &[Content<'_>]) -> Result<Option<f64>, Gap> {
        let first = contents.first().copied().unwrap_or(Err(Gap::Absent));
        let value = match first.and_then(|content| self.raw(t_us, content, contents)) {
            Ok(Some(value)) => value,
            Ok(None) => return Ok(None),
            Err(gap) => {
                self.before = None;
                return Err(gap);
            }
        };
        if !value.is_finite() {
            return Err(Gap::NotANumber);
        }
        if self.placeholders.iter().any(|placeholder| (placeholder - value).abs() < 1e-9) {
            return Err(Gap::Placeholder);
        }
        if value < self.range[0] || value > self.range[1] {
            // Sensors of sleeping radios report these, in thousandths of a degree.
            let absolute_zero = [-273.0, -274.0, -40.96].iter().any(|cold| (cold - value).abs() < 1e-6);
            return Err(if absolute_zero { Gap::Placeholder } else { Gap::Implausible });
        }
        Ok(Some(value))
    }

    fn raw(&mut self, t_us: u64, content: &[u8], contents: &[Content<'_>]) -> Result<Option<f64>, Gap> {
        let beside = |index: usize| contents.get(index).copied().unwrap_or(Err(Gap::Absent));
        match self.parse {
            Parse::Number => first_number(content).map(|number| Some(self.scaled(number))),
            Parse::Percent => {
                let end = content.iter().position(|byte| *byte == b'%' || *byte == b'@').unwrap_or(content.len());
                first_number(&content[..end]).map(Some)
            }
            Parse::Pair => {
                let mut numbers = numbers(content);
                let (busy, total) = numbers.next().zip(numbers.next()).ok_or(Gap::NotANumber)?;
                Ok(Some(if total > 0.0 { (busy / total * 100.0).min(100.0) } else { 0.0 }))
            }
            Parse::Clock => first_number(content).map(|number| Some(megahertz(number))),
            Parse::Words => {
                let word = String::from_utf8_lossy(content.trim_ascii());
                self.words.get(word.as_ref()).copied().map(Some).ok_or(Gap::NotANumber)
            }
            Parse::KeyedKb => self.keyed(content).map(|kb| Some(kb * 1024.0)),
            Parse::Sum => Ok(Some(numbers(content).sum())),
            Parse::ResidentPages => {
                let pages = numbers(content).nth(1).ok_or(Gap::NotANumber)?;
                Ok(Some(pages * self.page_bytes))
            }
            Parse::ProcessThreads => process_field(content, 20).map(Some),
            Parse::ProcessCpu => {
                let ticks = process_field(content, 14)? + process_field(content, 15)?;
                Ok(self.rate(t_us, ticks / TICKS_PER_SECOND).map(|busy| busy * 100.0))
            }
            Parse::Pressure => {
                let total_us = self.pressure_total(content)?;
                Ok(self.rate(t_us, total_us / 1e6).map(|share| (share * 100.0).min(100.0)))
            }
            Parse::CpuBusy | Parse::CpuBusiest => self.cpu(t_us, content),
            Parse::LevelTimes => {
                let times = numbers(content);
                let table: Vec<_> = self.levels_mhz.iter().zip(times).map(|(mhz, us)| (mhz.to_bits(), us)).collect();
                self.mean_clock(t_us, &table)
            }
            Parse::TimeInState => {
                let row = |line: &[u8]| {
                    let mut numbers = numbers(line);
                    Some(((numbers.next()? / 1000.0).to_bits(), numbers.next()?))
                };
                let table: Vec<_> = content.split(|byte| *byte == LINE).filter_map(row).collect();
                self.mean_clock(t_us, &table)
            }
            Parse::BatteryCurrent => self.battery_ma(content, beside(1)).map(Some),
            Parse::BatteryVoltage => battery_v(content).map(Some),
            Parse::BatteryPower => {
                let volts = battery_v(beside(2)?)?;
                Ok(Some(self.battery_ma(content, beside(1))? / 1000.0 * volts))
            }
            Parse::DumpsysValue => dumpsys::value(content, self.key()).map(|value| Some(self.scaled(value))),
            Parse::DumpsysTemperature => dumpsys::temperature(content, self.key()).map(Some),
            Parse::DumpsysCooling => dumpsys::cooling(content, self.key()).map(Some),
            Parse::DumpsysGpuWork => {
                let active_s = dumpsys::gpu_active_ns(content, self.key())? / 1e9;
                Ok(self.rate(t_us, active_s).map(|share| (share * 100.0).min(100.0)))
            }
            Parse::DumpsysGpuProcess => dumpsys::gpu_process(content, self.pid.ok_or(Gap::NoProcess)?).map(Some),
        }
    }

    /// Converts to the counter's unit. Thousandths are divided by a thousand: 0.001 has no exact binary form,
    /// and 30.9 would not stay 30.9.
    fn scaled(&self, number: f64) -> f64 {
        let inverse = (1.0 / self.scale).round();
        if (inverse * self.scale - 1.0).abs() < 1e-12 { number / inverse } else { number * self.scale }
    }

    fn key(&self) -> &str {
        self.keys.first().map_or("", String::as_str)
    }

    /// The number in the line `KEY: N`.
    fn keyed(&self, content: &[u8]) -> Result<f64, Gap> {
        let of_key = |line: &&[u8]| line.strip_prefix(self.key().as_bytes()).is_some_and(|rest| rest.starts_with(b":"));
        let line = content.split(|byte| *byte == LINE).find(of_key).ok_or(Gap::Absent)?;
        first_number(&line[self.key().len() + 1..])
    }

    fn pressure_total(&self, content: &[u8]) -> Result<f64, Gap> {
        let mut lines = content.split(|byte| *byte == LINE);
        let line = lines.find(|line| line.starts_with(self.key().as_bytes())).ok_or(Gap::NotANumber)?;
        let mut words = line.split(u8::is_ascii_whitespace);
        words.find_map(|word| word.strip_prefix(b"total=")).ok_or(Gap::NotANumber).and_then(first_number)
    }

    /// Growth of `total` per second since the previous reading. A counter that went backwards counts as
    /// unchanged.
    fn rate(&mut self, t_us: u64, total: f64) -> Option<f64> {
        let before = self.before.replace(Before { t_us, numbers: vec![(0, total)] })?;
        let seconds = t_us.checked_sub(before.t_us).filter(|us| *us > 0)? as f64 / 1e6;
        Some((total - before.numbers.first()?.1).max(0.0) / seconds)
    }

    /// Mean clock since the previous reading, weighted by the time spent at each level; `table`: bits of MHz,
    /// and time.
    fn mean_clock(&mut self, t_us: u64, table: &[(u64, f64)]) -> Result<Option<f64>, Gap> {
        if table.is_empty() {
            return Err(Gap::NotANumber);
        }
        let Some(before) = self.before.replace(Before { t_us, numbers: table.to_vec() }) else { return Ok(None) };
        let grown = |(mhz, time): &(u64, f64)| {
            let old = before.numbers.iter().find(|(old, _)| old == mhz)?.1;
            Some((f64::from_bits(*mhz), (time - old).max(0.0)))
        };
        let (weighted, total) = table
            .iter()
            .filter_map(grown)
            .fold((0.0, 0.0), |(weighted, total), (mhz, time)| (weighted + mhz * time, total + time));
        Ok((total > 0.0).then(|| weighted / total))
    }

    /// Busy share since the previous reading, from the lines of `/proc/stat`.
    fn cpu(&mut self, t_us: u64, content: &[u8]) -> Result<Option<f64>, Gap> {
        let busiest = self.parse == Parse::CpuBusiest;
        let mut now = Vec::new();
        for line in content.split(|byte| *byte == LINE).take(1024) {
            let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
            let name = &line[..end];
            let wanted = if busiest { name != b"cpu" } else { self.keys.iter().any(|key| key.as_bytes() == name) };
            if !wanted || !name.starts_with(b"cpu") {
                continue;
            }
            // The eight times that do not overlap: guest times are included in user and nice.
            let times: Vec<f64> = numbers(&line[end..]).take(8).collect();
            if times.len() < 4 {
                return Err(Gap::NotANumber);
            }
            let idle = times[3] + times.get(4).copied().unwrap_or(0.0);
            let id =
                std::str::from_utf8(&name[3..]).ok().and_then(|number| number.parse().ok()).unwrap_or(u64::MAX / 2);
            now.push((id * 2, idle));
            now.push((id * 2 + 1, times.iter().sum()));
        }
        if now.is_empty() {
            // A cluster whose cores are all offline has no line.
            return Err(Gap::Absent);
        }
        let Some(before) = self.before.replace(Before { t_us, numbers: now.clone() }) else { return Ok(None) };
        let (mut idle, mut all, mut most) = (0.0, 0.0, None::<f64>);
        for pair in now.chunks_exact(2) {
            let old = |key: u64| before.numbers.iter().find(|(id, _)| *id == key).map(|(_, time)| *time);
            // A core that came online in between has no previous reading.
            let (Some(old_idle), Some(old_all)) = (old(pair[0].0), old(pair[1].0)) else { continue };
            // These times may go back by one tick.
            let (d_idle, d_all) = ((pair[0].1 - old_idle).max(0.0), (pair[1].1 - old_all).max(0.0));
            idle += d_idle;
            all += d_all;
            if d_all > 0.0 {
                let busy = (1.0 - d_idle / d_all).clamp(0.0, 1.0);
                most = Some(most.map_or(busy, |most| most.max(busy)));
            }
        }
        if all <= 0.0 {
            return Ok(None);
        }
        Ok(if busiest { most } else { Some((1.0 - idle / all).clamp(0.0, 1.0)) }.map(|share| share * 100.0))
    }

    /// Current in mA, negative while discharging. Not every driver follows the kernel's sign convention, so
    /// the status decides.
    fn battery_ma(&mut self, content: &[u8], status: Content<'_>) -> Result<f64, Gap> {
        let number = first_number(content)?;
        self.in_micro |= number.abs() > MICROAMPERES_FROM;
        let ma = if self.in_micro { number / 1000.0 } else { number };
        Ok(match status.map(<[u8]>::trim_ascii) {
            Ok(b"Discharging") => -ma.abs(),
            Ok(b"Charging") => ma.abs(),
            _ => ma,
        })
    }
}

fn battery_v(content: &[u8]) -> Result<f64, Gap> {
    let number = first_number(content)?;
    Ok(if number.abs() >= MICROVOLTS_FROM { number / 1e6 } else { number / 1e3 })
}

/// Clock in MHz, from Hz (1e7 and up), kHz, or MHz (up to 1e4).
fn megahertz(number: f64) -> f64 {
    if number >= 1e7 {
        number / 1e6
    } else if number >= 1e4 {
        number / 1e3
    } else {
        number
    }
}

/// Field `index` (from 1, as in the manual) of `/proc/PID/stat`. The name in brackets may contain spaces and
/// brackets.
fn process_field(content: &[u8], index: usize) -> Result<f64, Gap> {
    let name_end = content.iter().rposition(|byte| *byte == b')').ok_or(Gap::NotANumber)?;
    let word = content[name_end + 1..].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(index - 3);
    word.and_then(number).ok_or(Gap::NotANumber)
}

/// The clocks in a list of levels, in MHz.
pub(super) fn levels_mhz(content: &[u8]) -> Vec<f64> {
    numbers(content).map(megahertz).collect()
}

#[cfg(test)]
mod tests;

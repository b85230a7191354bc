//! Builds counters from what discovery found.

use super::Discovery;
use super::script::{Failure, Found, SUSPENDS, TIMER_LIST, UPTIME, beside};
use crate::event::{CounterInfo, Gap, clean_text};
use crate::probes::catalogue::{Parse, Row, rows};
use crate::probes::counter::{Counter, FileRead, How, Unreadable, how};
use crate::probes::dumpsys;
use crate::probes::numbers::LINE;
use crate::probes::value::{Parser, levels_mhz};
use std::collections::BTreeSet;

/// All counters, readable or not, in the catalogue's order; the user's own come last.
pub fn build(found: &Found, custom: &[Counter], has_root: bool) -> Discovery {
    let mut discovery = Discovery { suspended_us: suspended_us(found), ..Discovery::default() };
    let mut builder = Builder { found, has_root, discovery: &mut discovery };
    for row in rows() {
        builder.row(row);
    }
    for counter in custom {
        builder.custom(counter);
    }
    // Row ids may share prefixes: each counter belongs to the row with the longest match.
    let row_of = |counter: &Counter| {
        let of =
            |row: &&Row| counter.id.strip_prefix(&row.id).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        rows().iter().filter(of).max_by_key(|row| row.id.len())
    };
    let present: BTreeSet<&str> = discovery.readable.iter().filter_map(row_of).map(|row| row.id.as_str()).collect();
    let replaced: Vec<bool> = discovery
        .readable
        .iter()
        .map(|counter| row_of(counter).and_then(|row| row.instead_of.as_deref()).is_some_and(|id| present.contains(id)))
        .collect();
    for (counter, replaced) in discovery.readable.iter_mut().zip(replaced) {
        counter.chosen &= !replaced;
    }
    // A missing counter does not matter if another one provides the same.
    let replaced: BTreeSet<String> = rows()
        .iter()
        .filter(|row| row.instead_of.as_deref().is_some_and(|id| present.contains(id)))
        .map(|row| row.id.clone())
        .collect();
    discovery.unreadable.retain(|known| known.reason != Gap::Absent || !replaced.contains(&known.info.id));
    discovery
}

struct Builder<'a> {
    found: &'a Found,
    has_root: bool,
    discovery: &'a mut Discovery,
}

/// An instance of a row: the suffix for id and label, its keys, and its path.
struct Instance {
    name: String,
    keys: Vec<String>,
    path: String,
}

impl Builder<'_> {
    fn row(&mut self, row: &Row) {
        if row.paths.iter().all(|path| path.starts_with("dumpsys:")) {
            self.service(row);
        } else if let Some(pattern) = &row.clusters {
            self.clusters(row, pattern);
        } else if row.each {
            self.instances(row);
        } else {
            self.first(row);
        }
    }

    /// The first path that can be read.
    fn first(&mut self, row: &Row) {
        let mut worst: Option<Failure> = None;
        for pattern in &row.paths {
            if row.parse == Parse::Sum {
                let paths = self.found.paths(pattern);
                let readable = paths.iter().find(|path| self.found.content(path).is_ok());
                if let Some(path) = readable {
                    let needs_root = self.found.needs_root(path);
                    let instance = Instance { name: String::new(), keys: Vec::new(), path: pattern.clone() };
                    self.add(row, &instance, Ok(needs_root));
                    return;
                }
            }
            let exact = [pattern.clone()];
            let paths = if pattern.contains('*') { self.found.paths(pattern) } else { &exact };
            for path in paths {
                match self.try_path(row, path, &row.keys) {
                    Ok(needs_root) => {
                        let instance = Instance { name: String::new(), keys: row.keys.clone(), path: path.clone() };
                        self.add(row, &instance, Ok(needs_root));
                        return;
                    }
                    Err(failure) if worst.as_ref().is_none_or(|worst| worst.reason == Gap::Absent) => {
                        worst = Some(failure);
                    }
                    Err(_) => {}
                }
            }
        }
        let failure = worst.unwrap_or_else(absent);
        self.refuse(row, "", &failure);
    }

    fn instances(&mut self, row: &Row) {
        let mut names = BTreeSet::new();
        let mut any = false;
        for pattern in &row.paths {
            for path in self.found.paths(pattern).to_vec() {
                let listed = !path.contains('*');
                let name = match &row.name {
                    Some(file) => match self.found.content(&beside(&path, file)) {
                        Ok(name) => clean_text(String::from_utf8_lossy(name).trim()),
                        // A zone without a type could be anything, so it belongs to no group.
                        Err(_) => continue,
                    },
                    None => component(pattern, &path),
                };
                if listed && !row.takes(&name) {
                    continue;
                }
                any = true;
                let mut name = if listed { plain(&name) } else { String::new() };
                if !names.insert(name.clone()) {
                    name = format!("{name}@{}", component(pattern, &path));
                    names.insert(name.clone());
                }
                let outcome = self.try_path(row, &path, &row.keys);
                self.add(row, &Instance { name, keys: row.keys.clone(), path }, outcome);
            }
        }
        if !any {
            let refused = row.paths.iter().flat_map(|pattern| self.found.paths(pattern)).find_map(|path| {
                let name = row.name.as_ref().map(|file| self.found.content(&beside(path, file)));
                name?.err().filter(|failure| failure.reason == Gap::Refused)
            });
            self.refuse(row, "", &refused.unwrap_or_else(absent));
        }
    }

    fn clusters(&mut self, row: &Row, pattern: &str) {
        let Some(path) = row.paths.first() else { return };
        let mut any = false;
        for file in self.found.paths(pattern).to_vec() {
            let Ok(list) = self.found.content(&file) else { continue };
            let keys: Vec<String> = cpu_list(list).into_iter().map(|cpu| format!("cpu{cpu}")).collect();
            if keys.is_empty() {
                continue;
            }
            any = true;
            let outcome = self.try_path(row, path, &keys);
            self.add(row, &Instance { name: component(pattern, &file), keys, path: path.clone() }, outcome);
        }
        if !any {
            self.refuse(row, "", &absent());
        }
    }

    fn service(&mut self, row: &Row) {
        let Some(path) = row.paths.first() else { return };
        let service = path.strip_prefix("dumpsys:").unwrap_or(path);
        let Some(text) = self.found.services.get(service) else {
            let detail = "this device has no such service".to_owned();
            self.refuse(row, "", &Failure { reason: Gap::Absent, detail });
            return;
        };
        let names = match row.parse {
            Parse::DumpsysTemperature => dumpsys::names(text, "Temperature{"),
            Parse::DumpsysCooling => dumpsys::names(text, "CoolingDevice{"),
            _ => Vec::new(),
        };
        let is_family = matches!(row.parse, Parse::DumpsysTemperature | Parse::DumpsysCooling);
        if is_family && names.is_empty() {
            self.refuse(row, "", &absent());
        }
        let instances =
            names.iter().map(|name| Instance { name: plain(name), keys: vec![name.clone()], path: path.clone() });
        let single = || Instance { name: String::new(), keys: row.keys.clone(), path: path.clone() };
        let instances: Vec<Instance> = if is_family { instances.collect() } else { vec![single()] };
        for instance in instances {
            let mut parser = self.parser(row, &instance.keys, path);
            // Any process will do to see whether the service reports processes.
            parser.pid = Some(1);
            let outcome = parser
                .value(0, &[Ok(text)])
                .map(|_| false)
                .map_err(|reason| Failure { reason, detail: reason.text().to_owned() });
            self.add(row, &instance, outcome);
        }
    }

    fn custom(&mut self, counter: &Counter) {
        let mut counter = counter.clone();
        let Some(path) = counter.files.first().map(|file| file.path.clone()) else { return };
        let read = self.found.content(&path).and_then(|content| {
            let value = counter.parser.value(0, &[Ok(content)]);
            value.map_err(|reason| Failure { reason, detail: reason.text().to_owned() })
        });
        match read {
            Ok(_) => {
                counter.needs_root = self.found.needs_root(&path);
                self.discovery.readable.push(counter);
            }
            Err(failure) => self.give_up(counter.info(), &failure, counter.needs_root),
        }
    }

    /// Whether the content of a path makes sense, and if so whether reading it needs root.
    fn try_path(&self, row: &Row, path: &str, keys: &[String]) -> Result<bool, Failure> {
        let asked = row.probe.as_deref().unwrap_or(path);
        let content = self.found.content(asked)?;
        let mut needs_root = self.found.needs_root(asked);
        if row.probe.is_none() {
            let mut contents = vec![Ok(content)];
            for name in &row.beside {
                let file = beside(path, name);
                needs_root |= self.found.needs_root(&file);
                contents.push(self.found.content(&file).map_err(|failure| failure.reason));
            }
            let value = self.parser(row, keys, path).value(0, &contents);
            value.map_err(|reason| {
                let shown = String::from_utf8_lossy(&content[..content.len().min(40)]).into_owned();
                let detail = format!("{}: {}", reason.text(), clean_text(shown.trim()).replace('\u{fffd}', " "));
                Failure { reason, detail }
            })?;
        }
        Ok(needs_root)
    }

    fn parser(&self, row: &Row, keys: &[String], path: &str) -> Parser {
        let mut parser = Parser::new(row.parse);
        parser.keys = keys.to_vec();
        parser.scale = row.scale;
        parser.words.clone_from(&row.words);
        parser.range = row.range;
        parser.placeholders.clone_from(&row.placeholders);
        parser.page_bytes = self.found.page_bytes.unwrap_or(parser.page_bytes);
        if let Some(levels) = row.levels.as_ref().and_then(|file| self.found.content(&beside(path, file)).ok()) {
            parser.levels_mhz = levels_mhz(levels);
        }
        parser
    }

    fn add(&mut self, row: &Row, instance: &Instance, outcome: Result<bool, Failure>) {
        let needs_root = match outcome {
            Ok(needs_root) => needs_root,
            Err(failure) => return self.refuse(row, &instance.name, &failure),
        };
        let parser = self.parser(row, &instance.keys, &instance.path);
        let how = how(row.parse, &instance.keys, &instance.path);
        let path = instance.path.strip_prefix("dumpsys:").unwrap_or(&instance.path).to_owned();
        let mut files = vec![FileRead { path: path.clone(), how }];
        files.extend(row.beside.iter().map(|name| FileRead { path: beside(&path, name), how: How::Line }));
        let maximum = row.maximum.or_else(|| {
            let content = self.found.content(&beside(&path, row.maximum_file.as_ref()?)).ok()?;
            parser.clone().value(0, &[Ok(content)]).ok().flatten().filter(|top| *top > 0.0)
        });
        let info = info(row, &instance.name);
        self.discovery.readable.push(Counter {
            id: info.id,
            label: info.label,
            group: row.group,
            unit: info.unit,
            maximum,
            about: row.about.clone(),
            cadence: row.cadence,
            needs_root,
            chosen: row.chosen,
            files,
            parser,
        });
    }

    fn refuse(&mut self, row: &Row, name: &str, failure: &Failure) {
        self.give_up(info(row, name), failure, row.root);
    }

    fn give_up(&mut self, mut info: CounterInfo, failure: &Failure, root_only: bool) {
        let needs_root =
            !self.has_root && (failure.reason == Gap::Refused || root_only && failure.reason == Gap::Absent);
        let detail = &failure.detail;
        info.unavailable = Some(if needs_root { format!("{detail} (needs root)") } else { detail.clone() });
        self.discovery.unreadable.push(Unreadable { info, reason: failure.reason, needs_root });
    }
}

fn absent() -> Failure {
    Failure { reason: Gap::Absent, detail: Gap::Absent.text().to_owned() }
}

fn info(row: &Row, name: &str) -> CounterInfo {
    let joined = |text: &str, by: char| if name.is_empty() { text.to_owned() } else { format!("{text}{by}{name}") };
    CounterInfo {
        id: joined(&row.id, '.'),
        label: joined(&row.label, ' '),
        unit: row.unit.clone(),
        maximum: row.maximum,
        unavailable: None,
    }
}

/// The part of `path` matched by the first star of `pattern`.
fn component(pattern: &str, path: &str) -> String {
    let at = pattern.split('/').position(|part| part.contains('*')).unwrap_or(0);
    clean_text(path.split('/').nth(at).unwrap_or(path))
}

/// A name as part of an id.
fn plain(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "._-,:@".contains(c) { c } else { '_' };
    name.chars().take(60).map(keep).collect()
}

/// Processors in `0-2`, `0,3` or `0 1 2`.
fn cpu_list(text: &[u8]) -> Vec<u32> {
    let text = String::from_utf8_lossy(text);
    let mut cpus = Vec::new();
    for part in text.split([' ', ',', '\n']).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            cpus.extend((first..=last).take(1024));
        }
    }
    cpus.truncate(1024);
    cpus
}

/// How long the device has slept: zero if it counts no suspends, else the difference of its two clocks.
fn suspended_us(found: &Found) -> Option<u64> {
    if found.content(SUSPENDS).is_ok_and(|count| count.trim_ascii() == b"0") {
        return Some(0);
    }
    let list = found.content(TIMER_LIST).ok()?;
    let line = list.split(|byte| *byte == LINE).find_map(|line| line.trim_ascii().strip_prefix(b"now at "))?;
    let nanoseconds: u64 = std::str::from_utf8(line).ok()?.split(' ').next()?.parse().ok()?;
    let uptime = String::from_utf8_lossy(found.content(UPTIME).ok()?).into_owned();
    let seconds: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    let boot_us = std::time::Duration::try_from_secs_f64(seconds).ok()?.as_micros();
    let slept = boot_us.saturating_sub(u128::from(nanoseconds / 1000));
    // If the time between the two reads explains the difference, it has not slept at all.
    u64::try_from(slept).ok().map(|us| if us < 100_000 { 0 } else { us })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors() {
        assert_eq!(cpu_list(b"0-2 7\n"), [0, 1, 2, 7]);
        assert_eq!(cpu_list(b"4,5"), [4, 5]);
        assert!(cpu_list(b"x 0-99999999999").is_empty());
        assert_eq!(cpu_list(b"0-4294967295").len(), 1024);
    }

    #[test]
    fn instances_are_named_by_what_the_star_stands_for() {
        assert_eq!(component("/sys/cpufreq/policy*/cur", "/sys/cpufreq/policy4/cur"), "policy4");
        assert_eq!(
            component("/sys/class/devfreq/soc:*/cur_freq", "/sys/class/devfreq/soc:qcom,gpubw/cur_freq"),
            "soc:qcom,gpubw"
        );
        assert_eq!(plain("a b\u{1b}[31m/c"), "a_b__31m_c");
    }
}

//! Translates the runner's clock and file names to this machine's.

use super::resume::Course;
use crate::backends::local::Translate;
use crate::backends::on_device::clock::WallClock;
use crate::backends::qnn::runner::Hello;
use crate::event::{Event, Failure, LogLine, clean_text, now_us};
use std::path::Path;

/// Names on the device and the user's names for these files.
#[derive(Debug, Clone, Default)]
pub struct Names {
    rows: Vec<(String, String)>,
    results: Vec<(String, String)>,
}

impl Names {
    /// A file that was sent. No name may be a prefix of another.
    pub fn add(&mut self, there: String, here: &Path) {
        self.rows.push((there, clean_text(&here.to_string_lossy())));
    }

    /// A file to fetch at the end. Errors keep its name on the device: they are about the device's storage.
    pub fn add_result(&mut self, there: String, here: &Path) {
        self.results.push((there, clean_text(&here.to_string_lossy())));
    }

    /// Substitutes the user's names in a text.
    pub fn translate(&self, text: &mut String) {
        for (there, here) in &self.rows {
            if text.contains(there.as_str()) {
                *text = text.replace(there.as_str(), here);
            }
        }
    }

    /// The same for all texts of a failure.
    pub fn translate_failure(&self, failure: &mut Failure) {
        self.translate(&mut failure.message);
        failure.log_tail.iter_mut().for_each(|line| self.translate(line));
        let said = failure.refusal.iter_mut().flat_map(|refusal| &mut refusal.log);
        said.for_each(|line| self.translate(line));
    }

    fn translate_result(&self, text: &mut String) {
        if let Some((_, here)) = self.results.iter().find(|(there, _)| there == text) {
            text.clone_from(here);
        }
    }
}

/// Translates the messages of a runner on a device.
#[derive(Debug)]
pub struct Translation {
    clock: WallClock,
    names: Names,
    /// Host's monotonic clock minus the device's, microseconds.
    offset_us: Option<i64>,
    course: Course,
}

impl Translation {
    /// With the device's wall clock as measured from here, for a runner that continues `course`.
    pub fn new(clock: WallClock, names: Names, course: Course) -> Self {
        Self { clock, names, offset_us: None, course }
    }

    fn host_us(&mut self, t_us: u64) -> u64 {
        // An older runner does not report its clocks; its first message is then assumed to be fresh.
        let offset_us = *self.offset_us.get_or_insert_with(|| difference(now_us(), t_us));
        t_us.saturating_add_signed(offset_us)
    }
}

impl Translate for Translation {
    fn hello(&mut self, hello: &Hello) {
        if let (Some(monotonic_us), Some(epoch_us)) = (hello.monotonic_us, hello.epoch_us) {
            self.offset_us = Some(difference(self.clock.host_us(epoch_us), monotonic_us));
        }
    }

    fn event(&mut self, t_us: u64, event: Event) -> Option<(u64, Event)> {
        let mut event = self.course.take(event)?;
        match &mut event {
            Event::Inferences(batch) => {
                for start_us in &mut batch.start_us {
                    *start_us = self.host_us(*start_us);
                }
            }
            Event::ModelIdentified(model) => self.names.translate(&mut model.path),
            Event::InputsPrepared { inputs, .. } => {
                for input in inputs {
                    self.names.translate(&mut input.source);
                }
            }
            Event::SettingApplied(setting) => self.names.translate_result(&mut setting.value),
            Event::Log(LogLine { text, .. }) => self.names.translate(text),
            Event::Failed(failure) => self.names.translate_failure(failure),
            // Reported once the files are on this machine.
            Event::OutputsSaved { .. } => return None,
            _ => {}
        }
        Some((self.host_us(t_us), event))
    }
}

fn difference(a: u64, b: u64) -> i64 {
    i64::try_from(i128::from(a) - i128::from(b)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{InferenceBatch, Phase};

    fn batch(start_us: u64) -> Event {
        let (start_us, latency_ns, late_ns) = (vec![start_us, start_us + 10], vec![1, 1], vec![7, 8]);
        Event::Inferences(InferenceBatch { phase: Phase::Clean, first_index: 0, start_us, latency_ns, late_ns })
    }

    fn hello(monotonic_us: Option<u64>, epoch_us: Option<u64>) -> Hello {
        Hello { protocol: 1, version: String::new(), pid: 1, monotonic_us, epoch_us }
    }

    #[test]
    fn moments_of_the_device_lie_on_the_hosts_axis() {
        // The device's wall clock is 5 s behind the host's monotonic one, and it started long after that.
        let clock = WallClock::with_offset_us(5_000_000);
        let mut translation = Translation::new(clock, Names::default(), Course::default());
        translation.hello(&hello(Some(1_000), Some(90_000_000)));
        let (t_us, event) = translation.event(2_000, batch(1_500)).unwrap();
        assert_eq!(t_us, 95_001_000);
        let Event::Inferences(batch) = event else { panic!("{event:?}") };
        assert_eq!(batch.start_us, [95_000_500, 95_000_510]);
        assert_eq!(batch.late_ns, [7, 8], "a time is the same on every clock");
    }

    #[test]
    fn a_runner_that_does_not_tell_its_clocks_is_taken_as_fresh() {
        let mut translation = Translation::new(WallClock::with_offset_us(0), Names::default(), Course::default());
        translation.hello(&hello(None, None));
        let before = now_us();
        let (first, _) = translation.event(7, Event::GraphChosen { name: String::new() }).unwrap();
        assert!((before..=now_us()).contains(&first));
        let (next, _) = translation.event(107, batch(50)).unwrap();
        assert_eq!(next, first + 100);
    }

    #[test]
    fn files_have_the_users_names() {
        let mut names = Names::default();
        names.add("/d/run-1/in-1.raw".to_owned(), Path::new("/home/u/x.raw"));
        names.add_result("/d/run-1/profile.log".to_owned(), Path::new("out.log"));
        let mut translation = Translation::new(WallClock::with_offset_us(0), names, Course::default());
        let mut failure = Failure::new(crate::event::Stage::Prepare, "inputs", "/d/run-1/in-1.raw has 3 bytes");
        failure.log_tail.push("no /d/run-1/in-1.raw".to_owned());
        let (_, event) = translation.event(0, Event::Failed(Box::new(failure))).unwrap();
        let Event::Failed(failure) = event else { panic!("{event:?}") };
        assert_eq!(failure.message, "/home/u/x.raw has 3 bytes");
        assert_eq!(failure.log_tail, ["no /home/u/x.raw"]);
        assert!(translation.event(0, Event::OutputsSaved { files: Vec::new() }).is_none());
    }
}

//! The second stream, for slow sources: its data, and its handling when it hangs or ends.

use super::{End, Incoming, Line, Link, Reading, Task, parse};
use crate::event::Event;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum silence of the second stream beyond the pause between two rounds: slow files take time.
const SLOW_SILENCE: Duration = Duration::from_secs(8);
/// Delay before restarting an ended second stream.
const RESTART_AFTER: Duration = Duration::from_secs(5);

impl Task {
    pub(super) async fn take_slow(&mut self, incoming: Incoming) {
        self.slow_heard = Instant::now();
        let reading = match incoming {
            Incoming::Line(line) => match parse(&line) {
                Some(Line::Tick { stamp, mut values, .. }) => {
                    self.slow_reading = None;
                    let Some((source, content)) = values.next() else { return };
                    self.state.put(source, content);
                    self.slow_reading(source, self.clock.late_us(stamp))
                }
                Some(Line::Cost { cpu_ns }) => {
                    self.slow_cost(cpu_ns);
                    None
                }
                Some(Line::Timing { source }) => {
                    self.slow_reading = Some(source);
                    None
                }
                _ => None,
            },
            Incoming::TextStart(line) => {
                if let Some(Line::TextStart { source, stamp }) = parse(&line) {
                    self.slow_reading = Some(source);
                    self.slow_stamp = Some(self.clock.late_us(stamp));
                }
                None
            }
            Incoming::Text(source, text) => {
                self.slow_reading = None;
                self.state.put(source, text.as_deref().map_err(|gap| *gap));
                self.slow_stamp.take().and_then(|device_us| self.slow_reading(source, device_us))
            }
        };
        if let Some(reading) = reading {
            self.give(reading).await;
        }
    }

    fn slow_reading(&mut self, source: usize, device_us: u64) -> Option<Reading> {
        let t_us = self.host_clock?.from_device_us(device_us);
        self.state.slow(source, device_us, t_us)
    }

    /// Longest time without a sign of life from the second stream.
    pub(super) fn slow_silence(&self) -> Duration {
        Duration::from_micros(self.split.slow_period_us) + SLOW_SILENCE
    }

    /// The second stream ended by itself: its counters have no values until it is restarted.
    pub(super) async fn lose_slow(&mut self, slow: &mut Option<Link>) {
        *slow = None;
        self.slow_due = Some(Instant::now() + RESTART_AFTER);
        for gap in self.state.lose_slow() {
            self.source.send(None, Event::CounterGap(gap)).await;
        }
        self.log(&format!("the shell that reads the slow counters of {} ended: it is started again", self.device.id()))
            .await;
    }

    /// Restarts the second stream, without the file on which it hung, if any.
    pub(super) async fn restart_slow(&mut self, main: &mut Link, slow: &mut Option<Link>) -> Result<(), End> {
        if let Some(hung) = slow.take() {
            match self.slow_reading.filter(|source| self.hanging.insert(*source)) {
                Some(source) => self.say_hanging(source).await,
                None => {
                    self.log(&format!("the slow counters of {} do not come: starting again", self.device.id())).await;
                }
            }
            tokio::spawn(hung.kill());
        }
        self.pause(main).await?;
        *slow = self.go(main).await;
        Ok(())
    }
}

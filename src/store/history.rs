//! The whole course of a counter in a few numbers: what remains once its single points are gone.

/// Maximum number of spans; beyond, neighbours are merged.
const CAPACITY: usize = 1024;

/// Values of a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Time of the first value, host monotonic microseconds.
    pub from_us: u64,
    /// Moment of the last value.
    pub to_us: u64,
    /// Values in it.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Span {
    /// Mean of the values.
    pub fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    fn take(&mut self, other: &Self) {
        self.to_us = other.to_us;
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// Spans from the first value to the last. The longer the session, the longer a span.
#[derive(Debug, Clone)]
pub(super) struct History {
    spans: Vec<Span>,
    values_per_span: u64,
}

impl Default for History {
    fn default() -> Self {
        Self { spans: Vec::new(), values_per_span: 1 }
    }
}

impl History {
    pub(super) fn push(&mut self, t_us: u64, value: f64) {
        let span = Span { from_us: t_us, to_us: t_us, count: 1, sum: value, min: value, max: value };
        match self.spans.last_mut().filter(|last| last.count < self.values_per_span) {
            Some(last) => last.take(&span),
            None => self.spans.push(span),
        }
        if self.spans.len() > CAPACITY {
            self.values_per_span *= 2;
            let pairs = self.spans.chunks(2).map(|pair| match pair {
                [a, b] => {
                    let mut both = *a;
                    both.take(b);
                    both
                }
                rest => rest[0],
            });
            self.spans = pairs.collect();
        }
    }

    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Mean of the values from `from_us` up to `to_us`, with the resolution of a span; `None` if there are none.
    pub(super) fn mean(&self, from_us: u64, to_us: u64) -> Option<f64> {
        let first = self.spans.partition_point(|span| span.to_us < from_us);
        let inside = self.spans[first..].iter().take_while(|span| span.from_us <= to_us);
        let (sum, count) = inside.fold((0.0, 0), |(sum, count), span| (sum + span.sum, count + span.count));
        (count > 0).then(|| sum / count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_course_stays_however_long_it_gets() {
        let mut history = History::default();
        for t in 0..100_000u32 {
            history.push(u64::from(t), f64::from(t));
        }
        let spans = history.spans();
        assert!(spans.len() <= CAPACITY && spans.len() > CAPACITY / 4, "{}", spans.len());
        assert_eq!((spans[0].from_us, spans[spans.len() - 1].to_us), (0, 99_999));
        assert_eq!(spans.iter().map(|span| span.count).sum::<u64>(), 100_000);
        assert!(spans.windows(2).all(|pair| pair[0].to_us < pair[1].from_us));
        for span in spans {
            assert!((span.mean() - f64::midpoint(span.min, span.max)).abs() < 1e-6, "{span:?}");
        }
    }
}

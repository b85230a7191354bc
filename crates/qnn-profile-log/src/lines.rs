//! Totals of events by name, in order of first appearance, two levels deep.

use super::budget::NameBudget;
use super::chunk::{Event, Events, Value};
use super::error::ProfileLogError;
use super::kinds::{EventType, Unit};
use std::collections::HashMap;

/// A sum that stays exact for integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sum {
    /// Of unsigned values.
    Unsigned(u128),
    /// Of signed values.
    Signed(i128),
    /// With at least one float.
    Float(f64),
}

impl Sum {
    /// As a float.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Unsigned(sum) => sum as f64,
            Self::Signed(sum) => sum as f64,
            Self::Float(sum) => sum,
        }
    }

    fn of(value: Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Unsigned(value) => Self::Unsigned(value.into()),
            Value::Signed(value) => Self::Signed(value.into()),
            Value::Float(value) => Self::Float(value.into()),
            Value::Double(value) => Self::Float(value),
            Value::Object { .. } => return None,
        })
    }

    fn plus(self, other: Self) -> Self {
        match (self, other) {
            // 2^64 values of 64 bits fit.
            (Self::Unsigned(a), Self::Unsigned(b)) => Self::Unsigned(a.saturating_add(b)),
            (Self::Signed(a), Self::Signed(b)) => Self::Signed(a.saturating_add(b)),
            (Self::Signed(a), Self::Unsigned(b)) | (Self::Unsigned(b), Self::Signed(a)) => {
                Self::Signed(a.saturating_add(i128::try_from(b).unwrap_or(i128::MAX)))
            }
            (a, b) => Self::Float(a.as_f64() + b.as_f64()),
        }
    }
}

/// All events of one name.
#[derive(Debug, Clone)]
pub struct Line {
    /// The name, as bytes.
    pub identifier: Option<Vec<u8>>,
    /// Type of the first such event.
    pub event_type: EventType,
    /// Unit of the first such event.
    pub unit: Unit,
    /// Sum and count of the values; `None` if all were objects.
    pub sum: Option<(Sum, u64)>,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Events below these ones.
    pub below: Lines,
    /// Not a second one of the same name from the same message.
    first: bool,
}

/// Totals by name.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    all: Vec<Line>,
    index: HashMap<Option<Vec<u8>>, usize>,
    cursor: usize,
}

impl Lines {
    /// The lines, in order of first appearance.
    pub fn as_slice(&self) -> &[Line] {
        &self.all
    }

    /// Adds the events of one message for which `counts` is true, and their direct sub-events. Two of the same name in
    /// one message become two lines at first; later ones go to the first line.
    pub(super) fn add(
        &mut self,
        events: Events<'_>,
        counts: fn(EventType) -> bool,
        budget: &mut NameBudget,
    ) -> Result<(), ProfileLogError> {
        let known = self.start();
        for event in events {
            if counts(event.event_type()) {
                let line = self.add_one(&event, known, budget)?;
                let below = event.events();
                if below.len() > 0 {
                    let known = line.below.start();
                    for event in below {
                        line.below.add_one(&event, known, budget)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Call before the events of a message; returns the number of lines known so far.
    fn start(&mut self) -> usize {
        self.cursor = 0;
        self.all.len()
    }

    #[inline]
    fn add_one(
        &mut self,
        event: &Event<'_>,
        known: usize,
        budget: &mut NameBudget,
    ) -> Result<&mut Line, ProfileLogError> {
        let (unit, value) = (event.unit(), event.value());
        let sum = if unit == Unit::Object { None } else { Sum::of(value) };
        let at = self.place(event.identifier(), event.event_type(), unit, known, budget)?;
        let line = &mut self.all[at];
        if let Some(sum) = sum {
            line.push(sum, 1, sum.as_f64(), sum.as_f64());
        }
        Ok(line)
    }

    /// Adds all of another.
    pub(super) fn merge(&mut self, other: &Self, budget: &mut NameBudget) -> Result<(), ProfileLogError> {
        let known = self.start();
        for line in &other.all {
            let at = self.place(line.identifier.as_deref(), line.event_type, line.unit, known, budget)?;
            let own = &mut self.all[at];
            if let Some((sum, samples)) = line.sum {
                own.push(sum, samples, line.min, line.max);
            }
            own.below.merge(&line.below, budget)?;
        }
        Ok(())
    }

    /// Index of the line for a name: its first one among the `known` lines, else a new one.
    #[inline]
    fn place(
        &mut self,
        identifier: Option<&[u8]>,
        event_type: EventType,
        unit: Unit,
        known: usize,
        budget: &mut NameBudget,
    ) -> Result<usize, ProfileLogError> {
        // Messages resemble each other, so the line after the last one is nearly always the right one.
        let at = match self.all.get(self.cursor) {
            Some(line) if self.cursor < known && line.first && line.identifier.as_deref() == identifier => self.cursor,
            _ => self.look_up(identifier, event_type, unit, known, budget)?,
        };
        self.cursor = at + 1;
        Ok(at)
    }

    fn look_up(
        &mut self,
        identifier: Option<&[u8]>,
        event_type: EventType,
        unit: Unit,
        known: usize,
        budget: &mut NameBudget,
    ) -> Result<usize, ProfileLogError> {
        let key = identifier.map(<[u8]>::to_vec);
        let found = self.index.get(&key).copied();
        if let Some(at) = found
            && at < known
        {
            return Ok(at);
        }
        budget.take(2 * key.as_ref().map_or(0, Vec::len) + size_of::<Line>())?;
        let at = self.all.len();
        if found.is_none() {
            self.index.insert(key.clone(), at);
        }
        self.all.push(Line {
            identifier: key,
            event_type,
            unit,
            sum: None,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            below: Self::default(),
            first: found.is_none(),
        });
        Ok(at)
    }
}

impl Line {
    #[inline]
    fn push(&mut self, sum: Sum, samples: u64, min: f64, max: f64) {
        self.min = self.min.min(min);
        self.max = self.max.max(max);
        self.sum = Some(match self.sum {
            None => (sum, samples),
            Some((own, count)) => (own.plus(sum), count + samples),
        });
    }
}

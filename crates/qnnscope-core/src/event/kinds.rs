//! The event kinds this version knows, and records of unknown ones.

use super::{Event, Record, RunId};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, VariantAccess, Visitor};
use serde::{Deserialize, Serialize, forward_to_deserialize_any};
use std::sync::LazyLock;

/// An event of unknown kind, written by a newer version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnknownEvent {
    /// Its kind, control characters removed.
    pub kind: String,
    /// All of it.
    pub payload: serde_json::Value,
}

impl Event {
    /// The event kinds this version knows, by their names in session files.
    pub fn kinds() -> &'static [&'static str] {
        static KINDS: LazyLock<&'static [&'static str]> = LazyLock::new(|| {
            let mut names: &'static [&'static str] = &[];
            // Asks serde for the variant names; no event is involved.
            let _ = Event::deserialize(VariantNames(&mut names));
            names
        });
        *KINDS
    }
}

impl Record {
    /// Reads a line of a session. An event of unknown kind becomes [`Event::Unknown`]; a damaged line, or a known kind
    /// with a wrong payload, is an error.
    ///
    /// # Errors
    /// What serde says of the line.
    pub fn read(line: &[u8]) -> Result<Self, serde_json::Error> {
        // Only what the first attempt refused is looked at again: lines are many, unknown kinds few.
        serde_json::from_slice(line).or_else(|refused| unknown(line).ok_or(refused))
    }
}

fn unknown(line: &[u8]) -> Option<Record> {
    #[derive(Deserialize)]
    struct Loose {
        seq: u64,
        t_us: u64,
        #[serde(default)]
        run: Option<RunId>,
        event: serde_json::Value,
    }
    let Loose { seq, t_us, run, event } = serde_json::from_slice(line).ok()?;
    let (kind, payload) = match event {
        serde_json::Value::String(kind) => (kind, serde_json::Value::Null),
        serde_json::Value::Object(object) if object.len() == 1 => object.into_iter().next()?,
        _ => return None,
    };
    let is_known = Event::kinds().contains(&&*kind);
    let event = Event::Unknown(UnknownEvent { kind: super::clean_text(&kind), payload });
    (!is_known).then_some(Record { seq, t_us, run, event })
}

/// A deserializer that records the variant names of an enum and then fails.
struct VariantNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for VariantNames<'_> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("not an enum"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = variants;
        visitor.visit_enum(Nothing)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Nothing;

impl<'de> EnumAccess<'de> for Nothing {
    type Error = serde_json::Error;
    type Variant = NoPayload;

    fn variant_seed<V: DeserializeSeed<'de>>(self, _: V) -> Result<(V::Value, Self::Variant), Self::Error> {
        Err(Self::Error::custom("no variant"))
    }
}

/// The payload of no variant: unreachable.
enum NoPayload {}

impl<'de> VariantAccess<'de> for NoPayload {
    type Error = serde_json::Error;

    fn unit_variant(self) -> Result<(), Self::Error> {
        match self {}
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Self::Error> {
        match self {}
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Self::Error> {
        match self {}
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Self::Error> {
        match self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RunStatus;

    #[test]
    fn every_kind_is_known_by_the_name_that_files_use() {
        let kinds = Event::kinds();
        assert!(kinds.len() > 30 && kinds.contains(&"session_started") && kinds.contains(&"op_times"), "{kinds:?}");
        let written = serde_json::to_value(Event::RunFinished { status: RunStatus::Ok }).unwrap();
        assert!(kinds.contains(&&**written.as_object().unwrap().keys().next().unwrap()));
    }

    #[test]
    fn newer_kinds_are_kept_and_counted_but_damage_stays_an_error() {
        let line = br#"{"seq":7,"t_us":9,"run":1,"event":{"tapped\u001b":{"pid":3}}}"#;
        let record = Record::read(line).unwrap();
        assert_eq!((record.seq, record.t_us, record.run), (7, 9, Some(RunId(1))));
        let Event::Unknown(unknown) = &record.event else { panic!("{record:?}") };
        assert!(unknown.kind.starts_with("tapped") && !unknown.kind.contains('\x1b'));
        assert_eq!(unknown.payload["pid"], 3);
        // Unknown events can be written again.
        let again = Record::read(&serde_json::to_vec(&record).unwrap()).unwrap();
        assert_eq!(again, record);
        let bare = Record::read(br#"{"seq":0,"t_us":0,"event":"paused"}"#).unwrap();
        assert!(matches!(&bare.event, Event::Unknown(unknown) if unknown.kind == "paused"));
        for damaged in [
            &br#"{"seq":7,"t_us":9,"event":{"run_finished":{"status":"purple"}}}"#[..],
            br#"{"seq":7,"t_us":9,"event":{"tapped":{},"again":{}}}"#,
            br#"{"seq":7,"t_us":9,"event":{"tapp"#,
            br#"{"seq":7,"event":{"tapped":{}}}"#,
            br#"{"seq":7,"t_us":9,"event":12}"#,
        ] {
            assert!(Record::read(damaged).is_err(), "{}", String::from_utf8_lossy(damaged));
        }
    }
}

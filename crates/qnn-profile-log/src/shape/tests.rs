use super::*;
use crate::error::Damage;
use crate::table::follow;
use crate::verify::visit;
use crate::visit::{EventParts, MessageParts, Visit};
use proptest::prelude::*;
use std::path::Path;

/// Everything visible of messages, as text; with or without shapes.
#[derive(Default)]
struct Seen {
    uses_shapes: bool,
    again: usize,
    lines: Vec<String>,
}

impl<'a> Visit<'a> for Seen {
    type Error = Damage;
    type Plan = ();

    fn message(&mut self, message: &MessageParts<'a>) -> Result<(), Damage> {
        let (start, stop) = message.interval.map_or((0, 0), |interval| (interval.u64(0), interval.u64(1)));
        self.lines.push(format!(
            "{:?} {} {:?} {} {} {start} {stop}",
            message.method(),
            message.is_private(),
            message.graph,
            message.time_us(),
            message.seq().unwrap_or_default(),
        ));
        Ok(())
    }

    fn event(&mut self, event: &EventParts<'a>, depth: usize) -> Result<(), Damage> {
        if depth <= 2 {
            let value = event.event.u64(2);
            let (kind, unit) = (event.event_type(), event.unit());
            self.lines.push(format!("{depth} {kind:?} {unit:?} {value} {:?}", event.identifier));
        }
        Ok(())
    }

    fn plan(&mut self, _: &Shape, _: &Again<'_>) -> Option<()> {
        self.uses_shapes.then_some(())
    }

    fn again(&mut self, message: &Again<'a>, shape: &Shape, (): &()) -> Result<(), Damage> {
        self.again += 1;
        self.lines.push(format!(
            "{:?} {} {:?} {} {} {} {}",
            shape.method,
            shape.is_private,
            message.text(shape.graph.as_ref()),
            message.number(shape.time),
            message.number(shape.seq),
            message.number(shape.start),
            message.number(shape.stop),
        ));
        for ShapedEvent { depth, event_type, unit, value, identifier, .. } in &shape.events {
            let (value, identifier) = (message.number(*value), message.text(identifier.as_ref()));
            self.lines.push(format!("{depth} {event_type:?} {unit:?} {value} {identifier:?}"));
        }
        Ok(())
    }
}

/// The chunks of a log.
fn chunks(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/profile-logs").join(name);
    let log = std::fs::read(path).unwrap();
    let (mut rest, mut chunks) = (log.as_slice(), Vec::new());
    while let Some((length, after)) = rest.split_first_chunk() {
        let (chunk, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        chunks.push(chunk.to_vec());
        rest = after;
    }
    chunks
}

/// The visible content of the chunks up to the first damaged one, that damage, and how many messages matched the shape
/// of others.
fn seen<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, uses_shapes: bool) -> (Vec<String>, Option<Damage>, usize) {
    let (mut shapes, mut all) = (Shapes::default(), Seen { uses_shapes, ..Seen::default() });
    for chunk in chunks {
        let before = all.lines.len();
        // As much as the tests need.
        shapes.credit = 8 * Shapes::<()>::COST;
        if let Err(damage) = visit(chunk, &mut shapes, &mut all) {
            all.lines.truncate(before);
            return (all.lines, Some(damage), all.again);
        }
    }
    (all.lines, None, all.again)
}

/// Checks that shapes change nothing; returns how many messages matched the shape of others.
#[track_caller]
fn compare(chunks: &[&[u8]]) -> usize {
    let (lines, damage, again) = seen(chunks.iter().copied(), true);
    let (expected, expected_damage, none) = seen(chunks.iter().copied(), false);
    assert_eq!(none, 0);
    assert_eq!(damage, expected_damage);
    assert!(lines == expected, "{lines:#?}\n{expected:#?}");
    again
}

#[test]
fn messages_of_a_graph_are_built_alike() {
    for (name, messages) in [
        ("cpu-2op-3000inf-detailed.log", 2900),
        ("htp-2op-q8-1200inf-detailed.log", 1100),
        ("ort-cpu-cls-20inf-detailed.log", 17),
        ("cpu-2op-20inf-detailed.log", 15),
        ("htp-2op-q8-20inf-detailed.log", 12),
    ] {
        let chunks = chunks(name);
        let again = compare(&chunks.iter().map(Vec::as_slice).collect::<Vec<_>>());
        assert!(again >= messages, "{name}: {again}");
    }
}

/// Every changed byte is detected, or belongs to a number.
#[test]
fn no_changed_byte_slips_through() {
    let chunk = &chunks("cpu-2op-20inf-detailed.log")[0];
    let mut changed = chunk.clone();
    for at in 0..chunk.len() {
        changed[at] ^= if at % 2 == 0 { 0x01 } else { 0xff };
        compare(&[&changed]);
        changed[at] = chunk[at];
    }
}

/// The same with a shape from an earlier chunk.
#[test]
fn no_changed_byte_slips_through_another_chunk() {
    let chunks = chunks("ort-cpu-cls-5inf-basic.log");
    let last = &chunks[chunks.len() - 2];
    let mut changed = last.clone();
    let mut again = 0;
    for at in 0..last.len() {
        for bits in [0x01, 0x04, 0x80, 0xff] {
            changed[at] ^= bits;
            again += compare(&[last, last, &changed, last]);
            changed[at] ^= bits;
        }
    }
    assert!(again > 0);
}

/// Numbers that share bytes with something else are not treated as numbers.
#[test]
fn lists_of_fields_may_say_anything() {
    let chunk = &chunks("cpu-2op-20inf-detailed.log")[0];
    // Every list of fields, recognised by its two lengths and an offset of 4 or more.
    let word = |at: usize| usize::from(u16::from_le_bytes([chunk[at], chunk[at + 1]]));
    let lists: Vec<usize> = (0..chunk.len() - 8)
        .step_by(2)
        .filter(|&at| (6..=28).contains(&word(at)) && word(at) % 2 == 0 && (8..=64).contains(&word(at + 2)))
        .filter(|&at| at + word(at) <= chunk.len() && (4..word(at) / 2 * 2).step_by(2).all(|slot| word(at + slot) < 64))
        .collect();
    assert!(lists.len() >= 5, "{lists:?}");
    let mut changed = chunk.clone();
    for list in lists {
        for slot in (4..word(list)).step_by(2) {
            for offset in (0..word(list + 2)).step_by(2) {
                changed[list + slot] = u8::try_from(offset).unwrap();
                compare(&[&changed]);
                changed[list + slot] = chunk[list + slot];
            }
        }
    }
}

/// A shape whose field lists lie elsewhere in the chunk ends with the chunk: the next one may differ there.
#[test]
fn lists_of_fields_are_those_of_the_chunk() {
    let chunk = &chunks("cpu-2op-3000inf-detailed.log")[1];
    let root = Table::new(chunk, follow(chunk, 0).unwrap()).unwrap();
    let messages = root.vector(1, 4).unwrap();
    let at = messages.table(messages.len - 1).unwrap().at;
    let shape = Shape::of(chunk, at, false).unwrap();
    assert!(shape.outward.len() >= 5, "{:?}", shape.outward);
    let mut changed = chunk.clone();
    for (place, way) in &shape.outward {
        let list = (at - shape.before + place).checked_add_signed(-(way.cast_signed() as isize)).unwrap();
        for slot in (4..usize::from(chunk[list])).step_by(2) {
            changed[list + slot] ^= 0x04;
            let (mut shapes, mut first) = (Shapes::default(), Seen { uses_shapes: true, ..Seen::default() });
            visit(chunk, &mut shapes, &mut first).unwrap();
            assert!(shapes.known.is_some());
            // Only what is already known is used.
            shapes.credit = 0;
            let mut second = Seen { uses_shapes: true, ..Seen::default() };
            let damage = visit(&changed, &mut shapes, &mut second).err();
            let mut expected = Seen::default();
            assert_eq!(damage, visit(&changed, &mut Shapes::default(), &mut expected).err());
            assert!(damage.is_some() || second.lines == expected.lines);
            changed[list + slot] = chunk[list + slot];
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn changes_in_several_places_are_found(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        name in prop::sample::select(vec!["cpu-2op-20inf-detailed.log", "htp-2op-q8-20inf-detailed.log"]),
    ) {
        let mut chunk = chunks(name)[0].clone();
        for (at, byte) in changes {
            let at = at.index(chunk.len());
            chunk[at] = byte;
        }
        compare(&[&chunk, &chunk]);
    }
}

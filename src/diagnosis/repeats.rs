//! Lines that come again and again, with another time stamp: what they say was read already.

/// Lines that are remembered.
const SLOTS: usize = 8192;
/// Runs of digits from this length on are counters or sizes, of which only the length counts; not in `0x80000406` and
/// `-2147482618`, which are codes.
const LONG_RUN: usize = 6;

/// Recently read lines, by a hash that leaves time stamps and counters out. Error codes have four or five digits (or are
/// hexadecimal) and are kept, as is every short number that stands by itself.
#[derive(Debug, Clone)]
pub struct Repeats {
    slots: Vec<u64>,
}

impl Default for Repeats {
    fn default() -> Self {
        Self { slots: vec![0; SLOTS] }
    }
}

impl Repeats {
    /// True if such a line was read already; remembers it if not.
    pub fn is_known(&mut self, line: &[u8]) -> bool {
        let hash = hash(line);
        #[expect(clippy::cast_possible_truncation, reason = "the low bits choose the slot")]
        let slot = &mut self.slots[hash as usize % SLOTS];
        let known = *slot == hash;
        *slot = hash;
        known
    }
}

fn hash(line: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |value: u64| hash = (hash.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    let mut at = 0;
    while at < line.len() {
        if !line[at].is_ascii_digit() {
            // Eight bytes at a time: most of a line is text.
            let text = line[at..].iter().position(u8::is_ascii_digit).map_or(line.len(), |run| at + run);
            let (words, rest) = line[at..text].as_chunks::<8>();
            for word in words {
                mix(u64::from_le_bytes(*word));
            }
            for byte in rest {
                mix(u64::from(*byte));
            }
            at = text;
            continue;
        }
        let run = line[at..].iter().take_while(|c| c.is_ascii_digit()).count();
        let before = at.checked_sub(1).map(|at| line[at]);
        let after = line.get(at + run).copied();
        let stamp = |c: Option<u8>| matches!(c, Some(b':' | b'.' | b'-'));
        if run >= LONG_RUN && !matches!(before, Some(b'x' | b'X' | b'-')) {
            mix(0x100 + run as u64);
        } else if run <= 3
            && after.is_some()
            && before.is_none_or(|c| !c.is_ascii_alphabetic())
            && (stamp(before) || stamp(after))
        {
            mix(0x200);
        } else {
            line[at..at + run].iter().for_each(|c| mix(u64::from(*c)));
        }
        at += run;
    }
    // Zero marks an empty slot.
    hash.max(1)
}

/// Forms that are remembered.
const FORMS: usize = 4096;
/// Lines of one form that are read for their statements.
const ENOUGH_OF_A_FORM: u8 = 24;

/// How often lines of one form came: all of a line but its digits. What a line states does not hang on its numbers, so a log in
/// which one message comes a million times, each time with another number, need not be read a million times.
#[derive(Debug, Clone)]
pub struct Forms {
    slots: Vec<(u32, u8)>,
}

impl Default for Forms {
    fn default() -> Self {
        Self { slots: vec![(0, 0); FORMS] }
    }
}

impl Forms {
    /// True if enough lines of this form were read; counts this one.
    pub fn is_worn(&mut self, line: &[u8]) -> bool {
        let (slot, kept) = Self::place(line);
        let slot = &mut self.slots[slot];
        if slot.0 != kept {
            *slot = (kept, 0);
        }
        slot.1 = slot.1.saturating_add(1);
        slot.1 > ENOUGH_OF_A_FORM
    }

    /// The same without counting.
    pub fn was_worn(&self, line: &[u8]) -> bool {
        let (slot, kept) = Self::place(line);
        self.slots[slot].0 == kept && self.slots[slot].1 > ENOUGH_OF_A_FORM
    }

    fn place(line: &[u8]) -> (usize, u32) {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut mix = |value: u64| hash = (hash.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
        for text in line.split(u8::is_ascii_digit).filter(|text| !text.is_empty()) {
            // Eight bytes at a time: most of a line is text.
            let (words, rest) = text.as_chunks::<8>();
            for word in words {
                mix(u64::from_le_bytes(*word));
            }
            for byte in rest {
                mix(u64::from(*byte));
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "the low bits choose the slot, the high ones are kept")]
        (hash as usize % FORMS, (hash >> 32) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counters_are_left_out_and_codes_are_not() {
        let mut repeats = Repeats::default();
        assert!(!repeats.is_known(b"07-11 09:12:31.123 E Qnn: err 1002 at 1234567"));
        assert!(repeats.is_known(b"07-12 10:13:32.124 E Qnn: err 1002 at 7654321"));
        assert!(!repeats.is_known(b"07-12 10:13:32.124 E Qnn: err 1008 at 7654321"));
        assert!(!repeats.is_known(b"graph prepare failed 12"));
        assert!(!repeats.is_known(b"graph prepare failed 13"));
        assert!(!repeats.is_known(b"    0.0ms Value 68, expected"));
        assert!(repeats.is_known(b"    9.1ms Value 68, expected"));
        assert!(!repeats.is_known(b"    9.1ms Value 69, expected"));
        assert!(!repeats.is_known(b"open failed, 0x80000406"));
        assert!(!repeats.is_known(b"open failed, 0x80000442"));
        assert!(!repeats.is_known(b"open failed, -2147482618"));
        assert!(!repeats.is_known(b"open failed, -2147482558"));
    }
}

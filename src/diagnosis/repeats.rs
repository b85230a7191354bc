//! Recognises lines that keep coming back with another time stamp: what they say has already been read.

/// Number of lines that are remembered.
const SLOTS: usize = 32768;
/// Runs of at least this many digits are counters or sizes, of which only the length counts; except in
/// `0x80000406` and `-2147482618`, which are codes.
const LONG_RUN: usize = 6;

/// Recently read lines, by a hash that leaves out time stamps and counters. It keeps error codes, which have
/// four or five digits or are hexadecimal, and every short number that stands alone.
#[derive(Debug, Clone)]
pub struct Repeats {
    slots: Vec<u64>,
}

impl Default for Repeats {
    fn default() -> Self {
        Self { slots: vec![0; SLOTS] }
    }
}

/// Identifies a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// The key of a line.
    pub fn of(line: &[u8]) -> Self {
        Self(hash(Mixer::new(), line))
    }

    /// The key of a line without its leading short numbers, such as `17 1203: `, which are counters and
    /// process ids, not codes; also where they end. `None` if it has no such numbers.
    pub fn beyond_numbers(line: &[u8]) -> Option<(Self, usize)> {
        let mut mixer = Mixer(BEYOND);
        let (mut at, mut end) = (0, 0);
        while at < MOST_BEFORE {
            let run = line[at..].iter().take_while(|c| c.is_ascii_digit()).count();
            let after = line.get(at + run).copied();
            let stands_alone = after.is_none_or(|c| SEPARATORS.contains(&c));
            if run > 0 {
                if run >= LONG_RUN || !stands_alone || tells_by_itself(&line[at..at + run]) {
                    break;
                }
                at += run;
                end = at;
            }
            // The separators between them stay in the hash.
            let Some(between) = after.filter(|_| stands_alone) else { break };
            mixer.mix(u64::from(between) << 8 | u64::from(run > 0));
            at += 1;
        }
        (end > 0).then(|| (Self(hash(mixer, &line[end..])), end))
    }

    /// The first of the two slots that it may have. The high bits are the best mixed ones.
    #[expect(clippy::cast_possible_truncation, reason = "as many bits as there are slots")]
    fn slot(self) -> usize {
        (self.0 >> (u64::BITS - SLOTS.trailing_zeros())) as usize & !1
    }
}

impl Repeats {
    /// Forgets all lines.
    pub fn forget(&mut self) {
        self.slots.fill(0);
    }

    /// True if such a line has been read before; remembers it if not.
    pub fn is_known(&mut self, line: &[u8]) -> bool {
        let key = Key::of(line);
        let known = self.has(key);
        self.learn(key);
        known
    }

    /// True if such a line has been read before, or is irrelevant.
    pub fn has(&self, key: Key) -> bool {
        let slot = key.slot();
        self.slots[slot] == key.0 || self.slots[slot + 1] == key.0
    }

    /// Remembers a line that need not be read again.
    pub fn learn(&mut self, key: Key) {
        // Two lines of one place would otherwise keep displacing each other.
        if !self.has(key) {
            let slot = key.slot();
            self.slots[slot + 1] = self.slots[slot];
            self.slots[slot] = key.0;
        }
    }
}

/// A hash that takes text in words of eight bytes.
struct Mixer(u64);

impl Mixer {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn mix(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    /// Hashes the text at the start of `bytes`, up to a digit or the end; returns its length.
    fn text(&mut self, bytes: &[u8]) -> usize {
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let mut at = 0;
        while let Some(word) = bytes.get(at..at + 8).and_then(|part| part.try_into().ok()) {
            let word = u64::from_le_bytes(word);
            // Sets the high bit of each byte that is `0` to `9`.
            let digit = word ^ 0x3030_3030_3030_3030;
            let digits = !(((digit & LOW) + 0x7676_7676_7676_7676) | digit) & !LOW;
            if digits != 0 {
                let before = digits.trailing_zeros() / 8;
                self.part(word & !(u64::MAX << (before * 8)), before);
                return at + before as usize;
            }
            self.mix(word);
            at += 8;
        }
        let rest = &bytes[at..];
        let length = rest.iter().position(u8::is_ascii_digit).unwrap_or(rest.len());
        let word = rest[..length].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        #[expect(clippy::cast_possible_truncation, reason = "less than 8")]
        self.part(word, length as u32);
        at + length
    }

    /// Hashes less than eight bytes of text; the length keeps apart parts that would otherwise look alike.
    fn part(&mut self, word: u64, length: u32) {
        if length > 0 {
            self.mix(word | u64::from(length) << 56);
        }
    }
}

/// Bytes of a line that are searched for leading numbers.
const MOST_BEFORE: usize = 48;
/// What may stand between them.
const SEPARATORS: [u8; 9] = *b" \t:,.[]()";
/// Initial hash of what follows them, so that it matches no other line's.
const BEYOND: u64 = 0x9e37_79b9_7f4a_7c15;

/// True for a number that is significant anywhere: zero (`0 nodes`), and ONNX Runtime's QNN codes.
fn tells_by_itself(digits: &[u8]) -> bool {
    digits.starts_with(b"0") || digits.len() == 4 && digits.starts_with(b"800")
}

fn hash(mut mixer: Mixer, line: &[u8]) -> u64 {
    let mut at = 0;
    while at < line.len() {
        at += mixer.text(&line[at..]);
        if at == line.len() {
            break;
        }
        let run = line[at..].iter().take_while(|c| c.is_ascii_digit()).count();
        let before = at.checked_sub(1).map(|at| line[at]);
        let after = line.get(at + run).copied();
        let stamp = |c: Option<u8>| matches!(c, Some(b':' | b'.' | b'-'));
        if run >= LONG_RUN && !matches!(before, Some(b'x' | b'X' | b'-')) && !is_wide_code(&line[at..at + run]) {
            mixer.mix(0x100 + run as u64);
        } else if run <= 3
            && after.is_some()
            && before.is_none_or(|c| !c.is_ascii_alphabetic())
            && (stamp(before) || stamp(after))
        {
            mixer.mix(0x200);
        } else {
            line[at..at + run].iter().for_each(|c| mixer.mix(u64::from(*c)));
        }
        at += run;
    }
    // Zero marks an empty slot.
    mixer.0.max(1)
}

/// True for `0x8000....` and `0xc000....` in decimal, of 32 or 64 bits: long numbers that are codes.
fn is_wide_code(digits: &[u8]) -> bool {
    match digits.len() {
        10 => digits.starts_with(b"2147") || digits.starts_with(b"322"),
        20 => digits.starts_with(b"184467440"),
        _ => false,
    }
}

/// Number of forms that are remembered.
const FORMS: usize = 8192;
/// Lines of one form that are read for their statements.
const ENOUGH_OF_A_FORM: u8 = 24;
/// Lines of it that are read again after a line that takes earlier ones back.
const AGAIN_OF_A_FORM: u8 = 4;

/// Counts lines by form, which is everything except their digits. A line's statements do not depend on its
/// numbers, so a message that comes a million times, each time with another number, need not be read a
/// million times.
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
    /// Lets a few more lines of each form be read.
    pub fn read_again(&mut self) {
        for (_, count) in &mut self.slots {
            *count = (*count).min(ENOUGH_OF_A_FORM - AGAIN_OF_A_FORM);
        }
    }

    /// True if enough lines of this form have been read; counts this one.
    pub fn is_worn(&mut self, line: &[u8]) -> bool {
        let (slot, kept) = Self::place(line);
        let slot = self.slot_of(slot, kept).unwrap_or_else(|| {
            // Two forms of one place would otherwise keep displacing each other.
            self.slots[slot + 1] = self.slots[slot];
            self.slots[slot] = (kept, 0);
            slot
        });
        let count = &mut self.slots[slot].1;
        *count = count.saturating_add(1);
        *count > ENOUGH_OF_A_FORM
    }

    /// The same, without counting.
    pub fn was_worn(&self, line: &[u8]) -> bool {
        let (slot, kept) = Self::place(line);
        self.slot_of(slot, kept).is_some_and(|slot| self.slots[slot].1 > ENOUGH_OF_A_FORM)
    }

    /// The slot, of the two that it may have, in which a form is.
    fn slot_of(&self, slot: usize, kept: u32) -> Option<usize> {
        [slot, slot + 1].into_iter().find(|slot| self.slots[*slot].0 == kept)
    }

    /// The first of the two slots that the line's form may have, and what tells it from other forms there.
    fn place(line: &[u8]) -> (usize, u32) {
        let mut mixer = Mixer::new();
        let mut at = 0;
        while at < line.len() {
            at += mixer.text(&line[at..]);
            at += line[at..].iter().take_while(|c| c.is_ascii_digit()).count();
        }
        let hash = mixer.0;
        #[expect(clippy::cast_possible_truncation, reason = "the high bits choose the slot, those below are kept")]
        ((hash >> (u64::BITS - FORMS.trailing_zeros())) as usize & !1, (hash >> 20) as u32)
    }
}

/// Percentage of known lines from which looking them up pays off.
const PAYS: u64 = 30;
/// Blocks to search without a lookup after one with few known lines.
const PAUSE: u8 = 15;

/// Whether a log repeats itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// Blocks until lines are looked up again.
    pause: u8,
}

impl Pace {
    /// True if the next lines are likely to be known.
    pub fn knows_lines(&mut self) -> bool {
        let now = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        now
    }

    /// Records how many lines of a block were known.
    pub fn learn(&mut self, known: u64, of: u64) {
        if known * 100 < of * PAYS {
            self.pause = PAUSE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_before_a_line_are_left_out_and_what_they_may_say_is_not() {
        let of = |line: &str| Key::beyond_numbers(line.as_bytes());
        let end = |line| of(line).map(|(_, end)| end);
        assert_eq!(
            (end("17 err"), end(" [12] 3: err"), end("7"), end("99999 x")),
            (Some(2), Some(7), Some(1), Some(5))
        );
        for none in
            ["err 17", "", "   ", "17ms err", "0 nodes", "8001 err", "123456 err", "-30 err", "0x17 err", "1a err"]
        {
            assert_eq!(of(none), None, "{none}");
        }
        let key = |line| of(line).unwrap().0;
        assert_eq!(key("17 err 1002 at 1234567"), key("1203 err 1002 at 7654321"));
        for (one, other) in [
            ("17 err 1002", "17 err 1008"),
            ("17 err", "17: err"),
            ("17 err", "17 18 err"),
            ("17 0 nodes", "17 3 nodes"),
            ("17 8001", "17 8101"),
            ("1 1.2ms", "1 12 ms"),
        ] {
            assert_ne!(key(one), key(other), "{one} {other}");
        }
        assert_ne!(key("17 err"), Key::of(b" err"));
    }

    #[test]
    fn few_lines_are_forgotten_while_others_arrive() {
        let mut repeats = Repeats::default();
        let keys: Vec<Key> = (0..2000).map(|n| Key::of(format!("node {n} took {n} cycles").as_bytes())).collect();
        for key in &keys {
            repeats.learn(*key);
        }
        let kept = keys.iter().filter(|key| repeats.has(**key)).count();
        assert!(kept >= 1990, "{kept} of {}", keys.len());
    }

    #[test]
    fn forms_of_one_place_wear_out_beside_each_other() {
        let letter = |n: u32| char::from_u32(u32::from(b'a') + n % 26).unwrap();
        let lines: Vec<String> =
            (0..500).map(|n| format!("layer {}{}: op refused, code 3110", letter(n / 26), letter(n))).collect();
        let mut forms = Forms::default();
        for _ in 0..=ENOUGH_OF_A_FORM {
            for line in &lines {
                forms.is_worn(line.as_bytes());
            }
        }
        let worn = lines.iter().filter(|line| forms.was_worn(line.as_bytes())).count();
        assert!(worn >= 490, "{worn} of {}", lines.len());
    }

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
        assert!(!repeats.is_known(b"open failed 2147484678") && !repeats.is_known(b"open failed 2147484738"));
        assert!(!repeats.is_known(b"open failed 18446744071562068998"));
        assert!(!repeats.is_known(b"open failed 18446744071562069058"));
        assert!(!repeats.is_known(b"open failed, -2147482618"));
        assert!(!repeats.is_known(b"open failed, -2147482558"));
    }
}

//! Logs made on the spot: handwritten FlatBuffers, valid and hostile.

/// A FlatBuffer under construction: parents first, offsets patched in later.
#[derive(Default)]
pub struct Flat(pub Vec<u8>);

impl Flat {
    /// An empty buffer with room for the root offset.
    pub fn new() -> Self {
        Self(vec![0; 4])
    }

    /// A table with 8 bytes for each of its fields; returns its position and those of its fields.
    pub fn table(&mut self, slots: &[usize]) -> (usize, Vec<usize>) {
        let entries = slots.iter().max().map_or(0, |slot| slot + 1);
        let vtable = self.0.len();
        let mut offsets = vec![0_u16; entries];
        for (i, slot) in slots.iter().enumerate() {
            offsets[*slot] = 4 + 8 * i as u16;
        }
        for word in [4 + 2 * entries as u16, 4 + 8 * slots.len() as u16].into_iter().chain(offsets) {
            self.0.extend(word.to_le_bytes());
        }
        let at = self.0.len();
        self.0.extend(((at - vtable) as i32).to_le_bytes());
        self.0.resize(at + 4 + 8 * slots.len(), 0);
        (at, (0..slots.len()).map(|i| at + 4 + 8 * i).collect())
    }

    /// A vector of offsets; returns its position and those of its elements.
    pub fn vector(&mut self, length: usize) -> (usize, Vec<usize>) {
        let at = self.0.len();
        self.0.extend((length as u32).to_le_bytes());
        self.0.resize(at + 4 + 4 * length, 0);
        (at, (0..length).map(|i| at + 4 + 4 * i).collect())
    }

    pub fn string(&mut self, bytes: &[u8]) -> usize {
        let at = self.0.len();
        self.0.extend((bytes.len() as u32).to_le_bytes());
        self.0.extend(bytes);
        self.0.push(0);
        at
    }

    /// Makes the offset at `place` point to `target`.
    pub fn point(&mut self, place: usize, target: usize) {
        self.put(place, &((target - place) as u32).to_le_bytes());
    }

    pub fn put(&mut self, place: usize, bytes: &[u8]) {
        self.0[place..place + bytes.len()].copy_from_slice(bytes);
    }

    /// The chunk: the buffer preceded by its length.
    pub fn chunk(self) -> Vec<u8> {
        [(self.0.len() as u32).to_le_bytes().to_vec(), self.0].concat()
    }
}

#[derive(Clone, Copy)]
pub enum Number {
    Unsigned(u64),
    Signed(i64),
    Float(f32),
    Double(f64),
    Object(&'static [u8]),
}

#[derive(Clone)]
pub struct Ev {
    pub name: Option<Vec<u8>>,
    pub kind: u32,
    pub unit: u32,
    pub value: Number,
    pub below: Vec<Ev>,
}

/// An event in microseconds.
pub fn ev(name: &str, kind: u32, value: u64) -> Ev {
    Ev { name: Some(name.as_bytes().to_vec()), kind, unit: 1, value: Number::Unsigned(value), below: vec![] }
}

impl Ev {
    pub fn value(mut self, value: Number) -> Self {
        self.value = value;
        self
    }

    pub fn below(mut self, below: Vec<Ev>) -> Self {
        self.below = below;
        self
    }
}

#[derive(Clone)]
pub struct Msg {
    pub method: u8,
    pub seq: u64,
    pub time: u64,
    pub interval: (u64, u64),
    pub private: bool,
    pub graph: Vec<u8>,
    pub events: Vec<Ev>,
}

/// A message that took `us` microseconds, created at `1000 + seq`.
pub fn msg(method: u8, seq: u64, us: u64, graph: &str, events: Vec<Ev>) -> Msg {
    let interval = (100, 100 + us);
    Msg { method, seq, time: 1000 + seq, interval, private: false, graph: graph.as_bytes().to_vec(), events }
}

/// A chunk, with a header if a writer is named.
pub fn chunk(writer: Option<&str>, messages: &[Msg]) -> Vec<u8> {
    let mut flat = Flat::new();
    let (root, fields) = flat.table(&[0, 1]);
    flat.point(0, root);
    if let Some(writer) = writer {
        let (header, places) = flat.table(&[0, 1, 2, 4, 5, 6]);
        flat.point(fields[0], header);
        flat.put(places[0], &1e-6_f32.to_le_bytes());
        flat.put(places[1], &1_700_000_000_000_000_u64.to_le_bytes());
        flat.put(places[2], &1000_u64.to_le_bytes());
        for (place, text) in places[3..].iter().zip(["w1", "b1", writer]) {
            let text = flat.string(text.as_bytes());
            flat.point(*place, text);
        }
    } else {
        // Slot 0 in the root's vtable: no header.
        flat.put(root - 4, &[0, 0]);
    }
    let (list, places) = flat.vector(messages.len());
    flat.point(fields[1], list);
    for (place, message) in places.into_iter().zip(messages) {
        let (at, fields) = flat.table(&[0, 1, 2, 3, 4, 5]);
        flat.point(place, at);
        let (head, stamps) = flat.table(&[0, 1]);
        flat.point(fields[0], head);
        flat.put(stamps[0], &message.time.to_le_bytes());
        flat.put(stamps[1], &message.seq.to_le_bytes());
        flat.put(fields[1], &[message.method]);
        let (interval, ends) = flat.table(&[0, 1]);
        flat.point(fields[2], interval);
        flat.put(ends[0], &message.interval.0.to_le_bytes());
        flat.put(ends[1], &message.interval.1.to_le_bytes());
        flat.put(fields[3], &[u8::from(message.private)]);
        events(&mut flat, fields[4], &message.events);
        let graph = flat.string(&message.graph);
        flat.point(fields[5], graph);
    }
    flat.chunk()
}

fn events(flat: &mut Flat, place: usize, list: &[Ev]) {
    let (at, places) = flat.vector(list.len());
    flat.point(place, at);
    for (place, event) in places.into_iter().zip(list) {
        let (slot, kind, bytes): (usize, u32, Vec<u8>) = match event.value {
            Number::Unsigned(value) => (2, 2, value.to_le_bytes().to_vec()),
            Number::Signed(value) => (6, 1, value.to_le_bytes().to_vec()),
            Number::Float(value) => (7, 3, value.to_le_bytes().to_vec()),
            Number::Double(value) => (11, 5, value.to_le_bytes().to_vec()),
            Number::Object(_) => (8, 4, vec![]),
        };
        let mut slots = vec![1, 3, 4, 5, slot];
        slots.extend(event.name.is_some().then_some(0));
        let (at, fields) = flat.table(&slots);
        flat.point(place, at);
        flat.put(fields[0], &event.kind.to_le_bytes());
        flat.put(fields[1], &event.unit.to_le_bytes());
        flat.put(fields[3], &kind.to_le_bytes());
        flat.put(fields[4], &bytes);
        if let Number::Object(bytes) = event.value {
            let object = flat.string(bytes);
            flat.point(fields[4], object);
        }
        if let Some(name) = &event.name {
            let name = flat.string(name);
            flat.point(fields[5], name);
        }
        events(flat, fields[2], &event.below);
    }
}

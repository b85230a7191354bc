//! The tables of the format and their maximum nesting.

/// Deepest nesting of events accepted; real logs have up to four levels.
pub const MAX_EVENT_DEPTH: usize = 32;

/// Tables of the format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Root,
    Header,
    Version,
    Message,
    MessageHeader,
    Interval,
    Event,
}

impl Kind {
    /// Its name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Root => "root table",
            Self::Header => "header",
            Self::Version => "format version",
            Self::Message => "message",
            Self::MessageHeader => "message header",
            Self::Interval => "interval",
            Self::Event => "event",
        }
    }

    /// Bytes of each field, by slot. Later slots are ignored.
    pub(super) fn fields(self) -> &'static [usize] {
        match self {
            Self::Root => &[4, 4],
            Self::Header => &[4, 8, 8, 4, 4, 4, 4],
            Self::Version => &[4, 4, 4, 1],
            Self::Message => &[4, 1, 4, 1, 4, 4],
            Self::MessageHeader => &[8, 8],
            Self::Interval => &[8, 8, 8, 8, 1],
            Self::Event => &[4, 4, 8, 4, 4, 4, 8, 4, 4, 4, 8, 8],
        }
    }

    /// Whether a field is a number that nothing else depends on.
    pub(super) fn is_number(self, slot: usize) -> bool {
        match self {
            Self::MessageHeader => slot < 2,
            Self::Interval => slot < 4,
            Self::Event => slot == 2,
            Self::Root | Self::Header | Self::Version | Self::Message => false,
        }
    }
}

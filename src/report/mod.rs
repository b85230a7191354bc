//! Reports: pure functions of the store.

pub mod comparison;
mod counters;
mod devices;
mod inspect;
mod layout;
mod numbers;
mod recommendation;
mod result;
mod text;
mod verdicts;

pub use counters::{CounterRow, CountersDocument, SamplingDocument, counters_text};
pub use devices::{AdbDocument, DeviceRow, DevicesDocument, devices_text};
pub use inspect::{InspectDocument, inspect_text};
pub use numbers::{bytes as bytes_text, count as count_text, duration_us as duration_text};
pub use recommendation::{RecommendDocument, recommend_text, recommendation, recommendation_text};
pub use result::{RESULT_SCHEMA, ResultDocument};
pub use text::text_report;

//! Reports: pure functions of the store.

mod bench_check;
pub mod comparison;
mod counters;
mod devices;
mod doctor;
mod document;
mod inspect;
mod launches;
mod layout;
mod mode_result;
pub mod modes;
mod op_result;
mod recommendation;
mod result;
mod sessions;
mod tap;
mod text;
mod verdicts;

pub use bench_check::{BENCH_CHECK_SCHEMA, BenchCheckDocument, FEWEST as FEWEST_LAUNCHES, bench_check_text};
pub use counters::{CounterRow, CountersDocument, SamplingDocument, counters_text};
pub use devices::{AdbDocument, DeviceRow, DevicesDocument, devices_text};
pub use doctor::{DoctorDocument, doctor_text};
pub use document::document_text;
pub use inspect::{InspectDocument, inspect_text};
pub use launches::spread_percent;
pub use modes::cool_down_text;
pub use recommendation::of_sides as recommendation_of_sides;
pub use recommendation::{RecommendDocument, recommend_text, recommendation, recommendation_text};
pub use result::{RESULT_SCHEMA, ResultDocument};
pub use sessions::{SESSIONS_SCHEMA, SessionsDocument, session_text, sessions_text};
pub use tap::{TAP_SCHEMA, TapDocument, tap_text};
pub use text::text_report;

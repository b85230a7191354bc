//! Histograms of the store: their resolution, and how a digest keeps them.

use hdrhistogram::Histogram;
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serializer};

/// Three significant digits: a percentile is within 0.1 % of the sample it represents.
pub const LATENCY_DIGITS: u8 = 3;
/// Two significant digits: an op's percentile is within 1 % of the sample it represents.
pub const OP_DIGITS: u8 = 2;

/// An empty histogram that grows with its values.
pub fn new(digits: u8) -> Histogram<u32> {
    #[expect(clippy::expect_used, reason = "the digits are constants in the crate's range of 0..=5")]
    let mut histogram = Histogram::new(digits).expect("2 and 3 significant digits are valid");
    histogram.auto(true);
    histogram
}

/// The non-empty buckets, each as the distance from the previous one and its count.
fn serialize<S: Serializer>(histogram: &Histogram<u32>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut buckets = serializer.serialize_seq(Some(histogram.iter_recorded().count()))?;
    let mut before = 0;
    for bucket in histogram.iter_recorded() {
        let value = bucket.value_iterated_to();
        buckets.serialize_element(&(value - before, bucket.count_at_value()))?;
        before = value;
    }
    buckets.end()
}

fn deserialize<'de, D: Deserializer<'de>>(digits: u8, deserializer: D) -> Result<Histogram<u32>, D::Error> {
    let mut histogram = new(digits);
    let mut value = 0u64;
    for (step, count) in Vec::<(u64, u32)>::deserialize(deserializer)? {
        value = value.saturating_add(step);
        histogram.record_n(value, count).map_err(serde::de::Error::custom)?;
    }
    Ok(histogram)
}

/// Histograms of latencies, for `#[serde(with)]`.
pub mod of_latencies {
    use super::{Deserializer, Histogram, LATENCY_DIGITS, Serializer};

    /// See [`super::serialize`].
    pub fn serialize<S: Serializer>(histogram: &Histogram<u32>, serializer: S) -> Result<S::Ok, S::Error> {
        super::serialize(histogram, serializer)
    }

    /// See [`super::deserialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Histogram<u32>, D::Error> {
        super::deserialize(LATENCY_DIGITS, deserializer)
    }
}

/// Histograms of op times, for `#[serde(with)]`.
pub mod of_ops {
    use super::{Deserializer, Histogram, OP_DIGITS, Serializer};

    /// See [`super::serialize`].
    pub fn serialize<S: Serializer>(histogram: &Histogram<u32>, serializer: S) -> Result<S::Ok, S::Error> {
        super::serialize(histogram, serializer)
    }

    /// See [`super::deserialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Histogram<u32>, D::Error> {
        super::deserialize(OP_DIGITS, deserializer)
    }
}

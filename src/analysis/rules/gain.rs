//! The expected gain, never more than the time that is spent there.

use super::facts::Facts;
use super::figure::Figure;
use super::rule::{GainOf, Rule};

/// Lowest and highest time per inference that a change may save, microseconds; `None` if no bound is known.
pub fn expected(rule: &Rule, facts: &Facts<'_>, layers: &[usize]) -> Option<[f64; 2]> {
    let gain = rule.gain?;
    let latency_us = facts.latency_us()?;
    let ceiling_us = match gain.of {
        // Op times overlap on an accelerator, so the share is the most that can be saved.
        GainOf::Layers => facts.op_time_us()? * part(facts, layers, gain.by),
        GainOf::Transport => facts.figure(Figure::TransportUs)?,
        GainOf::Host => facts.figure(Figure::HostShare)? * latency_us,
    };
    let ceiling_us = ceiling_us.clamp(0.0, latency_us);
    let [low, high] = gain.part;
    Some([low * ceiling_us, high * ceiling_us])
}

fn part(facts: &Facts<'_>, layers: &[usize], by: Option<super::measure::Measure>) -> f64 {
    let weighed = layers.iter().filter_map(|&index| {
        let node = facts.nodes.list.get(index)?;
        let weight = match by {
            Some(measure) => measure.of(node)?.clamp(0.0, 1.0),
            None => 1.0,
        };
        Some(node.share? * weight)
    });
    weighed.fold(0.0, |sum, share| sum + share).min(1.0)
}

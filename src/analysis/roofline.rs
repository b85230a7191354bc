//! How fast ops compute and move data, relative to the best rate seen on the same backend.

use crate::store::{Run, Store};

/// Ops shorter than this, in microseconds, set no best rate: their times are whole microseconds or noise.
const MIN_BEST_US: f64 = 5.0;
/// Minimum number of ops with figures for a best rate.
const MIN_OPS: usize = 4;

/// What an op achieved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Achieved {
    /// Multiply-accumulates per second, billions; `None` if the op has none or their number is unknown.
    pub gmac_per_s: Option<f64>,
    /// Bytes per second if every tensor moves once, billions; `None` if a size is unknown.
    pub gb_per_s: Option<f64>,
    /// The larger of both relative to the best seen on the backend, 0 to 1 and rarely more.
    pub of_best: Option<f64>,
}

/// Achieved rates of all rows of the op table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Roofline {
    /// Best of all ops on this backend and device in this session, GMAC/s.
    pub best_gmac_per_s: Option<f64>,
    /// The same for data, GB/s.
    pub best_gb_per_s: Option<f64>,
    /// By row of the op table; `None` if the row has no time or no graph op.
    pub rows: Vec<Option<Achieved>>,
}

/// The roofline of a run; empty for a simulated one, since cycles of an emulation are not times.
pub fn roofline(store: &Store, run: &Run) -> Roofline {
    let mut rows = achieved(run);
    let alike = |other: &&Run| other.plan.backend == run.plan.backend && other.plan.device == run.plan.device;
    let (mut gmac, mut gb, mut ops) = (0.0f64, 0.0f64, 0usize);
    for other in store.runs().iter().filter(alike) {
        let own;
        let figures = if other.id == run.id {
            &rows
        } else {
            own = achieved(other);
            &own
        };
        for (row, figure) in figures.iter().enumerate() {
            let Some(figure) = figure.filter(|_| op_us(other, row).is_some_and(|us| us >= MIN_BEST_US)) else {
                continue;
            };
            ops += 1;
            gmac = gmac.max(figure.gmac_per_s.unwrap_or(0.0));
            gb = gb.max(figure.gb_per_s.unwrap_or(0.0));
        }
    }
    let enough = ops >= MIN_OPS;
    let best = |value: f64| (enough && value > 0.0).then_some(value);
    let (best_gmac_per_s, best_gb_per_s) = (best(gmac), best(gb));
    for figure in rows.iter_mut().flatten() {
        let part = |value: Option<f64>, best: Option<f64>| Some(value? / best?);
        let (compute, data) = (part(figure.gmac_per_s, best_gmac_per_s), part(figure.gb_per_s, best_gb_per_s));
        figure.of_best = compute.into_iter().chain(data).reduce(f64::max);
    }
    Roofline { best_gmac_per_s, best_gb_per_s, rows }
}

/// Mean time of a row, microseconds; `None` if it was not measured or the op has no time left (fused into
/// another).
pub(super) fn op_us(run: &Run, row: usize) -> Option<f64> {
    if run.plan.simulated {
        return None;
    }
    let us = run.ops.stats().get(row)?.mean()? * run.us_per_op_unit()?;
    (us > 0.0).then_some(us)
}

fn achieved(run: &Run) -> Vec<Option<Achieved>> {
    let factor = if run.plan.simulated { None } else { run.us_per_op_unit() };
    let one = |row: usize| {
        let us = run.ops.stats().get(row)?.mean()? * factor?;
        let op = run.op(row).filter(|_| us > 0.0)?;
        // A billion per second is a thousand per microsecond.
        let per_s = |amount: u64| (amount > 0).then(|| amount as f64 / us / 1000.0);
        let (gmac_per_s, gb_per_s) = (op.macs.and_then(per_s), op.bytes_moved.and_then(per_s));
        Some(Achieved { gmac_per_s, gb_per_s, of_best: None })
    };
    (0..run.ops.rows().len()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{Made, only, op};
    use crate::backends::Backend;
    use crate::event::OpUnit;

    /// 4.7 M MACs over 150 kB; 1 M MACs over 4 MB; 64 kB without MACs.
    fn made(backend: Backend, last: u64) -> Made {
        let conv = || op("Conv2d", &[1, 32, 32, 16], &[3, 3, 16, 32], &[1, 32, 32, 32]);
        Made::local(backend)
            .graph(vec![
                conv(),
                op("FullyConnected", &[1, 1000], &[1000, 1000], &[1, 1000]),
                op("Relu", &[1, 8000], &[], &[1, 8000]),
                conv(),
            ])
            .op_times(OpUnit::Us, &[100, 400, 8, last])
    }

    #[test]
    fn figures_follow_from_macs_bytes_and_times() {
        let store = made(Backend::Cpu, 200).store();
        let roofline = roofline(&store, only(&store));
        let conv = roofline.rows[0].unwrap();
        assert!((conv.gmac_per_s.unwrap() - 4_718_592.0 / 100.0 / 1000.0).abs() < 1e-9);
        assert_eq!((conv.of_best, roofline.best_gmac_per_s), (Some(1.0), conv.gmac_per_s));
        let dense = roofline.rows[1].unwrap();
        assert!((dense.gb_per_s.unwrap() - 4_008_000.0 / 400.0 / 1000.0).abs() < 1e-9);
        assert!(dense.of_best.unwrap() > 0.99, "the best at moving data");
        let relu = roofline.rows[2].unwrap();
        assert_eq!((relu.gmac_per_s, relu.gb_per_s.map(f64::round)), (None, Some(8.0)));
        assert!((roofline.rows[3].unwrap().of_best.unwrap() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn fused_ops_few_ops_and_simulations_have_no_best() {
        let store = made(Backend::Cpu, 0).store();
        let fused = roofline(&store, only(&store));
        assert_eq!((fused.rows[3], fused.best_gmac_per_s), (None, None), "three ops are too few");
        let store = made(Backend::Htp, 200).simulated().store();
        assert!(roofline(&store, only(&store)).rows.iter().all(Option::is_none));
    }
}

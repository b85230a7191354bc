//! Layers of runs whose backends fuse ops differently.

use super::*;

/// A convolution and its activation: one backend times both, one times them as the convolution, one as the activation.
fn fused_three_ways() -> Vec<Side> {
    let times = [[Some(80.0), Some(20.0)], [Some(150.0), None], [None, Some(50.0)]];
    times
        .into_iter()
        .map(|[conv, relu]| {
            let mut side = side(Backend::Cpu, &latencies(1, 100, 1000.0, 0.0));
            side.ops = vec![
                op("first", "Conv2d", Some(10.0), None),
                op("conv_token_7", "Conv2d", conv, Some(0)),
                op("relu", "ElementWiseNeuron", relu, Some(1)),
                op("add", "ElementWiseBinary", Some(5.0), Some(2)),
            ];
            side
        })
        .collect()
}

#[test]
fn fused_ops_are_one_layer_in_all_columns() {
    let sides = fused_three_ways();
    let rows = layers(&sides, 0);
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["first", "conv_token_7", "add"]);
    let times: Vec<Option<f64>> = rows[1].cells.iter().map(|cell| cell.time_us).collect();
    assert_eq!(times, [Some(100.0), Some(150.0), Some(50.0)]);
    assert_eq!(rows[1].fused, ["relu"]);
    assert_eq!(rows[1].cells[1].difference_us, Some(50.0));
    let totals = type_totals(&sides, &rows);
    let conv = totals.iter().find(|row| row.op_type == "Conv2d").unwrap();
    assert_eq!(conv.cells[2], TypeCell { ops: 2, time_us: Some(60.0) });
    let neuron = totals.iter().find(|row| row.op_type == "ElementWiseNeuron").unwrap();
    assert_eq!(neuron.cells[0], TypeCell { ops: 1, time_us: None });
}

#[test]
fn no_time_is_lost_or_counted_twice() {
    let sides = fused_three_ways();
    let rows = layers(&sides, 0);
    for (column, side) in sides.iter().enumerate() {
        let own: f64 = side.ops.iter().filter_map(|op| op.time_us).sum();
        let shown: f64 = rows.iter().filter_map(|row| row.cells[column].time_us).sum();
        assert!((own - shown).abs() < 1e-9);
    }
}

#[test]
fn layers_are_sorted_by_what_is_asked() {
    let mut sides = fused_three_ways();
    sides.truncate(2);
    sides[1].ops[3].time_us = Some(1.0);
    let sorted = |sort| {
        let mut rows = layers(&sides, 0);
        sort_layers(&mut rows, sort);
        rows.into_iter().map(|row| row.name).collect::<Vec<_>>()
    };
    assert_eq!(sorted(LayerSort::Difference), ["conv_token_7", "add", "first"]);
    assert_eq!(sorted(LayerSort::Winners), ["add", "first", "conv_token_7"]);
    assert_eq!(sorted(LayerSort::Losers), ["conv_token_7", "first", "add"]);
    assert_eq!(sorted(LayerSort::Order), ["first", "conv_token_7", "add"]);
    assert_eq!(sorted(LayerSort::Time), ["conv_token_7", "first", "add"]);
    assert_eq!(sorted(LayerSort::Name), ["add", "conv_token_7", "first"]);
}

#[test]
fn refused_ops_are_named() {
    let mut failed = side(Backend::Htp, &latencies(1, 100, 1000.0, 0.0));
    failed.latency = None;
    let message = "op `bad` (Conv2d) was refused by backendValidateOpConfig with 3110; then composing failed";
    failed.failure = Some(SideFailure {
        stage: Stage::Compose,
        call: "backendValidateOpConfig".to_owned(),
        code: Some(3110),
        message: message.to_owned(),
        op: refused_op(message),
    });
    let mut good = side(Backend::Cpu, &latencies(2, 100, 1000.0, 0.0));
    good.ops = vec![op("bad", "Conv2d", Some(1.0), None)];
    let comparison = compare(&[failed, good], &CompareOptions::default());
    assert_eq!(comparison.baseline, 1, "a run without figures is no baseline");
    assert_eq!(comparison.refused.len(), 1);
    assert_eq!((comparison.refused[0].op.as_str(), comparison.refused[0].op_type.as_deref()), ("bad", Some("Conv2d")));
    assert_eq!(refused_op("the op `x` failed"), None);
}

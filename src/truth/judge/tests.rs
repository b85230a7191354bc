use super::*;
use npyz::WriterBuilder;

/// Writes an array as NumPy does; returns its path.
fn array(folder: &Path, name: &str, shape: &[u64], values: &[f32]) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut bytes = Vec::new();
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(shape).writer(&mut bytes).begin_nd().unwrap();
    writer.extend(values.iter().copied()).unwrap();
    writer.finish().unwrap();
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

fn labels(folder: &Path, text: &str) -> Truth {
    let path = folder.join("labels.txt");
    std::fs::write(&path, text).unwrap();
    Truth::labels(&path, &[]).unwrap()
}

fn value(judged: &OutputsJudged, metric: TruthMetric) -> f64 {
    judged.worst(metric).unwrap_or_else(|| panic!("no {metric} in {judged:?}"))
}

#[test]
fn labels_follow_the_inferences() {
    let dir = tempfile::tempdir().unwrap();
    let files = [
        array(dir.path(), "o/Result_0/p.npy", &[1, 3], &[0.1, 0.8, 0.1]),
        array(dir.path(), "o/Result_1/p.npy", &[1, 3], &[0.5, 0.4, 0.1]),
        array(dir.path(), "o/Result_10/p.npy", &[1, 3], &[0.5, 0.4, 0.6]),
    ];
    // Inference 10 comes after 1, whatever the alphabetical order.
    let judged = labels(dir.path(), "1\n1\n2\n").judge(&files);
    assert_eq!((judged.error.as_deref(), judged.inferences), (None, 3));
    assert!((value(&judged, TruthMetric::Top1) - 2.0 / 3.0).abs() < 1e-12);
    assert!((value(&judged, TruthMetric::Top5) - 1.0).abs() < 1e-12);
    for (text, part) in [
        ("1\n1", "2 labels for 3 classifications"),
        ("1\n1\n2\n0", "4 labels for 3"),
        ("1\n1\n3", "label 3 is beyond the 3 classes"),
    ] {
        let error = labels(dir.path(), text).judge(&files).error.unwrap();
        assert!(error.contains(part), "{error}");
    }
    let error = labels(dir.path(), "1").judge(&[]).error.unwrap();
    assert!(error.contains("left no outputs"), "{error}");
}

#[test]
fn batches_have_a_label_for_each_row() {
    let dir = tempfile::tempdir().unwrap();
    let files = [array(dir.path(), "o/Result_0/p.npy", &[2, 2], &[0.1, 0.8, 0.9, 0.2])];
    let judged = labels(dir.path(), "1\n1").judge(&files);
    assert!((value(&judged, TruthMetric::Top1) - 0.5).abs() < 1e-12, "{judged:?}");
}

#[test]
fn the_output_with_classes_is_judged() {
    let dir = tempfile::tempdir().unwrap();
    let files = [
        array(dir.path(), "o/Result_0/boxes.npy", &[1, 2, 4], &[0.0; 8]),
        array(dir.path(), "o/Result_0/scores.npy", &[1, 1, 1, 4], &[0.0, 0.0, 1.0, 0.0]),
    ];
    let judged = labels(dir.path(), "2").judge(&files);
    assert_eq!(judged.outputs[0].name, "scores");
    assert!(judged.notes[0].contains("`scores` is judged"), "{judged:?}");
    let error = Truth::labels(&dir.path().join("labels.txt"), &[TruthMetric::Mse]).unwrap_err().to_string();
    assert!(error.contains("--expected DIR"), "{error}");
}

#[test]
fn expected_values_may_have_their_channels_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let values: Vec<f32> = (0..12u8).map(f32::from).collect();
    // np.arange(12).reshape(1, 2, 2, 3).transpose(0, 2, 3, 1)
    let moved = [0., 6., 1., 7., 2., 8., 3., 9., 4., 10., 5., 11.];
    array(dir.path(), "e/Result_0/image.npy", &[1, 2, 2, 3], &values);
    let files = [array(dir.path(), "o/Result_0/image_out.npy", &[1, 2, 3, 2], &moved)];
    let judged = Truth::expected(&dir.path().join("e"), &[]).unwrap().judge(&files);
    let output = &judged.outputs[0];
    assert_eq!((output.identical, output.permutation.as_deref()), (true, Some("0,2,3,1")), "{judged:?}");
    assert_eq!(
        output.figures.iter().map(|figure| figure.metric.name()).collect::<Vec<_>>(),
        ["sqnr_db", "mse", "psnr_db", "cosine"]
    );
}

#[test]
fn what_does_not_fit_is_said() {
    let dir = tempfile::tempdir().unwrap();
    array(dir.path(), "e/Result_0/y.npy", &[1, 4], &[1.0; 4]);
    let truth = Truth::expected(&dir.path().join("e"), &[]).unwrap();
    let error = |files: &[String]| truth.judge(files).error.unwrap_or_default();
    let other = error(&[array(dir.path(), "o/Result_0/y.npy", &[1, 5], &[1.0; 5])]);
    assert!(other.contains("1x5 values; 1x4 were expected"), "{other}");
    let many = error(&[
        array(dir.path(), "p/Result_0/y.npy", &[1, 4], &[1.0; 4]),
        array(dir.path(), "p/Result_1/y.npy", &[1, 4], &[1.0; 4]),
    ]);
    assert!(many.contains("inference 1 has no expected outputs"), "{many}");
    let named = error(&[
        array(dir.path(), "q/Result_0/a.npy", &[1, 4], &[1.0; 4]),
        array(dir.path(), "q/Result_0/b.npy", &[1, 4], &[1.0; 4]),
    ]);
    assert!(named.contains("the outputs a, b; expected were y"), "{named}");
}

#[test]
fn maps_of_classes_are_masks() {
    let dir = tempfile::tempdir().unwrap();
    // 2 x 2 elements, three classes, channels last; winners 0, 1, 2, 2.
    let scores = [1., 0., 0., 0., 1., 0., 0., 0., 1., 0., 0., 1.];
    let files = [array(dir.path(), "o/Result_0/seg.npy", &[1, 2, 2, 3], &scores)];
    array(dir.path(), "e/Result_0/seg.npy", &[1, 2, 2], &[0.0, 1.0, 1.0, 2.0]);
    let judged = Truth::expected(&dir.path().join("e"), &[]).unwrap().judge(&files);
    // Class 0: 1/1, class 1: 1/2, class 2: 1/2.
    assert!((value(&judged, TruthMetric::Iou) - 2.0 / 3.0).abs() < 1e-12, "{judged:?}");
    // A mask of one object, with values from 0 to 1.
    array(dir.path(), "m/Result_0/mask.npy", &[1, 2, 2, 1], &[0.0, 1.0, 1.0, 0.0]);
    let files = [array(dir.path(), "n/Result_0/mask.npy", &[1, 2, 2, 1], &[0.2, 0.9, 0.4, 0.7])];
    let judged = Truth::expected(&dir.path().join("m"), &[TruthMetric::Iou]).unwrap().judge(&files);
    assert!((value(&judged, TruthMetric::Iou) - 1.0 / 3.0).abs() < 1e-12, "{judged:?}");
}

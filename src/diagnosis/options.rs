//! Suggestions for a misspelt option: the closest one that the tool has, and what tutorials get wrong.

/// Options of the SDK's runners and generators.
const RUNNERS: &[&str] = &[
    "--model",
    "--dlc_path",
    "--retrieve_context",
    "--backend",
    "--input_list",
    "--output_dir",
    "--profiling_level",
    "--profiling_option",
    "--perf_profile",
    "--config_file",
    "--log_level",
    "--duration",
    "--num_inferences",
    "--keep_num_outputs",
    "--batch_multiplier",
    "--timeout",
    "--debug",
    "--set_output_tensors",
    "--synchronous",
    "--shared_buffer",
    "--use_mmap",
    "--validate_binary",
    "--use_native_input_files",
    "--use_native_output_files",
    "--op_packages",
    "--model_prefix",
    "--version",
    "--help",
    "--binary_file",
    "--system_library",
];
/// Options of the converters.
const CONVERTERS: &[&str] = &[
    "--input_network",
    "--output_path",
    "--input_list",
    "--input_dim",
    "--input_layout",
    "--preserve_io",
    "--out_node",
    "--act_bitwidth",
    "--weights_bitwidth",
    "--bias_bitwidth",
    "--use_per_channel_quantization",
    "--act_quantizer_calibration",
    "--quantization_overrides",
    "--float_fallback",
    "--op_package_config",
    "--truncate_64bit_io",
];
/// Options from tutorials that no tool has, each with where to set that instead.
const TUTORIALS: &[(&str, &str)] = &[
    (
        "--target_device",
        "a DLC or model library is for any device; name the SoC when it is compiled or run: soc_model and dsp_arch in the HTP \
         config (--config_file)",
    ),
    (
        "--optimization_level",
        "optimisation belongs to compiling for HTP: \"O\": 1, 2 or 3 under graphs[] of the HTP config (--config_file)",
    ),
    ("--target_backends", "converters know no backend; choose it when the model runs: --backend libQnnHtp.so"),
    ("--target_backend", "converters know no backend; choose it when the model runs: --backend libQnnHtp.so"),
];
/// Words that precede the option.
const BEFORE: [&str; 9] = [
    "unrecognized arguments",
    "unrecognized option",
    "unrecognised option",
    "unknown option",
    "unexpected argument",
    "invalid option",
    "ambiguous option",
    "invalid argument passed",
    "unknown argument",
];
/// Most edits for which a name counts as a misspelling of another.
const MOST_EDITS: usize = 4;

/// What to type instead, for a line that refuses an option.
pub fn remedy(line: &str) -> Option<String> {
    let lower = line.to_ascii_lowercase();
    let ends = |at: usize| !lower[at..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let stands = |option: &str| lower.match_indices(option).any(|(at, _)| ends(at + option.len()));
    if let Some((option, text)) = TUTORIALS.iter().find(|(option, _)| stands(option)) {
        return Some(format!("No tool of the SDK has {option}: {text}."));
    }
    let at = BEFORE.iter().filter_map(|words| lower.find(words).map(|at| at + words.len())).min()?;
    let words = line.get(at..)?.split(|c: char| c.is_whitespace() || "'\"`,:;=".contains(c));
    let mut options = words.filter(|word| word.starts_with('-')).map(|word| word.trim_end_matches('.'));
    let asked = options.find(|word| word.len() > 3)?;
    let converts = ["convert", "quantizer", "-to-dlc"].iter().any(|word| lower.contains(word));
    let known = if converts { CONVERTERS.iter().chain(RUNNERS) } else { RUNNERS.iter().chain(CONVERTERS) };
    let (count, option) = known.map(|option| (edits(asked, option), *option)).min_by_key(|near| near.0)?;
    let is_near = count > 0 && count <= MOST_EDITS.min(asked.len() / 3);
    is_near.then(|| format!("There is no option {asked}; the nearest one is {option}."))
}

/// Edit distance between two words: letters to add, drop or change.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_option_and_the_tutorials_mistakes_are_named() {
        for (line, part) in [
            ("qnn-net-run: unrecognized option '--profilng_level'", "nearest one is --profiling_level"),
            ("qairt-converter: error: unrecognized arguments: --input_netwrk m.onnx", "nearest one is --input_network"),
            (
                "error: unrecognized arguments: --target_device hexagon --optimization_level high",
                "No tool of the SDK has --target_device",
            ),
            ("qairt-converter: error: unrecognized arguments: --target_backends HTP", "--backend libQnnHtp.so"),
        ] {
            let remedy = remedy(line).unwrap();
            assert!(remedy.contains(part), "{line}: {remedy}");
        }
        assert_eq!(remedy("unrecognized option '--completely_else'"), None);
        assert_eq!(remedy("unrecognized option"), None);
        assert_eq!((edits("abc", "abc"), edits("abc", "ac"), edits("kitten", "sitting")), (0, 1, 3));
    }
}

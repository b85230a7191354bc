//! The tool's options: `--name value`, `--name=value`, also with one dash.

use qnnscope::backends::ProfilingLevel;
use qnnscope::backends::settings::PERF_PROFILES;
use qnnscope::event::LogLevel;
use std::collections::HashMap;
use std::path::PathBuf;

/// What to run.
pub enum Model {
    /// A model library.
    Library(String),
    /// A DLC, read through libQnnModelDlc.so in the real tool.
    Dlc(PathBuf),
    /// A context binary.
    Context(PathBuf),
}

/// A command line that requests a run.
pub struct Options {
    pub model: Model,
    pub backend: String,
    pub input_list: PathBuf,
    pub output_dir: PathBuf,
    /// Profiling level; `None` writes no log.
    pub profiling: Option<ProfilingLevel>,
    pub perf_profile: Option<String>,
    pub config_file: Option<PathBuf>,
    pub log_level: LogLevel,
    pub duration_s: Option<f64>,
    pub num_inferences: Option<u64>,
    pub keep_num_outputs: u64,
    pub native_input: bool,
    pub native_output: bool,
    /// Options that are accepted but have no effect here.
    pub without_effect: Vec<String>,
}

/// A parsed command line.
pub enum Parsed {
    Run(Box<Options>),
    Help,
    Version,
}

pub const HELP: &str = "\
Stand-in for qnn-net-run, from qnnscope.

REQUIRED ARGUMENTS
  --model FILE              model library; libQnnModelDlc.so with --dlc_path
  --dlc_path FILE           DLC
  --retrieve_context FILE   context binary, instead of --model
  --backend FILE            backend library
  --input_list FILE         a line per inference

OPTIONAL ARGUMENTS
  --output_dir DIR          default ./output
  --profiling_level LEVEL   basic, detailed, client, backend
  --perf_profile PROFILE
  --config_file FILE
  --log_level LEVEL         error, warn, info, verbose
  --duration S              --num_inferences N        --keep_num_outputs N
  --use_native_input_files  --use_native_output_files
  --version                 --help
Taken without effect: --batch_multiplier, --debug, --graph_profiling_num_executions, --graph_profiling_start_delay,
  --io_tensor_mem_handle_type, --model_prefix, --native_input_tensor_names, --op_packages, --profiling_option,
  --retrieve_context_timeout, --set_output_tensors, --shared_buffer, --synchronous, --timeout, --use_mmap, --validate_binary";

const FLAGS: [&str; 9] = [
    "debug",
    "help",
    "shared_buffer",
    "synchronous",
    "use_mmap",
    "use_native_input_files",
    "use_native_output_files",
    "validate_binary",
    "version",
];

const VALUES: [&str; 24] = [
    "backend",
    "batch_multiplier",
    "config_file",
    "dlc_path",
    "duration",
    "graph_profiling_num_executions",
    "graph_profiling_start_delay",
    "input_list",
    "io_tensor_mem_handle_type",
    "keep_num_outputs",
    "log_level",
    "model",
    "model_prefix",
    "native_input_tensor_names",
    "num_inferences",
    "op_packages",
    "output_dir",
    "perf_profile",
    "profiling_level",
    "profiling_option",
    "retrieve_context",
    "retrieve_context_timeout",
    "set_output_tensors",
    "timeout",
];

/// Of all options, those that are accepted without effect. A warning says so.
const WITHOUT_EFFECT: [&str; 13] = [
    "batch_multiplier",
    "debug",
    "graph_profiling_num_executions",
    "graph_profiling_start_delay",
    "io_tensor_mem_handle_type",
    "native_input_tensor_names",
    "op_packages",
    "profiling_option",
    "retrieve_context_timeout",
    "set_output_tensors",
    "timeout",
    "use_mmap",
    "validate_binary",
];

impl Options {
    /// Parses the command line; the error is what the tool prints before its help.
    pub fn parse(arguments: &[String]) -> Result<Parsed, String> {
        let given = split(arguments)?;
        if given.contains_key("help") {
            return Ok(Parsed::Help);
        }
        if given.contains_key("version") {
            return Ok(Parsed::Version);
        }
        let get = |name: &str| given.get(name).cloned();
        let need = |name: &str| get(name).ok_or_else(|| format!("ERROR: Missing option: --{name}"));
        let one = |name: &str, value: String| {
            if value.contains(',') {
                return Err(format!("ERROR: --{name} {value}: the stand-in runs one model with one graph"));
            }
            Ok(value)
        };
        let model = match (get("model"), get("dlc_path"), get("retrieve_context")) {
            (Some(_), _, Some(_)) => return Err("ERROR: --model and --retrieve_context exclude each other".to_owned()),
            (Some(_), Some(dlc), None) => Model::Dlc(one("dlc_path", dlc)?.into()),
            (Some(library), None, None) => Model::Library(one("model", library)?),
            (None, _, Some(context)) => Model::Context(one("retrieve_context", context)?.into()),
            (None, _, None) => return Err("ERROR: Missing option: --model or --retrieve_context".to_owned()),
        };
        let mut without_effect: Vec<String> =
            WITHOUT_EFFECT.iter().filter(|name| given.contains_key(**name)).map(|name| format!("--{name}")).collect();
        let profiling = match get("profiling_level").as_deref() {
            None => None,
            Some("client") => Some(ProfilingLevel::Off),
            Some("basic") => Some(ProfilingLevel::Basic),
            Some("detailed") => Some(ProfilingLevel::Detailed),
            Some("backend") => {
                without_effect.push("--profiling_level backend (taken as detailed)".to_owned());
                Some(ProfilingLevel::Detailed)
            }
            Some(other) => return Err(format!("ERROR: Invalid profiling level: {other}")),
        };
        let perf_profile = get("perf_profile");
        if let Some(profile) = perf_profile.as_ref().filter(|name| !PERF_PROFILES.contains(&name.as_str())) {
            return Err(format!("ERROR: Invalid perf profile: {profile}"));
        }
        let log_level = match get("log_level").as_deref() {
            None | Some("error") => LogLevel::Error,
            Some("warn") => LogLevel::Warning,
            Some("info") => LogLevel::Info,
            Some("verbose") => LogLevel::Verbose,
            Some(other) => return Err(format!("ERROR: Invalid log level: {other}")),
        };
        let duration_s = number::<f64>(&given, "duration")?;
        if duration_s.is_some_and(|seconds| !seconds.is_finite() || seconds <= 0.0) {
            return Err("ERROR: Invalid value for --duration".to_owned());
        }
        Ok(Parsed::Run(Box::new(Self {
            model,
            backend: need("backend")?,
            input_list: one("input_list", need("input_list")?)?.into(),
            output_dir: get("output_dir").unwrap_or_else(|| "./output".to_owned()).into(),
            profiling,
            perf_profile,
            config_file: get("config_file").map(PathBuf::from),
            log_level,
            duration_s,
            num_inferences: number(&given, "num_inferences")?.filter(|&count| count > 0),
            keep_num_outputs: number(&given, "keep_num_outputs")?.unwrap_or(u64::MAX),
            native_input: given.contains_key("use_native_input_files"),
            native_output: given.contains_key("use_native_output_files"),
            without_effect,
        })))
    }
}

fn number<T: std::str::FromStr>(given: &HashMap<String, String>, name: &str) -> Result<Option<T>, String> {
    let parse = |text: &String| text.parse().map_err(|_| format!("ERROR: Invalid value for --{name}: {text}"));
    given.get(name).map(parse).transpose()
}

/// Options by name; flags have an empty value, and the last of repeated options counts.
fn split(arguments: &[String]) -> Result<HashMap<String, String>, String> {
    let mut given = HashMap::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let invalid =
            || format!("ERROR: Invalid argument passed: {argument}\nPlease check the Arguments section below.");
        let text = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')).ok_or_else(invalid)?;
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value.to_owned())));
        let value = if FLAGS.contains(&name) && value.is_none() {
            String::new()
        } else if VALUES.contains(&name) {
            value.or_else(|| rest.next().cloned()).ok_or_else(invalid)?
        } else {
            return Err(invalid());
        };
        given.insert(name.to_owned(), value);
    }
    Ok(given)
}

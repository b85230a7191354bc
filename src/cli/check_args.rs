//! Arguments of `qnnscope check`.

use super::{onnx_options, options};
use crate::backends::Backend;
use std::path::PathBuf;

/// Arguments of `qnnscope check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// DLC, model library (.so), context binary or ONNX model; recognised by content
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    /// Backends to check [default: those of htp,cpu,gpu available here; htp for a context binary]
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', value_parser = options::backend)]
    pub backend: Vec<Backend>,
    /// SoCs to check for, by part, product or QNN's number: SM8650,8 Gen 2,69 [default: SM8650]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub soc: Vec<String>,
    /// Hexagon architectures to check for, each by its best-known SoC: v68,v69,v73,v75,v79,v81,v85
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub htp_arch: Vec<String>,
    /// VTCM for each graph in MB; 0 uses all available [default: the compiler's choice]
    #[arg(long, value_name = "MB")]
    pub vtcm_mb: Option<u32>,
    /// Size of a free dimension of an ONNX model; may be repeated
    #[arg(long, value_name = "NAME=N", value_parser = onnx_options::dimension)]
    pub dim: Vec<(String, u64)>,
    /// Option of ONNX Runtime's QNN provider, or of the session: offload_graph_io_quantization=0
    #[arg(long, value_name = "KEY=VALUE", value_parser = onnx_options::pair)]
    pub ep_option: Vec<(String, String)>,
    /// Check the ops only, without compiling
    #[arg(long)]
    pub no_compile: bool,
    /// List every op, and every doubtful encoding
    #[arg(long)]
    pub all: bool,
    /// Print the document as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Time limit for the whole check, such as 30, 30s or 5m [default: none]
    #[arg(long, value_name = "TIME", value_parser = options::seconds)]
    pub timeout: Option<f64>,
    /// Give up a question after this many seconds without progress
    #[arg(long, value_name = "S", default_value = "300", value_parser = options::seconds)]
    pub stage_timeout: f64,
    /// Memory limit of a runner [default: 90 % of what is free]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..))]
    pub memory_limit_mb: Option<u64>,
}

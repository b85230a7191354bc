//! Arguments of `qnnscope accuracy`.

use super::compute::{ComputeOptions, DataOptions, DimensionOptions, HardwareOptions};
use super::options;
use super::values::decibels;
use crate::backends::Backend;
use std::path::PathBuf;

/// Arguments of `qnnscope accuracy`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct AccuracyArgs {
    /// Reference, such as the float model; MODEL@BACKEND picks the backend that computes it [default: cpu]. Also a run
    /// (session, result, @last), an earlier comparison, or a folder of tensors
    #[arg(value_name = "REFERENCE")]
    pub reference: String,
    /// Model under test, such as the quantised one; MODEL@BACKEND picks the backend that computes it [default: htp]. Also a
    /// run, an earlier comparison, or a folder of tensors
    #[arg(value_name = "TEST")]
    pub test: String,
    /// Backend of the reference, instead of REFERENCE@BACKEND
    #[arg(long, value_name = "BACKEND", value_parser = options::backend)]
    pub reference_backend: Option<Backend>,
    /// Backend of the test, instead of TEST@BACKEND
    #[arg(long, value_name = "BACKEND", value_parser = options::backend)]
    pub test_backend: Option<Backend>,
    /// Folder with the reference's QNN libraries, if they differ from the test's
    #[arg(long, value_name = "DIR")]
    pub reference_runtime: Option<PathBuf>,
    /// Device that computes the reference; --device computes the test [default: local]
    #[arg(long, value_name = "SERIAL", conflicts_with_all = ["reference_runtime", "reference_tensors"])]
    pub reference_device: Option<String>,
    /// Folder with the reference's tensors of these inputs, computed elsewhere: Result_<i>/NAME.raw, as qnn-net-run --debug leaves them
    #[arg(long, value_name = "DIR")]
    pub reference_tensors: Option<PathBuf>,
    /// Folder with the test's tensors of these inputs, computed elsewhere, such as on a device
    #[arg(long, value_name = "DIR")]
    pub test_tensors: Option<PathBuf>,
    #[command(flatten)]
    pub data: DataOptions,
    #[command(flatten)]
    pub dimensions: DimensionOptions,
    #[command(flatten)]
    pub hardware: HardwareOptions,
    /// SQNR in dB below which a layer counts as diverging
    #[arg(long, value_name = "DB", default_value_t = 20.0, value_parser = decibels)]
    pub min_sqnr_db: f64,
    /// Find the first diverging layer by bisection, instead of reading all layers
    #[arg(long)]
    pub bisect: bool,
    /// Keep both sides' tensors in this folder (.npy in the test's layout) with inputs and document, for later comparisons
    #[arg(long, value_name = "DIR")]
    pub save_tensors: Option<PathBuf>,
    /// Let --save-tensors overwrite files that qnnscope did not write; never those the command reads
    #[arg(long, requires = "save_tensors")]
    pub force: bool,
    /// List every layer, and how each pair of tensors was found
    #[arg(long)]
    pub all: bool,
    /// Print the document as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Show the layers in the live view instead of printing them
    #[arg(long, conflicts_with = "json")]
    pub view: bool,
    #[command(flatten)]
    pub compute: ComputeOptions,
}

//! Options for runs of ONNX models, and what such a run requires.

use super::CliError;
use crate::backends::qnn::runner::OnnxTask;
use crate::backends::runtime::{Env, OnnxKit};
use crate::event::clean_text;
use crate::models::{ModelFormat, identify};
use crate::run::Site;
use std::path::Path;

const HEADING: &str = "Options of ONNX models";

/// What only ONNX models have.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct OnnxOptions {
    /// Size of a free dimension; may be repeated
    #[arg(long, value_name = "NAME=N", value_parser = dimension, help_heading = HEADING)]
    pub dim: Vec<(String, u64)>,
    /// Option of ONNX Runtime's QNN provider, or of the session: soc_model=57, session.intra_op.allow_spinning=0
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, help_heading = HEADING)]
    pub ep_option: Vec<(String, String)>,
    /// Fail if any node falls back to the CPU, and name the nodes
    #[arg(long, help_heading = HEADING)]
    pub no_cpu_fallback: bool,
}

impl OnnxOptions {
    /// What a run of the model requires in addition, if it is an ONNX model.
    pub fn task(&self, model: &Path, site: &Site) -> Result<Option<OnnxTask>, CliError> {
        let is_onnx = identify(model).is_ok_and(|format| format == ModelFormat::Onnx);
        if !is_onnx {
            return match self.first() {
                Some(option) => Err(CliError::Usage(format!(
                    "{option} is for ONNX models, and {} is not one",
                    clean_text(&model.to_string_lossy())
                ))),
                None => Ok(None),
            };
        }
        match site {
            #[cfg(unix)]
            Site::Here { runtime, .. } => {
                let kit = crate::backends::runtime::onnx_kit(runtime, &Env::from_process())?;
                Ok(Some(OnnxTask {
                    library: absolute(&kit.library),
                    plugin: absolute(&kit.plugin),
                    dimensions: self.dim.clone(),
                    options: self.ep_option.clone(),
                    no_cpu_fallback: self.no_cpu_fallback,
                    placement_only: false,
                    reference: false,
                }))
            }
            _ => Err(CliError::Usage(format!(
                "{} is an ONNX model, which runs on this machine only: `qnnscope convert` makes a DLC for a device",
                clean_text(&model.to_string_lossy())
            ))),
        }
    }

    /// The first option given.
    fn first(&self) -> Option<&'static str> {
        match self {
            Self { dim, .. } if !dim.is_empty() => Some("--dim"),
            Self { ep_option, .. } if !ep_option.is_empty() => Some("--ep-option"),
            Self { no_cpu_fallback: true, .. } => Some("--no-cpu-fallback"),
            _ => None,
        }
    }
}

/// What a query about an ONNX model requires: the libraries, and sizes of free dimensions.
pub fn task_of(kit: &OnnxKit, dimensions: &[(String, u64)], options: &[(String, String)]) -> OnnxTask {
    OnnxTask {
        library: absolute(&kit.library),
        plugin: absolute(&kit.plugin),
        dimensions: dimensions.to_vec(),
        options: options.to_vec(),
        ..OnnxTask::default()
    }
}

fn absolute(path: &Path) -> std::path::PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// `--ep-option`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

/// `--dim`: the size of a free dimension.
pub fn dimension(text: &str) -> Result<(String, u64), String> {
    // A dimension's name may contain `=`, its size cannot.
    let (name, size) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or("expected NAME=N")?;
    match size.parse() {
        Ok(size @ 1..=0x7fff_ffff) => Ok((name.to_owned(), size)),
        _ => Err(format!("expected NAME=N with N from 1 to {}", 0x7fff_ffff)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_options_are_read_from_the_right_side() {
        assert_eq!(dimension("batch=4"), Ok(("batch".to_owned(), 4)));
        assert_eq!(dimension("a=b=2"), Ok(("a=b".to_owned(), 2)));
        for bad in ["", "N", "=1", "N=0", "N=-1", "N=x", "N=99999999999"] {
            assert!(dimension(bad).is_err(), "{bad}");
        }
        assert_eq!(pair("k=a=b"), Ok(("k".to_owned(), "a=b".to_owned())));
        assert_eq!(pair("k="), Ok(("k".to_owned(), String::new())));
        assert!(pair("k").is_err() && pair("=v").is_err());
    }
}

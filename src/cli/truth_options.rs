//! Outputs against truth, as options of a run.

use super::CliError;
use crate::event::TruthMetric;
use crate::files::Guard;
use crate::run::Judging;
use crate::truth::Truth;
use std::path::PathBuf;
use std::sync::Arc;

/// Heading of these options in the help.
const TRUTH: &str = "Outputs against truth";

/// What the outputs of a run are judged by.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TruthOptions {
    /// File with the right class of each input, one number per line: reports top-1 and top-5 accuracy
    #[arg(long, value_name = "FILE", group = "truth", help_heading = TRUTH)]
    pub labels: Option<PathBuf>,
    /// Folder with the expected outputs, as --save-outputs writes them: Result_<i>/NAME.npy or NAME.raw
    #[arg(long, value_name = "DIR", group = "truth", help_heading = TRUTH)]
    pub expected: Option<PathBuf>,
    /// Metrics to judge outputs by: top1, top5, sqnr, mse, psnr, cosine, iou [default: what suits the outputs]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = metric, requires = "truth", help_heading = TRUTH)]
    pub metric: Vec<TruthMetric>,
}

impl TruthOptions {
    /// Reads what outputs are judged by; `None` if nothing was requested. Only real inputs have correct
    /// outputs.
    pub fn read(&self, has_inputs: bool) -> Result<Option<Arc<Truth>>, CliError> {
        let (flag, truth) = match (&self.labels, &self.expected) {
            (Some(path), _) => ("--labels", Truth::labels(path, &self.metric)?),
            (None, Some(folder)) => ("--expected", Truth::expected(folder, &self.metric)?),
            (None, None) => return Ok(None),
        };
        if !has_inputs {
            let text = format!(
                "{flag} needs real inputs, since random ones have no expected outputs: give --input NAME=FILE or --input-list FILE"
            );
            return Err(CliError::Usage(text));
        }
        Ok(Some(Arc::new(truth)))
    }

    /// A run's share of it; outputs that are `kept` are judged in the folder the user chose.
    pub fn judging(truth: &Arc<Truth>, kept: bool) -> Result<Judging, CliError> {
        let folder = (!kept).then(|| tempfile::Builder::new().prefix("qnnscope-outputs-").tempdir()).transpose();
        let folder = folder.map_err(|source| CliError::Io { action: "make a temporary folder".to_owned(), source })?;
        Ok(Judging { truth: truth.clone(), folder: folder.map(Arc::new) })
    }

    /// Adds the files that must not be overwritten.
    pub fn guard(&self, guard: &mut Guard) {
        if let Some(path) = &self.labels {
            guard.reads("the labels", path);
        }
        if let Some(folder) = &self.expected {
            guard.reads_tree("the expected output", folder);
        }
    }
}

fn metric(text: &str) -> Result<TruthMetric, String> {
    let known = |metric: &&TruthMetric| metric.name() == text || metric.name().strip_suffix("_db") == Some(text);
    TruthMetric::ALL
        .iter()
        .find(known)
        .copied()
        .ok_or_else(|| "known are top1, top5, sqnr, mse, psnr, cosine and iou".to_owned())
}

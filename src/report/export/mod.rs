//! The formats of reports. One file per format, listed once in [`FORMATS`].

mod csv;
mod hdr;
mod html;
mod markdown;
mod picture;
mod trace;

use super::charts::ChartError;
use super::comparison::LoadError;
use super::page::Material;
use std::path::Path;
use thiserror::Error;

/// A report that could not be made.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ExportError {
    #[error(transparent)]
    Chart(#[from] ChartError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("there is no data for this format: {reason}")]
    Nothing { reason: &'static str },
    #[error("cannot write the {format}: {reason}")]
    Write { format: &'static str, reason: String },
}

/// A format.
pub struct Format {
    /// Name on the command line.
    pub name: &'static str,
    /// Human-readable name.
    pub label: &'static str,
    /// File name endings, longest first.
    pub endings: &'static [&'static str],
    /// Makes the file.
    pub make: fn(&Material<'_>) -> Result<Vec<u8>, ExportError>,
}

/// All formats.
pub static FORMATS: [Format; 7] = [
    Format { name: "html", label: "page", endings: &[".html", ".htm"], make: html::make },
    Format { name: "md", label: "Markdown", endings: &[".md", ".markdown"], make: markdown::make },
    Format { name: "csv", label: "table of all figures", endings: &[".csv"], make: csv::make },
    Format { name: "svg", label: "picture", endings: &[".svg"], make: picture::make },
    Format { name: "png", label: "picture", endings: &[".png"], make: picture::png },
    Format {
        name: "trace",
        label: "Chrome trace, for Perfetto",
        endings: &[".trace.json", ".perfetto.json", ".json"],
        make: trace::make,
    },
    Format { name: "hdr", label: "HDR histogram log", endings: &[".hlog", ".hdr"], make: hdr::make },
];

/// The format of a file, by its ending.
pub fn by_ending(path: &Path) -> Option<&'static Format> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    FORMATS.iter().find(|format| format.endings.iter().any(|ending| name.ends_with(ending)))
}

/// The format of this name.
pub fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Mark in the first lines of every text written here, which allows a later report to replace an older one.
pub const MARK: &str = concat!("qnnscope ", env!("CARGO_PKG_VERSION"), " report");

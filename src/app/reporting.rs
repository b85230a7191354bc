//! Writes a report of the displayed session on a key press.

use crate::event::clean_text;
use crate::files::{Guard, Kind, write_whole};
use crate::report::Material;
use crate::report::export::by_name;
use crate::store::Store;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc::Sender;

/// Writes the page in the background and sends the result to the loop; returns an immediate message.
pub fn write(store: &Store, told: &Sender<String>) -> Option<String> {
    // The page is built here, where the figures are; only writing to disk happens elsewhere.
    let made = by_name("html").map(|format| (format.make)(&Material::of_live(store, false)));
    let bytes = match made {
        Some(Ok(bytes)) => bytes,
        Some(Err(error)) => return Some(format!("no report: {error}")),
        None => return None,
    };
    let path = PathBuf::from(format!("qnnscope-report-{}.html", jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S")));
    let told = told.clone();
    tokio::task::spawn_blocking(move || {
        // A view that has closed in the meantime needs no answer.
        let _ = told.blocking_send(put(&path, &bytes));
    });
    Some("writing a report".to_owned())
}

fn put(path: &Path, bytes: &[u8]) -> String {
    let claimed = Guard::new(false).claim("the report", path, Kind::Report).map_err(|error| error.to_string());
    let shown = clean_text(&path.to_string_lossy());
    match claimed.and_then(|()| write_whole(path, bytes).map_err(|error| error.to_string())) {
        Ok(()) => format!("wrote {shown}"),
        Err(error) => format!("no report: cannot write {shown}: {error}"),
    }
}

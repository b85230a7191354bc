//! `qnnscope.doctor/1` and the same as text.

use crate::doctor::{Examination, Item, Status};
use crate::event::LOCAL_DEVICE;
use crate::text::titled;
use serde::Serialize;
use std::fmt::Write;

/// Widths of the mark and of what was examined, columns.
const MARK: usize = 9;
const WHAT: usize = 23;

/// An examination as JSON.
#[derive(Debug, Serialize)]
pub struct DoctorDocument<'a> {
    schema: &'static str,
    can_run: bool,
    asked_device: Option<&'a str>,
    backends_here: &'a [&'static str],
    devices: &'a [String],
    sections: Vec<SectionRow<'a>>,
    items: Vec<&'a Item>,
}

#[derive(Debug, Serialize)]
struct SectionRow<'a> {
    id: &'a str,
    title: &'a str,
    device: Option<&'a str>,
}

impl<'a> DoctorDocument<'a> {
    /// The document.
    pub fn new(examination: &'a Examination) -> Self {
        let row = |section: &'a crate::doctor::Section| SectionRow {
            id: &section.id,
            title: &section.title,
            device: section.device.as_deref(),
        };
        Self {
            schema: "qnnscope.doctor/1",
            can_run: examination.can_run(),
            asked_device: examination.asked.as_deref(),
            backends_here: &examination.backends_here,
            devices: &examination.devices,
            sections: examination.sections.iter().map(row).collect(),
            items: examination.sections.iter().flat_map(|section| &section.items).collect(),
        }
    }
}

/// The examination in lines of at most `width` columns.
pub fn doctor_text(examination: &Examination, width: usize) -> String {
    let mut out = String::new();
    for section in &examination.sections {
        let _ = writeln!(out, "{}", section.title);
        for item in &section.items {
            let mark = match item.status {
                Status::Ok => "ok",
                Status::Warning => "warning",
                Status::Problem => "PROBLEM",
            };
            let start = format!("  {mark:<MARK$}{:<WHAT$} ", item.what);
            // A long name must not squeeze the text after it into a narrow column.
            if start.chars().count() > 2 + MARK + WHAT + 1 {
                let _ = writeln!(out, "{}", start.trim_end());
                titled(&mut out, &" ".repeat(2 + MARK), &item.detail, width);
            } else {
                titled(&mut out, &start, &item.detail, width);
            }
            if let Some(fix) = &item.fix {
                titled(&mut out, &format!("{:1$}fix: ", "", 2 + MARK), fix, width);
            }
        }
        out.push('\n');
    }
    titled(&mut out, "", &verdict(examination), width);
    out
}

fn verdict(examination: &Examination) -> String {
    let count = |status| {
        let items = examination.sections.iter().flat_map(|section| &section.items);
        items.filter(|item| item.status == status).count()
    };
    let many = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let counts = format!("{}, {}", many(count(Status::Problem), "problem"), many(count(Status::Warning), "warning"));
    let here = examination.backends_here.join(", ");
    match (examination.can_run(), here.is_empty(), examination.devices.is_empty()) {
        (false, ..) => match examination.asked.as_deref() {
            Some(LOCAL_DEVICE) => format!("Nothing can run on this machine: no backend loads. {counts}."),
            Some(device) => format!("Nothing can run on {device} in its current state. {counts}."),
            None => {
                format!("Nothing can run: no backend loads here, and no device is ready with tools for it. {counts}.")
            }
        },
        (true, false, false) => format!("Runs here on {here}, and on {}. {counts}.", examination.devices.join(", ")),
        (true, false, true) => format!("Runs here on {here}; on no device. {counts}."),
        (true, true, _) => format!("Runs on {}; not on this machine. {counts}.", examination.devices.join(", ")),
    }
}

//! A single self-contained page, with styles, pictures and a few lines of script included; it is readable
//! without the script.

use super::{ExportError, MARK};
use crate::analysis::Severity;
use crate::event::clean_whole;
use crate::files::hex;
use crate::report::charts::{Chart, svg};
use crate::report::page::{Block, Material, Page, ReportedFinding, Section, Table};
use sha2::{Digest, Sha256};
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page.
pub fn make(material: &Material<'_>) -> Result<Vec<u8>, ExportError> {
    let page = Page::of(material);
    let mut body = String::new();
    let _ =
        write!(body, "<header><h1>{}</h1><p>{}</p></header>\n<nav><ul>", escaped(&page.title), escaped(&page.subtitle));
    for (at, section) in page.sections.iter().enumerate().filter(|(_, section)| !section.is_sub) {
        let _ = write!(body, "<li><a href=\"#s{at}\">{}</a></li>", escaped(&section.title));
    }
    body.push_str("</ul></nav>\n<main>\n");
    for (at, section) in page.sections.iter().enumerate() {
        self::section(&mut body, at, section)?;
    }
    body.push_str("</main>\n");
    // Nothing injected through a name can guess it, and only the script that carries it runs.
    let nonce = hex(&Sha256::digest(body.as_bytes())[..16]);
    let mut html = String::with_capacity(body.len() + STYLE.len() + SCRIPT.len() + 1000);
    let _ = write!(
        html,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"generator\" content=\"{MARK}\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'; \
         script-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>{} · qnnscope</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        escaped(&page.title)
    );
    html.push_str(&body);
    let _ = write!(html, "<footer>{MARK}</footer>\n<script nonce=\"{nonce}\">\n{SCRIPT}</script>\n</body>\n</html>\n");
    Ok(html.into_bytes())
}

/// Escapes plain text, for elements and attributes alike.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean_whole(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn section(out: &mut String, at: usize, section: &Section) -> Result<(), ExportError> {
    let tag = if section.is_sub { "h3" } else { "h2" };
    let _ = writeln!(out, "<section>\n<{tag} id=\"s{at}\">{}</{tag}>", escaped(&section.title));
    for block in &section.blocks {
        match block {
            Block::Text(text) => {
                let _ = writeln!(out, "<p>{}</p>", escaped(text));
            }
            Block::Warning(text) => {
                let _ = writeln!(out, "<p class=\"warning\">{}</p>", escaped(text));
            }
            Block::Facts(facts) => {
                out.push_str("<dl>");
                for (name, value) in facts {
                    let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(value));
                }
                out.push_str("</dl>\n");
            }
            Block::Table(table) => self::table(out, table),
            Block::Findings(findings) => findings.iter().for_each(|told| finding(out, told)),
            Block::Lines(lines) => {
                let lines: Vec<String> = lines.iter().map(|line| escaped(line)).collect();
                let _ = writeln!(out, "<pre>{}</pre>", lines.join("\n"));
            }
            Block::Chart(chart) => picture(out, chart)?,
        }
    }
    out.push_str("</section>\n");
    Ok(())
}

fn table(out: &mut String, table: &Table) {
    if table.is_long {
        out.push_str("<label class=\"filter\" hidden>Filter <input type=\"search\"></label>");
    }
    out.push_str("<div class=\"wide\"><table><thead><tr>");
    for (name, is_figure) in &table.columns {
        let class = if *is_figure { " class=\"n\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escaped(name));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (cell, (_, is_figure)) in row.iter().zip(&table.columns) {
            let class = if *is_figure { " class=\"n\"" } else { "" };
            let _ = write!(out, "<td{class}>{}</td>", escaped(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

fn finding(out: &mut String, told: &ReportedFinding) {
    let (class, word) = match told.severity {
        Severity::Problem => ("problem", "problem"),
        Severity::Warning => ("warning", "warning"),
        Severity::Info => ("info", "note"),
    };
    let _ = write!(out, "<article class=\"{class}\"><p><b>{word}</b> {}</p>", escaped(&told.title));
    if !told.evidence.is_empty() {
        out.push_str("<ul>");
        for text in &told.evidence {
            let _ = write!(out, "<li>{}</li>", escaped(text));
        }
        out.push_str("</ul>");
    }
    if let Some((action, why)) = &told.advice {
        let gain = told.gain.as_ref().map_or_else(String::new, |gain| format!(" It may save {}.", escaped(gain)));
        let _ = write!(out, "<p><b>do</b> {} {}{gain}</p>", escaped(action), escaped(why));
    }
    for snippet in &told.snippets {
        let lines: Vec<String> = snippet.lines().map(escaped).collect();
        let _ = write!(out, "<pre>{}</pre>", lines.join("\n"));
    }
    out.push_str("</article>\n");
}

fn picture(out: &mut String, chart: &Chart) -> Result<(), ExportError> {
    let drawn = svg(chart)?;
    let described = format!("<svg role=\"img\" aria-label=\"{}\" ", escaped(&chart.in_words()));
    let _ = writeln!(
        out,
        "<figure><figcaption>{}</figcaption>{}</figure>",
        escaped(&chart.title),
        drawn.replacen("<svg ", &described, 1)
    );
    Ok(())
}

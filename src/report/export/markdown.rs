//! A report that fits into a pull request comment: the short form of every table, no pictures.

use super::{ExportError, MARK};
use crate::analysis::Severity;
use crate::event::clean_whole;
use crate::report::page::{Block, Material, Page, ReportedFinding, Section, Table};
use std::fmt::Write;

/// Maximum length in characters; GitHub allows 65,536 for a comment.
const MOST: usize = 60_000;
/// Maximum number of findings per run.
const FINDINGS: usize = 5;
/// Observations listed with a finding.
const OBSERVATIONS: usize = 2;
/// Maximum number of lines of a log or of causes.
const LINES: usize = 15;

/// The text.
#[expect(clippy::unnecessary_wraps, reason = "all formats are made alike")]
pub fn make(material: &Material<'_>) -> Result<Vec<u8>, ExportError> {
    let page = Page::of(material);
    let mut out = format!("<!-- {MARK} -->\n## {}\n\n{}\n", escaped(&page.title), escaped(&page.subtitle));
    let mut left_out = 0;
    for section in &page.sections {
        let mut text = String::new();
        self::section(&mut text, section);
        if out.len() + text.len() > MOST {
            left_out += 1;
        } else {
            out.push_str(&text);
        }
    }
    if left_out > 0 {
        let _ = write!(
            out,
            "\n{left_out} sections are left out: they do not fit in a comment. The HTML report has them.\n"
        );
    }
    Ok(out.into_bytes())
}

/// Escapes text so that it stays text: no markup, no links, no mentions.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut before, mut word) = (' ', String::new());
    for c in clean_whole(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // It might mention a user or refer to an issue.
            '@' => out.push_str("&#64;"),
            '#' => out.push_str("&#35;"),
            // A URL would become a link.
            ':' if is_scheme(&word) => out.push_str("&#58;"),
            '.' if before == 'w' || before == 'W' => out.push_str("&#46;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' => {
                out.push('\\');
                out.push(c);
            }
            '+' | '-' | '=' if out.is_empty() => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
        before = c;
        if c.is_ascii_alphabetic() {
            word.push(c.to_ascii_lowercase());
        } else {
            word.clear();
        }
    }
    out
}

/// URL schemes that GitHub turns into links by itself.
fn is_scheme(word: &str) -> bool {
    ["http", "https", "ftp", "mailto", "xmpp"].iter().any(|scheme| word.ends_with(scheme))
}

/// Writes code between delimiters that it does not contain.
fn fenced(out: &mut String, lines: &[String]) {
    let longest = lines.iter().map(|line| line.split(|c| c != '`').map(str::len).max().unwrap_or(0)).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = writeln!(out, "\n{fence}text");
    for line in lines.iter().take(LINES) {
        let _ = writeln!(out, "{}", clean_whole(line));
    }
    if lines.len() > LINES {
        let _ = writeln!(out, "({} more lines)", lines.len() - LINES);
    }
    let _ = writeln!(out, "{fence}");
}

fn section(out: &mut String, section: &Section) {
    let mut text = String::new();
    for block in &section.blocks {
        match block {
            Block::Text(line) => {
                let _ = writeln!(text, "\n{}", escaped(line));
            }
            Block::Warning(line) => {
                let _ = writeln!(text, "\n> {}", escaped(line));
            }
            Block::Facts(facts) => {
                text.push('\n');
                for (name, value) in facts {
                    let _ = writeln!(text, "- {}: {}", escaped(name), escaped(value));
                }
            }
            Block::Table(table) => self::table(&mut text, table),
            Block::Findings(findings) => self::findings(&mut text, findings),
            Block::Lines(lines) => fenced(&mut text, lines),
            Block::Chart(_) => {}
        }
    }
    if !text.is_empty() {
        let marks = if section.is_sub { "####" } else { "###" };
        let _ = write!(out, "\n{marks} {}\n{text}", escaped(&section.title));
    }
}

fn table(out: &mut String, table: &Table) {
    if table.brief_rows == 0 {
        return;
    }
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let _ = writeln!(out, "\n{}", line(table.columns.iter().map(|column| escaped(&column.0)).collect()));
    let _ = writeln!(
        out,
        "{}",
        line(table.columns.iter().map(|column| if column.1 { "--:" } else { "---" }.to_owned()).collect())
    );
    for row in table.rows.iter().take(table.brief_rows) {
        let _ = writeln!(out, "{}", line(row.iter().map(|cell| escaped(cell)).collect()));
    }
    let rest = table.rows.len().saturating_sub(table.brief_rows);
    if rest > 0 {
        let _ = writeln!(out, "\nand {rest} more");
    }
}

fn findings(out: &mut String, findings: &[ReportedFinding]) {
    out.push('\n');
    for told in findings.iter().take(FINDINGS) {
        let word = match told.severity {
            Severity::Problem => "**problem**",
            Severity::Warning => "**warning**",
            Severity::Info => "note",
        };
        let _ = writeln!(out, "- {word} {}", escaped(&told.title));
        for text in told.evidence.iter().take(OBSERVATIONS) {
            let _ = writeln!(out, "  - {}", escaped(text));
        }
        if let Some((action, _)) = &told.advice {
            let gain = told.gain.as_ref().map_or_else(String::new, |gain| format!(" (may save {})", escaped(gain)));
            let _ = writeln!(out, "  - do: {}{gain}", escaped(action));
        }
    }
    if findings.len() > FINDINGS {
        let _ = writeln!(out, "- and {} more", findings.len() - FINDINGS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        for (text, expected) in [
            ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
            ("[a](javascript:alert(1))", "\\[a\\](javascript:alert(1))"),
            ("@octocat fixes #12", "&#64;octocat fixes &#35;12"),
            ("a|b`c*d_e", "a\\|b\\`c\\*d\\_e"),
            ("http://x.y www.z.org", "http&#58;//x.y www&#46;z.org"),
            ("mailto:a at 12:30", "mailto&#58;a at 12:30"),
            ("two\nlines", "two\u{fffd}lines"),
            ("- item", "\\- item"),
        ] {
            assert_eq!(escaped(text), expected);
        }
        let mut out = String::new();
        fenced(&mut out, &["```".to_owned(), "a````b".to_owned()]);
        assert!(out.contains("\n`````text\n") && out.ends_with("`````\n"), "{out}");
    }
}

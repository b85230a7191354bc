//! Text layout: truncating names, wrapping lists.

use std::fmt::Write;

/// Default width of a report, characters.
const WIDTH: usize = 96;

/// Keeps the end of a long name, which tells ops apart.
pub fn shortened(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    format!("…{}", text.chars().skip(length + 1 - width).collect::<String>())
}

/// Writes `title  item, item, …`, wrapped and indented below the first item.
pub fn list(out: &mut String, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = write!(out, "{title:<10} ");
    let mut column = 11;
    for (index, item) in items.iter().enumerate() {
        let comma = if index + 1 < items.len() { "," } else { "" };
        let length = item.chars().count() + comma.len();
        if index > 0 && column + 1 + length > WIDTH {
            let _ = write!(out, "\n{:11}", "");
            column = 11;
        } else if index > 0 {
            out.push(' ');
            column += 1;
        }
        let _ = write!(out, "{item}{comma}");
        column += length;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_end() {
        assert_eq!(shortened("block1/conv", 20), "block1/conv");
        assert_eq!(shortened("a/very/long/name/conv_7", 8), "…/conv_7");
        assert_eq!(shortened("äöü", 2), "…ü");
    }

    #[test]
    fn lists_wrap() {
        let mut out = String::new();
        let items: Vec<String> = (0..40).map(|i| format!("item number {i}")).collect();
        list(&mut out, "title", &items);
        assert!(out.lines().count() > 5 && out.lines().all(|line| line.chars().count() <= WIDTH), "{out}");
        assert!(out.starts_with("title      item number 0, ") && out.ends_with("item number 39\n"));
        let mut none = String::new();
        list(&mut none, "title", &[]);
        assert!(none.is_empty());
    }
}

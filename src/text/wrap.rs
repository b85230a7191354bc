//! Lines of limited width. All white space between words becomes one space.

use crate::event::clean_text;
use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// Narrowest text column after an indentation, however narrow the terminal is.
const NARROWEST: usize = 20;
/// Width of running text: that of a standard terminal.
const TEXT_WIDTH: usize = 80;

// Users copy names and commands from the output, so lines do not break at hyphens.
fn options<'a>(width: usize) -> Options<'a> {
    Options::new(width)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
}

fn evenly_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text in lines of at most `width` columns, the first starting with `first`, the others with `rest`; ends
/// with a newline. Words longer than a line stay whole.
pub fn wrapped(first: &str, rest: &str, text: &str, width: usize) -> String {
    let width = width.max(display_width(rest) + NARROWEST);
    let options = options(width).break_words(false).initial_indent(first).subsequent_indent(rest);
    let text = evenly_spaced(text);
    // Without a word there would be no first line.
    let mut out = if text.is_empty() { first.to_owned() } else { textwrap::fill(&text, options) };
    out.push('\n');
    out
}

/// Writes running text with its first line indented by `first` columns and the others by `rest`. Leading
/// spaces of `text` are kept.
pub fn paragraph(out: &mut String, text: &str, rest: usize, first: usize) {
    let lead = text.chars().take_while(|c| *c == ' ').count();
    out.push_str(&wrapped(&" ".repeat(first + lead), &" ".repeat(rest), text, TEXT_WIDTH));
}

/// Writes external text after `title`, with further lines aligned to its first word.
pub fn titled(out: &mut String, title: &str, text: &str, width: usize) {
    let words: Vec<String> = text.split_whitespace().map(clean_text).collect();
    out.push_str(&wrapped(title, &" ".repeat(display_width(title)), &words.join(" "), width));
}

/// `text` in lines of at most `width` columns, breaking words that are longer; empty for blank text.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let text = evenly_spaced(text);
    if text.is_empty() {
        return Vec::new();
    }
    textwrap::wrap(&text, options(width.max(1))).into_iter().map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_wrap_at_a_terminals_width() {
        let mut out = String::new();
        paragraph(&mut out, &format!(" ! {}", "word and ".repeat(30)), 5, 2);
        assert!(out.lines().count() > 3 && out.lines().all(|line| line.chars().count() <= TEXT_WIDTH), "{out}");
        assert!(
            out.starts_with("   ! word and")
                && out.lines().skip(1).all(|line| line.starts_with("     w") || line.starts_with("     a")),
            "{out}"
        );
    }

    #[test]
    fn words_stay_whole_behind_indentations() {
        assert_eq!(
            wrapped("fix: ", "     ", "set\n--perf-profile  burst please", 25),
            "fix: set --perf-profile\n     burst please\n"
        );
        assert_eq!(wrapped("", "", "/a/very/long/path/to/a/file and", 10), "/a/very/long/path/to/a/file\nand\n");
        assert_eq!(
            wrapped("  ", "  ", "日本語日本語日本語 日本語日本語", 22),
            "  日本語日本語日本語\n  日本語日本語\n"
        );
        assert_eq!(wrapped("title: ", "  ", "  ", 40), "title: \n");
    }

    #[test]
    fn lines_break_within_long_words_where_asked() {
        assert_eq!(wrap("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrap("a b", 0), ["a", "b"]);
        assert!(wrap("  ", 5).is_empty());
        assert_eq!(wrap("日本", 1), ["日", "本"]);
    }
}

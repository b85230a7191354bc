//! Reads a child's lines with a length limit.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Longest frame: 5,000 ops with long names need about 5 MB.
pub const MAX_FRAME: usize = 64 << 20;
/// Longest console line kept whole.
pub const MAX_CONSOLE_LINE: usize = 16 << 10;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// The stream ended within a line.
    Cut(Vec<u8>),
    /// A line longer than the limit; its start.
    TooLong(Vec<u8>),
    /// The stream ended.
    End,
}

/// Reads lines of bounded length. Cancel safe: data already read stays in the reader.
pub struct LineReader<R> {
    input: R,
    partial: Vec<u8>,
    limit: usize,
    skipping: bool,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    /// Reads from `input`, lines of at most `limit` bytes.
    pub fn new(input: R, limit: usize) -> Self {
        Self { input, partial: Vec::new(), limit, skipping: false }
    }

    /// The next line. Read errors count as the end: the child is gone.
    pub async fn next(&mut self) -> Line {
        loop {
            let available = match self.input.fill_buf().await {
                Ok(bytes) if !bytes.is_empty() => bytes,
                _ => {
                    let rest = std::mem::take(&mut self.partial);
                    return if rest.is_empty() { Line::End } else { Line::Cut(rest) };
                }
            };
            let newline = available.iter().position(|&byte| byte == b'\n');
            let taken = newline.map_or(available.len(), |at| at + 1);
            if !self.skipping {
                self.partial.extend_from_slice(&available[..newline.unwrap_or(taken)]);
            }
            self.input.consume(taken);
            if newline.is_some() {
                let line = std::mem::take(&mut self.partial);
                if !std::mem::take(&mut self.skipping) {
                    return Line::Whole(line);
                }
            } else if self.partial.len() > self.limit {
                // The rest of the line is discarded.
                self.skipping = true;
                let mut start = std::mem::take(&mut self.partial);
                start.truncate(200);
                return Line::TooLong(start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(bytes: &[u8], limit: usize, buffer: usize) -> Vec<Line> {
        let mut reader = LineReader::new(tokio::io::BufReader::with_capacity(buffer, bytes), limit);
        let mut lines = Vec::new();
        loop {
            match reader.next().await {
                Line::End => return lines,
                line => lines.push(line),
            }
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn whole_cut_and_long_lines() {
        for buffer in [1, 3, 1000] {
            let got = lines(b"one\n\ntwo\nthr", 100, buffer).await;
            let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
            assert_eq!(got, [whole("one"), whole(""), whole("two"), Line::Cut(b"thr".to_vec())]);
        }
        let long = [b"x".repeat(500), b"\nend\n".to_vec()].concat();
        let got = lines(&long, 100, 50).await;
        assert!(matches!(&got[0], Line::TooLong(start) if start.len() <= 200));
        assert_eq!(got[1], Line::Whole(b"end".to_vec()));
    }
}

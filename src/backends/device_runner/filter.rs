//! Separates a runner's frames from what the surrounding shell prints on the same stream.

use crate::backends::on_device::names::PID_MARK;
use crate::devices::EndMarker;

/// Passes frames through at once, byte by byte, and takes out the shell's lines: the process id and the end marker.
#[derive(Debug)]
pub struct FrameFilter {
    marker: EndMarker,
    /// The start of a line whose origin is still unclear.
    held: Vec<u8>,
    /// True within a line of the runner.
    inside: bool,
    pid: Option<u32>,
    any: bool,
}

impl FrameFilter {
    /// For a script that ends with `marker`.
    pub fn new(marker: EndMarker) -> Self {
        Self { marker, held: Vec::new(), inside: false, pid: None, any: false }
    }

    /// The runner's process id on the device, once the shell has printed it.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// True once the runner has sent anything.
    pub fn any(&self) -> bool {
        self.any
    }

    /// Consumes input and appends the runner's part to `out`. Returns the exit status if this was the end.
    pub fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Option<i32> {
        while !bytes.is_empty() {
            let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            bytes = rest;
            if self.inside {
                out.extend_from_slice(part);
                self.inside = end.is_none();
                continue;
            }
            self.held.extend_from_slice(part);
            if end.is_some() {
                if let Some(status) = self.marker.status(&self.held) {
                    return Some(status);
                }
                // The empty line is the one before the marker.
                if !self.take_pid() && self.held != b"\n" {
                    self.any = true;
                    out.extend_from_slice(&self.held);
                }
                self.held.clear();
            } else if !self.may_be_the_shells() {
                (self.any, self.inside) = (true, true);
                out.append(&mut self.held);
            }
        }
        None
    }

    fn may_be_the_shells(&self) -> bool {
        let shared = self.held.len().min(PID_MARK.len());
        let may_be_pid = self.pid.is_none() && self.held[..shared] == PID_MARK.as_bytes()[..shared];
        may_be_pid || self.marker.may_begin(&self.held)
    }

    fn take_pid(&mut self) -> bool {
        let number = std::str::from_utf8(&self.held).ok().and_then(|line| line.strip_prefix(PID_MARK));
        match number.and_then(|number| number.trim().parse().ok()) {
            Some(pid) if self.pid.is_none() => {
                self.pid = Some(pid);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What passes through, byte by byte or in larger pieces, and the status.
    fn filtered(text: &[u8], marker: &EndMarker, piece: usize) -> (Vec<u8>, Option<u32>, Option<i32>) {
        let mut filter = FrameFilter::new(marker.clone());
        let mut out = Vec::new();
        for bytes in text.chunks(piece) {
            if let Some(status) = filter.take(bytes, &mut out) {
                return (out, filter.pid(), Some(status));
            }
        }
        (out, filter.pid(), None)
    }

    #[test]
    fn frames_pass_and_the_shells_lines_do_not() {
        let marker = EndMarker::new();
        let script = format!("echo {PID_MARK}42; echo '{{\"a\":1}}'; echo '\"done\"'; (exit 9){}", marker.after());
        let printed = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap().stdout;
        for piece in [1, 2, 7, 1000] {
            let (out, pid, status) = filtered(&printed, &marker, piece);
            assert_eq!((pid, status), (Some(42), Some(9)));
            assert_eq!(String::from_utf8(out).unwrap(), "{\"a\":1}\n\"done\"\n", "in pieces of {piece}");
        }
    }

    #[test]
    fn a_frame_is_not_held_back_until_the_next_one() {
        let mut filter = FrameFilter::new(EndMarker::new());
        let mut out = Vec::new();
        assert_eq!(filter.take(b"{\"half", &mut out), None);
        assert_eq!(out, b"{\"half");
        filter.take(b"\"}\n", &mut out);
        assert_eq!(out, b"{\"half\"}\n");
    }

    #[test]
    fn without_the_marker_there_is_no_end() {
        let marker = EndMarker::new();
        let whole = std::process::Command::new("sh").arg("-c").arg(marker.after()).output().unwrap().stdout;
        assert_eq!(filtered(&whole, &marker, 3).2, Some(0));
        for cut in 0..whole.len() {
            assert_eq!(filtered(&whole[..cut], &marker, 3).2, None, "cut at {cut}");
        }
    }
}

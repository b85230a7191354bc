//! The CSV is written by several threads; the logs here are long enough to keep all of them busy.

use super::made::{Msg, chunk, ev, msg};
use super::{csv, read};
use qnnscope::backends::profile_log::{ProfileLogError, ReadOutcome, write_csv, write_csv_once};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};

/// Repetitions of a 1 MB log: far more than all buffers hold together.
const TIMES: usize = 24;

fn long() -> Vec<u8> {
    read("cpu-2op-3000inf-detailed.log").repeat(TIMES)
}

/// The expected CSV of a repeated log: inferences are listed for each repetition, everything else once. The
/// log must have one graph.
fn repeated(log: &[u8], times: usize) -> String {
    let once = csv(log, "x");
    let is_inference = |line: &&str| line.split(',').nth(1) == Some("EXECUTE");
    let lines: Vec<&str> = once.split_inclusive('\n').collect();
    let first = lines.iter().position(is_inference).unwrap();
    let last = lines.iter().rposition(is_inference).unwrap();
    assert!(lines[first..=last].iter().all(is_inference));
    [lines[..first].concat(), lines[first..=last].concat().repeat(times), lines[last + 1..].concat()].concat()
}

fn outcome(log: impl Read + Seek + Send) -> (Result<ReadOutcome, ProfileLogError>, String) {
    let mut out = Vec::new();
    let outcome = write_csv(log, "x", &mut out);
    (outcome, String::from_utf8(out).unwrap())
}

#[test]
fn rows_keep_the_order_of_the_log() {
    for (name, times) in [("cpu-2op-3000inf-detailed.log", TIMES), ("ort-cpu-cls-20inf-detailed.log", 5 * TIMES)] {
        let (once, expected) = (read(name), repeated(&read(name), times));
        let (outcome, rows) = outcome(Cursor::new(once.repeat(times)));
        let outcome = outcome.unwrap();
        assert!(rows == expected, "{name}");
        assert_eq!(outcome.whole_bytes, (times * once.len()) as u64);
        assert!(outcome.damage.is_none() && outcome.incomplete_bytes == 0);
    }
}

#[test]
fn a_file_and_a_pipe_give_the_same() {
    // Two graphs that alternate, so that rows go through the spool, and chunks of several sizes.
    let mut log = read("htp-2graphs-5inf-detailed.log").repeat(700);
    log.extend(read("htp-2op-q8-1200inf-detailed.log").repeat(6));
    log.extend(read("cpu-2graphs-5inf-detailed.log").repeat(300));
    log.extend(&read("ort-cpu-cls-20inf-detailed.log")[..50_000]);
    let (file, rows) = outcome(Cursor::new(&log));
    let mut piped = Vec::new();
    let pipe = write_csv_once(log.as_slice(), "x", &mut piped).unwrap();
    let file = file.unwrap();
    assert!(rows.as_bytes() == piped);
    assert_eq!(
        (file.whole_bytes, file.incomplete_bytes, file.chunks, file.messages, file.sessions),
        (pipe.whole_bytes, pipe.incomplete_bytes, pipe.chunks, pipe.messages, pipe.sessions)
    );
    assert!(file.incomplete_bytes > 0 && file.whole_bytes + file.incomplete_bytes == log.len() as u64);
}

#[test]
fn damage_counts_in_the_order_of_the_log() {
    let (good, once) = (long(), read("cpu-2op-3000inf-detailed.log"));
    let bad = [&[16, 0, 0, 0][..], &[0xff; 16]].concat();
    let short = [4_u8, 0, 0, 0, 1, 2, 3, 4];
    // The first damage is the one reported, whatever follows it.
    for damage in [&bad[..], &short] {
        let log = [&good, damage, &good, &bad, &once].concat();
        let (outcome, rows) = outcome(Cursor::new(&log));
        let outcome = outcome.unwrap();
        let Some(ProfileLogError::Damaged { chunk, offset, .. }) = outcome.damage else { panic!("{outcome:?}") };
        assert_eq!((chunk, offset), (4 * TIMES as u64, good.len() as u64));
        assert_eq!((outcome.whole_bytes, outcome.incomplete_bytes), (offset, 0));
        assert!(rows == repeated(&once, TIMES));
    }
}

/// Yields the bytes in small pieces, then fails.
struct Failing<'a>(Cursor<&'a [u8]>);

impl Read for Failing<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let limit = bytes.len().min(10_007);
        match self.0.read(&mut bytes[..limit])? {
            0 => Err(io::Error::other("the disk is gone")),
            count => Ok(count),
        }
    }
}

impl Seek for Failing<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn a_source_that_fails_is_told_and_nothing_is_printed() {
    let log = long();
    let (outcome, rows) = outcome(Failing(Cursor::new(&log)));
    assert!(
        matches!(&outcome, Err(ProfileLogError::Read(error)) if error.to_string() == "the disk is gone"),
        "{outcome:?}"
    );
    assert_eq!(rows, "");
    let mut out = Vec::new();
    let error = write_csv_once(Failing(Cursor::new(&log)), "x", &mut out).unwrap_err();
    assert!(matches!(error, ProfileLogError::Read(_)) && out.is_empty());
}

/// Accepts some bytes, then no more.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_sink_that_fails_ends_it() {
    let log = long();
    for room in [0, 1 << 20, 8 << 20] {
        let error = write_csv(Cursor::new(&log), "x", Full(room)).unwrap_err();
        assert!(
            matches!(&error, ProfileLogError::Write(error) if error.kind() == io::ErrorKind::StorageFull),
            "{room}: {error:?}"
        );
    }
}

/// Accepts some bytes, then panics.
struct Panicking(usize);

impl Write for Panicking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).expect("the sink panics");
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn nobody_waits_for_a_thread_that_panicked() {
    let log = long();
    for room in [0, 8 << 20] {
        let panicked = std::panic::catch_unwind(|| write_csv(Cursor::new(&log), "x", Panicking(room)).is_ok());
        assert!(panicked.is_err(), "{room}");
    }
}

/// A log that differs when it is read again.
struct Changing<'a> {
    log: Cursor<&'a [u8]>,
    again: &'a [u8],
}

impl Read for Changing<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.log.read(bytes)
    }
}

impl Seek for Changing<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if matches!(to, SeekFrom::Start(_)) {
            self.log = Cursor::new(self.again);
        }
        self.log.seek(to)
    }
}

#[test]
fn a_log_that_changes_meanwhile_is_told() {
    let log = long();
    let mut damaged = log.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 400_000].fill(0xff);
    let other = read("htp-2op-q8-1200inf-detailed.log").repeat(TIMES);
    for again in [&log[..log.len() / 2], &damaged, &other, &[]] {
        let error = write_csv(Changing { log: Cursor::new(&log), again }, "x", io::sink()).unwrap_err();
        assert!(matches!(error, ProfileLogError::Changed), "{error:?}");
    }
    // Appended data does not count as a change.
    let longer = [&log[..], &other].concat();
    write_csv(Changing { log: Cursor::new(&log), again: &longer }, "x", io::sink()).unwrap();
}

/// Chunks above 16 MiB are processed one at a time, between small ones.
#[test]
fn large_chunks_take_their_turn() {
    let name = "n".repeat(20_000);
    let mut log = Vec::new();
    let mut seq = 0;
    for count in [1_u64, 900, 2, 1, 950, 900, 1, 3] {
        let messages: Vec<Msg> = (seq..seq + count)
            .map(|seq| {
                let event = if count > 100 { name.as_str() } else { "A" };
                msg(1, seq, seq + 1, "g", vec![ev(event, 400, seq)])
            })
            .collect();
        let chunk = chunk((seq == 0).then_some("net"), &messages);
        assert_eq!(chunk.len() > 16 << 20, count > 100, "{}", chunk.len());
        log.extend(chunk);
        seq += count;
    }
    let (outcome, rows) = outcome(Cursor::new(&log));
    let outcome = outcome.unwrap();
    assert_eq!((outcome.chunks, outcome.messages, outcome.whole_bytes), (8, seq, log.len() as u64));
    let values: Vec<u64> = rows
        .lines()
        .filter(|line| line.contains(",US,BACKEND,ROOT,"))
        .map(|line| line.split(',').nth(2).unwrap().parse().unwrap())
        .collect();
    assert_eq!(values, (0..seq).collect::<Vec<_>>());
}

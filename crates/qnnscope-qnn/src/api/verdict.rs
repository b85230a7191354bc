//! A backend's answers about the ops of a model.

/// Maximum bytes of log kept for all ops together; later ops keep only their first lines.
const MOST_LOG_BYTES: usize = 24 << 20;
/// Lines kept per op after that: the request, without the list of what would be accepted.
const FIRST_LINES: usize = 12;

/// A backend's answer about one op.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpAnswer {
    /// Position of the op's graph in the order of creation.
    pub graph: usize,
    /// Position of the op in its graph.
    pub op: usize,
    /// Low 16 bits of backendValidateOpConfig's return value; 0 is yes.
    pub code: u64,
    /// What the backend logged meanwhile; empty if it answered yes.
    pub log: Vec<String>,
    /// The log's numbers for the op's tensors: inputs, then outputs; empty if it answered yes.
    pub tensor_ids: Vec<u32>,
}

/// An answer about an op not added yet.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) code: u64,
    pub(super) log: Vec<String>,
    pub(super) tensor_ids: Vec<u32>,
}

/// Collects verdicts. A composer asks about an op before adding it, and once is enough.
#[derive(Debug, Default)]
pub(super) struct Judge {
    pub(super) verdicts: Vec<OpAnswer>,
    waiting: Option<(String, Answer)>,
    log_bytes: usize,
}

impl Judge {
    /// Stores the answer about the op of this name, which is not added yet.
    pub(super) fn keep(&mut self, op: String, mut answer: Answer) {
        if answer.code == 0 {
            answer = Answer::default();
        }
        if self.log_bytes > MOST_LOG_BYTES {
            answer.log.truncate(FIRST_LINES);
        }
        self.log_bytes += answer.log.iter().map(String::len).sum::<usize>();
        self.waiting = Some((op, answer));
    }

    /// Whether there is a pending answer about this op.
    pub(super) fn has_asked(&self, op: &str) -> bool {
        self.waiting.as_ref().is_some_and(|(name, ..)| name == op)
    }

    /// The op asked about is added here.
    pub(super) fn place(&mut self, graph: usize, op: usize) {
        if let Some((_, Answer { code, log, tensor_ids })) = self.waiting.take() {
            self.verdicts.push(OpAnswer { graph, op, code, log, tensor_ids });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_op_has_one_verdict_with_bounded_logs() {
        let mut judge = Judge::default();
        assert!(!judge.has_asked("a"));
        judge.keep("a".to_owned(), Answer { code: 0, log: vec!["fine".to_owned()], tensor_ids: vec![1] });
        assert!(judge.has_asked("a") && !judge.has_asked("b"));
        judge.place(0, 0);
        assert!(!judge.has_asked("a"), "the next op of this name is asked about again");
        let long = vec!["x".repeat(1 << 20); 20];
        for op in 1..4 {
            judge.keep("b".to_owned(), Answer { code: 3110, log: long.clone(), tensor_ids: vec![1, 2] });
            judge.place(1, op);
        }
        let kept: Vec<usize> = judge.verdicts.iter().map(|verdict| verdict.log.len()).collect();
        assert_eq!(kept, [0, 20, 20, 12]);
        assert_eq!((judge.verdicts[3].graph, judge.verdicts[3].op, judge.verdicts[3].code), (1, 3, 3110));
    }
}

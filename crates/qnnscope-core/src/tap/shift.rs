//! Converts timestamps of another machine's clock to this one's.

use super::{Execution, TapMessage};

impl TapMessage {
    /// Shifts every timestamp in it by this many nanoseconds; durations are unchanged.
    pub fn shift(&mut self, by_ns: i64) {
        let moment = match self {
            Self::Loaded(process) | Self::Hello(process) => &mut process.t_ns,
            Self::Provider(provider) => &mut provider.t_ns,
            Self::Ended(call) => &mut call.start_ns,
            Self::Refused(refused) => &mut refused.t_ns,
            Self::Detail(detail) => &mut detail.start_ns,
            Self::Voted(vote) => &mut vote.t_ns,
            Self::Binary(binary) => &mut binary.t_ns,
            Self::Began { t_ns, .. }
            | Self::MemoryShared { t_ns, .. }
            | Self::Log { t_ns, .. }
            | Self::Note { t_ns, .. }
            | Self::Again { t_ns, .. }
            | Self::Bye { t_ns } => t_ns,
            Self::Executions(executions) => {
                return executions.iter_mut().for_each(|execution| execution.shift(by_ns));
            }
            Self::Composed { .. } | Self::GraphOps { .. } | Self::Bound { .. } | Self::Lost { .. } => return,
        };
        *moment = moment.saturating_add_signed(by_ns);
    }
}

impl Execution {
    /// Shifts its start by this many nanoseconds.
    pub fn shift(&mut self, by_ns: i64) {
        self.start_ns = self.start_ns.saturating_add_signed(by_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_move_and_durations_stay() {
        let execution = Execution { graph: 1, thread: 2, start_ns: 1_000, duration_ns: 70, code: 0, flags: 0 };
        let mut message = TapMessage::Executions(vec![execution, Execution { start_ns: 10, ..execution }]);
        message.shift(-100);
        let TapMessage::Executions(moved) = message else { panic!() };
        assert_eq!((moved[0].start_ns, moved[0].duration_ns, moved[1].start_ns), (900, 70, 0));
        // In every message with a timestamp exactly that timestamp shifts; the text is otherwise the same.
        for text in [
            r#"{"began":{"call":"graphExecute","t_ns":500,"thread":1}}"#,
            r#"{"memory_shared":{"t_ns":500,"count":1,"code":0}}"#,
            r#"{"log":{"t_ns":500,"level":1,"text":"x"}}"#,
            r#"{"note":{"t_ns":500,"text":"x"}}"#,
            r#"{"bye":{"t_ns":500}}"#,
            r#"{"again":{"t_ns":500,"pid":7}}"#,
            r#"{"binary":{"t_ns":500,"key":7,"provider":0,"bytes":9,"head":9,"tail":0,"reason":"x"}}"#,
            r#"{"voted":{"t_ns":500,"provider":0,"action":"set","id":1,"code":0,"settings":{}}}"#,
            r#"{"detail":{"call":"graphExecute","graph":1,"thread":1,"start_ns":500,"duration_ns":9,"read_ns":1,"host":false,"cut":0,"events":[]}}"#,
        ] {
            let mut message: TapMessage = serde_json::from_str(text).unwrap();
            message.shift(250);
            assert_eq!(serde_json::to_string(&message).unwrap(), text.replace("500", "750"));
        }
    }
}

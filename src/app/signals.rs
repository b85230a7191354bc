//! Signal handling of the view.

use std::io;

/// The action requested by a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// Stop the run; quit if nothing runs.
    Interrupt,
    /// Leave.
    End,
    /// Suspend until the shell resumes it.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no job control"))]
    Suspend,
}

/// The signals that the view answers.
#[cfg(unix)]
pub(super) struct Signals {
    streams: Vec<(tokio::signal::unix::Signal, Signal)>,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        // The job-control stop signal, for which tokio has no name.
        let suspend = SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw());
        let streams = vec![
            (signal(SignalKind::interrupt())?, Signal::Interrupt),
            (signal(SignalKind::terminate())?, Signal::End),
            (signal(SignalKind::hangup())?, Signal::End),
            (signal(suspend)?, Signal::Suspend),
        ];
        Ok(Self { streams })
    }

    pub(super) async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (stream, meaning) in &mut self.streams {
                if stream.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*meaning);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}

/// The signals that the view answers.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    #[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    pub(super) async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Signal::Interrupt
    }
}

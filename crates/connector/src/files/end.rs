//! The end of a call: its time is over, or nobody waits for it any more.

use std::time::Instant;

use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// End of a call's time.
#[derive(Clone, Debug)]
pub(super) struct CallEnd {
    pub(super) stopped: CancellationToken,
    pub(super) until: Instant,
}

impl CallEnd {
    /// Fails after the end.
    pub(super) fn check(&self) -> Result<(), ConnectorError> {
        if self.stopped.is_cancelled() || Instant::now() >= self.until {
            let text = "reading the files took longer than the limit `timeout`, or than the cell; choose \
                        fewer columns or rows";
            return Err(ConnectorError::new(ConnectorErrorKind::Timeout, text));
        }
        Ok(())
    }

    /// Waits for work of the runtime, from a thread outside it. Returns nothing if the call ends first.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        Handle::current().block_on(async {
            tokio::select! {
                biased;
                () = self.stopped.cancelled() => None,
                () = tokio::time::sleep_until(self.until.into()) => None,
                done = work => Some(done),
            }
        })
    }
}

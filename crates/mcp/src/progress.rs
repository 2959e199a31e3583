//! Output of a call, sent to its client while it runs.

use std::time::Duration;

use cellblock_interpreter::render;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Pieces of output that may wait; a client that reads more slowly misses some, and the call goes on.
const WAITING: usize = 256;
/// Time for which pieces are gathered for one notification.
const GATHERED: Duration = Duration::from_millis(100);
/// Interval of progress notifications for a silent call, so that clients that wait for progress
/// keep waiting.
const ALIVE: Duration = Duration::from_secs(5);
/// Tokens of one notification.
const TOKENS: usize = 500;
/// Maximum number of bytes in one notification; of longer output, the end is sent.
const BYTES: usize = 64 * 1024;
/// Maximum time of the last notification.
const LAST: Duration = Duration::from_secs(1);

/// Tells a client what its call writes, if it asked for that.
#[derive(Debug)]
pub(crate) struct CallProgress(Option<ProgressSender>);

#[derive(Debug)]
struct ProgressSender {
    pieces: mpsc::Sender<Vec<u8>>,
    teller: JoinHandle<()>,
}

impl CallProgress {
    /// Nobody asked.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// Begins, if the request has a progress token.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        let Some(token) = context.meta.get_progress_token() else {
            return Self::none();
        };
        let (pieces, queue) = mpsc::channel(WAITING);
        let teller = tokio::spawn(tell(token, context.peer.clone(), queue));
        Self(Some(ProgressSender { pieces, teller }))
    }

    /// Something was written. It never waits.
    pub(crate) fn wrote(&self, bytes: &[u8]) {
        if let Some(told) = &self.0 {
            let _ = told.pieces.try_send(bytes.to_vec());
        }
    }

    /// Tells what is left, so that it comes before the answer.
    pub(crate) async fn finish(self) {
        if let Some(ProgressSender { pieces, teller }) = self.0 {
            drop(pieces);
            let stop = teller.abort_handle();
            if timeout(LAST, teller).await.is_err() {
                stop.abort();
            }
        }
    }
}

async fn tell(token: ProgressToken, peer: Peer<RoleServer>, mut queue: mpsc::Receiver<Vec<u8>>) {
    let begun = Instant::now();
    let mut last = 0.0;
    loop {
        let (written, ended) = gather(&mut queue).await;
        if ended && written.is_empty() {
            return;
        }
        // Seconds; what clocks give twice is raised, as progress has to increase.
        last = begun.elapsed().as_secs_f64().max(last + 0.001);
        let message = if written.is_empty() {
            format!("running for {} s", begun.elapsed().as_secs())
        } else {
            render::stream(&String::from_utf8_lossy(&written), TOKENS)
        };
        let told = ProgressNotificationParam::new(token.clone(), last).with_message(message);
        if peer.notify_progress(told).await.is_err() || ended {
            return;
        }
    }
}

/// Waits for output, and gathers what comes with it. Without any for a while it answers nothing.
async fn gather(queue: &mut mpsc::Receiver<Vec<u8>>) -> (Vec<u8>, bool) {
    let mut written = match timeout(ALIVE, queue.recv()).await {
        Ok(Some(piece)) => piece,
        Ok(None) => return (Vec::new(), true),
        Err(_) => return (Vec::new(), false),
    };
    let until = Instant::now() + GATHERED;
    loop {
        match timeout_at(until, queue.recv()).await {
            Ok(Some(piece)) => written.extend(piece),
            Ok(None) => return (written, true),
            Err(_) => break,
        }
        if written.len() > BYTES {
            written.drain(..written.len() - BYTES);
            sleep(GATHERED).await;
            break;
        }
    }
    (written, false)
}

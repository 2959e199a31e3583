//! A client's connection: its requests and their responses.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::local::LocalMachine;
use super::mux::{Mux, MuxTransport, Pulse, StreamReceiver, StreamSender};
use super::refusal::RemoteRefusal;
use super::wire::{GENERATION, Hello, RemoteAnswer, RemoteRequest, ToClient, ToServer};
use cellblock_sandbox::{Error, Result};

/// Maximum time for a server to introduce itself.
const HELLO_LIMIT: Duration = Duration::from_secs(20);

/// The callers that wait for a response, by request; `None` once no more will come.
type PendingCalls = Arc<Mutex<Option<HashMap<u64, CallSender>>>>;
type CallSender = oneshot::Sender<Result<RemoteAnswer, RemoteRefusal>>;

/// A connection to a server. Dropping it ends everything that the server holds for it.
pub(super) struct Link {
    mux: Arc<Mux>,
    waiting: PendingCalls,
    last: AtomicU64,
    listener: JoinHandle<()>,
    keep: LinkGuard,
    /// The machine at the other end, which ends with the connection.
    machine: Option<Weak<dyn LocalMachine>>,
}

/// Value that is dropped with the connection.
type LinkGuard = Arc<Mutex<Option<Box<dyn Send + Sync>>>>;

impl std::fmt::Debug for Link {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut link = formatter.debug_struct("Link");
        link.field("mux", &self.mux).finish_non_exhaustive()
    }
}

impl Link {
    /// Connects over a transport and reads the server's introduction. `process` is the server's
    /// name, if it is another process of this machine.
    pub(super) async fn start<T, E>(
        transport: T,
        pulse: Pulse,
        process: Option<String>,
    ) -> Result<(Self, Hello)>
    where
        T: MuxTransport<E>,
        E: std::fmt::Display + Send + 'static,
    {
        let (mux, mut heard) = Mux::start(transport, pulse, process);
        let mux = Arc::new(mux);
        let first = timeout(HELLO_LIMIT, heard.recv())
            .await
            .map_err(|_| Error::too_late("the remote's first message", HELLO_LIMIT))?;
        let first = first.ok_or_else(|| mux.lost())?;
        let hello = match serde_json::from_slice(&first) {
            Ok(ToClient::Hello(hello)) => hello,
            Ok(_) => return Err(Error::protocol("remote", "its first message was not `hello`")),
            Err(error) => return Err(Error::protocol("remote", unread(&error))),
        };
        let generations = (hello.generation, hello.frames);
        if generations != (GENERATION, cellblock_protocol::GENERATION) {
            return Err(Error::protocol(
                "remote",
                format!(
                    "its protocol generation is {}.{}, not {GENERATION}.{}; run the same version of \
                     Cellblock on both sides",
                    hello.generation,
                    hello.frames,
                    cellblock_protocol::GENERATION
                ),
            ));
        }
        let waiting = PendingCalls::new(Mutex::new(Some(HashMap::new())));
        let keep = LinkGuard::default();
        let listening = listen(heard, Arc::clone(&waiting), Arc::clone(&mux));
        let kept = Arc::clone(&keep);
        let listener = tokio::spawn(async move {
            listening.await;
            drop(lock(&kept).take());
        });
        let link = Self {
            mux,
            waiting,
            last: AtomicU64::new(0),
            listener,
            keep,
            machine: None,
        };
        Ok((link, hello))
    }

    /// Holds something until the connection is closed.
    pub(super) fn keeping(self, keep: Option<Box<dyn Send + Sync>>) -> Self {
        *lock(&self.keep) = keep;
        if self.mux.is_lost() {
            drop(lock(&self.keep).take());
        }
        self
    }

    /// Holds the machine at the other end until the connection is closed.
    pub(super) fn keeping_machine(mut self, machine: Option<Arc<dyn LocalMachine>>) -> Self {
        let Some(machine) = machine else { return self };
        self.machine = Some(Arc::downgrade(&machine));
        self.keeping(Some(Box::new(machine)))
    }

    /// Returns the machine at the other end.
    pub(super) fn machine(&self) -> Option<Arc<dyn LocalMachine>> {
        self.machine.as_ref()?.upgrade()
    }

    /// Opens a stream.
    pub(super) fn open(&self, id: u32) -> (StreamSender, StreamReceiver) {
        self.mux.open(id)
    }

    /// Sends a message that has no response.
    pub(super) async fn tell(&self, message: &impl Serialize) -> Result<()> {
        self.mux.tell(message).await
    }

    /// Returns the error for a caller, if the connection has ended.
    pub(super) fn lost(&self) -> Option<Error> {
        self.mux.is_lost().then(|| self.mux.lost())
    }

    /// Completes when the connection has ended.
    pub(super) async fn ended(&self) {
        self.mux.ended().await;
    }

    /// Closes the connection after use.
    pub(super) fn close(&self) {
        self.mux.close();
        drop(lock(&self.keep).take());
    }

    /// Ends the connection because the peer violated the protocol.
    pub(super) fn fail(&self, reason: String) {
        self.mux.fail(reason);
    }

    /// Sends a request once. A request without a response because the connection was lost may have
    /// been executed.
    pub(super) async fn ask(
        &self,
        ask: RemoteRequest,
        action: &'static str,
        limit: Duration,
    ) -> Result<RemoteAnswer> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answered) = oneshot::channel();
        match &mut *lock(&self.waiting) {
            Some(waiting) => waiting.insert(id, sender),
            None => return Err(self.mux.lost()),
        };
        self.tell(&ToServer::Ask { id, ask }).await.inspect_err(|_| {
            take(&self.waiting, id);
        })?;
        // A server may close the connection behind its response, so only the listener knows that none comes.
        let answer = timeout(limit, answered).await.map_err(|_| {
            take(&self.waiting, id);
            Error::too_late("the remote's response", limit)
        })?;
        answer
            .map_err(|_| self.mux.lost())?
            .map_err(|refusal| refusal.into_error(action))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.listener.abort();
        self.close();
    }
}

async fn listen(mut heard: mpsc::Receiver<Bytes>, waiting: PendingCalls, mux: Arc<Mux>) {
    while let Some(json) = heard.recv().await {
        let (id, answer) = match serde_json::from_slice(&json) {
            Ok(ToClient::Answer { id, answer }) => (id, Ok(answer)),
            Ok(ToClient::Refused { id, refusal }) => (id, Err(refusal)),
            Ok(ToClient::Hello(_)) => continue,
            Err(error) => {
                mux.fail(format!("the remote broke the protocol: {}", unread(&error)));
                break;
            }
        };
        if let Some(asked) = take(&waiting, id) {
            let _ = asked.send(answer);
        }
    }
    // Waiting callers learn that no response comes, and later ones are refused.
    drop(lock(&waiting).take());
}

fn take(waiting: &PendingCalls, id: u64) -> Option<CallSender> {
    lock(waiting).as_mut()?.remove(&id)
}

/// Describes an unreadable message without its content, which may be anything.
pub(super) fn unread(error: &serde_json::Error) -> String {
    format!(
        "a message that cannot be read at line {}, column {}",
        error.line(),
        error.column()
    )
}

/// Returns the error for an unexpected kind of response.
pub(super) fn unexpected() -> Error {
    Error::protocol("remote", "it sent an unexpected response")
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock()
}

#[cfg(test)]
mod tests {
    use cellblock_sandbox::jail::protection::Report;
    use tokio::net::UnixStream;

    use super::*;
    use crate::error::is_lost;
    use crate::framed;

    /// A server that closes the connection behind its first response.
    async fn answer_and_close(stream: UnixStream) {
        let (mux, mut asked) = Mux::start(framed(stream), Pulse::default(), None);
        let hello = ToClient::Hello(Hello {
            generation: GENERATION,
            frames: cellblock_protocol::GENERATION,
            image: String::new(),
            report: Report::default(),
        });
        mux.tell(&hello).await.unwrap();
        asked.recv().await.unwrap();
        let answer = RemoteAnswer::Done {};
        mux.tell(&ToClient::Answer { id: 1, answer }).await.unwrap();
        mux.close();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_response_before_the_end_is_returned_and_later_requests_are_refused() {
        for turn in 0..2000 {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let server = tokio::spawn(answer_and_close(theirs));
            let started = Link::start(framed(ours), Pulse::default(), None).await;
            let (link, _) = started.unwrap();
            let answered = link.ask(RemoteRequest::Suspend {}, "suspend", HELLO_LIMIT).await;
            assert!(
                matches!(answered, Ok(RemoteAnswer::Done {})),
                "{turn}: {answered:?}"
            );
            link.ended().await;
            let refused = link
                .ask(RemoteRequest::Usage {}, "ask", HELLO_LIMIT)
                .await
                .unwrap_err();
            assert!(is_lost(&refused), "{turn}: {refused}");
            server.await.unwrap();
        }
    }
}

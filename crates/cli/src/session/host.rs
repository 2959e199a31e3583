//! The process behind a session, or a warm host: it serves its socket until somebody stops it, a
//! signal does, or nobody comes.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::hosting::{HostingLimits, Registry, Resident, ResidentSession};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::place::SessionPlace;
use super::wire::HostCommand;
use crate::error::{Error, Result};

pub(crate) mod answers;
mod branches;
mod cells;
pub(crate) mod connection;
pub(crate) mod detach;
pub(crate) mod process;
mod processes;
#[cfg(test)]
mod tests;

/// Maximum time for notifying clients that there will be no answer, and for stopping what runs in the
/// sandbox.
const FAREWELL: Duration = Duration::from_secs(5);
/// Maximum time for giving the sandbox back; its parts end with this process in any case.
const CLOSING: Duration = Duration::from_secs(10);
/// Clients that are listened to at once.
const CLIENTS: usize = 256;

/// Service of a host.
pub(crate) trait Service: ResidentSession + Sized {
    /// Answers a client, once its question is accepted. The host's end is not asked of a service.
    fn answer(
        service: Arc<Resident<Self>>,
        stream: UnixStream,
        ask: HostCommand,
    ) -> impl Future<Output = io::Result<()>> + Send;

    /// Returns the tasks that go on after its end, before the process may end.
    fn branches(&self) -> TaskTracker {
        TaskTracker::new()
    }
}

/// The signals that end a host.
#[derive(Debug)]
struct Ends([Signal; 3]);

/// Serves until the host stops. Returns the clients that requested the stop and wait for it.
pub(crate) async fn serve<S: Service>(listener: UnixListener, service: S) -> Result<Vec<UnixStream>> {
    let mut ends = Ends::listen()?;
    let (stops, mut stopped) = mpsc::channel(CLIENTS);
    // A registry of one: the socket's path is its handle, and the socket's owner its owner.
    let registry = Registry::new(HostingLimits::default());
    let hosted = registry.host("", "", service).expect("a new registry is open");
    let service = Arc::clone(&*hosted);
    drop(hosted);
    let mut clients = JoinSet::new();
    let mut who = Vec::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if clients.len() < CLIENTS => match accepted {
                Ok((stream, _)) => {
                    clients.spawn(connection::serve(Arc::clone(&service), stream, stops.clone()));
                }
                // Such as no descriptors left for a moment.
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "could not accept a client");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(ended) = clients.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(error = &error as &dyn std::error::Error, "a client's task failed");
                }
            }
            stop = stopped.recv() => {
                who.extend(stop);
                break;
            }
            () = ends.any() => break,
            _ = registry.expired() => break,
        }
    }
    drop(listener);
    let farewell = async {
        let answered = async { while clients.join_next().await.is_some() {} };
        if timeout(FAREWELL, answered).await.is_err() {
            clients.abort_all();
        }
    };
    let closing = timeout(FAREWELL + CLOSING, registry.close(&service));
    let ((), closed) = tokio::join!(farewell, closing);
    while let Ok(stop) = stopped.try_recv() {
        who.push(stop);
    }
    if let Ok(closed) = closed {
        closed?;
    } else {
        tracing::error!("the sandbox was not given back in time; it ends with its host");
    }
    Ok(who)
}

impl Ends {
    fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).map_err(Error::process("listen for signals"));
        Ok(Self([
            listen(SignalKind::terminate())?,
            listen(SignalKind::interrupt())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    async fn any(&mut self) {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// Opens the session's socket for its owner alone.
pub(crate) fn listen(place: &SessionPlace) -> io::Result<UnixListener> {
    place.at_socket(|path| {
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    })
}

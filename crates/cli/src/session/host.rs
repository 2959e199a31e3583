//! The process behind a session: it serves the session's socket until somebody stops it, a signal does, or nobody comes.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Mutex, Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::place::Place;
use super::plan::{Dataset, Plan};
use super::toolbox::Toolbox;
use super::wire::Description;
use crate::error::{Error, Result};

mod connection;
pub(crate) mod detach;
#[cfg(test)]
mod tests;

/// How long those who wait for an answer may take to hear that there will be none, and what runs in the sandbox to stop.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long the sandbox may take to be given back; what it is made of ends with this process in any case.
const CLOSING: Duration = Duration::from_secs(10);
/// Clients that are listened to at once.
const CLIENTS: usize = 256;

/// What the connections share.
#[derive(Debug)]
struct Shared<T> {
    toolbox: T,
    plan: Plan,
    /// Calls take turns, as the sandbox runs one at a time: so it is known whose call an interrupt stops, and whose output comes.
    turn: Mutex<()>,
    calls: AtomicU64,
    /// Those that came after the plan's.
    datasets: StdMutex<Vec<Dataset>>,
    activity: StdMutex<Activity>,
    /// Told when the last call has ended.
    quiet: Notify,
    closing: watch::Sender<bool>,
    stops: mpsc::Sender<UnixStream>,
}

/// What is going on.
#[derive(Debug)]
struct Activity {
    running: usize,
    /// When the last request ended.
    since: Instant,
}

/// A request that is worked on.
#[derive(Debug)]
struct Busy<T>(Arc<Shared<T>>);

/// The signals that end a host.
#[derive(Debug)]
struct Ends([Signal; 3]);

/// Serves until the end. Who asked for it is given back, to be told when all is over.
pub(crate) async fn serve<T: Toolbox>(
    listener: UnixListener,
    toolbox: T,
    plan: Plan,
) -> Result<Vec<UnixStream>> {
    let mut ends = Ends::listen()?;
    let (stops, mut stopped) = mpsc::channel(CLIENTS);
    let shared = Arc::new(Shared {
        toolbox,
        plan,
        turn: Mutex::default(),
        calls: AtomicU64::new(0),
        datasets: StdMutex::default(),
        activity: StdMutex::new(Activity {
            running: 0,
            since: Instant::now(),
        }),
        quiet: Notify::new(),
        closing: watch::Sender::new(false),
        stops,
    });
    let mut clients = JoinSet::new();
    let mut who = Vec::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if clients.len() < CLIENTS => match accepted {
                Ok((stream, _)) => {
                    clients.spawn(connection::serve(Arc::clone(&shared), stream));
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
            () = shared.idle() => break,
        }
    }
    drop(listener);
    shared.closing.send_replace(true);
    let farewell = async { while clients.join_next().await.is_some() {} };
    if timeout(FAREWELL, farewell).await.is_err() {
        clients.abort_all();
    }
    while let Ok(stop) = stopped.try_recv() {
        who.push(stop);
    }
    if let Ok(closed) = timeout(CLOSING, shared.toolbox.close()).await {
        closed?;
    } else {
        tracing::error!("the sandbox was not given back in time; it ends with its host");
    }
    Ok(who)
}

impl<T: Toolbox> Shared<T> {
    /// Completes when nothing was asked for the idle time.
    async fn idle(&self) {
        loop {
            let since = {
                let activity = self.activity();
                (activity.running == 0).then_some(activity.since)
            };
            let Some(since) = since else {
                self.quiet.notified().await;
                continue;
            };
            let left = self.plan.idle.saturating_sub(since.elapsed());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn datasets(&self) -> MutexGuard<'_, Vec<Dataset>> {
        self.datasets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn description(&self) -> Description {
        let mut plan = self.plan.clone();
        plan.datasets.extend(self.datasets().iter().cloned());
        let activity = self.activity();
        Description {
            process: std::process::id(),
            plan,
            calls: self.calls.load(Ordering::Relaxed),
            running: activity.running,
            idle_seconds: if activity.running > 0 {
                0.0
            } else {
                activity.since.elapsed().as_secs_f64()
            },
        }
    }
}

impl<T: Toolbox> Busy<T> {
    fn with(shared: &Arc<Shared<T>>) -> Self {
        shared.activity().running += 1;
        Self(Arc::clone(shared))
    }
}

impl<T> Drop for Busy<T> {
    fn drop(&mut self) {
        let mut activity = self.0.activity.lock().unwrap_or_else(PoisonError::into_inner);
        activity.running -= 1;
        activity.since = Instant::now();
        drop(activity);
        self.0.quiet.notify_one();
    }
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
pub(crate) fn listen(place: &Place) -> io::Result<UnixListener> {
    place.at_socket(|path| {
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    })
}

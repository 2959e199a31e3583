//! The server's half: one connection, one sandbox of this machine, which ends with it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

use super::link::unread;
use super::mux::{Mux, Pulse, Transport};
use super::refusal::Refusal;
use super::wire::{Ask, GENERATION, Hello, ToClient, ToServer};
use cellblock_sandbox::backend::BoxFuture;
use cellblock_sandbox::{Error, Result};

use cellblock_image::{Manifest, Report as Audit};
use cellblock_sandbox::Limits;
use cellblock_sandbox::jail::protection::Report;
use cellblock_sandbox::pool::Lease;

mod guest;
mod parts;
mod pump;
mod room;

use pump::Orders;
use room::Room;

/// Asks that wait while another one is served.
const ASKS: usize = 8;

/// What a server has to give.
pub trait Host: Send + Sync + 'static {
    /// The image that its sandboxes start from.
    fn manifest(&self) -> &Manifest;

    /// What they are confined by.
    fn report(&self) -> Report;

    /// The most that a client may ask for in one sandbox.
    fn most(&self) -> &Limits;

    /// A directory of its own for files that clients show in their sandboxes, which the server owns and sweeps; `None` where they cannot.
    fn spool(&self) -> Option<PathBuf>;

    /// A sandbox with a running kernel.
    fn lease<'a>(&'a self, limits: &'a Limits) -> BoxFuture<'a, Result<Lease, Refusal>>;

    /// A sandbox that [`lease`](Self::lease) gave has ended.
    fn returned(&self, sandbox: &str);

    /// Completes once kernels start without waiting, with the modules that could not be imported.
    fn warmed(&self) -> BoxFuture<'_, Result<Vec<String>, Refusal>>;

    /// The network clients that the image holds.
    fn audit(&self) -> BoxFuture<'_, Result<Audit, Refusal>>;

    /// The id of a layer with these requirements, installed if need be.
    fn layer<'a>(&'a self, requirements: &'a [String]) -> BoxFuture<'a, Result<String, Refusal>>;
}

/// What one kernel's stream can be told, by the stream's number.
type Signalled = Arc<Mutex<HashMap<u32, Arc<Orders>>>>;

/// Serves one connection to its end. What it held is given back when this completes; dropping it destroys the sandbox as well.
///
/// Whoever calls this has checked that the client may have a sandbox. An error says why a connection was cut; a client that goes is none.
pub async fn serve<T, E>(transport: T, host: Arc<dyn Host>, pulse: Pulse) -> Result<()>
where
    T: Transport<E>,
    E: std::fmt::Display + Send + 'static,
{
    let (mux, controls) = Mux::start(transport, pulse);
    let mux = Arc::new(mux);
    let hello = Hello {
        generation: GENERATION,
        frames: cellblock_protocol::GENERATION,
        image: host.manifest().id.clone(),
        report: host.report(),
    };
    mux.tell(&ToClient::Hello(hello)).await?;
    let (asks, mut queue) = mpsc::channel(ASKS);
    let signalled = Signalled::default();
    let killed = Arc::new(Notify::new());
    let mut room = Room::new(Arc::clone(&mux), host, Arc::clone(&signalled));
    let heard = hear(controls, asks, &signalled, &killed);
    tokio::pin!(heard);
    let result = loop {
        let (id, ask) = tokio::select! {
            cut = &mut heard => break cut,
            () = killed.notified() => {
                room.kill();
                continue;
            }
            Some(ask) = queue.recv() => ask,
        };
        let served = tokio::select! {
            cut = &mut heard => break cut,
            served = room.serve(ask, &killed) => served,
        };
        let message = match served {
            Ok(answer) => ToClient::Answer { id, answer },
            Err(refusal) => ToClient::Refused { id, refusal },
        };
        // That the connection is lost is heard of above.
        let _ = mux.tell(&message).await;
    };
    if let Err(error) = &result {
        mux.fail(cellblock_sandbox::jail::error::chain(error));
    }
    room.close().await;
    match result {
        Ok(()) if mux.is_broken() => Err(mux.lost()),
        result => result,
    }
}

/// Sorts what the client says, until it says no more.
async fn hear(
    mut controls: mpsc::Receiver<Bytes>,
    asks: mpsc::Sender<(u64, Ask)>,
    signalled: &Signalled,
    killed: &Notify,
) -> Result<()> {
    let orders = |kernel: u32| {
        let signalled = signalled.lock().unwrap_or_else(PoisonError::into_inner);
        signalled.get(&kernel).cloned()
    };
    while let Some(json) = controls.recv().await {
        match serde_json::from_slice(&json) {
            Ok(ToServer::Ask { id, ask }) => {
                if asks.try_send((id, ask)).is_err() {
                    return Err(Error::protocol(
                        "client",
                        format!("it asks for more than {ASKS} things at a time"),
                    ));
                }
            }
            Ok(ToServer::Interrupt { kernel }) => {
                if let Some(orders) = orders(kernel) {
                    orders.interrupt();
                }
            }
            Ok(ToServer::Kill { kernel }) => {
                if let Some(orders) = orders(kernel) {
                    orders.kill();
                }
            }
            Ok(ToServer::KillAll {}) => killed.notify_one(),
            Err(error) => return Err(Error::protocol("client", unread(&error))),
        }
    }
    Ok(())
}

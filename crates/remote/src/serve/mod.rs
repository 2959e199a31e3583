//! The server's half: one connection with one local sandbox, which ends with it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::link::unread;
use super::mux::{Mux, MuxTransport, Pulse};
use super::refusal::RemoteRefusal;
use super::wire::{GENERATION, Hello, RemoteRequest, ToClient, ToServer};
use cellblock_sandbox::backend::BoxFuture;
use cellblock_sandbox::{Error, Result};

use cellblock_image::{AuditReport, Manifest};
use cellblock_sandbox::Limits;
use cellblock_sandbox::jail::protection::Report;
use cellblock_sandbox::pool::Lease;

mod guest;
mod parts;
mod pump;
mod room;

use pump::Orders;
use room::Room;

/// Maximum number of requests that wait while another one is served.
const ASKS: usize = 8;

/// The resources that a server offers.
pub trait Host: Send + Sync + 'static {
    /// Returns the image of its sandboxes.
    fn manifest(&self) -> &Manifest;

    /// Returns the state of their protections.
    fn report(&self) -> Report;

    /// Returns the maximum limits that a client may request for a sandbox.
    fn most(&self) -> &Limits;

    /// Returns a separate directory for files that clients mount, which the server owns and cleans
    /// up; `None` if it does not support mounts.
    fn spool(&self) -> Option<PathBuf>;

    /// Provides a sandbox with a running kernel.
    fn lease<'a>(&'a self, limits: &'a Limits) -> BoxFuture<'a, Result<Lease, RemoteRefusal>>;

    /// Reports that a sandbox of [`lease`](Self::lease) has ended.
    fn returned(&self, sandbox: &str);

    /// Completes once kernels start without waiting; returns the modules that failed to import.
    fn warmed(&self) -> BoxFuture<'_, Result<Vec<String>, RemoteRefusal>>;

    /// Returns the image's network clients.
    fn audit(&self) -> BoxFuture<'_, Result<AuditReport, RemoteRefusal>>;

    /// Returns the directory in which the client may install layers; `None` if it may not.
    fn layers(&self) -> Option<PathBuf> {
        None
    }

    /// Returns the id of a layer with these requirements, installing it if necessary.
    fn layer<'a>(&'a self, requirements: &'a [String]) -> BoxFuture<'a, Result<String, RemoteRefusal>>;
}

/// Pending orders for the kernel of each stream, by the stream's number.
type StreamOrders = Arc<Mutex<HashMap<u32, Arc<Orders>>>>;

/// A sandbox whose client has suspended it, for the next connection. Dropping it destroys the sandbox.
pub struct SuspendedRoom(Room);

impl std::fmt::Debug for SuspendedRoom {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SuspendedRoom").finish_non_exhaustive()
    }
}

/// Serves one connection until its end. Its resources are released when this completes; dropping it
/// also destroys the sandbox.
///
/// The caller must have checked that the client may have a sandbox. An error says why a connection
/// was cut; it is not an error if the client closes it.
pub async fn serve<T, E>(transport: T, host: Arc<dyn Host>, pulse: Pulse) -> Result<()>
where
    T: MuxTransport<E>,
    E: std::fmt::Display + Send + 'static,
{
    let room = |mux, signalled| Room::new(mux, Arc::clone(&host), signalled, false);
    serve_room(transport, &host, pulse, room).await.map(drop)
}

/// Serves the only client of a machine, as [`serve`] does. The client can suspend its sandbox,
/// which is then returned for its next connection.
pub async fn serve_machine<T, E>(
    transport: T,
    host: Arc<dyn Host>,
    pulse: Pulse,
    suspended: Option<SuspendedRoom>,
) -> Result<Option<SuspendedRoom>>
where
    T: MuxTransport<E>,
    E: std::fmt::Display + Send + 'static,
{
    let room = |mux, signalled| match suspended {
        Some(SuspendedRoom(room)) => room.continued(mux, Arc::clone(&host), signalled),
        None => Room::new(mux, Arc::clone(&host), signalled, true),
    };
    serve_room(transport, &host, pulse, room).await
}

async fn serve_room<T, E>(
    transport: T,
    host: &Arc<dyn Host>,
    pulse: Pulse,
    room: impl FnOnce(Arc<Mux>, StreamOrders) -> Room,
) -> Result<Option<SuspendedRoom>>
where
    T: MuxTransport<E>,
    E: std::fmt::Display + Send + 'static,
{
    let (mux, controls) = Mux::start(transport, pulse, None);
    let mux = Arc::new(mux);
    let hello = Hello {
        generation: GENERATION,
        frames: cellblock_protocol::GENERATION,
        image: host.manifest().id.clone(),
        report: host.report(),
    };
    mux.tell(&ToClient::Hello(hello)).await?;
    let (asks, mut queue) = mpsc::channel(ASKS);
    let signalled = StreamOrders::default();
    let killed = Arc::new(Notify::new());
    let mut room = room(Arc::clone(&mux), Arc::clone(&signalled));
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
        // The branch above notices that the connection is lost.
        let _ = mux.tell(&message).await;
        if room.is_suspended() {
            // The client waits for this: no descriptor of the connection may be open when the
            // machine is written.
            mux.close();
            break Ok(());
        }
    };
    if room.is_suspended() {
        return Ok(Some(SuspendedRoom(room)));
    }
    if let Err(error) = &result {
        mux.fail(cellblock_sandbox::jail::error::chain(error));
    }
    room.close().await;
    match result {
        Ok(()) if mux.is_broken() => Err(mux.lost()),
        result => result.map(|()| None),
    }
}

/// Sorts the client's messages until there are no more.
async fn hear(
    mut controls: mpsc::Receiver<Bytes>,
    asks: mpsc::Sender<(u64, RemoteRequest)>,
    signalled: &StreamOrders,
    killed: &Notify,
) -> Result<()> {
    let orders = |kernel: u32| {
        let signalled = signalled.lock();
        signalled.get(&kernel).cloned()
    };
    while let Some(json) = controls.recv().await {
        match serde_json::from_slice(&json) {
            Ok(ToServer::Ask { id, ask }) => {
                if asks.try_send((id, ask)).is_err() {
                    return Err(Error::protocol(
                        "client",
                        format!("it sent more than {ASKS} requests at a time"),
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

//! Sandboxes whose machine is written to disk, and machines that are restored from it.
//!
//! ```text
//! suspend ─> the machine's server sets its kernel aside and closes the connection
//!            save the machine ─> end it, and restore it later, once
//!                             └> let it connect again, and restore others beside it
//! ```
//!
//! What was saved belongs to this value alone: no other session can be made from it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cellblock_sandbox::backend::{
    BoxFuture, DormantSandbox, Kernel, Lease, Sandbox, SandboxBranches, Suspension,
};
use cellblock_sandbox::{Error, Result};

use crate::MADE;
use crate::link::unexpected;
use crate::local::{LocalConfig, LocalMachine, OpenedStream, SavedMachine};
use crate::sandbox::{LIFE_LIMIT, RemoteSandbox};
use crate::wire::{RemoteAnswer, RemoteRequest};

/// Maximum time for a server to close the connection of a sandbox that it has suspended.
const CLOSE_LIMIT: Duration = Duration::from_secs(20);

/// A machine without a connection.
struct DetachedMachine {
    id: String,
    local: LocalConfig,
    machine: Arc<dyn LocalMachine>,
}

/// A machine on disk.
#[derive(Debug)]
struct DormantMachine {
    id: String,
    local: LocalConfig,
    saved: Box<dyn SavedMachine>,
}

/// A sandbox that was detached, or that goes on for this reason.
type DetachResult = std::result::Result<DetachedMachine, (Lease, Error)>;

pub(super) async fn suspend(sandbox: Box<RemoteSandbox>, kernel: Kernel) -> Result<Suspension> {
    let detached = match detach(sandbox, kernel).await? {
        Ok(detached) => detached,
        Err((lease, error)) => return Ok(Suspension::Refused(Box::new(lease), error)),
    };
    match detached.machine.save().await {
        Ok(saved) => {
            let DetachedMachine { id, local, .. } = detached;
            Ok(Suspension::Dormant(Box::new(DormantMachine { id, local, saved })))
        }
        Err(error) => Ok(Suspension::Refused(Box::new(detached.attach().await?), error)),
    }
}

pub(super) async fn branch(
    sandbox: Box<RemoteSandbox>,
    kernel: Kernel,
    count: usize,
) -> Result<SandboxBranches> {
    let detached = match detach(sandbox, kernel).await? {
        Ok(detached) => detached,
        Err((own, error)) => {
            let branches = Err(error);
            return Ok(SandboxBranches { own, branches });
        }
    };
    let saved = detached.machine.save().await;
    let local = detached.local.clone();
    let own = detached.attach().await?;
    let branches = async {
        let saved = saved?;
        let mut branches = Vec::with_capacity(count);
        for _ in 0..count {
            let id = format!("remote-{}", MADE.fetch_add(1, Ordering::Relaxed));
            branches.push(restore(saved.as_ref(), true, id, local.clone()).await?);
        }
        Ok(branches)
    };
    let branches = branches.await;
    Ok(SandboxBranches { own, branches })
}

/// Lets the machine close its connection.
async fn detach(sandbox: Box<RemoteSandbox>, kernel: Kernel) -> Result<DetachResult> {
    let (Some(machine), Some(local)) = (sandbox.link.machine(), sandbox.local.clone()) else {
        let error = Error::request("suspend a sandbox of another computer");
        return Ok(Err((Lease { sandbox, kernel }, error)));
    };
    match sandbox
        .link
        .ask(RemoteRequest::Suspend {}, "suspend a sandbox", LIFE_LIMIT)
        .await
    {
        Ok(RemoteAnswer::Done {}) => {}
        Ok(_) => return Err(unexpected()),
        Err(error) if sandbox.link.lost().is_some() => return Err(error),
        Err(error) => return Ok(Err((Lease { sandbox, kernel }, error))),
    }
    let closed = tokio::time::timeout(CLOSE_LIMIT, sandbox.link.ended()).await;
    closed.map_err(|_| Error::too_late("the end of a suspended connection", CLOSE_LIMIT))?;
    Ok(Ok(DetachedMachine {
        id: sandbox.id.clone(),
        local,
        machine,
    }))
}

impl DetachedMachine {
    /// Lets the machine go on.
    async fn attach(self) -> Result<Lease> {
        let stream = self.machine.reconnect().await?;
        let opened = OpenedStream {
            stream,
            machine: Some(self.machine),
        };
        connect(opened, self.id, self.local).await
    }
}

impl DormantSandbox for DormantMachine {
    fn bytes(&self) -> u64 {
        self.saved.bytes()
    }

    fn wake(self: Box<Self>) -> BoxFuture<'static, Result<Lease>> {
        Box::pin(async move {
            let Self { id, local, saved } = *self;
            restore(saved.as_ref(), false, id, local).await
        })
    }
}

async fn restore(saved: &dyn SavedMachine, renamed: bool, id: String, local: LocalConfig) -> Result<Lease> {
    connect(saved.open(renamed).await?, id, local).await
}

async fn connect(opened: OpenedStream, id: String, local: LocalConfig) -> Result<Lease> {
    let (link, _) = local.over(opened).await?;
    let sandbox = RemoteSandbox::resume(link, id, local).await?;
    let kernel = sandbox.start_kernel().await?;
    let sandbox = Box::new(sandbox);
    Ok(Lease { sandbox, kernel })
}

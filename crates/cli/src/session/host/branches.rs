//! Forks of a hosted session: each has a place of its own, and is served by the same process.

use std::path::Path;
use std::time::Duration;

use cellblock_image::Home;
use cellblock_interpreter::session::fork::ForkOptions;
use cellblock_settings::clock;
use tokio::net::UnixListener;
use tokio_util::task::TaskTracker;

use super::answers::SessionService;
use super::{Service as _, listen, serve};
use crate::error::{Error, Result};
use crate::session::place::{HeldLock, Places, SessionPlace};
use crate::session::plan::SessionPlan;
use crate::session::toolbox::Toolbox;
use crate::session::wire::{self, HostAnswer};

/// Maximum time for the clients that requested the end of a fork to read the answer.
const FAREWELL: Duration = Duration::from_secs(1);

/// A place for a fork. It is removed when this is dropped before the fork lives there.
struct Branch {
    place: SessionPlace,
    /// The lock, until the fork holds it.
    held: Option<HeldLock>,
    plan: SessionPlan,
}

impl Branch {
    fn create(places: &Places, of: &SessionPlan) -> Result<Self> {
        let (place, held) = places.create()?;
        let out = of.out.parent().unwrap_or(Path::new("/"));
        let plan = SessionPlan {
            out: out.join(format!("session_{}", place.id())),
            started: clock::unix_seconds(),
            ..of.clone()
        };
        place.set_plan(&plan)?;
        Ok(Self {
            place,
            held: Some(held),
            plan,
        })
    }

    fn open(&self) -> Result<UnixListener> {
        if let Some(held) = &self.held {
            held.sign(rustix::process::getpid())
                .map_err(Error::process("sign the host's lock"))?;
        }
        listen(&self.place).map_err(Error::process("open the host's socket"))
    }
}

impl Drop for Branch {
    fn drop(&mut self) {
        if self.held.is_some() {
            let _ = self.place.remove();
        }
    }
}

/// Forks a session and serves its forks; returns their ids. None is left after an error.
pub(super) async fn fork<T: Toolbox>(
    service: &SessionService<T>,
    count: usize,
    reseed: bool,
) -> Result<HostAnswer> {
    ForkOptions::new(count)
        .check()
        .map_err(cellblock_interpreter::Error::from)?;
    let places = Places::of(&Home::find()?)?;
    let branches: Vec<_> = (0..count)
        .map(|_| Branch::create(&places, service.plan()))
        .collect::<Result<_>>()?;
    let listeners: Vec<_> = branches.iter().map(Branch::open).collect::<Result<_>>()?;
    let plans: Vec<_> = branches.iter().map(|branch| branch.plan.clone()).collect();
    let toolboxes = service.toolbox().fork(&plans, reseed).await?;
    let ids = branches
        .iter()
        .map(|branch| branch.place.id().to_string())
        .collect();
    for ((branch, listener), toolbox) in branches.into_iter().zip(listeners).zip(toolboxes) {
        start(branch, listener, toolbox, &service.branches());
    }
    Ok(HostAnswer::Forked { ids })
}

/// Not part of the future that forks, which would contain itself.
fn start<T: Toolbox>(mut branch: Branch, listener: UnixListener, toolbox: T, all: &TaskTracker) {
    let service = SessionService::branch(toolbox, branch.plan.clone(), all.clone());
    all.spawn(async move {
        let ended = serve(listener, service).await;
        let held = branch.held.take();
        if let Err(error) = branch.place.remove() {
            tracing::warn!(error = &error as &dyn std::error::Error, "remove a fork's place");
        }
        match ended {
            Ok(clients) => {
                for mut stream in clients {
                    let told = wire::tell(&mut stream, &HostAnswer::Stopped);
                    let _ = tokio::time::timeout(FAREWELL, told).await;
                }
            }
            Err(error) => tracing::error!(error = &error as &dyn std::error::Error, "serve a fork"),
        }
        drop(held);
    });
}

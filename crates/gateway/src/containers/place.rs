//! Containers in which the code of one response runs.
//!
//! With an explicit container all calls share it. With `auto` the first call of each step runs in
//! the response's own, which is that of the response that it goes on from where there is one;
//! further calls of a step get fresh ones.

use std::sync::Arc;

use cellblock_agent::turn::{CallResult, CallSandbox, Runner, ToolsetCall};
use cellblock_agent::wire::{ApiError, Ids, Item};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use super::make::ContainerPlan;
use super::run;
use crate::files::attach::{AttachedFile, Attachments};
use crate::state::Gateway;
use crate::state::containers::room::TOO_MANY;
use crate::state::containers::{HeldContainer, Slot};

/// Containers in which a response's code runs.
pub(super) struct Places {
    pub(super) gateway: Gateway,
    pub(super) owner: String,
    /// Options of separate containers; `None` if all calls share the existing one.
    pub(super) auto: Option<ContainerPlan>,
    /// The container that it has, once it has one.
    pub(super) main: tokio::sync::Mutex<Option<Arc<HeldContainer>>>,
    /// Those of calls beside the first.
    pub(super) others: Mutex<Vec<Arc<HeldContainer>>>,
    /// Files that each of its containers is to have.
    pub(super) attached: Mutex<Vec<AttachedFile>>,
    /// Whether files are attached to containers, rather than read to the model.
    pub(super) hosts: bool,
    /// Whether Python runs in them.
    pub(super) interpreter: bool,
    /// Paths that are listed for the model.
    pub(super) files: Vec<String>,
    /// Note about the hosts that code reaches, if it has a network.
    pub(super) network: Option<String>,
    /// Note about a sandbox that has ended.
    pub(super) lost: Option<String>,
    /// Text that announces skills to the model.
    pub(super) skills: Option<String>,
}

/// Container in which a call runs.
struct ContainerSandbox {
    gateway: Gateway,
    held: Arc<HeldContainer>,
    /// The turn that it has waited for.
    slot: Mutex<Option<Slot>>,
}

/// No container could be had.
pub(super) struct MissingContainer {
    id: String,
    why: String,
}

impl MissingContainer {
    /// Returns a place in which code cannot run, with the reason.
    pub(super) fn because(why: &impl std::fmt::Display) -> Self {
        Self {
            id: Ids::random().mint("cntr"),
            why: format!("The code was not run: {why}."),
        }
    }
}

impl Runner for Places {
    fn files(&self) -> Vec<String> {
        self.files.clone()
    }

    fn lost(&self) -> Option<String> {
        self.lost.clone()
    }

    fn skills(&self) -> Option<String> {
        self.skills.clone()
    }

    fn network(&self) -> Option<&str> {
        self.network.as_deref()
    }

    /// Code with a network never derives.
    fn derives(&self) -> bool {
        self.interpreter && self.network.is_none()
    }

    fn read(&self, items: Vec<Item>) -> BoxFuture<'_, Vec<Item>> {
        Box::pin(async move {
            let mut attachments = Attachments::new(&self.gateway, &self.owner, self.hosts);
            attachments.add(self.attached());
            let read = attachments.read_all(items).await;
            *self.attached.lock() = attachments.into_files();
            read
        })
    }

    fn place(&self, before: usize) -> BoxFuture<'_, Arc<dyn CallSandbox>> {
        Box::pin(async move {
            match self.held(before).await {
                Ok(held) => {
                    let gateway = self.gateway.clone();
                    let slot = Mutex::default();
                    Arc::new(ContainerSandbox { gateway, held, slot }) as Arc<dyn CallSandbox>
                }
                Err(error) => {
                    tracing::warn!(%error, "no container for code of a model");
                    Arc::new(MissingContainer::because(&error))
                }
            }
        })
    }
}

impl Places {
    fn attached(&self) -> Vec<AttachedFile> {
        self.attached.lock().clone()
    }

    async fn held(&self, before: usize) -> Result<Arc<HeldContainer>, ApiError> {
        let main = self.main().await?;
        let Some(auto) = self.auto.as_ref().filter(|new| before > 0 && !new.shared) else {
            return Ok(main);
        };
        // Whoever waits for room has none that another could wait for: calls beside the first have
        // it at once, or run in its container.
        let beside = Some(main.id.clone());
        let new = ContainerPlan {
            beside,
            revives: None,
            lost: None,
            ..auto.clone()
        };
        if !main.enter_now(&self.gateway, &self.owner).await {
            return Ok(main);
        }
        let Ok(held) = new.make(&self.gateway, &self.owner).await else {
            return Ok(main);
        };
        let held = Arc::new(held);
        self.others.lock().push(Arc::clone(&held));
        self.attach(&held).await?;
        Ok(held)
    }

    async fn main(&self) -> Result<Arc<HeldContainer>, ApiError> {
        let mut main = self.main.lock().await;
        if main.is_none() {
            // A container that was named is there from the start.
            let new = self.auto.clone().unwrap_or_else(ContainerPlan::of_a_response);
            let held = new.make(&self.gateway, &self.owner).await?;
            *main = Some(Arc::new(held));
        }
        let held = main
            .clone()
            .ok_or_else(|| ApiError::invalid("container", "invalid_value", "there is no container"))?;
        self.attach(&held).await?;
        Ok(held)
    }

    /// Gives a container the files of the conversation that it never had. What code has made of
    /// them since is left as it is.
    async fn attach(&self, held: &HeldContainer) -> Result<(), ApiError> {
        for file in self.attached() {
            let versions = self.gateway.records.versions_at(&held.id, &file.path).await?;
            if versions.iter().any(|version| version.sha256 == file.sha256) {
                continue;
            }
            let id = Ids::random().mint("cfile");
            run::add(
                &self.gateway,
                held,
                id,
                file.path,
                file.bytes,
                file.sha256,
                "user",
            )
            .await?;
        }
        Ok(())
    }
}

impl CallSandbox for ContainerSandbox {
    fn container(&self) -> &str {
        &self.held.id
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), CallResult>> {
        Box::pin(async move {
            let until = Instant::now() + self.gateway.options.containers.wait_timeout;
            let admitted = match self.held.enter(&self.gateway, &self.held.owner).await {
                Ok(()) => timeout_at(until, self.gateway.containers.cores.slot()).await.ok(),
                Err(error) if error.code.as_deref() == Some(TOO_MANY) => None,
                Err(error) => return Err(self.refused(&error)),
            };
            let Some(slot) = admitted else {
                // A model can delete no container and ask for no other limit.
                return Err(self
                    .refused(&"all sandboxes are in use; try again later, or answer without running code"));
            };
            *self.slot.lock() = Some(slot);
            Ok(())
        })
    }

    fn run(&self, call: ToolsetCall) -> BoxFuture<'_, CallResult> {
        let slot = self.slot.lock().take();
        Box::pin(run::run(self.gateway.clone(), Arc::clone(&self.held), call, slot))
    }
}

impl ContainerSandbox {
    fn refused(&self, why: &dyn std::fmt::Display) -> CallResult {
        tracing::warn!(container = self.held.id, %why, "code of a model is not run");
        CallResult::refused(format!("The code was not run: {why}."))
    }
}

impl CallSandbox for MissingContainer {
    fn container(&self) -> &str {
        &self.id
    }

    fn run(&self, _call: ToolsetCall) -> BoxFuture<'_, CallResult> {
        let ran = CallResult::refused(self.why.clone());
        Box::pin(async move { ran })
    }
}

//! State that the routes share: kernels, logins, and the documents that kernels belong to.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use cellblock_interpreter::hosting::{HostingLimits, Owner, ResidentGuard};
use parking_lot::{Mutex, MutexGuard};

use super::caller::Logins;
use super::kernel::{Kernel, KernelSpec};
use super::options::JupyterOptions;
use super::problem::Problem;
use super::queue;
use super::sessions::Document;
use super::wire::now;
use crate::host::{DialectHost, SessionWish};
use crate::session::{DialectSession, DialectSessions};
use crate::uuid::uuid;

/// The dialect. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Jupyter {
    pub(super) host: DialectHost,
    pub(super) options: Arc<JupyterOptions>,
    pub(super) kernels: DialectSessions<Kernel>,
    pub(super) logins: Arc<Logins>,
    started: Arc<str>,
    documents: Arc<Mutex<BTreeMap<String, Document>>>,
}

/// A kernel that is held.
pub(super) type HeldKernel = ResidentGuard<DialectSession<Kernel>>;

impl Jupyter {
    pub(super) fn new(host: &DialectHost, options: &JupyterOptions) -> Self {
        let limits = HostingLimits {
            per_owner: options.max_per_key,
            ..HostingLimits::default()
        };
        Self {
            host: host.clone(),
            options: Arc::new(options.clone()),
            kernels: host.sessions(limits),
            logins: Arc::default(),
            started: now().into(),
            documents: Arc::default(),
        }
    }

    /// Returns the time at which the server was started.
    pub(super) fn started(&self) -> &str {
        &self.started
    }

    /// Makes a kernel. Its sandbox is made by the first message that needs it.
    pub(super) async fn start(
        &self,
        owner: &Owner,
        spec: &'static KernelSpec,
    ) -> Result<HeldKernel, Problem> {
        let id = uuid();
        let (queue, jobs) = queue::channel();
        let wish = SessionWish {
            id: id.clone(),
            idle: self.options.idle_timeout,
            network: self.options.network,
            prelude: ["analysis", "documents", "notebook"].map(str::to_owned).to_vec(),
            ..SessionWish::default()
        };
        let kernel = Kernel::new(spec, queue);
        let held = self.host.open(&self.kernels, owner, wish, kernel).await?;
        // It ends with the kernel, which has the other end of its queue.
        self.host.tasks.spawn(jobs.serve(self.host.clone()));
        Ok(held)
    }

    /// Holds a caller's kernel.
    pub(super) fn kernel(&self, owner: &Owner, id: &str) -> Result<HeldKernel, Problem> {
        let held = self.kernels.hold(owner.name(), id);
        held.ok_or_else(|| {
            Problem::missing(format!(
                "there is no kernel `{id}`: it was deleted or has expired"
            ))
        })
    }

    /// Ends a kernel.
    pub(super) async fn end(&self, held: &HeldKernel) -> Result<(), Problem> {
        self.kernels.close(held).await?;
        Ok(())
    }

    pub(super) fn documents(&self) -> MutexGuard<'_, BTreeMap<String, Document>> {
        self.documents.lock()
    }

    /// The kernel that a client names; Python by default.
    pub(super) fn spec(name: Option<&str>) -> Result<&'static KernelSpec, Problem> {
        let name = name.filter(|name| !name.is_empty());
        KernelSpec::find(name).ok_or_else(|| {
            let message = format!(
                "there is no kernel `{}`; use one of {}",
                name.unwrap_or_default(),
                KernelSpec::names()
            );
            Problem::new(StatusCode::NOT_FOUND, message)
        })
    }
}

//! What the sessions of an interpreter share: the backend with its pool, and the store.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cellblock_artifact::Store;
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Backend, Sandbox};
use cellblock_sandbox::pool::{Lease, Pool, PoolConfig, create};
use metrics::{gauge, histogram};
use tokio::sync::OnceCell;

use crate::base::Base;
use crate::connector::Memo;
use crate::error::{Error, Result};
use crate::output::Decoding;

/// What sessions share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) limits: Limits,
    pub(crate) store: Store,
    pub(crate) decoding: Decoding,
    pub(crate) image_id: String,
    pub(crate) base: Box<dyn Base>,
    pub(crate) pool: Pool,
    in_use: Mutex<BTreeSet<String>>,
    taken: AtomicU64,
    audit: OnceCell<cellblock_image::AuditReport>,
    /// Answers of connectors that all sessions of an owner share.
    pub(crate) answers: Arc<Memo>,
}

impl Shared {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        base: Box<dyn Base>,
        limits: Limits,
        pool: PoolConfig,
        store: Store,
    ) -> Self {
        Self {
            pool: Pool::start(Arc::clone(&backend), limits.clone(), pool),
            backend,
            limits,
            decoding: Decoding::new(store.clone()),
            store,
            image_id: base.manifest().id.clone(),
            base,
            in_use: Mutex::default(),
            taken: AtomicU64::new(0),
            audit: OnceCell::new(),
            answers: Arc::default(),
        }
    }

    /// A sandbox with a running kernel.
    pub(crate) async fn lease(&self, limits: &Limits, pooled: bool) -> Result<Lease> {
        let image = self.base.manifest();
        if let Some(most) = image.policy.max_network.filter(|most| limits.network > *most) {
            return Err(Error::Argument {
                name: "network",
                missing: false,
                reason: format!(
                    "it is `{}`, and the image `{}` allows `{most}` at most (`policy.max_network` in its specification)",
                    limits.network, image.name
                ),
            });
        }
        let waiting = Waiting::begin();
        let lease = if pooled {
            self.pool.acquire(limits).await?
        } else {
            create(self.backend.as_ref(), limits).await?
        };
        waiting.over();
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.in_use().insert(lease.sandbox.id().to_owned());
        Ok(lease)
    }

    /// Makes sure that the image holds no network client, whatever its own policy allows: the first of the four layers that keep a
    /// derivation from fetching.
    pub(crate) async fn audited(&self) -> Result<()> {
        let report = self.audit.get_or_try_init(|| self.base.audit()).await?;
        if report.findings.is_empty() {
            return Ok(());
        }
        let found: BTreeSet<_> = report
            .findings
            .iter()
            .map(|found| format!("{} ({}, at {})", found.client, found.reason, found.path))
            .collect();
        Err(Error::Clients {
            image: self.base.manifest().name.clone(),
            found: found.into_iter().collect::<Vec<_>>().join(", "),
        })
    }

    /// A session has given a sandbox back.
    pub(crate) fn returned(&self, sandbox: &str) {
        self.in_use().remove(sandbox);
    }

    /// How many sandboxes sessions have taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// The ids of the sandboxes that sessions have.
    pub(crate) fn in_use(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of a layer with these requirements, installed if need be.
    pub(crate) async fn layer(&self, requirements: &[String]) -> Result<String> {
        self.base.layer(requirements).await
    }

    /// Makes a layer visible in a sandbox.
    pub(crate) async fn show_layer(&self, sandbox: &dyn Sandbox, id: &str) -> Result<()> {
        if let Some(directory) = self.base.layer_directory(id) {
            sandbox.show_layer(id, &directory).await?;
        }
        Ok(())
    }
}

/// A wait for a sandbox.
#[derive(Debug)]
struct Waiting(Instant);

impl Waiting {
    fn begin() -> Self {
        gauge!("cellblock_sandboxes_awaited").increment(1.0);
        Self(Instant::now())
    }

    /// There is one.
    fn over(self) {
        histogram!("cellblock_sandbox_seconds").record(self.0.elapsed());
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        gauge!("cellblock_sandboxes_awaited").decrement(1.0);
    }
}

//! State that the sessions of an interpreter share: the backend with its pool, and the store.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use cellblock_artifact::Store;
use cellblock_image::layer::RequirementOptions;
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Backend, Sandbox};
use cellblock_sandbox::pool::{Lease, Pool, PoolConfig, create};
use metrics::{gauge, histogram};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OnceCell;

use crate::base::{Base, HeldLayer};
use crate::connector::{FetchAllowance, Memo};
use crate::error::{Error, Result};
use crate::output::OutputDecoder;

/// State that sessions share.
#[derive(Debug)]
pub(crate) struct InterpreterState {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) limits: Limits,
    pub(crate) store: Store,
    pub(crate) decoding: OutputDecoder,
    pub(crate) image_id: String,
    pub(crate) base: Box<dyn Base>,
    pub(crate) pool: Pool,
    in_use: Mutex<BTreeSet<String>>,
    taken: AtomicU64,
    audit: OnceCell<cellblock_image::AuditReport>,
    /// Answers of connectors that all sessions of an owner share.
    pub(crate) answers: Arc<Memo>,
    requirements: OnceLock<RequirementOptions>,
    /// Layers that sandboxes of other processes use.
    lent: Mutex<Vec<HeldLayer>>,
}

impl InterpreterState {
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
            decoding: OutputDecoder::new(store.clone()),
            store,
            image_id: base.manifest().id.clone(),
            base,
            in_use: Mutex::default(),
            taken: AtomicU64::new(0),
            audit: OnceCell::new(),
            answers: Arc::default(),
            requirements: OnceLock::new(),
            lent: Mutex::default(),
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
                    "it is `{}`, and the image `{}` allows `{most}` at most (`policy.max_network` \
                     in its specification)",
                    limits.network, image.name
                ),
            });
        }
        if let Some((name, reason)) = limits.below_minimum() {
            return Err(Error::Argument {
                name,
                missing: false,
                reason,
            });
        }
        let waiting = SandboxWait::begin();
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

    /// Makes sure that the image holds no network client, whatever its own policy allows: the first
    /// of the four layers that keep a derivation from fetching.
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
        let mut in_use = self.in_use();
        in_use.remove(sandbox);
        if in_use.is_empty() {
            self.lent.lock().clear();
        }
    }

    /// Returns the number of sandboxes that sessions have taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// The ids of the sandboxes that sessions have.
    pub(crate) fn in_use(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.in_use.lock()
    }

    /// Limits on the packages that cells may require.
    pub(crate) fn requirements(&self) -> &RequirementOptions {
        self.requirements.get_or_init(RequirementOptions::default)
    }

    /// Sets them, unless they were used before.
    pub(crate) fn limit_requirements(&self, options: RequirementOptions) {
        let _ = self.requirements.set(options);
    }

    /// A layer with these requirements, installed if need be.
    pub(crate) async fn layer(
        &self,
        requirements: &[String],
        allowance: Option<&dyn FetchAllowance>,
    ) -> Result<HeldLayer> {
        let options = self.requirements();
        options.check(requirements)?;
        self.base.layer(requirements, options, allowance).await
    }

    #[cfg(feature = "remote")]
    /// A layer for the sandbox of another process, which does not say how long it uses it: until no
    /// sandbox is in use.
    pub(crate) async fn lend_layer(&self, requirements: &[String]) -> Result<String> {
        let layer = self.layer(requirements, None).await?;
        let id = layer.to_string();
        let mut lent = self.lent.lock();
        if !lent.contains(&layer) {
            lent.push(layer);
        }
        Ok(id)
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
struct SandboxWait(Instant);

impl SandboxWait {
    fn begin() -> Self {
        gauge!("cellblock_sandboxes_awaited").increment(1.0);
        Self(Instant::now())
    }

    /// There is one.
    fn over(self) {
        histogram!("cellblock_sandbox_seconds").record(self.0.elapsed());
    }
}

impl Drop for SandboxWait {
    fn drop(&mut self) {
        gauge!("cellblock_sandboxes_awaited").decrement(1.0);
    }
}

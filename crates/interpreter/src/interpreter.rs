//! The interpreter: an image, a backend with its pool, and a store, from which sessions are created.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cellblock_artifact::Store;
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::Backend;
use cellblock_sandbox::jail::protection::Report;
use cellblock_sandbox::pool::{Lease, Pool, PoolConfig, create};

use tokio::sync::OnceCell;

use crate::base::Base;
use crate::builder::InterpreterBuilder;
use crate::error::Result;
use crate::output::Decoding;
use crate::session::{Session, SessionOptions, Waiting};

/// Makes sessions. Clones share it; dropping the last one ends every sandbox that its sessions do not hold.
#[derive(Clone, Debug)]
pub struct Interpreter {
    shared: Arc<Shared>,
}

/// What sessions share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) limits: Limits,
    pub(crate) store: Store,
    pub(crate) decoding: Decoding,
    pub(crate) image_id: String,
    pub(crate) base: Box<dyn Base>,
    pool: Pool,
    in_use: Mutex<BTreeSet<String>>,
    taken: AtomicU64,
    audit: OnceCell<cellblock_image::AuditReport>,
}

impl Interpreter {
    /// Returns a builder of an interpreter on this machine, by default with the default image.
    ///
    /// ```no_run
    /// # async fn example() -> cellblock_interpreter::Result<()> {
    /// use cellblock_interpreter::Interpreter;
    /// use cellblock_interpreter::limits::Limits;
    ///
    /// let interpreter = Interpreter::builder()
    ///     .limits(Limits { memory_bytes: 512 << 20, ..Limits::default() })
    ///     .pool(4)
    ///     .build()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> InterpreterBuilder {
        InterpreterBuilder::default()
    }

    /// Starts with the sandboxes of a backend, whatever they start from.
    pub(crate) fn over(
        backend: Arc<dyn Backend>,
        base: Box<dyn Base>,
        limits: Limits,
        pool: PoolConfig,
        store: Store,
    ) -> Self {
        let pool = Pool::start(Arc::clone(&backend), limits.clone(), pool);
        let shared = Shared {
            backend,
            limits,
            decoding: Decoding::new(store.clone()),
            store,
            image_id: base.manifest().id.clone(),
            base,
            pool,
            in_use: Mutex::default(),
            taken: AtomicU64::new(0),
            audit: OnceCell::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// What sessions share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Completes once kernels start without waiting for the image's libraries.
    pub async fn warmed(&self) -> Result<()> {
        Ok(self.shared.backend.warmed().await?)
    }

    /// Modules of the image that could not be imported, with reasons; empty before [`warmed`](Self::warmed).
    pub fn failed_modules(&self) -> Vec<String> {
        self.shared.base.failed_modules()
    }

    /// The state of every protection.
    pub fn report(&self) -> Report {
        self.shared.backend.report()
    }

    /// How many sandboxes are ready to be taken.
    pub fn ready_sandboxes(&self) -> usize {
        self.shared.pool.ready()
    }

    /// The ids of the sandboxes that sessions have.
    pub fn sandboxes_in_use(&self) -> BTreeSet<String> {
        self.shared.in_use().clone()
    }

    /// How many sandboxes sessions have taken so far.
    pub fn sandboxes_taken(&self) -> u64 {
        self.shared.taken.load(Ordering::Relaxed)
    }

    /// The limits of sandboxes and cells, where a session has none of its own.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// The version of Python in sandboxes, such as `3.13.5`.
    pub fn python_version(&self) -> &str {
        &self.shared.base.manifest().python
    }

    /// The store of artifacts.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// A new session. Its sandbox is made when it is first needed.
    pub fn session(&self, options: SessionOptions) -> Session {
        Session::start(Arc::clone(&self.shared), options)
    }
}

impl Shared {
    /// A sandbox with a running kernel.
    pub(crate) async fn lease(&self, limits: &Limits, pooled: bool) -> Result<Lease> {
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
        Err(crate::Error::Clients {
            image: self.base.manifest().name.clone(),
            found: found.into_iter().collect::<Vec<_>>().join(", "),
        })
    }

    /// A session has given a sandbox back.
    pub(crate) fn returned(&self, sandbox: &str) {
        self.in_use().remove(sandbox);
    }

    fn in_use(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of a layer with these requirements, installed if need be.
    pub(crate) async fn layer(&self, requirements: &[String]) -> Result<String> {
        self.base.layer(requirements).await
    }
}

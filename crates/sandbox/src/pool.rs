//! Warm sandboxes: rooms with a kernel that waits for its first cell.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cellblock_settings::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::backend::{Backend, Kernel, Sandbox};
use crate::error::{Result, Retry, SandboxErrorKind};
use crate::limits::Limits;

/// Sandboxes kept ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PoolConfig {
    /// Number of sandboxes kept ready; 0 creates each one on demand.
    pub ready: usize,
    /// Maximum time that a request waits for a sandbox.
    #[serde(with = "Time")]
    pub acquire_timeout: Duration,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            ready: 2,
            acquire_timeout: Duration::from_secs(30),
        }
    }
}

impl From<usize> for PoolConfig {
    fn from(ready: usize) -> Self {
        Self {
            ready,
            ..Self::default()
        }
    }
}

/// A sandbox with a running kernel, for one user. Dropping it destroys it: nothing returns to the pool.
#[derive(Debug)]
pub struct Lease {
    /// The sandbox.
    pub sandbox: Box<dyn Sandbox>,
    /// Its kernel.
    pub kernel: Kernel,
}

/// Keeps sandboxes ready and refills itself.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    refill: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    backend: Arc<dyn Backend>,
    limits: Limits,
    config: PoolConfig,
    ready: Mutex<VecDeque<Lease>>,
    taken: Notify,
}

/// Maximum number of attempts to create a caller's sandbox.
const TRIES: u32 = 3;
/// Pause between attempts: the launcher notices a dead template immediately.
const TRY_PAUSE: Duration = Duration::from_millis(50);
/// Delay of a refill: the sandbox that was just taken runs its first cell now and should not have
/// to share the machine.
const REFILL_DELAY: Duration = Duration::from_millis(15);
/// Pause after a failed refill: a machine that lacks a resource needs time, not more attempts.
const REFILL_PAUSE: Duration = Duration::from_millis(500);

impl Pool {
    /// Starts filling a pool of sandboxes with these limits.
    pub fn start(backend: Arc<dyn Backend>, limits: Limits, config: PoolConfig) -> Self {
        let shared = Arc::new(Shared {
            backend,
            limits,
            config,
            ready: Mutex::new(VecDeque::new()),
            taken: Notify::new(),
        });
        let refill = tokio::spawn(refill(Arc::clone(&shared)));
        Self { shared, refill }
    }

    /// Takes a ready sandbox, or creates one if none is ready or `limits` set up another sandbox than the
    /// pool's; limits of cells do not matter.
    pub async fn acquire(&self, limits: &Limits) -> Result<Lease> {
        if limits.is_same_room(&self.shared.limits) {
            while let Some(lease) = self.shared.pop() {
                self.shared.taken.notify_one();
                if lease.sandbox.lost().is_none() && lease.kernel.end.borrow().is_none() {
                    return Ok(lease);
                }
            }
        }
        let limit = self.shared.config.acquire_timeout;
        tokio::time::timeout(limit, create(self.shared.backend.as_ref(), limits))
            .await
            .map_err(|_| SandboxErrorKind::TooLate {
                what: "a sandbox",
                limit,
            })?
    }

    /// Keeps the ready sandboxes and makes no more.
    pub fn stop_refilling(&self) {
        self.refill.abort();
    }

    /// Returns the number of ready sandboxes.
    pub fn ready(&self) -> usize {
        self.shared
            .ready
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.refill.abort();
    }
}

impl Shared {
    fn pop(&self) -> Option<Lease> {
        self.ready
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }
}

/// Creates a sandbox and starts its kernel. Retries if the template or launcher died meanwhile: its
/// replacement is being started.
pub async fn create(backend: &dyn Backend, limits: &Limits) -> Result<Lease> {
    for _ in 1..TRIES {
        match create_once(backend, limits).await {
            Err(error) if error.retry() == Retry::Fresh => {
                tracing::info!(
                    error = &error as &dyn std::error::Error,
                    "could not create a sandbox; trying again"
                );
                tokio::time::sleep(TRY_PAUSE).await;
            }
            result => return result,
        }
    }
    create_once(backend, limits).await
}

async fn create_once(backend: &dyn Backend, limits: &Limits) -> Result<Lease> {
    let sandbox = backend.create(limits).await?;
    let kernel = sandbox.start_kernel().await?;
    Ok(Lease { sandbox, kernel })
}

async fn refill(shared: Arc<Shared>) {
    loop {
        let missing = {
            let ready = shared.ready.lock().unwrap_or_else(PoisonError::into_inner);
            shared.config.ready.saturating_sub(ready.len())
        };
        if missing == 0 {
            shared.taken.notified().await;
            tokio::time::sleep(REFILL_DELAY).await;
            continue;
        }
        match create(shared.backend.as_ref(), &shared.limits).await {
            Ok(lease) => shared
                .ready
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push_back(lease),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "could not refill the pool"
                );
                tokio::time::sleep(REFILL_PAUSE).await;
            }
        }
    }
}

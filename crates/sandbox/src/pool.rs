//! Warm sandboxes: rooms with a kernel that waits for its first cell. The pool has a line of sandboxes
//! for each network policy that was requested.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cellblock_protocol::{FromKernel, ToKernel};
use cellblock_settings::Time;
use parking_lot::{Mutex, MutexGuard};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub use crate::backend::Lease;
use crate::backend::{Backend, BackendKind, Kernel};
use crate::channel::write_frame;
use crate::error::{Error, Result, Retry, SandboxErrorKind};
use crate::limits::Limits;
use crate::shortage::Shortage;

/// Sandboxes kept ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PoolConfig {
    /// Number of sandboxes kept ready, for each network policy in use; 0 creates each one on demand.
    pub ready: usize,
    /// Maximum time that a request waits for a sandbox; while the image is still being imported, it
    /// waits longer.
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

/// Keeps sandboxes ready and refills itself.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<PoolState>,
    refill: JoinHandle<()>,
}

#[derive(Debug)]
struct PoolState {
    backend: Arc<dyn Backend>,
    config: PoolConfig,
    lines: Mutex<Vec<ReadySandboxes>>,
    taken: Notify,
}

/// Ready sandboxes with the same limits.
#[derive(Debug)]
struct ReadySandboxes {
    limits: Limits,
    ready: VecDeque<Lease>,
}

/// Maximum number of attempts to create a caller's sandbox.
const TRIES: u32 = 3;
/// Pause between attempts: the launcher notices a dead template immediately.
const TRY_PAUSE: Duration = Duration::from_millis(50);
/// Maximum time that a request waits for the first import of the image, in addition to its own limit.
const IMPORT_LIMIT: Duration = Duration::from_mins(3);
/// Maximum time for a backend to answer that it has imported its image.
const WARM_ANSWER: Duration = Duration::from_millis(250);
/// Delay of a refill: the sandbox that was just taken runs its first cell now and should not have
/// to share the machine.
const REFILL_DELAY: Duration = Duration::from_millis(15);
/// Pause after a failed refill: a machine that lacks a resource needs time, not more attempts.
const REFILL_PAUSE: Duration = Duration::from_millis(500);

impl Pool {
    /// Starts filling a pool of sandboxes with these limits.
    pub fn start(backend: Arc<dyn Backend>, limits: Limits, config: PoolConfig) -> Self {
        let shared = Arc::new(PoolState {
            backend,
            config,
            lines: Mutex::new(vec![ReadySandboxes {
                limits,
                ready: VecDeque::new(),
            }]),
            taken: Notify::new(),
        });
        let refill = tokio::spawn(refill(Arc::clone(&shared)));
        Self { shared, refill }
    }

    /// Takes a ready sandbox, or creates one if none is ready or `limits` set up another sandbox than the
    /// pool's; limits of cells do not matter. The first request with another network policy makes the
    /// pool keep sandboxes for that policy, too.
    pub async fn acquire(&self, limits: &Limits) -> Result<Lease> {
        while let Some(lease) = self.shared.pop(limits) {
            self.shared.taken.notify_one();
            if lease.sandbox.lost().is_none() && lease.kernel.end.borrow().is_none() {
                return Ok(lease);
            }
        }
        if self.shared.open_line(limits) {
            self.shared.taken.notify_one();
        }
        create_in_time(
            self.shared.backend.as_ref(),
            limits,
            self.shared.config.acquire_timeout,
        )
        .await
    }

    /// Keeps the ready sandboxes and makes no more.
    pub fn stop_refilling(&self) {
        self.refill.abort();
    }

    /// Returns the number of ready sandboxes.
    pub fn ready(&self) -> usize {
        self.shared.lines().iter().map(|line| line.ready.len()).sum()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.refill.abort();
    }
}

impl PoolState {
    fn lines(&self) -> MutexGuard<'_, Vec<ReadySandboxes>> {
        self.lines.lock()
    }

    fn pop(&self, limits: &Limits) -> Option<Lease> {
        let mut lines = self.lines();
        let line = lines.iter_mut().find(|line| line.limits.is_same_room(limits))?;
        line.ready.pop_front()
    }

    /// Adds a line for limits that differ from the pool's only in their network.
    fn open_line(&self, limits: &Limits) -> bool {
        let mut lines = self.lines();
        let wanted = Limits {
            network: limits.network,
            ..lines[0].limits.clone()
        };
        if !wanted.is_same_room(limits) || lines.iter().any(|line| line.limits.is_same_room(limits)) {
            return false;
        }
        lines.push(ReadySandboxes {
            limits: wanted,
            ready: VecDeque::new(),
        });
        true
    }

    /// Returns the limits of a line that lacks sandboxes.
    fn missing(&self) -> Option<Limits> {
        let lines = self.lines();
        let line = lines.iter().find(|line| line.ready.len() < self.config.ready)?;
        Some(line.limits.clone())
    }

    fn push(&self, limits: &Limits, lease: Lease) {
        let mut lines = self.lines();
        if let Some(line) = lines.iter_mut().find(|line| line.limits.is_same_room(limits)) {
            line.ready.push_back(lease);
        }
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

/// Creates a sandbox within a limit that starts anew once the image's libraries have been imported.
async fn create_in_time(backend: &dyn Backend, limits: &Limits, limit: Duration) -> Result<Lease> {
    let late = |limit, shortage| SandboxErrorKind::NoRoom { limit, shortage };
    let mut creating = std::pin::pin!(create(backend, limits));
    if let Ok(created) = tokio::time::timeout(limit, &mut creating).await {
        return created;
    }
    let mut importing = std::pin::pin!(tokio::time::timeout(IMPORT_LIMIT, backend.warmed()));
    // A backend whose image is there says so at once.
    if tokio::time::timeout(WARM_ANSWER, &mut importing).await.is_ok() {
        return Err(late(limit, Shortage::now()).into());
    }
    tracing::info!("the image is still being imported; a request waits for it");
    tokio::select! {
        created = &mut creating => return created,
        imported = importing => match imported {
            // A failure is that of the sandbox, too, which says more.
            Ok(Ok(()) | Err(_)) => {}
            Err(_) => return Err(late(limit + IMPORT_LIMIT, Shortage::Import).into()),
        },
    }
    match tokio::time::timeout(limit, creating).await {
        Ok(created) => created,
        Err(_) => Err(late(limit, Shortage::now()).into()),
    }
}

async fn create_once(backend: &dyn Backend, limits: &Limits) -> Result<Lease> {
    let sandbox = backend.create(limits).await?;
    let kernel = sandbox.start_kernel().await?;
    Ok(Lease { sandbox, kernel })
}

async fn refill(shared: Arc<PoolState>) {
    loop {
        let Some(limits) = shared.missing() else {
            shared.taken.notified().await;
            tokio::time::sleep(REFILL_DELAY).await;
            continue;
        };
        match create_ready(&shared, &limits).await {
            Ok(lease) => shared.push(&limits, lease),
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

/// Creates a sandbox whose first request will not take longer than others.
async fn create_ready(shared: &PoolState, limits: &Limits) -> Result<Lease> {
    let backend = shared.backend.as_ref();
    let mut lease = create(backend, limits).await?;
    if backend.name().parse().is_ok_and(BackendKind::wakes_slowly) {
        let limit = shared.config.acquire_timeout;
        let answered = tokio::time::timeout(limit, ask_once(&mut lease.kernel)).await;
        answered.map_err(|_| SandboxErrorKind::TooLate {
            what: "the answer of a new kernel",
            limit,
        })??;
    }
    Ok(lease)
}

/// Sends a request for which a kernel runs no code, and waits for its answer.
async fn ask_once(kernel: &mut Kernel) -> Result<()> {
    // Sessions count their requests from 1.
    const NUMBER: u64 = 0;
    write_frame(&mut kernel.writer, &ToKernel::Variables { cell: NUMBER }, &[]).await?;
    while let Some(frame) = kernel.frames.next().await? {
        if matches!(frame.message, FromKernel::Done { cell: NUMBER, .. }) {
            return Ok(());
        }
    }
    Err(Error::gone("new kernel"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use cellblock_jail::protection::Report;
    use serde_json::json;
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;
    use tokio::sync::watch;

    use super::*;
    use crate::backend::{BoxFuture, KernelHold, Sandbox};
    use crate::channel::FrameReader;
    use crate::incoming::split;

    /// Returns a kernel that is nothing but its channels, and its end of the main one.
    fn kernel() -> (Kernel, UnixStream) {
        let (host, own) = UnixStream::pair().unwrap();
        let hold = KernelHold::Here {
            pidfd: None,
            spare: UnixStream::pair().unwrap().0,
        };
        let (_, out) = pipe::pipe().unwrap();
        let (_, err) = pipe::pipe().unwrap();
        let (_, end) = watch::channel(None);
        (Kernel::new(host, out, err, end, hold).unwrap(), own)
    }

    /// A backend that refuses sandboxes once it has imported its image.
    #[derive(Debug, Default)]
    struct ImportingBackend {
        waits: AtomicBool,
        imported: Notify,
    }

    impl Backend for ImportingBackend {
        fn name(&self) -> &'static str {
            "process"
        }

        fn report(&self) -> Report {
            Report::default()
        }

        fn create<'a>(&'a self, _: &'a Limits) -> BoxFuture<'a, Result<Box<dyn Sandbox>>> {
            Box::pin(async {
                self.imported.notified().await;
                Err(Error::request("imported"))
            })
        }

        fn warmed(&self) -> BoxFuture<'_, Result<()>> {
            self.waits.store(true, Ordering::Relaxed);
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_longer_while_the_image_is_being_imported() {
        let (backend, limits) = (Arc::new(ImportingBackend::default()), Limits::default());
        let limit = Duration::from_secs(30);
        let started = tokio::time::Instant::now();
        let waiting = create_in_time(backend.as_ref(), &limits, limit);
        let import = async {
            tokio::time::sleep(2 * limit).await;
            assert!(backend.waits.load(Ordering::Relaxed));
            backend.imported.notify_one();
        };
        let (created, ()) = tokio::join!(waiting, import);
        assert_eq!(created.unwrap_err().to_string(), "imported");
        assert_eq!(started.elapsed(), 2 * limit);

        let error = create_in_time(backend.as_ref(), &limits, limit)
            .await
            .unwrap_err();
        assert_eq!(error.shortage(), Some(Shortage::Import));
        let waited = started.elapsed().checked_sub(2 * limit).unwrap();
        assert_eq!(waited, limit + IMPORT_LIMIT);
    }

    #[tokio::test]
    async fn a_new_kernel_answers_a_request_that_no_session_can_have_sent_and_nothing_of_it_is_left() {
        let (mut kernel, own) = kernel();
        let answering = async {
            let (read, mut writer) = split(own).unwrap();
            let mut requests = FrameReader::<_, ToKernel>::new(read, "host");
            let asked = requests.next().await.unwrap().unwrap().message;
            assert!(matches!(asked, ToKernel::Variables { cell: 0 }), "{asked:?}");
            for cell in 0..2 {
                let done = json!({"type": "done", "cell": cell, "outcome": "completed"});
                let done: FromKernel = serde_json::from_value(done).unwrap();
                write_frame(&mut writer, &done, &[]).await.unwrap();
            }
            (requests, writer)
        };
        let (asked, _open) = tokio::join!(ask_once(&mut kernel), answering);
        asked.unwrap();
        let next = kernel.frames.next().await.unwrap().unwrap().message;
        assert!(matches!(next, FromKernel::Done { cell: 1, .. }), "{next:?}");
    }

    #[tokio::test]
    async fn a_new_kernel_that_ends_before_it_answers_is_an_error() {
        let (mut kernel, own) = kernel();
        drop(own);
        assert!(ask_once(&mut kernel).await.is_err());
    }
}

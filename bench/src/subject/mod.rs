//! Cellblock as it is measured: through its Rust API, with the default image and all of its
//! libraries imported.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cellblock_artifact::Store;
use cellblock_image::{DEFAULT_IMAGE, ImageStore, OpenImage, Progress, Sink};
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Cell, Execution, Interpreter, Session};
use tokio::task::JoinSet;

use crate::note;
use crate::programs::SUM;

pub(crate) mod cells;
pub(crate) mod connector;
pub(crate) mod derive;
pub(crate) mod live;
pub(crate) mod memory;
pub(crate) mod standby;
pub(crate) mod workbench;

/// Sandboxes kept ready while measuring.
const READY: usize = 2;
/// Maximum time for filling the pool.
const FILL_LIMIT: Duration = Duration::from_secs(30);

/// A running interpreter, which clones share.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    interpreter: Interpreter,
    pub(crate) image: OpenImage,
}

impl Subject {
    pub(crate) async fn start() -> Result<Self> {
        let images = ImageStore::find()?;
        let progress = Sink::new(|progress| {
            if let Progress::Stage { .. } = progress {
                note(&format!("{progress:?}"));
            }
        });
        let image = images.open(DEFAULT_IMAGE, progress).await;
        let image = image.context("open the default image")?;
        let store = Store::local(images.home().root().join("bench-artifacts"))?;
        let interpreter = Interpreter::builder()
            .image(images.resolve(image.id())?)
            .pool(READY)
            .store(store)
            .build()
            .await?;
        interpreter.warmed().await?;
        let failed = interpreter.failed_modules();
        ensure!(failed.is_empty(), "the template is not whole: {failed:?}");
        Ok(Self { interpreter, image })
    }

    fn session(&self, pooled: bool) -> Session {
        self.session_with(pooled, |_| {})
    }

    fn session_with(&self, pooled: bool, change: impl FnOnce(&mut SessionOptions)) -> Session {
        let mut options = SessionOptions {
            pooled,
            ..SessionOptions::default()
        };
        change(&mut options);
        self.interpreter.session(options)
    }

    /// A session from the pool that has run a cell, with the pool full again.
    async fn warm_session(&self) -> Result<Session> {
        let session = self.session(true);
        run(&session, SUM).await?;
        self.settle().await?;
        Ok(session)
    }

    /// Waits until the pool is full, so that filling it up is not measured along with what comes next.
    async fn settle(&self) -> Result<()> {
        let started = Instant::now();
        while self.interpreter.ready_sandboxes() < READY {
            ensure!(started.elapsed() < FILL_LIMIT, "the pool does not fill up");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // The last one is ready, and does what kernels do while nobody asks them for anything, such
        // as keeping a copy.
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok(())
    }

    /// Opens sessions, which are closed also after a failure, and waits for the pool.
    async fn with_sessions(&self, work: impl AsyncFnOnce(&mut Vec<Session>) -> Result<()>) -> Result<()> {
        let mut sessions = Vec::new();
        let worked = work(&mut sessions).await;
        for session in &sessions {
            session.close().await?;
        }
        worked?;
        self.settle().await
    }

    /// Removes what a cell had stored, so that equal bytes are written again by the next.
    async fn forget(&self, execution: &Execution) -> Result<()> {
        let shown = execution.outputs.iter().flat_map(|output| output.artifacts());
        let calls = execution.fetches.iter();
        let fetched = calls.filter_map(|call| call.artifact.as_ref());
        for artifact in shown.chain(fetched) {
            self.interpreter.store().remove(artifact.sha256).await?;
        }
        Ok(())
    }
}

/// Returns a result with the time that it took.
async fn timed<T, E: Into<anyhow::Error>>(work: impl Future<Output = Result<T, E>>) -> Result<(T, Duration)> {
    let started = Instant::now();
    let result = work.await;
    let elapsed = started.elapsed();
    Ok((result.map_err(Into::into)?, elapsed))
}

/// Runs a cell, which has to complete.
async fn run(session: &Session, cell: impl Into<Cell>) -> Result<(Execution, Duration)> {
    let (execution, elapsed) = timed(session.execute(cell)).await?;
    completed(&execution)?;
    Ok((execution, elapsed))
}

/// Rejects an execution that did not do all that it should have.
fn completed(execution: &Execution) -> Result<()> {
    ensure!(
        execution.outcome == Outcome::Completed,
        "the cell ended as {}: {}",
        execution.outcome.name(),
        execution.note.as_deref().unwrap_or("no note")
    );
    Ok(())
}

/// Runs so many tasks at once, none of which may fail.
pub(crate) async fn all_at_once<T, F>(count: usize, what: &str, task: impl Fn() -> F) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let mut tasks: JoinSet<_> = (0..count).map(|_| task()).collect();
    let mut results = Vec::new();
    while let Some(result) = tasks.join_next().await {
        results.push(result.context("wait for a task")?);
    }
    let failed = results.iter().filter(|result| result.is_err()).count();
    let results: Result<_> = results.into_iter().collect();
    results.with_context(|| format!("{failed} of {count} {what} failed, the first"))
}

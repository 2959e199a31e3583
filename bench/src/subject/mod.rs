//! Cellblock as it is measured: through its Rust API, with the default image and all of its
//! libraries imported.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cellblock_artifact::Store;
use cellblock_image::{DEFAULT_IMAGE, OpenImage, Progress, Sink};
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Execution, Interpreter, Session};

use crate::probe::WHO;
use crate::progress::note;

mod concurrent;
mod connector;
mod derive;
mod first;
mod flood;
mod forks;
mod frame;
mod idle;
mod interrupt;
mod live;
mod stdout;
mod throughput;
mod waiting;
mod warm;
mod workbench;

pub(crate) use concurrent::Concurrent;
pub(crate) use connector::Calls;
pub(crate) use derive::{BindInput, ChangeSeries};
pub(crate) use first::{Create, FirstCell};
pub(crate) use flood::Flood;
pub(crate) use forks::Forks;
pub(crate) use frame::Frames;
pub(crate) use idle::IdleSessions;
pub(crate) use interrupt::{Deadline, Interrupt};
pub(crate) use live::{Checkpoints, RecordingSubject, SessionState, Tries};
pub(crate) use stdout::Stdout;
pub(crate) use throughput::Throughput;
pub(crate) use waiting::WaitingCalls;
pub(crate) use warm::WarmCells;
pub(crate) use workbench::WorkbenchTools;

/// Sandboxes kept ready while measuring.
const READY: usize = 2;
/// Maximum time for filling the pool.
const FILL_LIMIT: Duration = Duration::from_secs(30);

/// A running interpreter.
#[derive(Debug)]
pub(crate) struct Subject {
    interpreter: Interpreter,
    pub(crate) image: OpenImage,
}

impl Subject {
    pub(crate) async fn start() -> Result<Arc<Self>> {
        let images = cellblock_image::ImageStore::find()?;
        let image = images
            .open(DEFAULT_IMAGE, progress())
            .await
            .context("open the default image")?;
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
        Ok(Arc::new(Self { interpreter, image }))
    }

    pub(crate) fn session(&self, pooled: bool) -> Session {
        self.session_with(pooled, None)
    }

    pub(crate) fn session_with(&self, pooled: bool, limits: Option<Limits>) -> Session {
        self.interpreter.session(SessionOptions {
            pooled,
            limits,
            ..SessionOptions::default()
        })
    }

    /// Waits until the pool is full, so that filling it up is not measured along with what comes next.
    pub(crate) async fn settle(&self) -> Result<()> {
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

    /// Removes what a cell had stored, so that equal bytes are written again by the next.
    pub(crate) async fn forget(&self, execution: &Execution) -> Result<()> {
        for output in &execution.outputs {
            for artifact in output.artifacts() {
                self.interpreter.store().remove(artifact.sha256).await?;
            }
        }
        for artifact in execution
            .fetches
            .iter()
            .filter_map(|fetch| fetch.artifact.as_ref())
        {
            self.interpreter.store().remove(artifact.sha256).await?;
        }
        Ok(())
    }
}

/// Refuses an execution that did not do all that it should have.
pub(crate) fn completed(execution: &Execution) -> Result<()> {
    ensure!(
        execution.outcome == Outcome::Completed,
        "the cell ended as {}: {}",
        execution.outcome.name(),
        execution.note.as_deref().unwrap_or("no note")
    );
    Ok(())
}

fn progress() -> Sink {
    Sink::new(|progress| {
        if let Progress::Stage { .. } = progress {
            note(&format!("{progress:?}"));
        }
    })
}

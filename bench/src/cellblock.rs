//! Cellblock as it is measured: through its Rust API, with the default image.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cellblock_artifact::Store;
use cellblock_interpreter::{Cell, Config, Interpreter, Limits, Outcome, Session, SessionOptions};
use cellblock_sandbox::image::{self, DEFAULT_IMAGE, Image, Progress, Sink};
use cellblock_sandbox::pool::PoolConfig;

use crate::memory::{Memory, measure};

/// Sandboxes kept ready while measuring.
const READY: usize = 2;

/// A running interpreter.
#[derive(Debug)]
pub(crate) struct Subject {
    interpreter: Interpreter,
    pub(crate) image: Image,
}

impl Subject {
    pub(crate) async fn start() -> Result<Self> {
        let images = image::Store::find()?;
        let image = images
            .open(DEFAULT_IMAGE, progress())
            .await
            .context("open the default image")?;
        let store = Store::local(images.home().root().join("bench-artifacts"))?;
        let config = Config {
            image: images.resolve(image.id())?,
            limits: Limits::default(),
            pool: PoolConfig {
                ready: READY,
                ..PoolConfig::default()
            },
            preload: None,
            demands: cellblock_sandbox::jail::protection::Demands::default(),
            store,
            launcher: None,
        };
        let interpreter = Interpreter::start(config).await?;
        interpreter.warmed().await?;
        Ok(Self { interpreter, image })
    }

    fn session(&self, pooled: bool) -> Session {
        self.interpreter.session(SessionOptions {
            pooled,
            ..SessionOptions::default()
        })
    }

    /// Creates a session and runs one cell in it.
    pub(crate) async fn first_result(&self, pooled: bool, code: &str) -> Result<Duration> {
        let started = Instant::now();
        let session = self.session(pooled);
        let execution = session.execute(Cell::new(code)).await?;
        let elapsed = started.elapsed();
        ensure!(
            execution.outcome == Outcome::Completed,
            "the cell ended as {}",
            execution.outcome.name()
        );
        ensure!(!execution.outputs.is_empty(), "the cell showed nothing");
        session.close().await?;
        Ok(elapsed)
    }

    /// Runs `1+1` in a live session.
    pub(crate) async fn warm(&self, cells: usize) -> Result<Vec<Duration>> {
        let session = self.session(true);
        session.execute("1+1").await?;
        let mut samples = Vec::with_capacity(cells);
        for _ in 0..cells {
            let started = Instant::now();
            let execution = session.execute("1+1").await?;
            samples.push(started.elapsed());
            ensure!(
                execution.outcome == Outcome::Completed,
                "a warm cell ended as {}",
                execution.outcome.name()
            );
        }
        session.close().await?;
        Ok(samples)
    }

    /// How long after its deadline a cell that never ends is over.
    pub(crate) async fn stop(&self, code: &str) -> Result<Duration> {
        const DEADLINE: Duration = Duration::from_millis(300);
        let session = self.session(true);
        session.execute("1+1").await?;
        let started = Instant::now();
        let execution = session.execute(Cell::new(code).with_timeout(DEADLINE)).await?;
        let late = started.elapsed().saturating_sub(DEADLINE);
        ensure!(
            matches!(
                execution.outcome,
                Outcome::Interrupted | Outcome::KernelLost { .. }
            ),
            "an endless cell ended as {}",
            execution.outcome.name()
        );
        session.close().await?;
        Ok(late)
    }

    /// Waits until the pool is full, so that refilling is not measured along.
    pub(crate) async fn refill(&self) {
        while self.interpreter.ready_sandboxes() < READY {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    /// Private memory of sessions that have run one cell and wait.
    pub(crate) async fn idle_memory(&self, sessions: usize) -> Result<Memory> {
        let before = measure()?;
        let mut live = Vec::new();
        for _ in 0..sessions {
            let session = self.session(false);
            session.execute("1+1").await?;
            live.push(session);
        }
        let after = measure()?;
        for session in &live {
            session.close().await?;
        }
        Ok(after.since(before, sessions as u64))
    }
}

fn progress() -> Sink {
    Sink::new(|progress| {
        if let Progress::Stage { .. } = progress {
            crate::report::note(&format!("{progress:?}"));
        }
    })
}

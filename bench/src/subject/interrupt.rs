//! Time until a cell is over that somebody stops, or whose time is over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cellblock_interpreter::Cell;
use cellblock_interpreter::execution::{Event, Outcome};

use super::{Subject, WHO, completed};
use crate::probe::{Probe, SampleFuture};
use crate::programs::{ANNOUNCED_LOOP, DEAF, LOOP, SUM};
use crate::samples::Samples;

/// The time of a cell that never ends by itself.
const DEADLINE: Duration = Duration::from_millis(50);

/// Stops a Python loop that runs, some times in one session.
pub(crate) struct Interrupt {
    pub(crate) subject: Arc<Subject>,
    pub(crate) times: usize,
}

impl Interrupt {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let session = self.subject.session(true);
        completed(&session.execute(SUM).await?)?;
        self.subject.settle().await?;
        for _ in 0..self.times {
            let mut running = session.start_cell(ANNOUNCED_LOOP).await?;
            let event = running.events.recv().await.context("the loop never began")?;
            ensure!(
                matches!(event, Event::Stdout(_)),
                "the loop said something else first"
            );
            let started = Instant::now();
            session.interrupt();
            let execution = running.finish().await?;
            let elapsed = started.elapsed();
            ensure!(
                execution.outcome == Outcome::Interrupted,
                "a stopped loop ended as {}",
                execution.outcome.name()
            );
            samples.time(WHO, "interrupt", elapsed);
        }
        session.close().await?;
        Ok(())
    }
}

impl Probe for Interrupt {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "interrupt"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

/// Lets cells run into their deadline, and measures how late they end.
pub(crate) struct Deadline {
    pub(crate) subject: Arc<Subject>,
    /// Whether the cell listens to no signal, so that its kernel must be killed.
    pub(crate) deaf: bool,
    pub(crate) times: usize,
}

impl Deadline {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let code = if self.deaf { DEAF } else { LOOP };
        let session = self.subject.session(true);
        for _ in 0..self.times {
            // A kernel that was lost is replaced now, not while the clock runs.
            completed(&session.execute(SUM).await?)?;
            self.subject.settle().await?;
            let started = Instant::now();
            let execution = session.execute(Cell::new(code).with_timeout(DEADLINE)).await?;
            let late = started.elapsed().saturating_sub(DEADLINE);
            let as_expected = match execution.outcome {
                Outcome::Interrupted => !self.deaf,
                Outcome::KernelLost { .. } => self.deaf,
                _ => false,
            };
            ensure!(
                as_expected,
                "an endless cell ended as {}",
                execution.outcome.name()
            );
            samples.time(WHO, self.what(), late);
        }
        session.close().await?;
        Ok(())
    }
}

impl Probe for Deadline {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        if self.deaf {
            "deadline_deaf"
        } else {
            "deadline_loop"
        }
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

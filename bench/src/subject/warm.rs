//! The shortest cell in a live session.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;

use super::{Subject, WHO, completed};
use crate::probe::{Probe, SampleFuture};
use crate::programs::SUM;
use crate::samples::Samples;

/// Runs a number of cells in one session.
pub(crate) struct WarmCells {
    pub(crate) subject: Arc<Subject>,
    pub(crate) cells: usize,
}

impl WarmCells {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let session = self.subject.session(true);
        completed(&session.execute(SUM).await?)?;
        self.subject.settle().await?;
        for _ in 0..self.cells {
            let started = Instant::now();
            let execution = session.execute(SUM).await?;
            let elapsed = started.elapsed();
            completed(&execution)?;
            samples.time(WHO, "warm", elapsed);
        }
        session.close().await?;
        Ok(())
    }
}

impl Probe for WarmCells {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "warm"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

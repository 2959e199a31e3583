//! New sessions: until they are ready, their first cell, and both together.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::{Subject, WHO, completed};
use crate::probe::{Probe, SampleFuture};
use crate::programs::{CHART, SUM};
use crate::samples::Samples;

/// A new session until it has answered something, then its first cell.
pub(crate) struct Create {
    pub(crate) subject: Arc<Subject>,
    pub(crate) pooled: bool,
}

impl Create {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let started = Instant::now();
        let session = self.subject.session(self.pooled);
        // The smallest question that needs the kernel.
        session.variables().await?;
        let created = started.elapsed();
        let started = Instant::now();
        let execution = session.execute(SUM).await?;
        let first = started.elapsed();
        completed(&execution)?;
        samples.time(WHO, self.what(), created);
        samples.time(WHO, "first_cell", first);
        session.close().await?;
        self.subject.settle().await
    }
}

impl Probe for Create {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        if self.pooled { "create_pool" } else { "create_cold" }
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

/// A new session until the result of its first cell.
pub(crate) struct FirstCell {
    pub(crate) subject: Arc<Subject>,
    pub(crate) pooled: bool,
    /// Whether the cell is an analysis with a table and a chart, or a sum.
    pub(crate) chart: bool,
}

impl FirstCell {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let started = Instant::now();
        let session = self.subject.session(self.pooled);
        let execution = session.execute(if self.chart { CHART } else { SUM }).await?;
        let elapsed = started.elapsed();
        completed(&execution)?;
        let expected = if self.chart { 2 } else { 1 };
        ensure!(
            execution.outputs.len() == expected,
            "the cell showed {} values instead of {expected}",
            execution.outputs.len()
        );
        samples.time(WHO, self.what(), elapsed);
        session.close().await?;
        self.subject.forget(&execution).await?;
        self.subject.settle().await
    }
}

impl Probe for FirstCell {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        match (self.chart, self.pooled) {
            (false, false) => "cold_first",
            (false, true) => "pool_first",
            (true, false) => "cold_chart",
            (true, true) => "pool_chart",
        }
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

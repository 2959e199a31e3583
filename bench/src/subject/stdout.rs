//! Ten megabytes of text on stdout.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::{Subject, WHO, completed};
use crate::probe::{Probe, SampleFuture};
use crate::programs::{SHOUT, SHOUT_BYTES, SUM};
use crate::samples::Samples;

/// A cell that prints much, in a session that is warm, until its execution is there.
pub(crate) struct Stdout {
    pub(crate) subject: Arc<Subject>,
}

impl Stdout {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let session = self.subject.session(true);
        completed(&session.execute(SUM).await?)?;
        self.subject.settle().await?;
        let started = Instant::now();
        let execution = session.execute(SHOUT).await?;
        let elapsed = started.elapsed();
        completed(&execution)?;
        ensure!(
            execution.stdout.bytes == SHOUT_BYTES,
            "{} bytes came instead of {SHOUT_BYTES}",
            execution.stdout.bytes
        );
        samples.time(WHO, "stdout", elapsed);
        session.close().await?;
        Ok(())
    }
}

impl Probe for Stdout {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "stdout"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

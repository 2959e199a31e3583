//! Many short sessions at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::{Subject, WHO, completed};
use crate::probe::{Probe, SampleFuture};
use crate::programs::SUM;
use crate::samples::Samples;

/// Makes all sessions at once; each runs one small cell and is closed.
pub(crate) struct Concurrent {
    pub(crate) subject: Arc<Subject>,
    pub(crate) sessions: usize,
}

impl Concurrent {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let started = Instant::now();
        let tasks: Vec<_> = (0..self.sessions)
            .map(|_| tokio::spawn(one(Arc::clone(&self.subject), started)))
            .collect();
        let mut results = Vec::new();
        for task in tasks {
            results.push(task.await?);
        }
        let wall = started.elapsed();
        let errors: Vec<_> = results
            .iter()
            .filter_map(|result| result.as_ref().err())
            .collect();
        if let Some(first) = errors.first() {
            bail!(
                "{} of {} sessions failed, the first: {first:#}",
                errors.len(),
                self.sessions
            );
        }
        samples.time(WHO, "concurrent", wall);
        samples.times(WHO, "concurrent_session", results.into_iter().flatten());
        self.subject.settle().await
    }
}

/// One session from the moment when all were asked for until its result.
async fn one(subject: Arc<Subject>, started: Instant) -> Result<Duration> {
    let session = subject.session(true);
    let execution = session.execute(SUM).await?;
    let elapsed = started.elapsed();
    completed(&execution)?;
    session.close().await?;
    Ok(elapsed)
}

impl Probe for Concurrent {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "concurrent"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

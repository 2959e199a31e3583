//! Rounds of create, run and destroy in a second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::{Subject, WHO, completed};
use crate::catalog::{WIDTHS, throughput_name};
use crate::probe::{Probe, SampleFuture};
use crate::programs::SUM;
use crate::samples::Samples;

/// Runs rounds one after the other, at several numbers of rounds at a time.
pub(crate) struct Throughput {
    pub(crate) subject: Arc<Subject>,
    /// Time at each number.
    pub(crate) time: Duration,
}

impl Throughput {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        for width in WIDTHS {
            let started = Instant::now();
            let end = started + self.time;
            let tasks: Vec<_> = (0..width)
                .map(|_| tokio::spawn(rounds(Arc::clone(&self.subject), end)))
                .collect();
            let mut done = 0;
            for task in tasks {
                done += task.await??;
            }
            samples.add(
                WHO,
                &throughput_name(width),
                f64::from(done) / started.elapsed().as_secs_f64(),
            );
        }
        self.subject.settle().await
    }
}

/// Each round makes its sandbox itself: the pool would only move that work.
async fn rounds(subject: Arc<Subject>, end: Instant) -> Result<u32> {
    let mut done = 0;
    while Instant::now() < end {
        let session = subject.session(false);
        completed(&session.execute(SUM).await?)?;
        session.close().await?;
        done += 1;
    }
    Ok(done)
}

impl Probe for Throughput {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "throughput"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

//! Forks of a session into sandboxes from the pool.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use cellblock_interpreter::Session;
use cellblock_interpreter::session::fork::ForkOptions;

use super::{Subject, WHO, completed};
use crate::floor;
use crate::probe::{Probe, SampleFuture};
use crate::programs::SUM;
use crate::samples::Samples;

/// Bytes of the array that the larger session has.
const ARRAY: usize = 200_000_000;

/// Forks a session with a number and one with 200 MB of numpy in turns, and copies as many bytes, some times.
pub(crate) struct Forks {
    pub(crate) subject: Arc<Subject>,
    pub(crate) times: usize,
}

impl Forks {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        // Forks take sandboxes from the pool if their session did.
        let (number, array) = (self.subject.session(true), self.subject.session(true));
        completed(&number.execute("held = 1").await?)?;
        let held = format!("import numpy as np\nheld = np.ones({ARRAY} // 8)");
        completed(&array.execute(held.as_str()).await?)?;
        for _ in 0..self.times {
            let small = self.fork(&number, samples).await?;
            samples.time(WHO, "fork_number", small);
            let large = self.fork(&array, samples).await?;
            samples.time(WHO, "fork_array", large);
            samples.time(WHO, "fork_array_beyond", large.saturating_sub(small));
            samples.time(floor::WHO, "memcpy_array", memcpy());
        }
        number.close().await?;
        array.close().await?;
        Ok(())
    }

    async fn fork(&self, session: &Session, samples: &mut Samples) -> Result<Duration> {
        self.subject.settle().await?;
        let started = Instant::now();
        let fork = session.fork(ForkOptions::new(1)).await?.remove(0);
        let elapsed = started.elapsed();
        let started = Instant::now();
        let execution = fork.execute(SUM).await?;
        samples.time(WHO, "fork_first", started.elapsed());
        completed(&execution)?;
        fork.close().await?;
        Ok(elapsed)
    }
}

/// Copies the array's bytes to memory that was not used before, as a fork has to.
fn memcpy() -> Duration {
    let from = vec![1_u8; ARRAY];
    let started = Instant::now();
    let to = black_box(from.as_slice()).to_vec();
    let elapsed = started.elapsed();
    black_box(to);
    elapsed
}

impl Probe for Forks {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "fork_number"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

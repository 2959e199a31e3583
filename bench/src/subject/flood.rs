//! Memory of the host's program while a cell floods its stdout.

use std::sync::Arc;

use anyhow::{Result, ensure};
use cellblock_interpreter::execution::{Outcome, Resource};
use cellblock_interpreter::limits::Limits;

use super::{Subject, WHO, completed};
use crate::memory::Peak;
use crate::probe::{Probe, SampleFuture};
use crate::programs::{FLOOD, SUM};
use crate::samples::Samples;

const MIB: u64 = 1 << 20;

/// Floods until the default limit ends the cell, or a gibibyte with the limit raised.
pub(crate) struct Flood {
    pub(crate) subject: Arc<Subject>,
    pub(crate) raised: bool,
}

impl Flood {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let limits = self.raised.then(|| Limits {
            stream_bytes: 2048 * MIB,
            ..Limits::default()
        });
        let session = self.subject.session_with(false, limits);
        completed(&session.execute(SUM).await?)?;
        let peak = Peak::start()?;
        let execution = session.execute(FLOOD.replace("TIMES", "1024")).await?;
        let growth = peak.growth()?;
        if self.raised {
            completed(&execution)?;
            ensure!(
                execution.stdout.bytes == 1024 * MIB,
                "{} bytes came instead of a gibibyte",
                execution.stdout.bytes
            );
        } else {
            ensure!(
                matches!(&execution.outcome, Outcome::LimitExceeded(it) if it.which == Resource::OutputBytes),
                "a flood ended as {}",
                execution.outcome.name()
            );
        }
        #[expect(clippy::cast_precision_loss, reason = "bytes of memory fit a double")]
        samples.add(WHO, self.what(), growth as f64 / MIB as f64);
        session.close().await?;
        Ok(())
    }
}

impl Probe for Flood {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        if self.raised { "flood_1gib" } else { "flood" }
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

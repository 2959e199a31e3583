//! Many streams at once: their delays, and the gateway's memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::task::JoinSet;

use super::client::{RequestTarget, StreamReport};
use super::provider::ModelScript;
use super::{DIRECT, Gateways, Pair};
use crate::memory::Peak;
use crate::probe::{Probe, SampleFuture, WHO};
use crate::samples::Samples;

/// Streams at once, of deltas at the pace of a model.
pub(crate) struct Crowd {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) streams: usize,
    pub(crate) deltas: usize,
}

/// The pause between two deltas of one stream.
const PACE: Duration = Duration::from_millis(20);

impl Crowd {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let pair = self.gateways.pair().await?;
        let script = ModelScript::text(self.deltas, PACE);
        let peak = Peak::of(pair.server.id())?;
        for (who, whom) in [(DIRECT, pair.provider), (WHO, pair.gateway)] {
            let started = Instant::now();
            let streams = all(pair, whom, script, self.streams).await?;
            samples.time(who, "gateway_crowd", started.elapsed());
            for mut read in streams {
                read.ages.sort_unstable();
                let middle = read.ages[read.ages.len() / 2];
                samples.time(who, "gateway_crowd_delta", middle);
                samples.times(who, "gateway_crowd_slowest", read.ages.last().copied());
            }
        }
        samples.add(WHO, "gateway_crowd_memory", mebibytes(peak.growth()?));
        Ok(())
    }
}

/// Reads so many streams at once, of which none may fail.
async fn all(
    pair: &Pair,
    whom: RequestTarget,
    script: ModelScript,
    count: usize,
) -> Result<Vec<StreamReport>> {
    let mut streams = JoinSet::new();
    for _ in 0..count {
        let client = pair.client.clone();
        streams.spawn(async move { whom.read(&client, script).await });
    }
    let (mut read, mut failed) = (Vec::new(), Vec::new());
    while let Some(stream) = streams.join_next().await {
        match stream.context("wait for a stream")? {
            Ok(stream) => read.push(stream),
            Err(error) => failed.push(error),
        }
    }
    if let Some(first) = failed.first() {
        bail!("{} of {count} streams failed, the first: {first:#}", failed.len());
    }
    Ok(read)
}

/// Clients that ask for much and read nothing, beside some that read.
pub(crate) struct StalledClients {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) streams: usize,
    /// Number of bytes that each one receives.
    pub(crate) bytes: usize,
}

/// Bytes of each delta that nobody reads.
const LARGE: usize = 4096;

impl StalledClients {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let pair = self.gateways.pair().await?;
        let peak = Peak::of(pair.server.id())?;
        let much = ModelScript {
            size: LARGE,
            ..ModelScript::text(self.bytes / LARGE, Duration::ZERO)
        };
        let mut unread = Vec::new();
        for _ in 0..self.streams {
            unread.push(pair.gateway.ask(&pair.client, much).await?);
        }
        // They have two seconds to pile up what they can; the others are answered meanwhile.
        all(pair, pair.gateway, ModelScript::text(100, PACE), self.streams).await?;
        samples.add(WHO, "gateway_deaf_memory", mebibytes(peak.growth()?));
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes of memory are far below 2^52")]
pub(super) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

impl Probe for Crowd {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "many streams through the gateway"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

impl Probe for StalledClients {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "clients of the gateway that read nothing"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

//! One request after the other: what the gateway adds to each, and to each delta.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::provider::{ModelScript, ProbeCode};
use super::{DIRECT, Gateways, Pair};
use crate::probe::{WHO, probe};
use crate::samples::Samples;

/// Requests with the shortest answer.
pub(crate) struct RequestSubject {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) times: usize,
}

impl RequestSubject {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let pair = self.gateways.pair().await?;
        let script = ModelScript::text(1, Duration::ZERO);
        for _ in 0..self.times {
            let direct = pair.provider.read(&pair.client, script).await?.total;
            let ours = pair.gateway.read(&pair.client, script).await?.total;
            samples.time(DIRECT, "gateway_request", direct);
            samples.time(WHO, "gateway_request", ours);
            samples.time(WHO, "gateway_request_added", ours.saturating_sub(direct));
        }
        Ok(())
    }
}

/// A stream whose deltas come one by one, as from a fast model: how old each is when it arrives.
pub(crate) struct DeltaStream {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) deltas: usize,
}

impl DeltaStream {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let pair = self.gateways.pair().await?;
        let script = ModelScript::text(self.deltas, Duration::from_millis(2));
        let direct = pair.provider.read(&pair.client, script).await?.ages;
        let ours = pair.gateway.read(&pair.client, script).await?.ages;
        let mean = |ages: &[Duration]| ages.iter().sum::<Duration>() / u32::try_from(ages.len()).unwrap_or(1);
        samples.time(
            WHO,
            "gateway_delta_added",
            mean(&ours).saturating_sub(mean(&direct)),
        );
        samples.times(DIRECT, "gateway_delta", direct);
        samples.times(WHO, "gateway_delta", ours);
        Ok(())
    }
}

/// A stream whose deltas come as fast as they can: the time for each of them.
pub(crate) struct Burst {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) deltas: u32,
}

impl Burst {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let pair = self.gateways.pair().await?;
        let script = ModelScript::text(usize::try_from(self.deltas)?, Duration::ZERO);
        for (who, whom) in [(DIRECT, pair.provider), (WHO, pair.gateway)] {
            let total = whom.read(&pair.client, script).await?.total;
            samples.time(who, "gateway_burst", total / self.deltas);
        }
        Ok(())
    }
}

/// Requests whose model runs code before it answers, each in a container of its own.
pub(crate) struct Analyses {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) times: usize,
    /// Time for which they are counted, two at a time.
    pub(crate) counted: Duration,
}

impl Analyses {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let pair = self.gateways.pair().await?;
        let script = ModelScript::code(ProbeCode::Sum);
        for _ in 0..self.times {
            let read = pair.gateway.read(&pair.client, script).await?;
            samples.time(WHO, "gateway_code", read.total);
            pair.gateway.forget(&pair.client, &read).await?;
        }
        let started = Instant::now();
        let done = self.by_twos(pair, ProbeCode::Sum).await?.len();
        let rate = f64::from(u32::try_from(done)?) / started.elapsed().as_secs_f64();
        samples.add(WHO, "gateway_code_rate", rate);
        let charts = self.by_twos(pair, ProbeCode::Chart).await?;
        samples.times(WHO, "gateway_chart", charts);
        Ok(())
    }

    /// Sends requests two at a time; returns how long each of them took.
    async fn by_twos(&self, pair: &Pair, code: ProbeCode) -> Result<Vec<Duration>> {
        let end = Instant::now() + self.counted;
        let rounds = || async {
            let mut times = Vec::new();
            while Instant::now() < end {
                let read = pair.gateway.read(&pair.client, ModelScript::code(code)).await?;
                ensure!(read.ran, "its code was not run");
                times.push(read.total);
                pair.gateway.forget(&pair.client, &read).await?;
            }
            anyhow::Ok(times)
        };
        let (first, second) = tokio::try_join!(rounds(), rounds())?;
        Ok([first, second].concat())
    }
}

probe!(RequestSubject, "requests through the gateway");
probe!(DeltaStream, "deltas through the gateway");
probe!(Burst, "a burst of deltas through the gateway");
probe!(Analyses, "code through the gateway");

//! Many requests with code at once, and many one after the other that nobody comes back to: how
//! long they take, and what they leave.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reqwest::Client;
use tokio::task::{JoinError, JoinSet};

use super::client::StreamReport;
use super::crowd::mebibytes;
use super::provider::{ModelScript, ProbeCode};
use super::{Gateways, Pair};
use crate::memory::{Peak, ProcessTree};
use crate::probe::{WHO, probe};
use crate::samples::Samples;

/// Interval between two readings of the sandboxes' memory.
const OFTEN: Duration = Duration::from_millis(250);
/// Time for sandboxes to end before those that are left are counted.
const SOON: Duration = Duration::from_secs(5);
/// One-shot requests at a time.
const WIDTH: usize = 8;

/// Requests that are sent at once, each of which makes a table and a chart of it.
pub(crate) struct Load {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) requests: usize,
}

impl Load {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let pair = self.gateways.pair().await?;
        let peak = Peak::of(pair.server.id())?;
        // Connections of its own, so that all are sent at once.
        let client = Client::builder().tcp_nodelay(true).build()?;
        let script = ModelScript::code(ProbeCode::Chart);
        let mut running = JoinSet::new();
        for _ in 0..self.requests {
            let (client, gateway) = (client.clone(), pair.gateway);
            running.spawn(async move { gateway.read(&client, script).await });
        }
        let (mut failed, mut most) = (0_u32, 0);
        let mut look = tokio::time::interval(OFTEN);
        loop {
            tokio::select! {
                ended = running.join_next() => {
                    let Some(ended) = ended else { break };
                    // One that was refused counts as one whose code failed.
                    let read = ended.context("wait for a request")?;
                    failed += u32::from(!read.as_ref().is_ok_and(|read| read.ran));
                    samples.times(WHO, "gateway_load", read.ok().map(|read| read.total));
                }
                _ = look.tick() => most = most.max(sandboxes(pair).await?.0),
            }
        }
        samples.add(WHO, "gateway_load_failed", f64::from(failed));
        samples.add(WHO, "gateway_load_memory", mebibytes(peak.growth()?));
        samples.add(WHO, "gateway_load_sandboxes", mebibytes(most));
        Ok(())
    }
}

/// Requests a few at a time, none of which goes on from another.
pub(crate) struct OneShots {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) requests: usize,
}

impl OneShots {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let pair = self.gateways.pair().await?;
        let mut running = JoinSet::new();
        for _ in 0..self.requests {
            if running.len() == WIDTH {
                note(samples, running.join_next().await)?;
            }
            let (client, gateway) = (pair.client.clone(), pair.gateway);
            running.spawn(async move { gateway.read(&client, ModelScript::code(ProbeCode::Sum)).await });
        }
        while !running.is_empty() {
            note(samples, running.join_next().await)?;
        }
        tokio::time::sleep(SOON).await;
        samples.add(WHO, "gateway_one_shots_left", sandboxes(pair).await?.1);
        Ok(())
    }
}

/// Notes a request of one shot.
fn note(samples: &mut Samples, ended: Option<Result<Result<StreamReport>, JoinError>>) -> Result<()> {
    let read = ended
        .context("wait for a request")?
        .context("wait for a request")??;
    ensure!(read.ran, "its code was not run");
    samples.time(WHO, "gateway_one_shot", read.total);
    Ok(())
}

/// Private bytes of the sandboxes that sessions have or that wait in the pool, and how many
/// sessions have one.
async fn sandboxes(pair: &Pair) -> Result<(u64, f64)> {
    let server = pair.server.id();
    let measured = tokio::task::spawn_blocking(move || ProcessTree::below(server)).await;
    let memory = measured.context("measure sandboxes")??.sessions.private;
    let text = pair.metrics().await?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("cellblock_sandboxes "));
    let count = line
        .context("read how many sandboxes there are")?
        .trim()
        .parse()?;
    Ok((memory, count))
}

probe!(Load, "many requests with code at once");
probe!(OneShots, "requests that nobody comes back to");

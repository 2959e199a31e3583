//! Requests with code: one after the other, many at once, and many that nobody comes back to: how
//! long they take, and what they leave.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::Client;
use tokio::task::JoinSet;

use super::provider::ModelScript;
use super::{Gateways, Pair, pair};
use crate::memory::{Peak, ProcessTree, mebibytes};
use crate::programs::{CHART, SUM};
use crate::samples::ProbeTurn;

/// Interval between two readings of the sandboxes' memory.
const OFTEN: Duration = Duration::from_millis(250);
/// Time for sandboxes to end before those that are left are counted.
const SOON: Duration = Duration::from_secs(5);
/// One-shot requests at a time.
const WIDTH: usize = 8;

/// Requests whose model runs code before it answers, each in a container of its own: so many one after
/// the other, and then as many as can be in some time, two at a time.
pub(crate) async fn analyses(
    gateways: &Arc<Gateways>,
    turn: &ProbeTurn,
    (times, counted): (usize, Duration),
) -> Result<()> {
    let pair = pair(gateways).await?;
    for _ in 0..times {
        turn.time("gateway_code", pair.run(SUM).await?);
    }
    let started = Instant::now();
    let done = u32::try_from(by_twos(pair, SUM, counted).await?.len())?;
    let rate = f64::from(done) / started.elapsed().as_secs_f64();
    turn.add("gateway_code_rate", rate);
    turn.times("gateway_chart", by_twos(pair, CHART, counted).await?);
    Ok(())
}

/// Sends requests two at a time; returns how long each of them took.
async fn by_twos(pair: &Pair, code: &'static str, time: Duration) -> Result<Vec<Duration>> {
    let end = Instant::now() + time;
    let rounds = || async {
        let mut times = Vec::new();
        while Instant::now() < end {
            times.push(pair.run(code).await?);
        }
        anyhow::Ok(times)
    };
    Ok(try_join_all([rounds(), rounds()]).await?.concat())
}

/// So many requests that are sent at once, each of which makes a table and a chart of it.
pub(crate) async fn load(gateways: &Arc<Gateways>, turn: &ProbeTurn, requests: usize) -> Result<()> {
    let pair = pair(gateways).await?;
    let peak = Peak::of(pair.server.child.id())?;
    // Connections of its own, so that all are sent at once.
    let client = Client::builder().tcp_nodelay(true).build()?;
    let mut running = JoinSet::new();
    for _ in 0..requests {
        let (client, gateway) = (client.clone(), pair.gateway);
        running.spawn(async move { gateway.read(&client, ModelScript::code(CHART)).await });
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
                turn.times("gateway_load", read.ok().map(|read| read.total));
            }
            _ = look.tick() => most = most.max(sandboxes(pair).await?.0),
        }
    }
    turn.add("gateway_load_failed", f64::from(failed));
    turn.add("gateway_load_memory", peak.growth()?);
    turn.add("gateway_load_sandboxes", mebibytes(most));
    Ok(())
}

/// So many requests, a few at a time, none of which goes on from another.
pub(crate) async fn one_shots(gateways: &Arc<Gateways>, turn: &ProbeTurn, requests: usize) -> Result<()> {
    let pair = pair(gateways).await?;
    let sent = stream::iter(0..requests).map(|_| {
        let (client, gateway) = (pair.client.clone(), pair.gateway);
        tokio::spawn(async move { gateway.read(&client, ModelScript::code(SUM)).await })
    });
    let mut ended = sent.buffer_unordered(WIDTH);
    while let Some(read) = ended.try_next().await.context("wait for a request")? {
        let read = read?;
        ensure!(read.ran, "its code was not run");
        turn.time("gateway_one_shot", read.total);
    }
    tokio::time::sleep(SOON).await;
    turn.add("gateway_one_shots_left", sandboxes(pair).await?.1);
    Ok(())
}

/// Private bytes of the sandboxes that sessions have or that wait in the pool, and how many
/// sessions have one.
async fn sandboxes(pair: &Pair) -> Result<(u64, f64)> {
    let server = pair.server.child.id();
    let measured = tokio::task::spawn_blocking(move || ProcessTree::below(server)).await;
    let memory = measured.context("measure sandboxes")??.sessions.private;
    let address = format!("http://{}/metrics", pair.server.address);
    let answer = pair.client.get(address).send().await?.error_for_status()?;
    let metrics = answer.text().await?;
    let mut lines = metrics.lines();
    let count = lines.find_map(|line| line.strip_prefix("cellblock_sandboxes "));
    let count = count.context("read how many sandboxes there are")?;
    Ok((memory, count.trim().parse()?))
}

//! Streams of text: what the gateway adds to each request and to each delta, one after the other and
//! many at once, and its memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::client::{RequestTarget, StreamReport};
use super::provider::ModelScript;
use super::{DIRECT, Gateways, Pair, pair};
use crate::memory::Peak;
use crate::probe::WHO;
use crate::samples::ProbeTurn;
use crate::subject::all_at_once;

/// The pause between two deltas of one stream of many.
const PACE: Duration = Duration::from_millis(20);
/// Bytes of each delta that nobody reads.
const LARGE: usize = 4096;

/// Requests with the shortest answer.
pub(crate) async fn requests(gateways: &Arc<Gateways>, turn: &ProbeTurn, times: usize) -> Result<()> {
    let pair = pair(gateways).await?;
    let script = ModelScript::text(1, Duration::ZERO);
    for _ in 0..times {
        let direct = pair.provider.read(&pair.client, script).await?.total;
        let ours = pair.gateway.read(&pair.client, script).await?.total;
        turn.of(DIRECT).time("gateway_request", direct);
        turn.time("gateway_request", ours);
        turn.time("gateway_request_added", ours.saturating_sub(direct));
    }
    Ok(())
}

/// A stream whose deltas come one by one, as from a fast model: how old each is when it arrives.
pub(crate) async fn deltas(gateways: &Arc<Gateways>, turn: &ProbeTurn, count: usize) -> Result<()> {
    let pair = pair(gateways).await?;
    let script = ModelScript::text(count, Duration::from_millis(2));
    let direct = pair.provider.read(&pair.client, script).await?.ages;
    let ours = pair.gateway.read(&pair.client, script).await?.ages;
    let mean = |ages: &[Duration]| ages.iter().sum::<Duration>() / u32::try_from(ages.len()).unwrap_or(1);
    let added = mean(&ours).saturating_sub(mean(&direct));
    turn.time("gateway_delta_added", added);
    turn.of(DIRECT).times("gateway_delta", direct);
    turn.times("gateway_delta", ours);
    Ok(())
}

/// A stream whose deltas come as fast as they can: the time for each of them.
pub(crate) async fn burst(gateways: &Arc<Gateways>, turn: &ProbeTurn, count: u32) -> Result<()> {
    let pair = pair(gateways).await?;
    let script = ModelScript::text(usize::try_from(count)?, Duration::ZERO);
    for (who, target) in [(DIRECT, pair.provider), (WHO, pair.gateway)] {
        let total = target.read(&pair.client, script).await?.total;
        turn.of(who).time("gateway_burst", total / count);
    }
    Ok(())
}

/// Streams at once, of deltas at the pace of a model.
pub(crate) async fn crowd(
    gateways: &Arc<Gateways>,
    turn: &ProbeTurn,
    (streams, deltas): (usize, usize),
) -> Result<()> {
    let pair = pair(gateways).await?;
    let peak = Peak::of(pair.server.child.id())?;
    for (who, target) in [(DIRECT, pair.provider), (WHO, pair.gateway)] {
        let started = Instant::now();
        let read = all(pair, target, deltas, streams).await?;
        let turn = turn.of(who);
        turn.time("gateway_crowd", started.elapsed());
        for mut read in read {
            read.ages.sort_unstable();
            turn.time("gateway_crowd_delta", read.ages[read.ages.len() / 2]);
            turn.times("gateway_crowd_slowest", read.ages.last().copied());
        }
    }
    turn.add("gateway_crowd_memory", peak.growth()?);
    Ok(())
}

/// Clients that ask for so many bytes each and read nothing, beside some that read.
pub(crate) async fn stalled_clients(
    gateways: &Arc<Gateways>,
    turn: &ProbeTurn,
    (streams, bytes): (usize, usize),
) -> Result<()> {
    let pair = pair(gateways).await?;
    let peak = Peak::of(pair.server.child.id())?;
    let much = ModelScript {
        size: LARGE,
        ..ModelScript::text(bytes / LARGE, Duration::ZERO)
    };
    let mut unread = Vec::new();
    for _ in 0..streams {
        unread.push(pair.gateway.request(&pair.client, much).await?);
    }
    // They have two seconds to pile up what they can; the others are answered meanwhile.
    all(pair, pair.gateway, 100, streams).await?;
    turn.add("gateway_deaf_memory", peak.growth()?);
    Ok(())
}

/// Reads so many streams at once, of which none may fail.
async fn all(pair: &Pair, target: RequestTarget, deltas: usize, count: usize) -> Result<Vec<StreamReport>> {
    let read = || {
        let client = pair.client.clone();
        async move { target.read(&client, ModelScript::text(deltas, PACE)).await }
    };
    all_at_once(count, "streams", read).await
}

//! Periodic work: containers that nobody uses end, and what is too old is forgotten.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_agent::wire::ApiError;
use cellblock_interpreter::hosting::Resident;

use crate::files::fetch;
use crate::now_ms;
use crate::records::{holders, whereabouts};
use crate::state::Gateway;
use crate::state::containers::{LiveContainer, memory};

/// Interval between two sweeps of containers.
const EVERY: Duration = Duration::from_secs(1);
/// Interval between two sweeps of records.
const SELDOM: Duration = Duration::from_mins(1);

/// Looks after containers and files until the gateway stops.
pub(crate) async fn sweep(gateway: Gateway) {
    let mut forgotten: Option<Instant> = None;
    let mut idle = gateway.containers.registry.changes();
    loop {
        tokio::select! {
            () = gateway.stopping.cancelled() => return,
            over = gateway.containers.registry.expired() => end(&gateway, over),
            _ = idle.changed() => {}
            () = tokio::time::sleep(EVERY) => {
                if memory::is_scarce()
                    && let Some(live) = gateway.containers.give_way(None)
                {
                    tracing::warn!(
                        container = live.id,
                        "an idle container ends because the machine has little memory left"
                    );
                    end(&gateway, vec![live]);
                }
            }
        }
        if gateway.is_draining() {
            hand_over(&gateway).await;
        }
        let one_shots = gateway.options.containers.max_one_shots;
        end(&gateway, gateway.containers.take_surplus(one_shots));
        if forgotten.is_none_or(|at| at.elapsed() >= SELDOM) {
            forgotten = Some(Instant::now());
            if let Err(error) = forget(&gateway).await {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "forget old containers and files"
                );
            }
        }
    }
}

/// Ends containers. One that does not want to end holds up no other.
fn end(gateway: &Gateway, containers: Vec<Arc<Resident<LiveContainer>>>) {
    for live in containers {
        tracing::info!(container = live.id, "a container ends");
        let ending = gateway.clone();
        gateway
            .tasks
            .spawn(async move { ending.containers.registry.end(&live).await });
    }
}

/// Ends idle containers that responses have made: their conversations continue in another gateway,
/// with their files.
async fn hand_over(gateway: &Gateway) {
    while let Some(live) = gateway.containers.give_way(None) {
        let (own, id) = (gateway.id.clone(), live.id.clone());
        end(gateway, vec![live]);
        let left = gateway
            .records
            .with(move |database| holders::leave_container(database, &own, &id));
        if let Err(error) = left.await {
            tracing::warn!(error = &error as &dyn std::error::Error, "hand over a container");
        }
    }
}

async fn forget(gateway: &Gateway) -> Result<(), ApiError> {
    let now = now_ms();
    for (owner, id) in gateway.records.expired_files(now).await? {
        crate::files::remove(gateway, &owner, &id).await?;
    }
    let kept = i64::try_from(gateway.options.containers.retention.as_millis()).unwrap_or(i64::MAX);
    let before = now.saturating_sub(kept);
    gateway
        .records
        .with(move |connection| whereabouts::forget(connection, before))
        .await?;
    for (owner, id) in gateway.records.containers_unused_since(before).await? {
        if !gateway.containers.has(&owner, &id) {
            remove(gateway, &owner, &id).await?;
        }
    }
    Ok(())
}

/// Ends and forgets a container with its files; says whether it was there.
pub(super) async fn remove(gateway: &Gateway, owner: &str, id: &str) -> Result<bool, ApiError> {
    if let Some(live) = gateway.containers.registry.get(owner, id) {
        gateway.containers.registry.end(&live).await;
    }
    let Some(files) = gateway.records.remove_container(owner, id).await? else {
        return Ok(false);
    };
    for file in files {
        fetch::unpin(gateway, &file).await;
    }
    Ok(true)
}

//! What has to be done from time to time: containers that nobody uses end, and what is too old is forgotten.

use std::time::Duration;

use crate::clock::now_ms;
use crate::files::fetch;
use crate::server::Gateway;
use crate::wire::ApiError;

/// How often containers are looked after.
const EVERY: Duration = Duration::from_secs(1);
/// How often records are, in times of those.
const SELDOM: u32 = 60;

/// Looks after containers and files until the gateway stops.
pub(crate) async fn sweep(gateway: Gateway) {
    let mut count = 0_u32;
    loop {
        tokio::select! {
            () = gateway.stopping.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        for live in gateway.containers.take_expired() {
            tracing::info!(container = live.id, "a container has expired");
            // One that does not want to end holds up no other.
            gateway.tasks.spawn(async move { live.end().await });
        }
        if count.is_multiple_of(SELDOM)
            && let Err(error) = forget(&gateway).await
        {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "forget old containers and files"
            );
        }
        count = count.wrapping_add(1);
    }
}

async fn forget(gateway: &Gateway) -> Result<(), ApiError> {
    let now = now_ms();
    for (owner, id) in gateway.records.expired_files(now).await? {
        crate::files::remove(gateway, &owner, &id).await?;
    }
    let kept = i64::try_from(gateway.options.containers.kept.as_millis()).unwrap_or(i64::MAX);
    for (owner, id) in gateway
        .records
        .containers_unused_since(now.saturating_sub(kept))
        .await?
    {
        if !gateway.containers.has(&id) {
            remove(gateway, &owner, &id).await?;
        }
    }
    Ok(())
}

/// Ends and forgets a container with its files; says whether it was there.
pub(super) async fn remove(gateway: &Gateway, owner: &str, id: &str) -> Result<bool, ApiError> {
    if let Some(live) = gateway.containers.take(owner, id) {
        live.end().await;
    }
    let Some(files) = gateway.records.remove_container(owner, id).await? else {
        return Ok(false);
    };
    for file in files {
        fetch::unpin(gateway, &file).await;
    }
    Ok(true)
}

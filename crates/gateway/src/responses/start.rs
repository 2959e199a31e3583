//! Work on stored responses when the gateway starts, and every hour.

use std::time::Duration;

use cellblock_settings::Time;

use super::{conversation, retrieve};
use crate::files::fetch;
use crate::now;
use crate::records::{RecordsError, holders, responses};
use crate::state::Gateway;

/// Interval between two searches for old responses.
const HOUR: Duration = Duration::from_hours(1);

/// Number of renewals of a lease while it holds.
const RENEWALS: u32 = 6;

/// Log message about responses that nobody writes any more.
const LOST: &str = "a process ended while responses were being written";

/// Renews what says that this gateway writes its responses, until the task is aborted.
pub(crate) async fn hold(gateway: Gateway) {
    if !gateway.records.is_shared() {
        return;
    }
    let lease = gateway.options.lease;
    let mut pace = tokio::time::interval(lease / RENEWALS);
    loop {
        pace.tick().await;
        let own = gateway.holder();
        match gateway
            .records
            .with(move |database| holders::renew(database, &own, lease))
            .await
        {
            Ok(0) => {}
            Ok(responses) => tracing::warn!(responses, "{LOST}"),
            Err(error) => tracing::error!(
                error = &error as &dyn std::error::Error,
                "renew the gateway's lease"
            ),
        }
    }
}

/// Says that this gateway writes no response any more.
pub(crate) async fn release(gateway: &Gateway) {
    let id = gateway.id.clone();
    let released = gateway
        .records
        .with(move |database| holders::release(database, &id));
    if let Err(error) = released.await {
        // It expires.
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "end the gateway's lease"
        );
    }
}

/// Fails the responses that ran when the process ended last time, and deletes old ones, now and
/// every hour until the gateway stops.
pub(crate) async fn start(gateway: &Gateway) -> Result<(), RecordsError> {
    let (own, lease) = (gateway.holder(), gateway.options.lease);
    let broken = gateway
        .records
        .with(move |database| holders::start(database, &own, lease))
        .await?;
    if broken > 0 {
        tracing::warn!(responses = broken, "{LOST}");
    }
    let Some(Time(retention)) = gateway.options.responses.retention else {
        return Ok(());
    };
    sweep(gateway, retention).await?;
    let gateway = gateway.clone();
    let tasks = gateway.tasks.clone();
    tasks.spawn(async move {
        loop {
            tokio::select! {
                () = gateway.stopping.cancelled() => return,
                () = tokio::time::sleep(HOUR) => {}
            }
            if let Err(error) = sweep(&gateway, retention).await {
                tracing::error!(error = &error as &dyn std::error::Error, "delete old responses");
            }
        }
    });
    Ok(())
}

async fn sweep(gateway: &Gateway, retention: Duration) -> Result<(), RecordsError> {
    let before = now().saturating_sub(retention.as_secs());
    let (deleted, unneeded) = gateway
        .records
        .with(move |connection| responses::sweep(connection, before))
        .await?;
    conversation::sweep(gateway, retention).await?;
    for id in &deleted {
        fetch::unpin(gateway, id).await;
    }
    retrieve::forget(gateway, &unneeded).await;
    if !deleted.is_empty() {
        tracing::info!(responses = deleted.len(), "old responses are deleted");
    }
    Ok(())
}

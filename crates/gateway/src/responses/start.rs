//! What is done with kept responses when the gateway starts, and every hour.

use std::time::Duration;

use cellblock_settings::Time;

use super::{conversation, retrieve};
use crate::files::fetch;
use crate::now;
use crate::records::{RecordsError, responses};
use crate::state::Gateway;

/// How often old responses are looked for.
const HOUR: Duration = Duration::from_hours(1);

/// Fails the responses that ran when the process ended last time, and deletes old ones, now and every hour until the gateway stops.
pub(crate) async fn start(gateway: &Gateway) -> Result<(), RecordsError> {
    let broken = gateway.records.with(responses::recover).await?;
    if broken > 0 {
        tracing::warn!(
            responses = broken,
            "the last process ended while responses were being written"
        );
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

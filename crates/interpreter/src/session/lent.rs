//! Connectors that a session has for some of its cells.

use std::sync::Arc;

use cellblock_sandbox::channel::write_frame;
use tokio::sync::oneshot;

use super::actor::Actor;
use crate::connector::Connector;
use crate::error::Result;

impl Actor {
    /// Lends connectors to the next cells, in the place of those that were lent before.
    pub(super) async fn lend(
        &mut self,
        connectors: &[Arc<dyn Connector>],
        answer: oneshot::Sender<Result<()>>,
    ) {
        let result = self.bind_lent(connectors).await;
        let _ = answer.send(self.conclude(result));
    }

    async fn bind_lent(&mut self, connectors: &[Arc<dyn Connector>]) -> Result<()> {
        let grants = self.grants.lending(connectors);
        let before = std::mem::replace(&mut self.grants, grants);
        let new = self.grants.since(&before).await;
        // Binding a name again would undo what code has made of it.
        let known = new.iter().all(|bundle| self.bundles.contains(bundle));
        if known || self.kernel.is_none() {
            return Ok(());
        }
        self.hear_out().await?;
        self.bundles
            .retain(|bundle| new.iter().all(|it| it.name != bundle.name));
        self.bundles.extend(new);
        let message = self.configuration(self.bundles.clone());
        if let Some(kernel) = &mut self.kernel {
            self.standby.sent(&message, 0);
            if write_frame(&mut kernel.writer, &message, &[]).await.is_err() {
                // It has died meanwhile; the next one is configured when it starts.
                self.lost_between_cells().await;
            }
        }
        Ok(())
    }
}

//! Connectors that a session has for some of its cells.

use std::sync::Arc;

use cellblock_sandbox::channel::write_frame;

use crate::connector::Connector;
use crate::error::Result;
use crate::session::contents::Contents;
use crate::session::journal::Journal;
use crate::session::runtime::Runtime;

impl Runtime {
    /// Lends connectors to the next cells, in the place of those that were lent before.
    pub(in crate::session) async fn lend(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        connectors: &[Arc<dyn Connector>],
    ) -> Result<()> {
        let grants = contents.grants.lending(connectors);
        let before = std::mem::replace(&mut contents.grants, grants);
        let new = contents.grants.since(&before).await;
        // Binding a name again would undo what code has made of it.
        let known = new.iter().all(|bundle| self.bundles.contains(bundle));
        if known || self.kernel.is_none() {
            return Ok(());
        }
        self.hear_out(journal).await?;
        self.bundles
            .retain(|bundle| new.iter().all(|it| it.name != bundle.name));
        self.bundles.extend(new);
        let message = self.configuration(self.bundles.clone());
        if let Some(kernel) = &mut self.kernel {
            self.standby.sent(&message, 0);
            if write_frame(&mut kernel.writer, &message, &[]).await.is_err() {
                // It has died meanwhile; the next one is configured when it starts.
                self.lost_between_cells(journal).await;
            }
        }
        Ok(())
    }
}

//! The seal of summaries that turns make: only their owner can send them back, and only to this gateway.

use cellblock_agent::turn::SummarySeal;
use cellblock_agent::wire::{ApiError, Item};
use futures_util::future::BoxFuture;

use super::keep;
use crate::state::Gateway;
use crate::state::responses::{ConversationSummary, Seal};

/// The seal of a turn's summaries.
pub(super) struct TurnSeal {
    pub(super) gateway: Gateway,
    pub(super) owner: String,
    /// The container that was used last before the turn.
    pub(super) container: Option<String>,
}

impl SummarySeal for TurnSeal {
    fn seal<'a>(&'a self, summary: &'a str, output: &'a [Item]) -> BoxFuture<'a, Result<String, ApiError>> {
        Box::pin(async move {
            let used = keep::container(output);
            let sealed = ConversationSummary {
                summary: summary.to_owned(),
                container: used.or_else(|| self.container.clone()),
                replaces: true,
            };
            Seal::of(&self.gateway).await?.close(&self.owner, &sealed)
        })
    }
}

//! Compaction of a conversation in the course of a turn.

use super::Turn;
use super::builder::{ResponseBuilder, Stop};
use super::summary::{can_shrink, summarize, summary_item};
use crate::provider::{ModelRequest, count_tokens};
use crate::wire::{Item, ResponseRequest, TokenUsage};

impl Turn {
    /// Returns whether a model's next request is so long that its conversation is compacted first.
    pub(super) async fn is_long(
        &self,
        request: &ResponseRequest,
        asked: &ModelRequest,
    ) -> Result<bool, Stop> {
        let Some(threshold) = request.compaction.threshold.filter(|_| self.seal.is_some()) else {
            return Ok(false);
        };
        if !can_shrink(&asked.items) {
            return Ok(false);
        }
        let (tokens, _) = count_tokens(&*self.provider, asked.clone()).await?;
        Ok(tokens >= threshold)
    }

    /// Adds a compaction to the response, and returns its summary as the model reads it.
    pub(super) async fn compact(
        &self,
        request: &ResponseRequest,
        asked: ModelRequest,
        telling: &mut ResponseBuilder<'_>,
        usage: &mut TokenUsage,
    ) -> Result<Option<Item>, Stop> {
        let Some(seal) = &self.seal else {
            return Ok(None);
        };
        // Without the descriptions of tools: none is offered.
        let asked = ModelRequest {
            instructions: request.instructions.clone(),
            ..asked
        };
        let (summary, spent) = tokio::select! {
            summary = summarize(&*self.provider, asked) => summary?,
            () = telling.events.closed() => return Err(Stop::Gone),
        };
        *usage += spent;
        let output = &telling.draft.response().output;
        let sealed = seal.seal(&summary, output).await.map_err(Stop::Unsealed)?;
        let id = telling.ids.mint("cmp");
        telling.draft.whole_compaction(id.clone(), sealed);
        telling.flush().await?;
        Ok(Some(summary_item(id, &summary, true)))
    }
}

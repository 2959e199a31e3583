//! Compaction of a conversation in the course of a turn.

use tokio::sync::mpsc;

use super::Turn;
use super::builder::{ResponseBuilder, Stop};
use super::summary::{can_shrink, summarize, summary_item};
use crate::provider::{ModelRequest, chat, count_tokens};
use crate::wire::{Item, ResponseRequest, StreamEvent, TokenUsage};

impl Turn {
    /// Returns whether a model's next request is so long that its conversation is compacted first.
    pub(super) async fn is_long(
        &self,
        request: &ResponseRequest,
        asked: &ModelRequest,
        events: &mpsc::Sender<StreamEvent>,
    ) -> Result<bool, Stop> {
        let Some(threshold) = request.compaction.threshold.filter(|_| self.seal.is_some()) else {
            return Ok(false);
        };
        if !can_shrink(&asked.items) {
            return Ok(false);
        }
        let counted = tokio::select! {
            counted = count_tokens(&*self.provider, asked.clone()) => counted,
            () = events.closed() => return Err(Stop::Gone),
        };
        let tokens = match counted {
            Ok((tokens, _)) => tokens,
            Err(error) if error.is_too_long() => return Ok(true),
            // The steps so far are worth more than an exact number.
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "count the tokens of a conversation, which are estimated instead"
                );
                chat::estimate(asked)?
            }
        };
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

//! Results of tools that a client sends back, since it keeps the conversation itself: they become
//! results again.

use std::error::Error;

use cellblock_agent::provider::called;
use cellblock_agent::tools::Source;
use cellblock_agent::turn::{Evidence, whole_elsewhere};
use cellblock_agent::wire::{FunctionOutput, Item, McpCall};
use cellblock_artifact::ArtifactId;
use serde_json::{Value, json};

use crate::state::Gateway;

/// Puts calls of tools into the form that the model knows, with their results under aliases. A
/// result that is not the caller's, or is gone, has none: its text is all that there is.
pub(super) async fn take_over(
    gateway: &Gateway,
    owner: &str,
    sources: &[Source],
    evidence: &Evidence,
    conversation: &mut Vec<Item>,
) {
    let items = std::mem::take(conversation);
    for (index, item) in items.into_iter().enumerate() {
        let Item::McpCall(call) = &item else {
            conversation.push(item);
            continue;
        };
        let mut pair = called(call, index);
        let of_toolset = |source: &Source| source.label == call.server_label && !source.fetches();
        let value = if sources.iter().any(of_toolset) {
            None
        } else {
            result(gateway, owner, call).await
        };
        if let (Some(value), Item::FunctionCallOutput(shown)) = (value, &mut pair[1]) {
            match evidence.record(&call.name, &value, &shown.id).await {
                Ok((_, text)) => shown.output = FunctionOutput::Text(text),
                Err(error) => tracing::warn!(
                    error = &error as &dyn Error,
                    "a result that a client sent back is not kept"
                ),
            }
        }
        conversation.extend(pair);
    }
}

/// The whole result of a call, as far as it had one.
async fn result(gateway: &Gateway, owner: &str, call: &McpCall) -> Option<Value> {
    let output = call.output.as_ref().filter(|_| !call.is_own())?;
    let Some(sha256) = whole_elsewhere(output) else {
        return Some(read(output));
    };
    match fetched(gateway, owner, sha256).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(
                error = &*error,
                "a result that a client sent back cannot be read again"
            );
            None
        }
    }
}

/// As tools are understood: an object or a list, else text.
fn read(output: &str) -> Value {
    match serde_json::from_str(output) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
        _ => json!(output),
    }
}

/// A result that was too large for its item, if this caller may read it.
async fn fetched(
    gateway: &Gateway,
    owner: &str,
    sha256: &str,
) -> Result<Option<Value>, Box<dyn Error + Send + Sync>> {
    if !gateway.records.owns_artifact(owner, sha256).await? {
        return Ok(None);
    }
    let bytes = gateway.store.get(sha256.parse::<ArtifactId>()?).await?;
    Ok(Some(serde_json::from_slice(&bytes)?))
}

//! Cuts conversations that are too long, for requests with `truncation: auto`: when the provider
//! says so, the oldest items are left out.

use std::collections::HashSet;
use std::sync::Arc;

use cellblock_agent::provider::{ModelRequest, ModelStream, Provider, ProviderError};
use cellblock_agent::wire::{Item, Role};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};

/// Maximum number of times that a conversation is truncated before the provider's error is
/// returned. Each time removes a quarter of the removable items.
const CUTS: usize = 8;

/// A provider that gets shorter conversations when it finds them too long. What applications and
/// the last user said always stays.
pub(super) struct TruncatingProvider {
    provider: Arc<dyn Provider>,
}

impl TruncatingProvider {
    pub(super) fn new(provider: Arc<dyn Provider>) -> Self {
        Self { provider }
    }

    /// Asks, and waits for the first event: some providers tell in the stream that they cannot answer.
    async fn ask(&self, request: ModelRequest) -> Result<ModelStream, ProviderError> {
        let mut answer = self.provider.stream(request).await?;
        match answer.next().await {
            Some(Err(error)) if error.is_too_long() => Err(error),
            first => Ok(stream::iter(first).chain(answer).boxed()),
        }
    }
}

impl Provider for TruncatingProvider {
    fn count(&self, request: ModelRequest) -> BoxFuture<'_, Result<Option<u64>, ProviderError>> {
        self.provider.count(request)
    }

    fn stream(&self, mut request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        Box::pin(async move {
            for _ in 0..CUTS {
                match self.ask(request.clone()).await {
                    Err(error) if error.is_too_long() => {
                        let before = request.items.len();
                        cut(&mut request.items);
                        if request.items.len() == before {
                            return Err(error);
                        }
                        tracing::debug!(before, after = request.items.len(), "cut a conversation");
                    }
                    other => return other,
                }
            }
            self.ask(request).await
        })
    }
}

/// Leaves out the oldest quarter of what may go, at least one item, and what belongs to it.
fn cut(items: &mut Vec<Item>) {
    let last = items.iter().rposition(|item| says(item, Role::User));
    let may_go = |place: usize, item: &Item| {
        last.is_some_and(|last| place < last) && !says(item, Role::System) && !says(item, Role::Developer)
    };
    let all = items
        .iter()
        .enumerate()
        .filter(|(place, item)| may_go(*place, item))
        .count();
    let mut left = all.div_ceil(4);
    let mut place = 0;
    let mut calls = HashSet::new();
    items.retain(|item| {
        let goes = left > 0 && may_go(place, item);
        place += 1;
        if goes {
            left -= 1;
            if let Item::FunctionCall(call) = item {
                calls.insert(call.call_id.clone());
            }
            return false;
        }
        // An output without its call is refused everywhere.
        !matches!(item, Item::FunctionCallOutput(output) if calls.remove(&output.call_id))
    });
}

fn says(item: &Item, role: Role) -> bool {
    matches!(item, Item::Message(message) if message.role == role)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
    use cellblock_agent::wire::{Ids, ResponseRequest};

    fn items(input: &serde_json::Value) -> Vec<Item> {
        let body = json!({"model": "m", "input": input}).to_string();
        ResponseRequest::parse(body.as_bytes(), &mut Ids::counted())
            .unwrap()
            .input
    }

    fn conversation() -> Vec<Item> {
        items(&json!([
            {"role": "developer", "content": "be kind"},
            {"role": "user", "content": "one"},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "long"},
            {"role": "assistant", "content": "two"},
            {"role": "user", "content": "three"},
        ]))
    }

    fn kinds(items: &[Item]) -> Vec<String> {
        let told = items.iter().map(|item| {
            let item = json!(item);
            let text = item["content"][0]["text"].as_str();
            text.or(item["type"].as_str()).unwrap().to_owned()
        });
        told.collect()
    }

    #[test]
    fn the_oldest_items_are_removed_and_the_last_question_stays() {
        let mut items = conversation();
        cut(&mut items);
        assert_eq!(
            kinds(&items),
            ["be kind", "function_call", "function_call_output", "two", "three"]
        );
        cut(&mut items);
        assert_eq!(kinds(&items), ["be kind", "two", "three"]);
        cut(&mut items);
        assert_eq!(kinds(&items), ["be kind", "three"]);
        cut(&mut items);
        assert_eq!(kinds(&items), ["be kind", "three"]);
    }

    fn too_long() -> ProviderError {
        ProviderError::Reported {
            message: "This model's maximum context length is 10 tokens".to_owned(),
            code: None,
        }
    }

    fn request() -> ModelRequest {
        ModelRequest::new("m", conversation())
    }

    #[tokio::test]
    async fn a_conversation_is_cut_until_the_provider_answers() {
        let answers = [
            ScriptedAnswer::new().fails(too_long()),
            ScriptedAnswer::new().fails(too_long()),
            ScriptedAnswer::new().text("ok"),
        ];
        let provider = Arc::new(ScriptedProvider::new(answers));
        let truncating = TruncatingProvider::new(Arc::clone(&provider) as Arc<dyn Provider>);
        let events: Vec<_> = truncating.stream(request()).await.unwrap().collect().await;
        assert!(events.iter().all(Result::is_ok) && !events.is_empty());
        let lengths: Vec<_> = provider.asked().iter().map(|asked| asked.items.len()).collect();
        assert_eq!(lengths, [6, 5, 3]);
    }

    #[tokio::test]
    async fn a_conversation_at_its_minimum_gets_the_providers_error() {
        let provider = Arc::new(ScriptedProvider::new(
            (0..9).map(|_| ScriptedAnswer::new().fails(too_long())),
        ));
        let truncating = TruncatingProvider::new(Arc::clone(&provider) as Arc<dyn Provider>);
        let error = truncating.stream(request()).await.err().unwrap();
        assert!(error.is_too_long());
        assert_eq!(provider.asked().len(), 4);
    }

    #[tokio::test]
    async fn other_errors_are_returned_unchanged() {
        let provider = Arc::new(ScriptedProvider::new([
            ScriptedAnswer::new().fails(ProviderError::Cut)
        ]));
        let truncating = TruncatingProvider::new(provider as Arc<dyn Provider>);
        let events: Vec<_> = truncating.stream(request()).await.unwrap().collect().await;
        assert!(matches!(events[..], [Err(ProviderError::Cut)]));
    }
}

//! `POST /v1/responses/input_tokens`.

use std::sync::Arc;

use cellblock_agent::provider::scripted::ScriptedAnswer;
use cellblock_agent::provider::{ModelRequest, ModelStream, Provider, ProviderError};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::support::{Server, block_on, interpreter_tool, scripted, serve};

/// A model whose server counts tokens.
struct CountingProvider;

impl Provider for CountingProvider {
    fn stream(&self, _: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        Box::pin(std::future::ready(Err(ProviderError::Cut)))
    }

    fn count(&self, _: ModelRequest) -> BoxFuture<'_, Result<Option<u64>, ProviderError>> {
        Box::pin(std::future::ready(Ok(Some(7))))
    }
}

async fn count(server: &Server, mut fields: Value) -> u64 {
    fields["model"] = json!("m");
    let counted = server.post("responses/input_tokens", &fields).await.ok();
    assert_eq!(counted["object"], "response.input_tokens");
    assert_eq!(counted["cellblock"], json!({"counted_by": "estimate"}));
    counted["input_tokens"].as_u64().unwrap()
}

#[test]
fn tokens_are_counted_of_everything_that_the_model_would_read() {
    block_on(async {
        let (server, provider) = scripted([ScriptedAnswer::new().text("hello there")]).await;
        let plain = count(&server, json!({"input": "eight ch"})).await;
        assert_eq!(plain, 4 + 2);
        let told = json!({"input": "eight ch", "instructions": "be brief"});
        assert_eq!(count(&server, told).await, plain + 4 + 2);
        // The description of the interpreter is long.
        let tooled = count(&server, json!({"input": "eight ch", "tools": interpreter_tool()})).await;
        assert!(tooled > plain + 50, "{tooled}");

        let first = server.create(json!({"input": "eight ch"})).await.ok();
        let going = json!({"input": "eight ch", "previous_response_id": first["id"]});
        // What was asked, what was answered, and what is asked now.
        assert_eq!(count(&server, going).await, plain + (4 + 3) + plain);
        let conversation = server
            .post(
                "conversations",
                &json!({"items": [{"role": "user", "content": "eight ch"}]}),
            )
            .await
            .ok();
        let alone = json!({"conversation": conversation["id"]});
        assert_eq!(count(&server, alone).await, plain);
        // Nothing was asked of the model for that.
        assert_eq!(provider.asked().len(), 1);
    });
}

#[test]
fn a_request_that_could_not_be_answered_is_not_counted() {
    block_on(async {
        let (server, _) = scripted([]).await;
        let unknown = server
            .post("responses/input_tokens", &json!({"model": "none", "input": "x"}))
            .await;
        assert_eq!(unknown.error().1, "model_not_found");
        let wrong = server
            .post("responses/input_tokens", &json!({"model": "m", "input": 7}))
            .await;
        assert_eq!(wrong.error(), (400, "invalid_type"));
    });
}

#[test]
fn the_count_of_the_models_server_is_returned_if_it_has_one() {
    block_on(async {
        let server = serve(Arc::new(CountingProvider) as Arc<dyn Provider>).await;
        let asked = json!({"model": "m", "input": "eight ch"});
        let counted = server.post("responses/input_tokens", &asked).await.ok();
        assert_eq!(counted["input_tokens"], 7);
        assert_eq!(counted["cellblock"], json!({"counted_by": "provider"}));
    });
}

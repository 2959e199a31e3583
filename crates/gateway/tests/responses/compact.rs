//! Conversations in short.

use std::sync::Arc;

use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_agent::provider::{ModelRequest, ModelStream, Provider, ProviderError};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::order::Order;
use crate::support::{Server, block_on, events, interpreter_tool, names, runs, scripted, serve, told, types};

/// A model whose server fails to count tokens.
struct UncountedProvider(ScriptedProvider);

impl Provider for UncountedProvider {
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        self.0.stream(request)
    }

    fn count(&self, _: ModelRequest) -> BoxFuture<'_, Result<Option<u64>, ProviderError>> {
        Box::pin(std::future::ready(Err(ProviderError::Cut)))
    }
}

async fn compact(server: &Server, fields: Value) -> Value {
    let mut body = fields;
    body["model"] = json!("m");
    server.post("responses/compact", &body).await.ok()
}

#[test]
fn a_sealed_compaction_continues_with_its_summary() {
    block_on(async {
        let answers = [
            ScriptedAnswer::new().text("Nice to meet you, Ann."),
            ScriptedAnswer::new().text("The user is Ann."),
            ScriptedAnswer::new().text("Ann"),
        ];
        let (server, provider) = scripted(answers).await;
        let first = server.create(json!({"input": "I am Ann."})).await.ok();
        let compaction = compact(
            &server,
            json!({"previous_response_id": first["id"], "prompt_cache_key": "k", "instructions": "be kind"}),
        )
        .await;
        assert_eq!(compaction["object"], "response.compaction");
        assert!(compaction["id"].is_string() && compaction["created_at"].is_u64());
        assert!(compaction["usage"]["total_tokens"].as_u64().unwrap() > 0);
        let output = &compaction["output"];
        assert_eq!(output.as_array().unwrap().len(), 1);
        assert_eq!(output[0]["type"], "compaction");
        let sealed = output[0]["encrypted_content"].as_str().unwrap();
        // Three letters alone come up by chance.
        assert!(!sealed.contains("user is Ann"));
        let asked = &provider.asked()[1];
        assert_eq!(asked.instructions.as_deref(), Some("be kind"));
        assert_eq!(
            told(&json!(asked.items))[..2],
            ["user: I am Ann.", "assistant: Nice to meet you, Ann."]
        );
        let mut input = output.clone();
        input
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "user", "content": "Who am I?"}));
        let second = server.create(json!({"input": input})).await.ok();
        assert_eq!(second["output"][0]["content"][0]["text"], "Ann");
        assert_eq!(
            told(&json!(provider.asked()[2].items)),
            [
                "user: (What was said before, in short:)\nThe user is Ann.",
                "user: Who am I?"
            ]
        );
    });
}

#[test]
fn a_changed_or_foreign_compaction_is_rejected() {
    block_on(async {
        let (server, provider) = scripted([ScriptedAnswer::new().text("short")]).await;
        let compaction = compact(&server, json!({"input": "long"})).await;
        let item = &compaction["output"][0];
        let refused = (400, "invalid_encrypted_content");
        let got = server.of("bob").create(json!({"input": [item]})).await;
        assert_eq!(got.error(), refused);
        assert_eq!(got.body["error"]["param"], "input[0].encrypted_content");
        let mut changed = item.clone();
        let sealed = changed["encrypted_content"].as_str().unwrap().to_owned();
        let last = if sealed.ends_with('A') { "Q" } else { "A" };
        changed["encrypted_content"] = json!(format!("{}{last}", &sealed[..sealed.len() - 1]));
        for forged in [
            changed,
            json!({"type": "compaction", "encrypted_content": "plain words"}),
        ] {
            assert_eq!(server.create(json!({"input": [forged]})).await.error(), refused);
        }
        assert_eq!(provider.asked().len(), 1);
    });
}

#[test]
fn a_compaction_needs_a_model_and_something_to_compact() {
    block_on(async {
        let (server, _) = scripted([ScriptedAnswer::new()]).await;
        let got = server.post("responses/compact", &json!({"input": "x"})).await;
        assert_eq!(got.error(), (400, "missing_required_parameter"));
        assert_eq!(got.body["error"]["param"], "model");
        let got = server.post("responses/compact", &json!({"model": "m"})).await;
        assert_eq!(got.error(), (400, "missing_required_parameter"));
        let got = server
            .post(
                "responses/compact",
                &json!({"model": "m", "previous_response_id": "resp_none"}),
            )
            .await;
        assert_eq!(got.error(), (400, "previous_response_not_found"));
        // A model that says nothing has made no summary.
        let got = server
            .post("responses/compact", &json!({"model": "m", "input": "x"}))
            .await;
        assert_eq!(got.error(), (500, "server_error"));
    });
}

/// A compaction that a turn makes of a conversation that is longer than this.
fn over(threshold: u64) -> Value {
    json!([{"type": "compaction", "compact_threshold": threshold}])
}

const SHORT: &str = "user: (Everything that was said before this, in short:)\nThe user is Ann.";

#[test]
fn a_turn_compacts_a_long_conversation_before_its_model_continues() {
    block_on(async {
        let answers = [
            ScriptedAnswer::new().text(&"long ".repeat(2_000)),
            ScriptedAnswer::new().text("The user is Ann."),
            ScriptedAnswer::new().text("Ann"),
            ScriptedAnswer::new().text("once more"),
            ScriptedAnswer::new().text("by reference"),
            ScriptedAnswer::new().text("whole"),
        ];
        let (server, provider) = scripted(answers).await;
        let developer = json!({"role": "developer", "content": "be kind"});
        let user = |text: &str| json!({"role": "user", "content": text});
        let first = server
            .create(json!({"input": [developer, user("I am Ann.")]}))
            .await
            .ok();
        let second = server
            .create(json!({
                "input": "Who am I?", "previous_response_id": first["id"], "context_management": over(1_000),
            }))
            .await
            .ok();
        assert_eq!(types(&second["output"]), ["compaction", "message"]);
        assert_eq!(second["output"][1]["content"][0]["text"], "Ann");
        let asked = |index: usize| told(&json!(provider.asked()[index].items));
        assert!(asked(1).last().unwrap().starts_with("user: Write a summary"));
        assert_eq!(asked(2), ["developer: be kind", SHORT, "user: Who am I?"]);
        // The summary stays in the place of what it replaces, whichever way the client goes on.
        server
            .create(json!({"input": "and now?", "previous_response_id": second["id"]}))
            .await
            .ok();
        let kept = [
            "developer: be kind",
            SHORT,
            "user: Who am I?",
            "assistant: Ann",
            "user: and now?",
        ];
        assert_eq!(asked(3), kept);
        let reference = json!({"type": "item_reference", "id": second["output"][0]["id"]});
        server
            .create(json!({"input": [user("I am Ann."), reference, user("and now?")]}))
            .await
            .ok();
        assert_eq!(asked(4), [SHORT, "user: and now?"]);
        let [compaction, answer] = &second["output"].as_array().unwrap()[..] else {
            panic!("{second}")
        };
        server
            .create(
                json!({"input": [user("I am Ann."), compaction, answer, user("and now?")], "store": false}),
            )
            .await
            .ok();
        assert_eq!(asked(5), [SHORT, "assistant: Ann", "user: and now?"]);
        // Nobody else can read it.
        let stolen = server.of("bob").create(json!({"input": [compaction]})).await;
        assert_eq!(stolen.error(), (400, "invalid_encrypted_content"));
    });
}

#[test]
fn results_of_functions_are_compacted_and_the_question_stays() {
    block_on(async {
        let answers = [
            ScriptedAnswer::new().text("The user is Ann."),
            ScriptedAnswer::new().text("done"),
        ];
        let (server, provider) = scripted(answers).await;
        let stream = server
            .stream(json!({
                "input": [
                    {"role": "user", "content": "Look it up."},
                    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c1", "output": "x".repeat(8_000)},
                ],
                "context_management": over(1_000),
            }))
            .await;
        let events = events(&stream.text().await.unwrap());
        Order::check(&events).unwrap();
        assert_eq!(
            names(&events)[2..5],
            [
                "response.output_item.added",
                "response.compaction.compacting",
                "response.output_item.done"
            ]
        );
        let asked = provider.asked();
        assert_eq!(asked.len(), 2);
        assert_eq!(told(&json!(asked[1].items)), [SHORT, "user: Look it up."]);
    });
}

#[test]
fn a_conversation_below_its_threshold_or_with_one_question_is_not_compacted() {
    block_on(async {
        let answers = [
            ScriptedAnswer::new().text("one"),
            ScriptedAnswer::new().text("two"),
        ];
        let (server, provider) = scripted(answers).await;
        for (input, threshold) in [("x".repeat(8_000), 1_000), ("short".to_owned(), 100_000)] {
            let got = server
                .create(json!({"input": input, "context_management": over(threshold)}))
                .await
                .ok();
            assert_eq!(types(&got["output"]), ["message"]);
        }
        assert_eq!(provider.asked().len(), 2);
    });
}

#[test]
fn a_trigger_compacts_at_once_and_asks_for_no_answer() {
    block_on(async {
        let answers = [
            ScriptedAnswer::new().text("Nice to meet you, Ann."),
            ScriptedAnswer::new().text("The user is Ann."),
            ScriptedAnswer::new().text("Ann"),
        ];
        let (server, provider) = scripted(answers).await;
        let conversation = server.post("conversations", &json!({})).await.ok();
        let id = &conversation["id"];
        server
            .create(json!({"input": "I am Ann.", "conversation": id}))
            .await
            .ok();
        let compacted = server
            .create(json!({"input": [{"type": "compaction_trigger"}], "conversation": id}))
            .await
            .ok();
        assert_eq!(compacted["status"], "completed");
        assert_eq!(types(&compacted["output"]), ["compaction"]);
        server
            .create(json!({"input": "Who am I?", "conversation": id}))
            .await
            .ok();
        let asked = provider.asked();
        assert_eq!(asked.len(), 3);
        assert_eq!(told(&json!(asked[2].items)), [SHORT, "user: Who am I?"]);
    });
}

#[test]
fn a_turn_whose_model_writes_no_summary_fails() {
    block_on(async {
        let (server, _) = scripted([ScriptedAnswer::new()]).await;
        let got = server
            .create(json!({"input": [{"role": "user", "content": "x"}, {"type": "compaction_trigger"}]}))
            .await;
        assert_eq!(got.error(), (500, "server_error"));
        assert_eq!(
            got.body["error"]["message"],
            "the model wrote no summary of the conversation"
        );
    });
}

#[test]
fn a_count_that_fails_is_estimated_and_the_response_continues() {
    block_on(async {
        let answers = ["The user is Ann.", "Ann", "short"].map(|text| ScriptedAnswer::new().text(text));
        let provider = UncountedProvider(ScriptedProvider::new(answers));
        let server = serve(Arc::new(provider) as Arc<dyn Provider>).await;
        for (said, output) in [
            ("long ".repeat(2_000), vec!["compaction", "message"]),
            ("I am Ann.".to_owned(), vec!["message"]),
        ] {
            let input = json!([
                {"role": "user", "content": said},
                {"role": "assistant", "content": "Nice to meet you."},
                {"role": "user", "content": "Who am I?"},
            ]);
            let got = server
                .create(json!({"input": input, "context_management": over(1_000)}))
                .await
                .ok();
            assert_eq!(types(&got["output"]), output, "{got}");
        }
    });
}

#[test]
fn a_compaction_leads_to_the_container_of_the_first_of_several_calls() {
    block_on(async {
        let code = |text: &str| json!({"code": text}).to_string();
        let long = format!("kept = 41\n# {}", "long ".repeat(2_000));
        let both = ScriptedAnswer::new()
            .call("c1", "code_interpreter", &code(&long))
            .call("c2", "code_interpreter", &code("other = 1"));
        let (server, _) = scripted([
            both,
            ScriptedAnswer::new().text("`kept` is set."),
            ScriptedAnswer::new().text("Done."),
            runs("c3", "print(kept + 1)"),
            ScriptedAnswer::new().text("42"),
        ])
        .await;
        let first = server
            .create(json!({
                "input": "Set it.", "tools": interpreter_tool(), "context_management": over(1_000),
            }))
            .await
            .ok();
        assert_eq!(
            types(&first["output"]),
            [
                "code_interpreter_call",
                "code_interpreter_call",
                "compaction",
                "message"
            ]
        );
        let user = json!({"role": "user", "content": "Add one."});
        let second = server
            .create(json!({"input": [first["output"][2], user], "tools": interpreter_tool()}))
            .await
            .ok();
        assert_eq!(
            second["output"][0]["container_id"], first["output"][0]["container_id"],
            "{second}"
        );
    });
}

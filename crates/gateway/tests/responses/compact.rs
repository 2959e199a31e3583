//! Conversations in short.

use cellblock_agent::provider::scripted::ScriptedAnswer;
use serde_json::{Value, json};

use crate::support::{Server, block_on, scripted, told};

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

//! A conversation finds its container again, however its client sends it back.

use cellblock_agent::provider::scripted::ScriptedAnswer;
use cellblock_gateway::options::StickyKey;
use cellblock_gateway::records::Records;
use serde_json::{Value, json};

use crate::support::{Bench, bench, block_on, logs, runs, start};

/// A body that a test adds to: code runs in a container that the gateway chooses.
fn body(model: &str, more: Value) -> Value {
    let mut body = json!({
        "model": model, "include": ["code_interpreter_call.outputs"],
        "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}],
    });
    let Value::Object(more) = more else {
        panic!("no object: {more}")
    };
    body.as_object_mut().unwrap().extend(more);
    body
}

/// A response whose model runs code first.
async fn turn(bench: &Bench, model: &str, code: &str, more: Value) -> Value {
    bench.script(model, [runs("c", code), ScriptedAnswer::new().text("Done.")]);
    bench.post("responses", &body(model, more)).await.ok()
}

/// The first turn of a conversation, which leaves `x`.
async fn first(bench: &Bench, model: &str, more: Value) -> Value {
    let first = turn(bench, model, "x = 41", more).await;
    assert_eq!(first["output"][0]["status"], "completed", "{first}");
    first
}

const NEXT: &str = "print('x is', globals().get('x'))";

/// Returns what the next turn knows of `x`.
async fn next(bench: &Bench, model: &str, more: Value) -> String {
    let next = turn(bench, model, NEXT, more).await;
    logs(&next["output"][0]).trim().to_owned()
}

/// A conversation as clients send it that keep its text alone.
fn history(said: &str) -> Value {
    json!([
        {"role": "user", "content": said},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "go on"},
    ])
}

fn reference(item: &Value) -> Value {
    json!({"type": "item_reference", "id": item["id"]})
}

#[test]
fn references_to_items_lead_to_the_container_of_their_response() {
    block_on(async {
        let bench = bench().await.of("rita");
        let done = first(&bench, "rita", json!({"input": "keep"})).await;
        let (call, message) = (&done["output"][0], &done["output"][1]);
        // As the AI SDK sends a conversation back.
        let input = json!([
            {"role": "user", "content": "keep"}, reference(call), reference(message),
            {"role": "user", "content": "go on"},
        ]);
        assert_eq!(next(&bench, "rita", json!({"input": input})).await, "x is 41");
        // The answer alone leads there, by reference and as an item that has its id.
        let go_on = json!({"role": "user", "content": "go on"});
        for item in [reference(message), message.clone()] {
            let input = json!([item, go_on]);
            assert_eq!(next(&bench, "rita", json!({"input": input})).await, "x is 41");
        }
        // Items of somebody else lead nowhere.
        let rex = bench.of("rex");
        let input = json!([message, go_on]);
        assert_eq!(next(&rex, "rita", json!({"input": input})).await, "x is None");
    });
}

#[test]
fn a_compaction_leads_to_the_container_of_its_conversation() {
    block_on(async {
        let bench = bench().await.of("cora");
        let done = first(&bench, "cora", json!({"input": "keep"})).await;
        bench.script("cora", [ScriptedAnswer::new().text("x was set.")]);
        let compact = json!({"model": "cora", "previous_response_id": done["id"]});
        let compacted = bench.post("responses/compact", &compact).await.ok();
        let mut input = compacted["output"].clone();
        let go_on = json!({"role": "user", "content": "go on"});
        input.as_array_mut().unwrap().push(go_on);
        assert_eq!(
            next(&bench, "cora", json!({"input": input, "store": false})).await,
            "x is 41"
        );
    });
}

#[test]
fn a_key_leads_a_conversation_of_bare_text_to_its_container() {
    block_on(async {
        let bench = bench().await;
        for (owner, key) in [
            ("kate", json!({"prompt_cache_key": "chat-1"})),
            ("kurt", json!({"metadata": {"session": "chat-1"}})),
        ] {
            let bench = bench.of(owner);
            let with = |input: Value| {
                let mut more = key.clone();
                more["input"] = input;
                more["store"] = json!(false);
                more
            };
            first(&bench, owner, with(json!("keep"))).await;
            assert_eq!(
                next(&bench, owner, with(history("keep"))).await,
                "x is 41",
                "{key}"
            );
            assert_eq!(
                next(&bench, owner, with(history("keep"))).await,
                "x is 41",
                "{key}"
            );
            // Without the key nothing says which conversation it is.
            let without = json!({"input": history("keep")});
            assert_eq!(next(&bench, owner, without).await, "x is None", "{key}");
            // Another owner's key is another one.
            let eve = bench.of("eva");
            assert_eq!(
                next(&eve, owner, with(history("keep"))).await,
                "x is None",
                "{key}"
            );
        }
    });
}

#[test]
fn a_session_is_found_without_a_history() {
    block_on(async {
        let bench = bench().await.of("sara");
        let with = |input: Value| json!({"input": input, "metadata": {"session": "s"}});
        first(&bench, "sara", with(json!("keep"))).await;
        assert_eq!(next(&bench, "sara", with(json!("go on"))).await, "x is 41");
    });
}

#[test]
fn conversations_that_share_a_prompt_cache_key_share_no_container() {
    block_on(async {
        let bench = bench().await.of("paco");
        let with = |input: Value| json!({"input": input, "prompt_cache_key": "my-app"});
        first(&bench, "paco", with(json!("I am Ann"))).await;
        // A second conversation begins, and from then on the key says nothing.
        assert_eq!(next(&bench, "paco", with(json!("I am Bob"))).await, "x is None");
        assert_eq!(next(&bench, "paco", with(history("I am Bob"))).await, "x is None");
        assert_eq!(next(&bench, "paco", with(history("I am Ann"))).await, "x is None");
    });
}

#[test]
fn conversations_of_one_user_share_a_container_only_where_that_is_configured() {
    block_on(async {
        let with = |input: Value| json!({"input": input, "user": "u", "safety_identifier": "u"});
        let usual = bench().await.of("uma");
        first(&usual, "uma", with(json!("keep"))).await;
        assert_eq!(next(&usual, "uma", with(history("keep"))).await, "x is None");
        for key in [StickyKey::User, StickyKey::SafetyIdentifier] {
            let bench = start(Records::in_memory().unwrap(), |options| {
                options.containers.sticky_keys = vec![key];
            })
            .await;
            first(&bench, "m", with(json!("keep"))).await;
            assert_eq!(next(&bench, "m", with(json!("something else"))).await, "x is 41");
        }
    });
}

//! The Conversations API, and responses that go on in conversations.

use cellblock_agent::provider::scripted::ScriptedAnswer;
use serde_json::{Value, json};

use crate::support::{Server, block_on, events, interpreter_tool, runs, scripted, told, types};

async fn conversation(server: &Server, body: &Value) -> String {
    let made = server.post("conversations", body).await.ok();
    assert_eq!(made["object"], "conversation");
    made["id"].as_str().unwrap().to_owned()
}

async fn delete(server: &Server, path: &str) -> crate::support::HttpAnswer {
    server.send(server.request("DELETE", path)).await
}

/// The items of a conversation, the oldest first.
async fn items(server: &Server, id: &str, query: &str) -> Value {
    let list = server
        .get(&format!("conversations/{id}/items?order=asc{query}"))
        .await
        .ok();
    assert_eq!(list["object"], "list");
    list["data"].clone()
}

fn message(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[test]
fn a_conversation_continues_with_its_items_and_container() {
    block_on(async {
        let (server, provider) = scripted([
            runs("c1", "x = 41"),
            ScriptedAnswer::new().text("kept"),
            runs("c2", "print(x + 1)"),
            ScriptedAnswer::new().text("forty-two"),
            ScriptedAnswer::new().text("not stored"),
            ScriptedAnswer::new().text("last"),
        ])
        .await;
        let id = conversation(
            &server,
            &json!({"items": [{"role": "developer", "content": "be brief"}]}),
        )
        .await;
        let ask =
            |input: &str| json!({"input": input, "conversation": {"id": id}, "tools": interpreter_tool()});
        let first = server.create(ask("remember")).await.ok();
        assert_eq!(first["conversation"], json!({"id": id}));
        let mut body = ask("add one");
        body["include"] = json!(["code_interpreter_call.outputs"]);
        let stream = server.stream(body).await;
        let events = events(&stream.text().await.unwrap());
        let second = &events.last().unwrap()["response"];
        assert_eq!(
            second["output"][0]["outputs"],
            json!([{"type": "logs", "logs": "42\n"}])
        );
        assert_eq!(
            second["output"][0]["container_id"],
            first["output"][0]["container_id"]
        );

        // The model reads everything, once.
        let asked = json!(provider.asked()[3].items);
        let read = told(&asked);
        assert_eq!(
            read[..3],
            [
                "developer: be brief",
                "user: remember",
                "function_call: {\"code\":\"x = 41\"}"
            ]
        );
        assert_eq!(read[4], "assistant: kept");
        assert_eq!(asked.as_array().unwrap().len(), 8, "{asked}");

        // A response that is not stored is a part of the conversation, too.
        let unstored = json!({"input": "again", "conversation": id, "store": false});
        server.create(unstored).await.ok();
        let there = items(&server, &id, "").await;
        let kinds = types(&there);
        assert_eq!(
            kinds,
            [
                "message",
                "message",
                "code_interpreter_call",
                "message",
                "message",
                "code_interpreter_call",
                "message",
                "message",
                "message"
            ]
        );
        assert_eq!(there[5]["id"], second["output"][0]["id"]);
        // Outputs are for those who ask for them.
        assert_eq!(there[5]["outputs"], Value::Null);
        let with = items(&server, &id, "&include[]=code_interpreter_call.outputs").await;
        assert_eq!(with[5]["outputs"], json!([{"type": "logs", "logs": "42\n"}]));

        // Other responses can go on from a response of a conversation.
        let previous = json!({"input": "so?", "previous_response_id": second["id"]});
        server.create(previous).await.ok();
        assert_eq!(json!(provider.asked()[5].items).as_array().unwrap().len(), 10);
        assert_eq!(items(&server, &id, "").await, there);
    });
}

#[test]
fn items_are_added_listed_read_and_deleted() {
    block_on(async {
        let (server, provider) = scripted([ScriptedAnswer::new().text("ok")]).await;
        let id = conversation(&server, &json!({"metadata": {"topic": "x"}})).await;
        let at = format!("conversations/{id}");
        let texts = ["one", "two", "three"];
        let added = server
            .post(&format!("{at}/items"), &json!({"items": texts.map(message)}))
            .await
            .ok();
        let ids: Vec<_> = added["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap())
            .collect();
        assert_eq!(
            (&added["first_id"], &added["last_id"]),
            (&json!(ids[0]), &json!(ids[2]))
        );

        let newest = server.get(&format!("{at}/items?limit=2")).await.ok();
        assert_eq!(told(&newest["data"]), ["user: three", "user: two"]);
        assert_eq!(
            (&newest["has_more"], &newest["last_id"]),
            (&json!(true), &json!(ids[1]))
        );
        let rest = server
            .get(&format!("{at}/items?limit=2&after={}", ids[1]))
            .await
            .ok();
        assert_eq!(
            (told(&rest["data"]), &rest["has_more"]),
            (vec!["user: one".to_owned()], &json!(false))
        );

        let one = server.get(&format!("{at}/items/{}", ids[1])).await.ok();
        assert_eq!(one, added["data"][1]);
        let left = delete(&server, &format!("{at}/items/{}", ids[1])).await.ok();
        assert_eq!(
            (&left["id"], &left["metadata"]),
            (&json!(id), &json!({"topic": "x"}))
        );
        assert_eq!(
            server.get(&format!("{at}/items/{}", ids[1])).await.error(),
            (404, "item_not_found")
        );
        assert_eq!(
            delete(&server, &format!("{at}/items/{}", ids[1])).await.error(),
            (404, "item_not_found")
        );
        server.create(json!({"input": [], "conversation": id})).await.ok();
        assert_eq!(
            told(&json!(provider.asked()[0].items)),
            ["user: one", "user: three"]
        );

        let changed = server.post(&at, &json!({"metadata": {"topic": "y"}})).await.ok();
        assert_eq!(changed["metadata"], json!({"topic": "y"}));
        assert_eq!(server.get(&at).await.ok(), changed);
        let gone = delete(&server, &at).await.ok();
        assert_eq!(
            gone,
            json!({"id": id, "object": "conversation.deleted", "deleted": true})
        );
        assert_eq!(server.get(&at).await.error(), (404, "conversation_not_found"));
    });
}

#[test]
fn a_call_of_a_function_is_answered_in_the_next_response_of_its_conversation() {
    block_on(async {
        let (server, provider) = scripted([
            ScriptedAnswer::new().call("c1", "f", "{}"),
            ScriptedAnswer::new().text("done"),
        ])
        .await;
        let id = conversation(&server, &json!({})).await;
        let tools = json!([{"type": "function", "name": "f"}]);
        server
            .create(json!({"input": "x", "conversation": id, "tools": tools}))
            .await
            .ok();
        let open = server.create(json!({"input": "y", "conversation": id})).await;
        assert_eq!(open.error(), (400, "missing_call_output"));
        let output = json!([{"type": "function_call_output", "call_id": "c1", "output": "7"}]);
        server
            .create(json!({"input": output, "conversation": id, "tools": tools}))
            .await
            .ok();
        assert_eq!(
            told(&json!(provider.asked()[1].items)),
            ["user: x", "function_call: {}", "function_call_output: 7"]
        );
    });
}

#[test]
fn who_sees_the_end_of_a_background_response_finds_it_in_its_conversation() {
    block_on(async {
        const TURNS: usize = 30;
        let (server, provider) = scripted((0..TURNS).map(|_| ScriptedAnswer::new().text("Done."))).await;
        let id = conversation(&server, &json!({})).await;
        for turn in 0..TURNS {
            let body = json!({"input": "go", "conversation": {"id": id}, "background": true});
            let response = server.create(body).await.ok();
            let path = format!("responses/{}", response["id"].as_str().unwrap());
            // As soon as it can be seen.
            while server.get(&path).await.ok()["status"] != "completed" {}
            assert_eq!(
                items(&server, &id, "&limit=100").await.as_array().unwrap().len(),
                2 * turn + 2
            );
        }
        assert_eq!(provider.asked().last().unwrap().items.len(), 2 * TURNS - 1);
    });
}

#[test]
fn a_failed_response_does_not_change_its_conversation() {
    block_on(async {
        let (server, _) = scripted([]).await;
        let id = conversation(&server, &json!({"items": [message("one")]})).await;
        assert_eq!(
            server
                .create(json!({"input": "x", "conversation": id}))
                .await
                .status,
            500
        );
        assert_eq!(told(&items(&server, &id, "").await), ["user: one"]);
    });
}

#[test]
fn a_key_cannot_see_or_change_conversations_of_another_key() {
    block_on(async {
        let (server, _) = scripted([ScriptedAnswer::new().text("ok")]).await;
        let id = conversation(&server, &json!({"items": [message("secret")]})).await;
        let item = items(&server, &id, "").await[0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let eve = server.of("eve");
        let at = format!("conversations/{id}");
        let add = json!({"items": [message("x")]});
        for got in [
            eve.get(&at).await,
            eve.post(&at, &json!({"metadata": {}})).await,
            delete(&eve, &at).await,
            eve.get(&format!("{at}/items")).await,
            eve.post(&format!("{at}/items"), &add).await,
            eve.get(&format!("{at}/items/{item}")).await,
            delete(&eve, &format!("{at}/items/{item}")).await,
            eve.create(json!({"input": "x", "conversation": id})).await,
        ] {
            assert_eq!(got.error(), (404, "conversation_not_found"));
        }
        // Nor through one of her own.
        let own = conversation(&eve, &add).await;
        let through = eve.get(&format!("conversations/{own}/items/{item}")).await;
        assert_eq!(through.error(), (404, "item_not_found"));
        let after = eve.get(&format!("conversations/{own}/items?after={item}")).await;
        assert_eq!(after.status, 400);
        let reference = json!({"items": [{"type": "item_reference", "id": item}]});
        assert_eq!(
            eve.post("conversations", &reference).await.error(),
            (404, "item_not_found")
        );
        assert_eq!(told(&items(&server, &id, "").await), ["user: secret"]);
    });
}

#[test]
fn errors_in_a_conversation_are_named() {
    block_on(async {
        let (server, _) = scripted([]).await;
        let id = conversation(&server, &json!({})).await;
        let many: Vec<_> = (0..21).map(|_| message("x")).collect();
        let at = format!("conversations/{id}/items");
        for (got, param) in [
            (
                server.post("conversations", &json!({"items": many})).await,
                "items",
            ),
            (server.post(&at, &json!({"items": []})).await, "items"),
            (
                server.post(&at, &json!({"items": [{"type": "robot"}]})).await,
                "items[0].type",
            ),
            (
                server.post("conversations", &json!({"metadata": {"a": 1}})).await,
                "metadata.a",
            ),
            (server.get(&format!("{at}?limit=101")).await, "limit"),
            (server.get(&format!("{at}?after=msg_none")).await, "after"),
            (
                server
                    .create(json!({"input": "x", "conversation": id, "previous_response_id": "resp_1"}))
                    .await,
                "conversation",
            ),
        ] {
            assert_eq!(
                (got.status, &got.body["error"]["param"]),
                (400, &json!(param)),
                "{}",
                got.body
            );
        }
        let none = server
            .create(json!({"input": "x", "conversation": "conv_none"}))
            .await;
        assert_eq!(none.error(), (404, "conversation_not_found"));
    });
}

//! Models in Anthropic's form, and counted tokens.

use serde_json::json;

use super::{body, tool};
use crate::support::{block_on, scripted};

#[test]
fn models_are_listed_in_the_form_of_the_client_s_api() {
    block_on(async {
        let (server, _) = scripted([]).await;
        let ask = async |path: &str| {
            let request = server.request("GET", path);
            server
                .send(request.header("anthropic-version", "2023-06-01"))
                .await
        };
        let listed = ask("models").await.ok();
        let model = &listed["data"][0];
        assert_eq!(
            (&model["type"], &model["id"], &model["display_name"]),
            (&json!("model"), &json!("m"), &json!("m"))
        );
        assert_eq!(
            (&listed["has_more"], &listed["first_id"], &listed["last_id"]),
            (&json!(false), &json!("m"), &json!("m"))
        );
        assert_eq!(ask("models/m").await.ok(), *model);
        let missing = ask("models/other").await;
        assert_eq!(
            (missing.status, &missing.body["error"]["type"]),
            (404, &json!("not_found_error"))
        );
        assert_eq!(server.get("models").await.ok()["object"], "list");
    });
}

#[test]
fn tokens_are_counted_without_an_answer() {
    block_on(async {
        let (server, provider) = scripted([]).await;
        let count = async |mut fields: serde_json::Value| {
            fields.as_object_mut().unwrap().remove("max_tokens");
            let counted = server.post("messages/count_tokens", &fields).await.ok();
            counted["input_tokens"].as_u64().unwrap()
        };
        let plain = count(body(&json!({}))).await;
        let tools = count(body(&json!({"tools": [tool("20260120")]}))).await;
        assert!(plain > 0 && tools > plain + 100, "{plain} {tools}");
        assert!(provider.asked().is_empty());
    });
}

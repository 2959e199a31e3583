//! Responses that are asked for later.

use cellblock_gateway::Options;
use cellblock_gateway::provider::Provider;
use cellblock_gateway::provider::scripted::{Answer, Scripted};
use cellblock_gateway::records::Records;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::models::Waiting;
use crate::support::{PATIENCE, Server, block_on, gateway, scripted, serve};

#[test]
fn a_stored_response_is_whole_and_its_owners() {
    block_on(async {
        let (server, _) = scripted([Answer::new().text("hello"), Answer::new().text("hello")]).await;
        let made = server
            .create(json!({"input": "x", "metadata": {"a": "b"}, "service_tier": "flex", "top_logprobs": 2}))
            .await
            .ok();
        assert_eq!(
            (&made["service_tier"], &made["top_logprobs"]),
            (&json!("flex"), &json!(2))
        );
        let path = format!("responses/{}", made["id"].as_str().unwrap());
        assert_eq!(server.get(&path).await.ok(), made);
        assert_eq!(
            server.of("bob").get(&path).await.error(),
            (404, "response_not_found")
        );
        let stranger = server.of("bob");
        let got = stranger.send(stranger.request("DELETE", &path)).await;
        assert_eq!(got.error(), (404, "response_not_found"));
        for operation in ["input_items", "cancel"] {
            let method = if operation == "cancel" { "POST" } else { "GET" };
            let got = stranger
                .send(stranger.request(method, &format!("{path}/{operation}")))
                .await;
            assert_eq!(got.error(), (404, "response_not_found"), "{operation}");
        }
        let not_kept = server.create(json!({"input": "x", "store": false})).await.ok();
        let got = server
            .get(&format!("responses/{}", not_kept["id"].as_str().unwrap()))
            .await;
        assert_eq!(got.error(), (404, "response_not_found"));
    });
}

#[test]
fn the_input_of_a_response_is_listed_as_it_was_sent() {
    block_on(async {
        let (server, _) = scripted([Answer::new().text("hello")]).await;
        let input = json!([
            {"role": "developer", "content": "be kind", "id": "msg_1"},
            {"role": "user", "content": "hi", "id": "msg_2"},
        ]);
        let made = server.create(json!({"input": input})).await.ok();
        let path = format!("responses/{}/input_items", made["id"].as_str().unwrap());
        let all = server.get(&format!("{path}?order=asc")).await.ok();
        assert_eq!(all["object"], "list");
        assert_eq!(
            (&all["first_id"], &all["last_id"], &all["has_more"]),
            (&json!("msg_1"), &json!("msg_2"), &json!(false))
        );
        assert_eq!(
            all["data"][1]["content"],
            json!([{"type": "input_text", "text": "hi"}])
        );
        let page = server.get(&format!("{path}?limit=1")).await.ok();
        assert_eq!(
            (&page["data"][0]["id"], &page["has_more"]),
            (&json!("msg_2"), &json!(true))
        );
        let got = server.get(&format!("{path}?limit=many")).await;
        assert_eq!(got.error(), (400, "invalid_query"));
    });
}

#[test]
fn a_response_that_ran_when_the_gateway_died_has_failed_after_it_starts_again() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.sqlite");
        let (model, _gate) = Waiting::new();
        let server = serve_in(&path, model as Arc<dyn Provider>).await;
        let made = server
            .create(json!({"input": "x", "background": true}))
            .await
            .ok();
        let id = made["id"].as_str().unwrap();
        server.until(id, "in_progress").await;
        // Nothing of the first gateway runs its end: what is in the file is what a killed process leaves.
        let provider = Arc::new(Scripted::new([])) as Arc<dyn Provider>;
        let again = serve_in(&path, provider).await;
        let failed = again.until(id, "failed").await;
        assert_eq!(failed["error"]["code"], "server_error");
        assert_eq!(failed["status"], "failed");
    });
}

/// A gateway as `cellblock serve` runs it, with its records in a file.
async fn serve_in(path: &std::path::Path, provider: Arc<dyn Provider>) -> Server {
    let records = Records::open(path).unwrap();
    let gateway = gateway(provider, Options::default(), records).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = gateway.clone();
    tokio::spawn(async move { serving.serve(listener).await.unwrap() });
    Server::at(address, gateway)
}

#[test]
fn old_responses_are_gone_when_the_gateway_starts() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.sqlite");
        let provider = Arc::new(Scripted::new([Answer::new().text("hello")])) as Arc<dyn Provider>;
        let server = serve_in(&path, provider).await;
        let made = server.create(json!({"input": "x"})).await.ok();
        let id = made["id"].as_str().unwrap().to_owned();
        let records = Records::open(&path).unwrap();
        let aged = id.clone();
        records
            .with(move |connection| {
                connection.execute(
                    "UPDATE responses SET created_at = created_at - 2678400 WHERE id = ?1",
                    [aged],
                )
            })
            .await
            .unwrap();
        let again = serve_in(&path, Arc::new(Scripted::new([])) as Arc<dyn Provider>).await;
        let deadline = Instant::now() + PATIENCE;
        while again.get(&format!("responses/{id}")).await.status != 404 {
            assert!(Instant::now() < deadline);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

#[test]
fn a_response_can_be_found_while_it_is_written() {
    block_on(async {
        let (model, gate) = Waiting::new();
        let server = serve(model as Arc<dyn Provider>).await;
        let mut stream = server.stream(json!({"input": "x"})).await;
        let first = stream.chunk().await.unwrap().unwrap();
        let text = String::from_utf8_lossy(&first).into_owned();
        let id = text.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap();
        server.until(id, "in_progress").await;
        gate.add_permits(1);
        while stream.chunk().await.unwrap().is_some() {}
        server.until(id, "completed").await;
    });
}

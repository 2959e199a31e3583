//! Responses that are asked for later.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_gateway::Options;
use cellblock_gateway::records::{Records, ToDatabaseValue as _};
use cellblock_testkit::wait::until_ok;
use serde_json::json;

use crate::support::{Server, block_on, gateway, scripted, serve, told};
use crate::waiting::WaitingProvider;

#[test]
fn a_stored_response_is_whole_and_its_owners() {
    block_on(async {
        let (server, _) = scripted([
            ScriptedAnswer::new().text("hello"),
            ScriptedAnswer::new().text("hello"),
        ])
        .await;
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
fn the_input_of_a_response_is_listed_unchanged() {
    block_on(async {
        let (server, _) = scripted([ScriptedAnswer::new().text("hello")]).await;
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
fn after_a_kill_what_was_whole_is_whole_and_what_ran_has_failed() {
    if let Some(dir) = std::env::var_os(VICTIM) {
        return be_killed(&PathBuf::from(dir));
    }
    let dir = tempfile::tempdir().unwrap();
    // The same test in a process of its own is the gateway that is killed.
    let name = "kept::after_a_kill_what_was_whole_is_whole_and_what_ran_has_failed";
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(VICTIM, dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let address = lines
        .map(|line| line.unwrap())
        .find_map(|line| line.strip_prefix("listening on ").map(str::to_owned))
        .unwrap();
    block_on(async {
        let server = Server::elsewhere(address);
        let whole = server.create(json!({"input": "go on"})).await.ok();
        let running = server
            .create(json!({"input": "wait", "background": true}))
            .await
            .ok();
        let running = running["id"].as_str().unwrap();
        server.until(running, "in_progress").await;
        let streamed = server.stream(json!({"input": "wait"})).await;
        let streamed = id(streamed).await;
        victim.kill().unwrap();
        victim.wait().unwrap();
        let answers = [ScriptedAnswer::new().text("still here")];
        let provider = Arc::new(ScriptedProvider::new(answers));
        let path = dir.path().join("records.sqlite");
        let again = serve_in(&path, Arc::clone(&provider) as Arc<dyn Provider>).await;
        for id in [running, &streamed] {
            let failed = again.until(id, "failed").await;
            assert_eq!(failed["error"]["code"], "server_error");
        }
        let kept = again
            .get(&format!("responses/{}", whole["id"].as_str().unwrap()))
            .await
            .ok();
        assert_eq!(kept, whole);
        again
            .create(json!({"input": "and?", "previous_response_id": whole["id"]}))
            .await
            .ok();
        let asked = json!(provider.asked()[0].items);
        assert_eq!(
            told(&asked),
            ["user: go on", "assistant: first last", "user: and?"]
        );
    });
}

/// Directory in which the gateway that is killed keeps its records.
const VICTIM: &str = "CELLBLOCK_TEST_VICTIM";

/// Serves until it is killed.
#[expect(
    clippy::print_stdout,
    reason = "the process that has started it reads its address"
)]
fn be_killed(dir: &std::path::Path) {
    block_on(async {
        let (model, gate) = WaitingProvider::new();
        // One answer comes to its end, the others wait until the kill.
        gate.add_permits(1);
        let server = serve_in(&dir.join("records.sqlite"), model as Arc<dyn Provider>).await;
        println!("listening on {}", server.address);
        std::future::pending::<()>().await;
    });
}

/// The id of a response from its stream, which is left open.
async fn id(mut stream: reqwest::Response) -> String {
    let first = stream.chunk().await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&first).into_owned();
    std::mem::drop(tokio::spawn(async move {
        while let Ok(Some(_)) = stream.chunk().await {}
    }));
    text.split("\"id\":\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned()
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
        let provider =
            Arc::new(ScriptedProvider::new([ScriptedAnswer::new().text("hello")])) as Arc<dyn Provider>;
        let server = serve_in(&path, provider).await;
        let made = server.create(json!({"input": "x"})).await.ok();
        let id = made["id"].as_str().unwrap().to_owned();
        let records = Records::open(&path).unwrap();
        let aged = id.clone();
        records
            .with(move |database| {
                let sql = "UPDATE responses SET created_at = created_at - 2678400 WHERE id = ?1";
                database.execute(sql, &[aged.value()])
            })
            .await
            .unwrap();
        let again = serve_in(&path, Arc::new(ScriptedProvider::new([])) as Arc<dyn Provider>).await;
        until_ok(
            async || match again.get(&format!("responses/{id}")).await.status {
                404 => Ok(()),
                status => Err(status),
            },
        )
        .await;
    });
}

#[test]
fn a_response_can_be_found_while_it_is_written() {
    block_on(async {
        let (model, gate) = WaitingProvider::new();
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

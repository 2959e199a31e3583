//! Records that cannot be written: no response is left unfinished, and the gateway says that it is not ready.

use cellblock_agent::provider::scripted::ScriptedAnswer;
use cellblock_gateway::records::Database;
use cellblock_testkit::wait::until_ok;
use serde_json::{Value, json};

use crate::support::{Server, block_on, events, names, scripted};

/// Bytes of an answer that needs more room than is left.
const LONG: usize = 1 << 17;

/// Leaves so little room in the records that a response can begin, but not end.
async fn fill(server: &Server) {
    let fill = |database: &mut Database| {
        let pages = database.first("PRAGMA page_count", &[], |row| row.get::<i64>(0))?;
        database.batch(&format!("PRAGMA max_page_count = {}", pages.unwrap() + 40))
    };
    server.gateway().records.with(fill).await.unwrap();
}

async fn make_room(server: &Server) {
    let grow = |database: &mut Database| database.batch("PRAGMA max_page_count = 1000000");
    server.gateway().records.with(grow).await.unwrap();
}

pub(crate) async fn ready(server: &Server) -> (u16, Value) {
    let url = format!("http://{}/readyz", server.address);
    let answer = reqwest::get(url).await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

pub(crate) async fn until_ready(server: &Server) {
    until_ok(async || match ready(server).await {
        (200, _) => Ok(()),
        (status, told) => Err(format!("{status}: {told}")),
    })
    .await;
}

async fn full() -> Server {
    let answers = (0..3).map(|_| ScriptedAnswer::new().text(&"x".repeat(LONG)));
    let (server, _) = scripted(answers).await;
    assert_eq!(ready(&server).await.0, 200);
    fill(&server).await;
    server
}

fn assert_failed(response: &Value) {
    assert_eq!(response["status"], "failed");
    let message = response["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("the response could not be stored"),
        "{message}"
    );
    // What the model said is not lost.
    assert_eq!(
        response["output"][0]["content"][0]["text"]
            .as_str()
            .unwrap()
            .len(),
        LONG
    );
}

#[test]
fn a_response_that_cannot_be_stored_has_failed_and_is_written_when_there_is_room() {
    block_on(async {
        let server = full().await;
        let response = server.create(json!({"input": "go"})).await.ok();
        assert_failed(&response);
        let path = format!("responses/{}", response["id"].as_str().unwrap());
        assert_failed(&server.get(&path).await.ok());
        let (status, told) = ready(&server).await;
        assert_eq!((status, &told["status"]), (503, &json!("not_ready")));
        assert!(
            told["reason"]
                .as_str()
                .unwrap()
                .starts_with("responses cannot be stored"),
            "{told}"
        );
        let next = json!({"input": "go on", "previous_response_id": response["id"]});
        assert_eq!(
            server.create(next).await.error(),
            (400, "previous_response_not_found")
        );
        assert_eq!(server.of("eve").get(&path).await.status, 404);

        make_room(&server).await;
        until_ready(&server).await;
        assert_failed(&server.get(&path).await.ok());
        let status = server
            .gateway()
            .records
            .with(|database| database.first("SELECT status FROM responses", &[], |row| row.get::<String>(0)));
        assert_eq!(status.await.unwrap().as_deref(), Some("failed"));
    });
}

#[test]
fn a_background_response_that_cannot_be_stored_is_not_in_progress_for_ever() {
    block_on(async {
        let server = full().await;
        let made = server
            .create(json!({"input": "go", "background": true}))
            .await
            .ok();
        let id = made["id"].as_str().unwrap();
        assert_failed(&server.until(id, "failed").await);
        let path = format!("responses/{id}");
        assert_failed(&server.post(&format!("{path}/cancel"), &json!({})).await.ok());
        let stream = server.request("GET", &format!("{path}?stream=true"));
        let told = stream.send().await.unwrap().text().await.unwrap();
        assert_eq!(names(&events(&told)).last(), Some(&"response.failed"));
        assert_eq!(server.send(server.request("DELETE", &path)).await.status, 200);
        assert_eq!(server.get(&path).await.status, 404);
        make_room(&server).await;
        until_ready(&server).await;
        assert_eq!(server.get(&path).await.status, 404);
    });
}

#[test]
fn a_stream_that_cannot_be_stored_ends_as_failed_without_a_gap() {
    block_on(async {
        let server = full().await;
        let stream = server.stream(json!({"input": "go"})).await.text().await.unwrap();
        let events = events(&stream);
        assert_eq!(names(&events).last(), Some(&"response.failed"));
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], number);
        }
    });
}

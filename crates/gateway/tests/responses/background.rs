//! Responses that go on without their client.

use std::sync::Arc;

use cellblock_agent::provider::Provider;
use serde_json::{Value, json};

use crate::support::{Server, block_on, events, names, serve, serve_with};
use crate::waiting::WaitingProvider;

async fn begin(server: &Server) -> String {
    let made = server
        .create(json!({"input": "x", "background": true}))
        .await
        .ok();
    assert_eq!((&made["status"], &made["output"]), (&json!("queued"), &json!([])));
    made["id"].as_str().unwrap().to_owned()
}

async fn follow(server: &Server, id: &str, after: Option<u64>) -> Vec<Value> {
    let after = after.map_or(String::new(), |number| format!("&starting_after={number}"));
    let request = server.request("GET", &format!("responses/{id}?stream=true{after}"));
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    events(&answer.text().await.unwrap())
}

#[test]
fn a_background_response_is_answered_at_once_and_found_when_it_is_whole() {
    block_on(async {
        let (model, gate) = WaitingProvider::new();
        let server = serve(model as Arc<dyn Provider>).await;
        let id = begin(&server).await;
        server.until(&id, "in_progress").await;
        gate.add_permits(1);
        let whole = server.until(&id, "completed").await;
        assert_eq!(whole["output"][0]["content"][0]["text"], "first last");
        assert_eq!(whole["background"], true);
    });
}

#[test]
fn events_can_be_followed_from_any_on_while_it_runs_and_after() {
    block_on(async {
        let (model, gate) = WaitingProvider::new();
        let server = serve(model as Arc<dyn Provider>).await;
        let id = begin(&server).await;
        let (one, two) = (server.of("ann"), server.of("ann"));
        let (first, second) = (id.clone(), id.clone());
        let all = tokio::spawn(async move { follow(&one, &first, None).await });
        let later = tokio::spawn(async move { follow(&two, &second, Some(3)).await });
        server.until(&id, "in_progress").await;
        gate.add_permits(1);
        let all = all.await.unwrap();
        assert_eq!(
            names(&all)[..4],
            [
                "response.created",
                "response.queued",
                "response.in_progress",
                "response.output_item.added"
            ]
        );
        assert_eq!(all[0]["response"]["status"], "queued");
        assert_eq!(names(&all).last(), Some(&"response.completed"));
        let numbers = all.iter().map(|event| event["sequence_number"].as_u64().unwrap());
        assert!(numbers.eq(0..u64::try_from(all.len()).unwrap()));
        assert_eq!(later.await.unwrap(), all[4..]);
        // From the records, when it does not run any more.
        server.until(&id, "completed").await;
        assert_eq!(follow(&server, &id, None).await, all);
        assert_eq!(follow(&server, &id, Some(3)).await, all[4..]);
        assert_eq!(
            all.last().unwrap()["response"],
            server.get(&format!("responses/{id}")).await.ok()
        );
    });
}

#[test]
fn a_stream_of_a_background_response_can_be_left_and_it_goes_on() {
    block_on(async {
        let (model, gate) = WaitingProvider::new();
        let server = serve(model as Arc<dyn Provider>).await;
        let mut stream = server.stream(json!({"input": "x", "background": true})).await;
        let first = stream.chunk().await.unwrap().unwrap();
        let text = String::from_utf8_lossy(&first).into_owned();
        let id = text.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap();
        drop(stream);
        gate.add_permits(1);
        server.until(id, "completed").await;
    });
}

#[test]
fn a_background_response_can_be_cancelled_twice_and_others_cannot() {
    block_on(async {
        let (model, gate) = WaitingProvider::new();
        let server = serve(model as Arc<dyn Provider>).await;
        let id = begin(&server).await;
        server.until(&id, "in_progress").await;
        let following = server.of("ann");
        let followed = id.clone();
        let following = tokio::spawn(async move { follow(&following, &followed, None).await });
        let cancel = format!("responses/{id}/cancel");
        let stranger = server.of("bob");
        assert_eq!(
            stranger.post(&cancel, &json!({})).await.error(),
            (404, "response_not_found")
        );
        let cancelled = server.post(&cancel, &json!({})).await.ok();
        assert_eq!(cancelled["status"], "cancelled");
        assert_eq!(server.post(&cancel, &json!({})).await.ok(), cancelled);
        let events = following.await.unwrap();
        assert_eq!(events.last().unwrap()["response"], cancelled);
        gate.add_permits(1);
        let other = server.create(json!({"input": "x"})).await.ok();
        let cancel = format!("responses/{}/cancel", other["id"].as_str().unwrap());
        let got = server.post(&cancel, &json!({})).await;
        assert_eq!(got.error(), (400, "response_not_cancellable"));
    });
}

#[test]
fn what_finds_no_place_waits_and_more_than_may_wait_is_refused() {
    block_on(async {
        let (model, gate) = WaitingProvider::new();
        let server = serve_with(model as Arc<dyn Provider>, |options| {
            (options.responses.max_background, options.responses.max_queued) = (1, 1);
        })
        .await;
        let first = begin(&server).await;
        server.until(&first, "in_progress").await;
        let second = begin(&server).await;
        server.until(&second, "queued").await;
        let got = server.create(json!({"input": "x", "background": true})).await;
        assert_eq!(got.error(), (429, "rate_limit_exceeded"));
        // One that waits can be cancelled as well.
        let cancel = format!("responses/{second}/cancel");
        assert_eq!(server.post(&cancel, &json!({})).await.ok()["status"], "cancelled");
        let third = begin(&server).await;
        gate.add_permits(2);
        server.until(&first, "completed").await;
        server.until(&third, "completed").await;
    });
}

#[test]
fn events_of_a_response_that_was_no_background_response_are_not_kept() {
    block_on(async {
        let (model, gate) = WaitingProvider::new();
        let server = serve(model as Arc<dyn Provider>).await;
        gate.add_permits(1);
        let made = server.create(json!({"input": "x"})).await.ok();
        let id = made["id"].as_str().unwrap();
        let got = server.get(&format!("responses/{id}?stream=true")).await;
        assert_eq!(got.error(), (400, "events_not_kept"));
        // What has to be kept cannot go on unkept.
        let got = server
            .create(json!({"input": "x", "background": true, "store": false}))
            .await;
        assert_eq!(got.error(), (400, "invalid_value"));
    });
}

//! What every provider over HTTP does: keys, tries, timeouts.

use std::time::Duration;

use serde_json::json;

use super::server::{End, Reply, Server};
use super::{endpoint, events};
use crate::provider::chat::ChatCompletions;
use crate::provider::{Endpoint, Finish, ModelEvent, ProviderError, Timeouts};

fn answer() -> Reply {
    Reply::events(&[json!({"choices": [{"delta": {"content": "hello"}, "finish_reason": "stop"}]})])
}

fn hello() -> Vec<ModelEvent> {
    vec![
        ModelEvent::Text("hello".to_owned()),
        ModelEvent::Finish(Finish::Stop),
    ]
}

#[tokio::test]
async fn a_busy_provider_is_asked_again_and_the_key_goes_along() {
    let busy = Reply::new(503, "retry-after: 100000\r\n", "busy");
    let server = Server::start(vec![busy, Reply::new(429, "", "{}"), answer()]).await;
    let (events, error) = events(&ChatCompletions::new(endpoint(&server.base))).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(events, hello());
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    for once in asked {
        assert!(
            once.head.starts_with("post /v1/chat/completions http/1.1\r\n"),
            "{}",
            once.head
        );
        assert!(once.head.contains("authorization: bearer sk-secret\r\n"));
    }
}

#[tokio::test]
async fn a_provider_that_stays_busy_is_asked_three_times() {
    let busy = Reply::new(500, "", r#"{"error": {"message": "no memory"}}"#);
    let server = Server::start(vec![busy.clone(), busy.clone(), busy.clone(), answer()]).await;
    let (_, error) = events(&ChatCompletions::new(endpoint(&server.base))).await;
    assert_eq!(
        error.unwrap().to_string(),
        "ask the provider: status 500: no memory"
    );
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn a_refusal_is_final_and_its_message_has_no_key() {
    let body = r#"{"error": {"message": "bad key sk-secret\n"}}"#;
    let server = Server::start(vec![Reply::new(401, "", body), answer()]).await;
    let (_, error) = events(&ChatCompletions::new(endpoint(&server.base))).await;
    assert_eq!(
        error.unwrap().to_string(),
        "ask the provider: status 401: bad key [key]"
    );
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn an_answer_that_has_begun_is_never_asked_for_again() {
    let half = Reply::raw("data: {\"choices\": [{\"delta\": {\"content\": \"hel\"}}]}\n\n").end(End::Cut);
    let server = Server::start(vec![half, answer()]).await;
    let (events, error) = events(&ChatCompletions::new(endpoint(&server.base))).await;
    assert_eq!(events, [ModelEvent::Text("hel".to_owned())]);
    assert!(matches!(error, Some(ProviderError::Connection(_))), "{error:?}");
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_provider_that_falls_silent_is_given_up() {
    let half = Reply::raw("data: {\"choices\": [{\"delta\": {\"content\": \"hel\"}}]}\n\n").end(End::Silence);
    let server = Server::start(vec![half]).await;
    let idle = Duration::from_millis(200);
    let timeouts = Timeouts {
        idle,
        ..Timeouts::default()
    };
    let (events, error) = events(&ChatCompletions::new(
        endpoint(&server.base).timeouts(timeouts).unwrap(),
    ))
    .await;
    assert_eq!(events, [ModelEvent::Text("hel".to_owned())]);
    assert!(
        matches!(error, Some(ProviderError::Timeout { limit, .. }) if limit == idle),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_provider_that_never_answers_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let first = Duration::from_millis(200);
    let timeouts = Timeouts {
        first,
        ..Timeouts::default()
    };
    let (_, error) = events(&ChatCompletions::new(endpoint(&base).timeouts(timeouts).unwrap())).await;
    assert!(
        matches!(error, Some(ProviderError::Timeout { limit, .. }) if limit == first),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_an_error_without_its_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let (_, error) = events(&ChatCompletions::new(endpoint(&base))).await;
    let error = error.unwrap();
    assert!(matches!(error, ProviderError::Connection(_)), "{error:?}");
    assert!(!format!("{error:?}").contains("/v1"), "{error:?}");
}

#[test]
fn nothing_that_is_printed_shows_the_key() {
    let provider = ChatCompletions::new(endpoint("http://127.0.0.1:1/v1"));
    assert!(!format!("{provider:?}").contains("sk-secret"));
}

#[test]
fn an_address_that_cannot_be_used_is_refused() {
    for base in ["", "localhost", "ftp://h/v1", "http://u:p@h/v1", "file:///v1"] {
        let error = Endpoint::new(base, None).unwrap_err();
        assert!(matches!(error, ProviderError::Request { .. }), "{base}");
    }
}

//! Behavior that all providers over HTTP share: keys, tries, timeouts.

use std::time::Duration;

use serde_json::json;

use super::server::{ModelReply, ModelServer, StreamEnd};
use super::{endpoint, events};
use crate::provider::chat::ChatCompletions;
use crate::provider::{
    Finish, ModelEvent, OwnModel, Provider as _, ProviderEndpoint, ProviderError, ProviderKey, Timeouts,
};

fn answer() -> ModelReply {
    ModelReply::events(&[json!({"choices": [{"delta": {"content": "hello"}, "finish_reason": "stop"}]})])
}

fn hello() -> Vec<ModelEvent> {
    vec![
        ModelEvent::Text("hello".to_owned()),
        ModelEvent::Finish(Finish::Stop),
    ]
}

#[tokio::test]
async fn a_busy_provider_is_asked_again_and_the_key_goes_along() {
    let busy = ModelReply::new(503, "retry-after: 100000\r\n", "busy");
    let server = ModelServer::start(vec![busy, ModelReply::new(429, "", "{}"), answer()]).await;
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
    let busy = ModelReply::new(500, "", r#"{"error": {"message": "no memory"}}"#);
    let server = ModelServer::start(vec![busy.clone(), busy.clone(), busy.clone(), answer()]).await;
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
    let server = ModelServer::start(vec![ModelReply::new(401, "", body), answer()]).await;
    let (_, error) = events(&ChatCompletions::new(endpoint(&server.base))).await;
    assert_eq!(
        error.unwrap().to_string(),
        "ask the provider: status 401: bad key [key]"
    );
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn an_answer_that_has_begun_is_never_asked_for_again() {
    let half =
        ModelReply::raw("data: {\"choices\": [{\"delta\": {\"content\": \"hel\"}}]}\n\n").end(StreamEnd::Cut);
    let server = ModelServer::start(vec![half, answer()]).await;
    let (events, error) = events(&ChatCompletions::new(endpoint(&server.base))).await;
    assert_eq!(events, [ModelEvent::Text("hel".to_owned())]);
    assert!(matches!(error, Some(ProviderError::Connection(_))), "{error:?}");
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_provider_that_falls_silent_is_given_up() {
    let half = ModelReply::raw("data: {\"choices\": [{\"delta\": {\"content\": \"hel\"}}]}\n\n")
        .end(StreamEnd::Silence);
    let server = ModelServer::start(vec![half]).await;
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
    let (_, error) = events(&ChatCompletions::new(endpoint("http://127.0.0.1:1/v1"))).await;
    let error = error.unwrap();
    assert!(matches!(error, ProviderError::Connection(_)), "{error:?}");
    assert!(!format!("{error:?}").contains("/v1"), "{error:?}");
}

#[tokio::test]
async fn a_provider_that_is_always_busy_saying_nothing_is_given_up() {
    let total = Duration::from_millis(200);
    let timeouts = Timeouts {
        total,
        ..Timeouts::default()
    };
    let server = ModelServer::start(vec![ModelReply::raw(": wait\n\n").end(StreamEnd::Repeated)]).await;
    let endpoint = endpoint(&server.base).timeouts(timeouts).unwrap();
    let (events, error) = events(&ChatCompletions::new(endpoint)).await;
    assert_eq!(events, []);
    assert_eq!(
        error.unwrap().to_string(),
        "wait for the provider: the response did not end after 200ms; raise the timeout if the model is slow"
    );
}

#[tokio::test]
async fn a_response_is_read_by_its_content_not_by_its_declared_type() {
    let said = json!({"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}).to_string();
    let streamed =
        "data: {\"choices\": [{\"delta\": {\"content\": \"hello\"}, \"finish_reason\": \"stop\"}]}\n\n";
    for kind in [
        "text/html",
        "application/json",
        "text/event-stream",
        "application/octet-stream",
    ] {
        for body in [said.as_str(), streamed, &format!("\n {said}\n")] {
            let reply = ModelReply::new(200, &format!("content-type: {kind}\r\n"), body);
            let server = ModelServer::start(vec![reply.pieces(5)]).await;
            let (events, error) = events(&ChatCompletions::new(endpoint(&server.base))).await;
            assert!(error.is_none(), "{kind}: {error:?}");
            assert_eq!(events, hello(), "{kind}");
        }
    }
}

#[tokio::test]
async fn invalid_responses_are_described() {
    for (body, told) in [
        ("", "it is empty"),
        (" \n", "it is empty"),
        (
            "<!doctype html><p>Welcome",
            "it is a web page, not a response of a model; check the address",
        ),
        ("Welcome\n", "it is neither a stream of events nor JSON"),
        ("{\"models\": []}", "it is JSON, but not a completion"),
        (
            "{\"choices\":",
            "it is not JSON: EOF while parsing a value at line 1 column 11",
        ),
        (
            "data: {\"choices\":\n\n",
            "an event is not JSON: EOF while parsing a value at line 1 column 11",
        ),
        (
            "data: \u{fffd}\n\n",
            "an event is not JSON: expected value at line 1 column 1",
        ),
        ("data: {}\n\n", "it was cut off before its end"),
    ] {
        let server = ModelServer::start(vec![ModelReply::raw(body)]).await;
        let (_, error) = events(&ChatCompletions::new(endpoint(&server.base))).await;
        assert_eq!(
            error.unwrap().to_string(),
            format!("read the provider's answer: {told}"),
            "{body:?}"
        );
    }
}

#[tokio::test]
async fn the_models_of_a_server_are_those_that_it_lists() {
    let body = json!({"object": "list", "data": [{"id": "a", "created": 5},
        {"id": "b/c", "owned_by": "x"}, {"name": "no id"}]});
    let listed = ModelReply::new(200, "content-type: application/json\r\n", &body.to_string());
    let server = ModelServer::start(vec![
        listed,
        ModelReply::new(404, "", "no"),
        ModelReply::raw("<html>"),
    ])
    .await;
    let provider = ChatCompletions::new(endpoint(&server.base));
    let own = |id: &str, created| OwnModel {
        id: id.to_owned(),
        created,
    };
    assert_eq!(
        provider.models().await.unwrap(),
        [own("a", Some(5)), own("b/c", None)]
    );
    assert!(matches!(
        provider.models().await,
        Err(ProviderError::Status { status: 404, .. })
    ));
    assert!(matches!(
        provider.models().await,
        Err(ProviderError::Malformed { .. })
    ));
    for asked in server.asked() {
        assert!(
            asked.head.starts_with("get /v1/models http/1.1\r\n"),
            "{}",
            asked.head
        );
        assert!(asked.head.contains("authorization: bearer sk-secret\r\n"));
    }
}

#[test]
fn a_key_goes_in_the_clear_to_this_machine_only() {
    let key = || Some(ProviderKey::new("sk-secret").unwrap());
    for base in [
        "http://127.0.0.1:1/v1",
        "http://[::1]/v1",
        "http://localhost:1/v1",
        "https://h/v1",
    ] {
        assert!(ProviderEndpoint::new(base, key()).is_ok(), "{base}");
    }
    for base in [
        "http://h/v1",
        "http://192.168.0.7:8000/v1",
        "http://localhost.example.com/v1",
    ] {
        let error = ProviderEndpoint::new(base, key()).unwrap_err().to_string();
        assert!(error.contains("would be sent unencrypted"), "{error}");
        assert!(!error.contains("sk-secret"), "{error}");
        assert!(ProviderEndpoint::new(base, None).is_ok(), "{base}");
        assert!(ProviderEndpoint::in_the_clear(base, key()).is_ok(), "{base}");
    }
}

#[test]
fn nothing_that_is_printed_shows_the_key() {
    let provider = ChatCompletions::new(endpoint("http://127.0.0.1:1/v1"));
    assert!(!format!("{provider:?}").contains("sk-secret"));
}

#[test]
fn an_address_that_cannot_be_used_is_rejected() {
    for base in [
        "",
        "localhost",
        "ftp://h/v1",
        "http://u:p@h/v1",
        "file:///v1",
        "http://h/v1?key=x",
        "http://h/#x",
    ] {
        let error = ProviderEndpoint::new(base, None).unwrap_err();
        assert!(matches!(error, ProviderError::Request { .. }), "{base}");
    }
}

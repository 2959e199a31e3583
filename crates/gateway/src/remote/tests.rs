//! Servers that are found at addresses.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{any, get};
use cellblock_agent::provider::ProviderKey;
use cellblock_interpreter::error::Blame;
use cellblock_interpreter::protection::Demands;
use tokio::net::TcpListener;

use super::{ConnectError, FoundServer, Site, connect, shown};

async fn serve(router: Router) -> Site {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    // It ends with the test's runtime.
    tokio::spawn(async move { axum::serve(listener, router).await });
    site(&url)
}

fn site(url: &str) -> Site {
    Site {
        url: url.to_owned(),
        key: Some(ProviderKey::new("sk-x").unwrap()),
        allow_plain: false,
        demands: Demands::default(),
    }
}

fn healthy() -> Router {
    Router::new().route(
        "/health",
        get(|| async { r#"{"status": "healthy", "mode": "python"}"# }),
    )
}

#[tokio::test]
async fn a_server_without_sandboxes_that_is_healthy_only_executes() {
    let refusals = [
        StatusCode::NOT_FOUND,
        StatusCode::METHOD_NOT_ALLOWED,
        StatusCode::UPGRADE_REQUIRED,
    ];
    for refusal in refusals {
        let router = healthy().route("/v1/sandbox", any(move || async move { refusal }));
        let found = connect(&serve(router).await).await.unwrap();
        assert!(matches!(found, FoundServer::Execute(..)), "{refusal}: {found:?}");
    }
}

#[tokio::test]
async fn a_key_that_sandboxes_refuse_does_not_make_them_a_server_that_only_executes() {
    let router = healthy().route("/v1/sandbox", any(|| async { StatusCode::UNAUTHORIZED }));
    match connect(&serve(router).await).await {
        Err(ConnectError::Sandboxes { source, .. }) => {
            assert_eq!(source.blame(), Blame::Policy);
            assert!(
                source
                    .to_string()
                    .ends_with("it returned HTTP status 401: it requires another key"),
                "{source}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_has_neither_is_an_error() {
    match connect(&serve(Router::new()).await).await {
        Err(ConnectError::Execute { source, .. }) => {
            assert_eq!(
                source.to_string(),
                "the execution server answered with HTTP status 404: "
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn unreachable_and_unencrypted_addresses_are_errors() {
    for (url, blame) in [
        ("http://127.0.0.1:1", Blame::Backend),
        ("http://10.1.2.3", Blame::Caller),
    ] {
        match connect(&site(url)).await {
            Err(ConnectError::Sandboxes { source, .. }) => assert_eq!(source.blame(), blame, "{source}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_address_is_shown_without_secrets() {
    assert_eq!(shown("https://user:secret@host:1/x?key=y#z"), "https://host:1/x");
    assert_eq!(shown("https://host"), "https://host/");
}

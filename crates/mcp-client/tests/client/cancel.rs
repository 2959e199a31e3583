//! Canceled calls are canceled at their server.

use cellblock_agent::ToolServer;
use serde_json::Map;

use crate::http::{Kind, serve};
use crate::support::{at, good, options, scripted_with, until};

#[tokio::test]
async fn over_stdio_the_server_receives_the_cancellation() {
    for revision in ["before", "newest"] {
        let scripted = scripted_with(&["slow", revision], options());
        let server = scripted.server.clone();
        let call = tokio::spawn(async move { server.call("work", Map::new()).await });
        let noted = |what: &str| scripted.notes().iter().any(|note| note.starts_with(what));
        until("it was called", || noted("called")).await;
        call.abort();
        until("it was told", || noted("cancelled")).await;
        assert_eq!(good(&scripted.server).await, "call 2", "{revision}");
        assert_eq!(scripted.pids().len(), 1);
    }
}

#[tokio::test]
async fn over_http_both_revisions_cancel_the_call() {
    for kind in [Kind::Newest, Kind::Before] {
        let (tools, url) = serve(kind).await;
        let server = std::sync::Arc::new(at(&url, options()));
        let calling = server.clone();
        let call = tokio::spawn(async move { calling.call("wait", Map::new()).await });
        until("it was called", || tools.waiting() == 1).await;
        call.abort();
        until("it was told", || tools.cancelled() == 1).await;
    }
}

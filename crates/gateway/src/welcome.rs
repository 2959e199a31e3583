//! `GET /`: what somebody reads who opens the server's address in a browser.

use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use crate::state::Gateway;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new().route("/", get(welcome))
}

/// A page for browsers. Other clients get the same answer as for any path that has nothing.
async fn welcome(State(gateway): State<Gateway>, headers: HeaderMap) -> Response {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    if !accepted.is_some_and(|accepted| accepted.contains("text/html")) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let kind = (CONTENT_TYPE, "text/html; charset=utf-8");
    ([kind, (VARY, "accept")], page(&gateway)).into_response()
}

fn page(gateway: &Gateway) -> String {
    let sandboxes = if gateway.interpreter().is_ok() {
        "<li><code>/v1/sessions</code>: sessions over REST\n<li><code>/mcp</code>: tools for MCP clients, unless the configuration turns them off\n"
    } else {
        ""
    };
    format!(
        "<!doctype html>
<html lang=en>
<meta charset=utf-8>
<title>Cellblock</title>
<h1>Cellblock is running</h1>
<p>This is the address of an API; there is nothing to click here. Programs use it like this:
<ul>
<li><code>/v1/responses</code>: the OpenAI Responses API; in an SDK, the base URL is this address followed by <code>/v1</code>
<li><code>/v1/models</code>: the models that it offers
{sandboxes}<li><a href=/openapi.json>/openapi.json</a>: every route, as an OpenAPI document
<li><a href=/healthz>/healthz</a> and <a href=/readyz>/readyz</a>: whether it is running, and whether it is ready
</ul>
<p>Once an API key exists, every request needs one, except for this page and the last two addresses:
<code>Authorization: Bearer KEY</code>. The guide is <code>docs/guides/serve.md</code>.
</html>
"
    )
}

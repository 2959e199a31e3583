//! The time after which a rejected request may be sent again, added to the response by any layer
//! that rejects it.

use std::cell::Cell;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

tokio::task_local! {
    static SECONDS: Cell<Option<u64>>;
}

/// Says that the request that is being answered may be sent again after so many seconds. Elsewhere
/// this does nothing.
pub(crate) fn after(seconds: u64) {
    // Work that goes on after its answer has begun has no header left to set.
    let _ = SECONDS.try_with(|cell| cell.set(Some(seconds)));
}

/// Answers a request; a temporary rejection says when to send it again.
pub(crate) async fn answer(answer: impl Future<Output = Response>) -> Response {
    let told = async {
        let response = answer.await;
        (response, SECONDS.with(Cell::take))
    };
    let (mut response, seconds) = SECONDS.scope(Cell::new(None), told).await;
    let for_now = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
    if for_now.contains(&response.status()) && !response.headers().contains_key(RETRY_AFTER) {
        let seconds = seconds.unwrap_or(1);
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

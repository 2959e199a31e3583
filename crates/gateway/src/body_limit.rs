//! Responses to bodies that are too large: axum's words do not name the limit, so they are replaced
//! here, in every form of error.

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::response::Response;

/// Message of axum for a body that is longer than the limit of its route.
const UNNAMED: &str = "Failed to buffer the request body: length limit exceeded";
/// More than any response to such a body has.
const LONGEST: usize = 4096;

/// Returns the message for a request body that is longer than `http.max_body`.
pub(crate) fn message(max_body: usize) -> String {
    format!(
        "the request body has more than {max_body} bytes, the limit; send less, or raise `http.max_body` \
         in the configuration"
    )
}

/// Names the limit in the response to a body that was too large.
pub(crate) async fn name(response: Response, message: impl FnOnce() -> String) -> Response {
    let size = response.body().size_hint().exact();
    // What is long or streams is not written here.
    if response.status() != StatusCode::PAYLOAD_TOO_LARGE || size.is_none_or(|size| size > LONGEST as u64) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let body = to_bytes(body, LONGEST).await.unwrap_or_default();
    let Some(named) = std::str::from_utf8(&body)
        .ok()
        .filter(|text| text.contains(UNNAMED))
        .map(|text| text.replace(UNNAMED, &message()))
    else {
        return Response::from_parts(parts, Body::from(body));
    };
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(named))
}

#[cfg(test)]
mod tests {
    use axum::Json;
    use axum::response::IntoResponse as _;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn the_limit_is_named_in_every_form_of_error() {
        let too_large = StatusCode::PAYLOAD_TOO_LARGE;
        for response in [
            (too_large, UNNAMED).into_response(),
            (too_large, Json(json!({"code": 413, "message": UNNAMED}))).into_response(),
            (too_large, Json(json!({ "error": UNNAMED }))).into_response(),
        ] {
            let response = name(response, || message(1000)).await;
            assert_eq!(response.status(), too_large);
            let body = to_bytes(response.into_body(), LONGEST).await.unwrap();
            let text = String::from_utf8_lossy(&body);
            assert!(text.contains("more than 1000 bytes, the limit"), "{text}");
            assert!(text.contains("`http.max_body`"), "{text}");
            assert!(!text.contains("buffer"), "{text}");
        }
        let other = (StatusCode::BAD_REQUEST, UNNAMED).into_response();
        let other = name(other, || message(1000)).await;
        let body = to_bytes(other.into_body(), LONGEST).await.unwrap();
        assert_eq!(body, UNNAMED.as_bytes());
    }
}

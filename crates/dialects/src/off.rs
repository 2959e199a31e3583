//! The path of a dialect that is off.

use axum::http::StatusCode;
use axum::{Json, Router};
use serde_json::json;

/// Answers everything with 404 and the setting that switches the dialect on, under the keys in
/// which clients look for a reason.
pub(crate) fn routes(name: &'static str) -> Router {
    let why = format!(
        "the dialect `{name}` is off; switch it on with `dialects: {{{name}: {{}}}}` in the configuration"
    );
    Router::new().fallback(async move || {
        let body = json!({ "code": 404, "message": why, "error": why, "detail": why });
        (StatusCode::NOT_FOUND, Json(body))
    })
}

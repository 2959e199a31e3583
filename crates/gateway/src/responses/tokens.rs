//! `POST /v1/responses/input_tokens`: the tokens of a request as the turn would send it, with its
//! tools and its conversation.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use cellblock_agent::provider::count_tokens;
use cellblock_agent::turn::told;
use cellblock_agent::wire::{ApiError, Dialect, Ids, ResponseRequest};
use serde_json::{Value, json};

use super::prepare::look;
use crate::json::read;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

pub(super) async fn count(
    State(gateway): State<Gateway>,
    caller: Caller,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Value>, Problem> {
    // Nothing begins by being counted, so that the key still leads to the conversation that does.
    let request = ResponseRequest {
        prompt_cache_key: None,
        ..request(&read(body)?)?
    };
    let (tokens, by) = counted(&gateway, &caller, request).await?;
    Ok(Json(json!({
        "object": "response.input_tokens",
        "input_tokens": tokens,
        "cellblock": {"counted_by": by},
    })))
}

/// Counts the tokens that a model would read for a request, and says who has counted.
pub(super) async fn counted(
    gateway: &Gateway,
    caller: &Caller,
    request: ResponseRequest,
) -> Result<(u64, &'static str), ApiError> {
    let provider = gateway.models.provider(&request.model)?;
    let (job, _) = look(gateway, caller, request, Dialect::default(), None).await?;
    let asked = job
        .turn
        .first(&job.request, job.response, job.conversation)
        .await?;
    count_tokens(&*provider, asked)
        .await
        .map_err(|error| told(&error))
}

/// The request, which may leave its input out, and is never answered.
fn request(body: &[u8]) -> Result<ResponseRequest, ApiError> {
    let mut ids = Ids::random();
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(body) else {
        return ResponseRequest::parse(body, &mut ids);
    };
    if fields.get("input").is_none_or(Value::is_null) {
        fields.insert("input".to_owned(), json!([]));
    }
    for field in ["stream", "background", "background_options", "store"] {
        fields.remove(field);
    }
    ResponseRequest::parse(Value::Object(fields).to_string().as_bytes(), &mut ids)
}

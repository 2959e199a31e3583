//! `POST /v1/responses/compact`: a conversation in short, sealed, to go on from.

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse, Response as Answer};
use cellblock_agent::provider::ModelRequest;
use cellblock_agent::turn::{since_summary, summarize, told};
use cellblock_agent::wire::{ApiError, Compaction, Ids, Item, ResponseRequest, TokenUsage};
use serde::Serialize;
use serde_json::{Value, json};

use super::create::dialect;
use super::prepare::look;
use crate::json::read;
use crate::problem::Problem;
use crate::state::responses::{self as live, Seal};
use crate::state::{Caller, Gateway};

/// A compaction as clients know it.
#[derive(Debug, Serialize)]
struct CompactionAnswer {
    id: String,
    object: &'static str,
    created_at: u64,
    output: Vec<Item>,
    usage: TokenUsage,
}

pub(super) async fn compact(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: axum::http::HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Answer, Problem> {
    let request = request(&read(body)?)?;
    let provider = gateway.models.provider(&request.model)?;
    let dialect = dialect(&gateway, &headers);
    let (job, _) = look(&gateway, &caller, request, dialect, None).await?;
    let seal = Seal::of(&gateway).await?;
    let asked = ModelRequest {
        instructions: job.request.instructions.clone(),
        reasoning: job.request.reasoning.clone(),
        ..ModelRequest::new(&job.request.model, since_summary(job.conversation.clone()))
    };
    let (summary, usage) = summarize(&*provider, asked).await.map_err(|error| told(&error))?;
    let sealed = live::ConversationSummary {
        summary,
        container: job.container.clone(),
        replaces: false,
    };
    let mut ids = Ids::random();
    let compacted = CompactionAnswer {
        id: ids.mint("resp"),
        object: "response.compaction",
        created_at: job.response.created_at,
        output: vec![Item::Compaction(Compaction {
            id: ids.mint("cmp"),
            encrypted_content: seal.close(&caller.owner, &sealed)?,
        })],
        usage,
    };
    Ok(axum::Json(compacted).into_response())
}

/// The request, which may leave its input out if it names a response. It offers no tools, whatever it says.
fn request(body: &[u8]) -> Result<ResponseRequest, ApiError> {
    let mut ids = Ids::random();
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(body) else {
        return ResponseRequest::parse(body, &mut ids);
    };
    let goes_on = ["previous_response_id", "conversation"]
        .iter()
        .any(|key| fields.get(*key).is_some_and(|id| !id.is_null()));
    if goes_on && fields.get("input").is_none_or(Value::is_null) {
        fields.insert("input".to_owned(), json!([]));
    }
    for field in [
        "tools",
        "tool_choice",
        "stream",
        "background",
        "background_options",
        "truncation",
    ] {
        fields.remove(field);
    }
    ResponseRequest::parse(Value::Object(fields).to_string().as_bytes(), &mut ids)
}

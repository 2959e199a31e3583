//! `POST /v1/responses/compact`: a conversation in short, sealed, to go on from.

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse, Response as Answer};
use cellblock_agent::provider::{ModelEvent, ModelRequest, ProviderError};
use cellblock_agent::wire::{
    ApiError, Compaction, ErrorKind, Ids, Item, ItemStatus, Message, Part, ResponseRequest, Role, TokenUsage,
};
use futures_util::StreamExt as _;
use serde::Serialize;
use serde_json::{Value, json};

use super::create::dialect;
use super::prepare::look;
use super::run::Job;
use crate::json::read;
use crate::problem::Problem;
use crate::state::responses::{self as live, Seal};
use crate::state::{Caller, Gateway};

/// Instructions for the model.
const TASK: &str = "Write a summary of the conversation so far, for an assistant that will go on with it \
                    and will see nothing else of it. Keep what the user wants and has said about \
                    themselves, decisions, facts, names, numbers, code and its results, files and where \
                    they are, what is done and what is open. Write plain text. Do not answer the user and \
                    do not call tools.";

/// Maximum number of bytes of a summary.
const MAX_SUMMARY: usize = 1 << 20;

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
    let asked = ask(&job);
    let answer = provider
        .stream(asked)
        .await
        .map_err(|error| cellblock_agent::turn::told(&error))?;
    let (summary, usage) = summary(answer)
        .await
        .map_err(|error| cellblock_agent::turn::told(&error))?;
    if summary.trim().is_empty() {
        return Err(Problem::from(ApiError {
            kind: ErrorKind::ModelError,
            code: Some("server_error".to_owned()),
            message: "the model wrote no summary of the conversation".to_owned(),
            param: None,
        }));
    }
    let sealed = live::ConversationSummary {
        summary,
        container: job.container.clone(),
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
    for field in ["tools", "tool_choice", "stream", "background", "truncation"] {
        fields.remove(field);
    }
    ResponseRequest::parse(Value::Object(fields).to_string().as_bytes(), &mut ids)
}

fn ask(job: &Job) -> ModelRequest {
    let mut items = job.conversation.clone();
    items.push(Item::Message(Message {
        id: Ids::random().mint("msg"),
        status: ItemStatus::Completed,
        role: Role::User,
        content: vec![Part::InputText {
            text: TASK.to_owned(),
        }],
        phase: None,
    }));
    ModelRequest {
        instructions: job.request.instructions.clone(),
        reasoning: job.request.reasoning.clone(),
        ..ModelRequest::new(&job.request.model, items)
    }
}

async fn summary(
    mut answer: cellblock_agent::provider::ModelStream,
) -> Result<(String, TokenUsage), ProviderError> {
    let (mut text, mut usage) = (String::new(), TokenUsage::default());
    while let Some(event) = answer.next().await {
        match event? {
            ModelEvent::Text(delta) => {
                if text.len() + delta.len() > MAX_SUMMARY {
                    let limit = MAX_SUMMARY;
                    return Err(ProviderError::TooLarge {
                        what: "the summary",
                        limit,
                    });
                }
                text.push_str(&delta);
            }
            ModelEvent::Usage(more) => usage += more,
            _ => {}
        }
    }
    Ok((text, usage))
}

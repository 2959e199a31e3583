//! `/v1/conversations`.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use cellblock_agent::wire::{ApiError, ConversationRequest, Ids};
use serde_json::{Value, json};

use super::items;
use crate::json::Json;
use crate::json::read;
use crate::now;
use crate::problem::Problem;
use crate::records::{ConversationRow, ItemRow};
use crate::responses::conversation;
use crate::state::{Caller, Gateway};

type BytesBody = Result<Bytes, axum::extract::rejection::BytesRejection>;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/conversations", post(create))
        .route(
            "/v1/conversations/{conversation}",
            get(retrieve).post(update).delete(remove),
        )
        .route(
            "/v1/conversations/{conversation}/items",
            get(items::list).post(items::add),
        )
        .route(
            "/v1/conversations/{conversation}/items/{item}",
            get(items::retrieve).delete(items::remove),
        )
}

async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    body: BytesBody,
) -> Result<Json<Value>, Problem> {
    let mut ids = Ids::random();
    let request = ConversationRequest::parse(&read(body)?, &mut ids)?;
    let items = conversation::known(&gateway, &caller, &request.items).await?;
    let row = ConversationRow {
        id: ids.mint("conv"),
        owner: caller.owner,
        created_at: i64::try_from(now()).unwrap_or(i64::MAX),
        metadata: json!(request.metadata).to_string(),
        container: conversation::container(&request.items),
        evidence: None,
    };
    let text = row.id.len() + row.metadata.len() + items.iter().map(ItemRow::bytes).sum::<usize>();
    gateway.quotas.store_more(&row.owner, text as u64).await?;
    gateway.records.add_conversation(row.clone(), items).await?;
    Ok(Json(object(&row)?))
}

async fn retrieve(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(object(
        &conversation::find(&gateway, &caller.owner, &id).await?,
    )?))
}

/// Changes the notes; there is nothing else to change.
async fn update(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    body: BytesBody,
) -> Result<Json<Value>, Problem> {
    let request = ConversationRequest::parse(&read(body)?, &mut Ids::random())?;
    let metadata = json!(request.metadata).to_string();
    gateway
        .quotas
        .store_more(&caller.owner, metadata.len() as u64)
        .await?;
    let records = &gateway.records;
    if !records
        .annotate_conversation(&caller.owner, &id, metadata)
        .await?
    {
        return Err(conversation::unknown(&id).into());
    }
    Ok(Json(object(
        &conversation::find(&gateway, &caller.owner, &id).await?,
    )?))
}

async fn remove(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    if !gateway.records.remove_conversation(&caller.owner, &id).await? {
        return Err(conversation::unknown(&id).into());
    }
    Ok(Json(
        json!({"id": id, "object": "conversation.deleted", "deleted": true}),
    ))
}

/// Returns a conversation as clients receive it.
pub(super) fn object(row: &ConversationRow) -> Result<Value, ApiError> {
    let metadata: Value = crate::responses::kept(&row.metadata)?;
    Ok(json!({"id": row.id, "object": "conversation", "created_at": row.created_at, "metadata": metadata}))
}

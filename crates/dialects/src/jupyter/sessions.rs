//! `/api/sessions`: which document a kernel belongs to.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use cellblock_interpreter::hosting::Owner;
use serde::Deserialize;
use serde_json::{Value, json};

use super::caller::Caller;
use super::kernels::json_or_default;
use super::problem::Problem;
use super::state::Jupyter;
use crate::bounded::BoundedName;
use crate::uuid::uuid;

/// Maximum number of documents of a kernel.
const MAX_DOCUMENTS: usize = 64;

/// A document, and its kernel.
#[derive(Clone, Debug)]
pub(super) struct Document {
    owner: Owner,
    path: BoundedName,
    name: BoundedName,
    /// `None` for a notebook.
    kind: Option<BoundedName>,
    kernel: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SessionRequest {
    path: Option<BoundedName>,
    name: Option<BoundedName>,
    #[serde(rename = "type")]
    kind: Option<BoundedName>,
    kernel: Option<KernelRequest>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KernelRequest {
    id: Option<String>,
    name: Option<BoundedName>,
}

impl Jupyter {
    /// The model of a session, if its kernel is still there.
    fn model(&self, id: &str, document: &Document) -> Option<Value> {
        let kernel = self.kernels.get(document.owner.name(), &document.kernel)?;
        Some(json!({
            "id": id,
            "path": *document.path,
            "name": *document.name,
            "type": document.kind.as_ref().map_or("notebook", |it| it.as_str()),
            "kernel": kernel.kept.model(&document.kernel),
            "notebook": {"path": *document.path, "name": *document.name},
        }))
    }

    fn document(&self, owner: &Owner, id: &str) -> Result<(Document, Value), Problem> {
        let document = self.documents().get(id).filter(|it| it.owner == *owner).cloned();
        let model = document.and_then(|it| Some((self.model(id, &it)?, it)));
        let (model, document) =
            model.ok_or_else(|| Problem::missing(format!("there is no session `{id}`")))?;
        Ok((document, model))
    }

    /// Keeps a document, and drops those of kernels that have ended.
    fn keep(&self, id: String, document: Document) -> Result<(), Problem> {
        let mut documents = self.documents();
        documents.retain(|_, it| self.kernels.get(it.owner.name(), &it.kernel).is_some());
        let others = documents
            .iter()
            .filter(|(other, it)| **other != id && it.kernel == document.kernel);
        if others.count() >= MAX_DOCUMENTS {
            let message = format!(
                "kernel `{}` has {MAX_DOCUMENTS} sessions, which is the limit; use another kernel",
                document.kernel
            );
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, message));
        }
        documents.insert(id, document);
        Ok(())
    }
}

/// `GET /api/sessions`.
pub(super) async fn list(State(jupyter): State<Jupyter>, Caller(owner): Caller) -> Json<Value> {
    let mut documents = jupyter.documents();
    documents.retain(|_, it| jupyter.kernels.get(it.owner.name(), &it.kernel).is_some());
    let own = documents.iter().filter(|(_, it)| it.owner == owner);
    Json(own.filter_map(|(id, it)| jupyter.model(id, it)).collect())
}

/// `POST /api/sessions`.
pub(super) async fn create(
    State(jupyter): State<Jupyter>,
    Caller(owner): Caller,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let asked: SessionRequest = json_or_default(&body)?;
    let path = asked.path.unwrap_or_default();
    let name = asked.name.unwrap_or_default();
    let same = |it: &Document| it.owner == owner && !path.is_empty() && it.path == path;
    let existing = jupyter
        .documents()
        .iter()
        .find(|(_, it)| same(it))
        .map(|(id, _)| id.clone());
    if let Some(Ok((_, model))) = existing.map(|id| jupyter.document(&owner, &id)) {
        return Ok((StatusCode::CREATED, Json(model)));
    }
    let kernel = asked.kernel.unwrap_or_default();
    let kernel = match kernel.id.filter(|id| !id.is_empty()) {
        Some(id) => jupyter.kernel(&owner, &id)?.id.clone(),
        None => jupyter
            .start(&owner, Jupyter::spec(kernel.name.as_ref().map(|it| it.as_str()))?)
            .await?
            .id
            .clone(),
    };
    let id = uuid();
    let document = Document {
        owner,
        path,
        name,
        kind: asked.kind,
        kernel,
    };
    let model = jupyter.model(&id, &document);
    jupyter.keep(id, document)?;
    Ok((StatusCode::CREATED, Json(model.into())))
}

/// `GET /api/sessions/{id}`.
pub(super) async fn get(
    State(jupyter): State<Jupyter>,
    Caller(owner): Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(jupyter.document(&owner, &id)?.1))
}

/// `PATCH /api/sessions/{id}`: another path, name or kernel.
pub(super) async fn change(
    State(jupyter): State<Jupyter>,
    Caller(owner): Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let asked: SessionRequest = json_or_default(&body)?;
    let (mut document, _) = jupyter.document(&owner, &id)?;
    document.path = asked.path.unwrap_or(document.path);
    document.name = asked.name.unwrap_or(document.name);
    document.kind = asked.kind.or(document.kind);
    if let Some(kernel) = asked.kernel {
        document.kernel = match kernel.id.filter(|id| !id.is_empty()) {
            Some(id) => jupyter.kernel(&owner, &id)?.id.clone(),
            None => jupyter
                .start(&owner, Jupyter::spec(kernel.name.as_ref().map(|it| it.as_str()))?)
                .await?
                .id
                .clone(),
        };
    }
    jupyter.keep(id.clone(), document)?;
    Ok(Json(jupyter.document(&owner, &id)?.1))
}

/// `DELETE /api/sessions/{id}`: ends its kernel, too.
pub(super) async fn delete(
    State(jupyter): State<Jupyter>,
    Caller(owner): Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let (document, _) = jupyter.document(&owner, &id)?;
    jupyter.documents().remove(&id);
    jupyter.end(&jupyter.kernel(&owner, &document.kernel)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

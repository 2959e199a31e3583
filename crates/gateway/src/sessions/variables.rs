//! Variables of a session.

use axum::extract::{Path, Query, State};
use cellblock_interpreter::Output;
use cellblock_interpreter::lineage::{self, VariableOrigin};
use cellblock_interpreter::output::OutputPage;
use cellblock_interpreter::page::PageSelection;
use cellblock_interpreter::render::{self, Detail};
use cellblock_interpreter::session::Variable;
use serde::Serialize;

use super::run::attended;
use crate::artifacts;
use crate::json::Json;
use crate::listing::ListAnswer;
use crate::problem::Problem;
use crate::state::sessions::lock;
use crate::state::{Caller, Gateway};

/// Room for the text of a variable.
const TOKENS: usize = 4000;

/// A variable with its value.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct VariableAnswer {
    /// `session.variable`.
    object: &'static str,
    /// Its name.
    name: String,
    /// Its value, as a cell would display it.
    output: Output,
    /// The requested page of its rows or characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<OutputPage>,
    /// The value, or the requested page, as a model reads it, if a `view` is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Origin of the variable, if a cell with a producer made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<VariableOrigin>,
}

/// In which detail to add the value as text.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct ViewQuery {
    view: Option<Detail>,
}

/// Lists the session's variables.
#[utoipa::path(
    get, operation_id = "list_variables", path = "/v1/sessions/{id}/variables", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The variables that code has bound",
            body = crate::openapi::VariableList),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ListAnswer<Variable>>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let turn = held.turn().await?;
    let nothing_ran = lock(&held.cells).ran() == 0 && lock(&held.inputs).is_empty();
    if nothing_ran && held.toolset.runs_cells() {
        // No sandbox is made only to find it empty.
        return Ok(Json(ListAnswer::new(Vec::new())));
    }
    let session = held.session.clone();
    let variables = attended(&gateway, turn, async move { Ok(session.variables().await?) }).await?;
    Ok(Json(ListAnswer::new(variables)))
}

/// Returns a variable's value and origin. The request counts as a cell.
#[utoipa::path(
    get, operation_id = "get_variable", path = "/v1/sessions/{id}/variables/{name}", tag = "sessions",
    params(
        ("id" = String, Path),
        ("name" = String, Path),
        ("rows" = Option<u32>, Query,
            description = "Number of rows of a page of a table, 1 to 1000; 10 by default"),
        ("chars" = Option<u32>, Query,
            description = "Number of characters of a page of a text, 1 to 100,000; 1000 by default"),
        ("page" = Option<i64>, Query, description = "Page of a table or a text, from 0; -1 is the last one"),
        ("view" = Option<String>, Query, description = "Add the value as a model reads it, in `text`: \
                                                        `full`, or `minimal`, at most 300 characters \
                                                        without pictures, of a table only the shape, the \
                                                        columns and the first 3 rows"),
    ),
    responses(
        (status = 200, description = "The variable", body = crate::openapi::SessionVariable),
        (status = 400, description = "There is no such page", body = crate::openapi::Error),
        (status = 404, description = "The caller has no such session, or the session no such variable",
            body = crate::openapi::Error),
        (status = 429, description = "A quota of cells is used up; see `Retry-After`",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn get(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, name)): Path<(String, String)>,
    Query(selection): Query<PageSelection>,
    Query(view): Query<ViewQuery>,
) -> Result<Json<VariableAnswer>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let turn = held.turn().await?;
    // A table is written and stored, and a page of it read, as a cell does.
    let _permit = gateway.quotas.of_session(&held.id).cell(&held.owner).await?;
    let session = held.session.clone();
    let wanted = name.clone();
    let (output, origin) = attended(&gateway, turn, async move {
        Ok((session.get(&wanted).await?, session.origin(&wanted).await?))
    })
    .await?;
    let Some(output) = output else {
        return Err(missing(&name));
    };
    let page = if selection.is_some() {
        Some(selection.of(&output, gateway.interpreter()?.store()).await?)
    } else {
        None
    };
    let text = view.view.map(|detail| match &page {
        Some(page) => render::page(&output, page, TOKENS),
        None => render::text(&output, detail, TOKENS),
    });
    let made = output.artifacts();
    let made: Vec<_> = made.iter().map(|artifact| artifact.sha256.to_string()).collect();
    artifacts::grant(&gateway.records, &held.owner, made).await?;
    Ok(Json(VariableAnswer {
        object: "session.variable",
        name,
        output,
        page,
        text,
        origin,
    }))
}

/// Returns where a variable comes from.
#[utoipa::path(
    get, operation_id = "get_variable_origin", path = "/v1/sessions/{id}/variables/{name}/origin",
    tag = "sessions",
    params(("id" = String, Path), ("name" = String, Path)),
    responses(
        (
            status = 200,
            description = "The producer of the variable, its cell, and the data that it is made from",
            body = crate::openapi::VariableOrigin
        ),
        (
            status = 404,
            description = "The caller has no such session, the session no such variable, or the \
                           variable has no origin because no cell with a `producer` made it",
            body = crate::openapi::Error
        ),
    )
)]
pub(crate) async fn origin(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, name)): Path<(String, String)>,
) -> Result<Json<VariableOrigin>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let turn = held.turn().await?;
    let nothing_ran = lock(&held.cells).ran() == 0 && lock(&held.inputs).is_empty();
    let session = held.session.clone();
    let wanted = name.clone();
    let (origin, exists) = attended(&gateway, turn, async move {
        let origin = session.origin(&wanted).await?;
        // No sandbox is made only to find it empty.
        let exists =
            origin.is_some() || !nothing_ran && session.variables().await?.iter().any(|it| it.name == wanted);
        Ok((origin, exists))
    })
    .await?;
    origin.map(Json).ok_or_else(|| {
        if exists {
            Problem::missing("origin_not_found", lineage::no_origin(&name))
        } else {
            missing(&name)
        }
    })
}

fn missing(name: &str) -> Problem {
    Problem::missing(
        "variable_not_found",
        format!("the session has no variable `{name}`"),
    )
}

//! Tools that look at the datasets of a session's project.

use cellblock_interpreter::project::{LoadError, ProjectMember, PublishedDataset};
use cellblock_interpreter::toolset::{ToolDefinition, ToolEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, schema};
use crate::answer::CallAnswer;
use crate::refusal::Refusal;
use crate::shared::McpShared;

/// Which session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InSession {
    /// The session's handle.
    session: String,
}

/// Which dataset.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    /// The session's handle.
    session: String,
    /// The dataset's slug.
    slug: String,
}

/// The datasets of a project.
#[derive(Debug, Serialize, JsonSchema)]
struct DatasetList {
    /// The project.
    project: String,
    /// Its datasets.
    datasets: Vec<ListedDataset>,
}

/// A dataset in a list.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedDataset {
    /// The name by which code loads it.
    slug: String,
    /// Its title.
    title: String,
    /// Number of rows of the current version.
    rows: u64,
    /// Number of versions.
    versions: u64,
    /// Whether the session may load it: it has published it or looked at it.
    seen: bool,
}

pub(super) fn list_definition() -> ToolDefinition {
    ToolDefinition::new(
        "list_datasets",
        "List datasets",
        "Lists the datasets that sessions have published in the project: their slugs, titles and sizes.",
        schema::read::<InSession>(),
        ToolEffect::Reads,
    )
    .returns(schema::written::<DatasetList>())
}

pub(super) fn read_definition() -> ToolDefinition {
    ToolDefinition::new(
        "read_dataset",
        "Read a dataset",
        "Shows what is known of a published dataset: description, notes, columns, versions and origin. From then on, code of the \
         session can load it with `load_dataset(slug)`.",
        schema::read::<Named>(),
        ToolEffect::Reads,
    )
    .returns(schema::written::<PublishedDataset>())
}

pub(super) async fn list(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let InSession { session } = call.read()?;
    let used = server.sessions.find(&call.owner, &session)?;
    let member = member(used.session.member())?;
    let datasets = member.project().datasets().await.map_err(LoadError::from)?;
    let listed = datasets.into_iter();
    let listed = listed.map(|it| ListedDataset {
        seen: member.may_load(&it),
        slug: it.slug,
        title: it.title,
        rows: it.current.rows,
        versions: it.versions,
    });
    Ok(CallAnswer::of(&DatasetList {
        project: member.project().name().to_owned(),
        datasets: listed.collect(),
    }))
}

pub(super) async fn read(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let Named { session, slug } = call.read()?;
    let used = server.sessions.find(&call.owner, &session)?;
    let dataset = member(used.session.member())?.read_dataset(&slug).await;
    Ok(CallAnswer::of(&dataset?))
}

fn member(member: Option<&ProjectMember>) -> Result<&ProjectMember, Refusal> {
    member.ok_or_else(|| Refusal::new("the session is not in a project".to_owned()))
}

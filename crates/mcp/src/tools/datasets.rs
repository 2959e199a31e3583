//! Tools that look at the datasets of a session's project.

use cellblock_interpreter::project::{LoadError, ProjectMember, PublishedDataset, publish_call};
use cellblock_interpreter::toolset::{ToolDefinition, ToolEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Call, schema, toolset};
use crate::answer::{CallAnswer, RanCell};
use crate::refusal::Refusal;
use crate::shared::McpShared;

/// Session to use.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InSession {
    /// The session's handle.
    session_id: String,
}

/// Dataset to use.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DatasetSelector {
    /// The session's handle.
    session_id: String,
    /// The dataset's slug.
    slug: String,
}

/// Data to publish, and its name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Publication {
    /// The session's handle.
    session_id: String,
    /// Name of the variable with the data frame.
    variable: String,
    /// The dataset's slug: the name by which code loads it.
    slug: String,
    /// Title for people.
    #[serde(default)]
    title: Option<String>,
    /// Description of the rows, and of their origin.
    #[serde(default)]
    description: Option<String>,
    /// Words to find it by.
    #[serde(default)]
    tags: Vec<String>,
    /// Notes that a user of the data has to know.
    #[serde(default)]
    notes: Vec<String>,
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
        "Shows what is known of a published dataset: description, notes, columns, versions and origin. \
         From then on, code of the session can load it with `load_dataset(slug)`.",
        schema::read::<DatasetSelector>(),
        ToolEffect::Reads,
    )
    .returns(schema::written::<PublishedDataset>())
}

pub(super) fn publish_definition() -> ToolDefinition {
    ToolDefinition::new(
        "publish_dataset",
        "Publish a dataset",
        "Publishes a data frame of a session as a dataset of the project, as a new version if there is \
         such a dataset. Other sessions can load an equal frame with `load_dataset(slug)` after they have \
         looked at it. Texts that are left out stay as they were.",
        schema::read::<Publication>(),
        ToolEffect::Adds,
    )
    .returns(schema::written::<RanCell>())
}

pub(super) async fn list(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let InSession { session_id } = call.read()?;
    let used = call.find(server, &session_id)?;
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
    let DatasetSelector { session_id, slug } = call.read()?;
    let used = call.find(server, &session_id)?;
    let dataset = member(used.session.member())?.read_dataset(&slug).await;
    Ok(CallAnswer::of(&dataset?))
}

/// Runs the call of the kernel's own function, as a model could: the checks and errors are the same.
pub(super) async fn publish(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let given: Publication = call.read()?;
    let Some((kind, runner)) = server.options.cells() else {
        return Err(Refusal::new("no toolset of this server runs cells"));
    };
    let name = &given.variable;
    let is_name = name.chars().all(|it| it == '_' || it.is_alphanumeric());
    if name.is_empty() || !is_name || name.starts_with(|it: char| it.is_numeric()) {
        return Err(Refusal::new(format!(
            "`variable` is {name:?}, which is not a name: bind the frame to a variable, and give the \
             variable's name"
        )));
    }
    let arguments = [
        ("title", json!(given.title)),
        ("description", json!(given.description)),
        ("tags", json!(given.tags)),
        ("notes", json!(given.notes)),
    ];
    let code = publish_call(name, &given.slug, arguments);
    call.tool = runner;
    call.arguments = json!({"session_id": given.session_id, "code": code});
    toolset::call(kind, true, server, call).await
}

fn member(member: Option<&ProjectMember>) -> Result<&ProjectMember, Refusal> {
    member.ok_or_else(|| Refusal::new("the session is not in a project".to_owned()))
}

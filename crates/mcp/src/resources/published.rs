//! Datasets of the project, as resources.

use cellblock_interpreter::project::PublishedDataset;
use rmcp::model::{Resource, ResourceTemplate};

use crate::refusal::{Refusal, named};
use crate::shared::McpShared;
use crate::uri::{self, media_type};
use cellblock_interpreter::hosting::Owner;

pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(uri::PUBLISHED_TEMPLATE, "project-dataset")
        .with_title("A dataset of the project")
        .with_description(
            "What is known of a published dataset: description, notes, columns, versions and origin. Once \
             it is read, code of the sessions that exist can load it with `load_dataset(slug)`.",
        )
        .with_mime_type(media_type("dataset.json"))
}

/// Returns the datasets of the project that the owner's sessions are in.
pub(super) async fn list(server: &McpShared, owner: &Owner) -> Vec<Resource> {
    let entries = server.sessions.of(owner);
    let Some(member) = entries.iter().find_map(|entry| entry.session.member()) else {
        return Vec::new();
    };
    let project = member.project();
    let datasets = project.datasets().await.unwrap_or_else(|error| {
        let error = &error as &dyn std::error::Error;
        tracing::error!(error, "could not list the datasets of a project");
        Vec::new()
    });
    let resource = |it: PublishedDataset| {
        Resource::new(uri::published(project.name(), &it.slug), it.slug)
            .with_title(it.title)
            .with_mime_type(media_type("dataset.json"))
            .with_description(format!("a dataset of the project {}", project.name()))
    };
    datasets.into_iter().map(resource).collect()
}

/// Reads what the tool `read_dataset` returns. The client has now looked at the dataset, so all
/// sessions of the owner may load it.
pub(super) async fn read(
    server: &McpShared,
    owner: &Owner,
    project: &str,
    slug: &str,
) -> Result<Vec<u8>, Refusal> {
    let entries = server.sessions.of(owner);
    let members = entries.iter().filter_map(|entry| entry.session.member());
    let mut dataset = None;
    for member in members.filter(|it| it.project().name() == project) {
        let read = member.read_dataset(slug).await;
        dataset = Some(read?);
    }
    let dataset = dataset.ok_or_else(|| {
        Refusal::new(format!(
            "no session is in a project {:?}: create one with `create_session`",
            named(project)
        ))
    })?;
    serde_json::to_vec(&dataset).map_err(|error| {
        tracing::error!(%error, "write a dataset as JSON");
        Refusal::new("it could not be read")
    })
}

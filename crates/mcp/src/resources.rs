//! Resources: what calls made, files of sessions, the data that their code finds, and published datasets.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_interpreter::conversion::ConversionPlace;
use cellblock_interpreter::derivation::Derivation;
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::answer::Link;
use crate::refusal::Refusal;
use crate::sessions::Use;
use crate::shared::McpShared;
use crate::uri::{self, UriTarget, media_type};
use cellblock_interpreter::hosting::Owner;

mod published;

/// Bytes of a resource; a larger one is for code in the session.
pub(crate) const MOST_BYTES: u64 = 32 << 20;

/// The templates.
pub(crate) fn templates(server: &McpShared) -> Vec<ResourceTemplate> {
    let mut templates = vec![
        ResourceTemplate::new(uri::ARTIFACT_TEMPLATE, "artifact")
            .with_title("What a call made")
            .with_description(
                "A table as Parquet, a chart as PNG or as its specification, a file as it \
                 was then; named by the sha256 of its bytes.",
            ),
        ResourceTemplate::new(uri::FILE_TEMPLATE, "session-file")
            .with_title("A file of a session")
            .with_description(
                "A file of the sandbox as it is now; `path` is absolute, such as \
                 /workspace/result.csv.",
            ),
        ResourceTemplate::new(uri::DATASET_TEMPLATE, "session-dataset")
            .with_title("Data of a session")
            .with_description(
                "A dataset in /tmp/data by its file's name, or a recorded tool result by \
                 its alias.",
            ),
    ];
    if server.options.project.is_some() {
        templates.push(published::template());
    }
    templates
}

/// All that an owner can read and that has a name of its own, oldest session first.
pub(crate) async fn list(server: &McpShared, owner: &Owner) -> Vec<Resource> {
    let mut resources = Vec::new();
    for entry in server.sessions.of(owner) {
        for dataset in &entry.datasets {
            let named = Resource::new(uri::dataset(&entry.id, &dataset.name), dataset.name.clone());
            let described = named
                .with_mime_type(media_type(&dataset.name))
                .with_size(dataset.bytes)
                .with_description(format!("{} of {}", dataset.path, entry.id));
            resources.push(described);
        }
        for result in entry
            .derivation()
            .into_iter()
            .flat_map(|it| it.aliases().entries())
        {
            let named = Resource::new(uri::dataset(&entry.id, &result.alias), result.alias.clone());
            let described = named
                .with_mime_type(result.media_type())
                .with_size(result.bytes)
                .with_description(format!("a tool result of {}", entry.id));
            resources.push(described);
        }
        resources.extend(entry.artifacts().iter().map(|made| Link::from(made).resource()));
    }
    resources.extend(published::list(server, owner).await);
    let mut seen = std::collections::BTreeSet::new();
    resources.retain(|resource| seen.insert(resource.uri.clone()));
    resources
}

/// Reads one.
pub(crate) async fn read(
    server: &McpShared,
    owner: &Owner,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let missing = || ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": uri })));
    let named = uri::parse(uri).ok_or_else(missing)?;
    // As much is in memory as after a cell with such an output.
    let permitted = server.options.meter.cell(owner).await;
    let _permit = permitted.map_err(|denied| not_read(uri, denied.into()))?;
    let place = ConversionPlace::take().await;
    let _place = place.map_err(|busy| not_read(uri, busy.into()))?;
    let (bytes, media_type) = match named {
        UriTarget::Artifact(id) => {
            let known = server
                .sessions
                .of(owner)
                .iter()
                .find_map(|entry| entry.artifact(id));
            let made = known.ok_or_else(missing)?;
            if made.bytes > MOST_BYTES {
                return Err(too_large(uri, made.bytes));
            }
            let store = server.engine.now().ok_or_else(missing)?.store();
            let bytes = store.get(id).await.map_err(|error| {
                tracing::warn!(error = &error as &dyn std::error::Error, "read an artifact");
                missing()
            })?;
            (bytes.to_vec(), made.media_type)
        }
        UriTarget::File { session, path } => {
            let used = server.sessions.of_owner(owner, &session).map_err(|_| missing())?;
            let read = if let Some(content) = dataset_at(server, &used, &path).await {
                content
            } else {
                let read = used.session.read_file_within(&*path, MOST_BYTES).await;
                read.map_err(Refusal::from)
            };
            let bytes = read.map_err(|refusal| not_read(uri, refusal))?;
            (bytes, media_type(&path).to_owned())
        }
        UriTarget::Dataset { session, name } => {
            let used = server.sessions.of_owner(owner, &session).map_err(|_| missing())?;
            dataset(server, &used, &name, uri).await?.ok_or_else(missing)?
        }
        UriTarget::Published { project, slug } => {
            let read = published::read(server, owner, &project, &slug).await;
            let dataset = read.map_err(|refusal| not_read(uri, refusal))?;
            (dataset, media_type("dataset.json").to_owned())
        }
    };
    let contents = match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(binary) => ResourceContents::blob(STANDARD.encode(binary.as_bytes()), uri),
    };
    Ok(ReadResourceResult::new(vec![contents.with_mime_type(media_type)]))
}

/// A dataset that was there from the start, or a recorded result.
async fn dataset(
    server: &McpShared,
    used: &Use,
    name: &str,
    uri: &str,
) -> Result<Option<(Vec<u8>, String)>, ErrorData> {
    let known = used.datasets.iter().find(|it| it.name == name);
    if let Some(content) = match known {
        Some(dataset) => dataset_at(server, used, &dataset.path).await,
        None => None,
    } {
        let bytes = content.map_err(|refusal| not_read(uri, refusal))?;
        return Ok(Some((bytes, media_type(name).to_owned())));
    }
    let Some(aliases) = used.derivation().map(Derivation::aliases) else {
        return Ok(None);
    };
    let Ok(entry) = aliases.entry(name) else {
        return Ok(None);
    };
    if entry.bytes > MOST_BYTES {
        return Err(too_large(uri, entry.bytes));
    }
    let bytes = aliases.artifacts().get(entry.sha256).await.map_err(|error| {
        tracing::warn!(error = &error as &dyn std::error::Error, "read a recorded result");
        not_read(uri, Refusal::new("it could not be read"))
    })?;
    Ok(Some((bytes.to_vec(), entry.media_type().to_owned())))
}

/// The content of the dataset that a session's code finds at this path, read from the host's file:
/// a session reads no file before it has a sandbox, nor while its code runs, and a dataset is there
/// from the start.
pub(crate) async fn dataset_at(
    server: &McpShared,
    used: &Use,
    path: &str,
) -> Option<Result<Vec<u8>, Refusal>> {
    // They were added in the order of the options.
    let index = used.datasets.iter().position(|it| it.path == path)?;
    let file = server.options.datasets.values().nth(index)?.clone();
    let read = tokio::task::spawn_blocking(move || {
        let mut content = Vec::new();
        std::fs::File::open(file)?
            .take(MOST_BYTES + 1)
            .read_to_end(&mut content)?;
        Ok::<_, std::io::Error>(content)
    });
    let content = match read.await.map_err(std::io::Error::other).flatten() {
        Ok(content) => content,
        Err(error) => {
            tracing::error!(path, %error, "could not read a dataset");
            return Some(Err(Refusal::new(format!(
                "`{path}` cannot be read any more: tell the user"
            ))));
        }
    };
    if content.len() as u64 > MOST_BYTES {
        let told = format!("`{path}` has more than {MOST_BYTES} bytes, the limit: read parts of it in code");
        return Some(Err(Refusal::new(told)));
    }
    Some(Ok(content))
}

fn too_large(uri: &str, bytes: u64) -> ErrorData {
    let told = format!("it has {bytes} bytes, the limit is {MOST_BYTES}: read parts of it in code");
    ErrorData::invalid_params(told, Some(json!({ "uri": uri })))
}

fn not_read(uri: &str, refusal: Refusal) -> ErrorData {
    ErrorData::resource_not_found(refusal.message, Some(json!({ "uri": uri })))
}

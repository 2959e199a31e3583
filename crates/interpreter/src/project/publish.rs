//! Publishing a data frame as a version of a dataset.

use std::collections::BTreeSet;

use cellblock_artifact::{ArtifactDescription, ArtifactError, ArtifactId, Kind, Origin};
use cellblock_protocol::Blob;
use cellblock_settings::clock;
use serde_json::json;
use tokio::task::spawn_blocking;

use super::publication::Publication;
use super::{DatasetVersion, ProjectMember, PublishedDataset};
use crate::lineage::VariableOrigin;
use crate::output::table::published::{WrittenTable, to_parquet};
use crate::output::{DecodingLimits, OutputError, PARQUET};

/// Maximum size of a dataset's Parquet file, which is the maximum size of an answer to a call.
const BYTES: u64 = 256 << 20;

/// A data frame that cannot be published, in words for a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// An argument is invalid.
    #[error("{0}")]
    Argument(String),
    /// The table has no Parquet form.
    #[error("{0}")]
    Table(String),
    /// The kernel sent something that is not a table.
    #[error("the table cannot be read")]
    Output(#[from] OutputError),
    /// The dataset is too large.
    #[error(
        "the dataset has {bytes} bytes as Parquet, the limit is {BYTES}; publish fewer rows or columns, \
         or several datasets"
    )]
    TooLarge {
        /// Size in bytes.
        bytes: u64,
    },
    /// The store failed. No version was published.
    #[error(
        "nothing was published, because the artifact store failed; try again later. Its operator's log \
         has the reason"
    )]
    Store(#[from] ArtifactError),
}

/// Evidence of the host about the cell that publishes.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) cell: u64,
    pub(super) producer: Option<String>,
    /// Origin of the variable that is published.
    pub(super) origin: Option<VariableOrigin>,
    /// Fetches of the cell itself.
    pub(super) fetches: BTreeSet<String>,
    /// The stored tables among it.
    pub(super) artifacts: BTreeSet<ArtifactId>,
}

/// Publishes a version, and moves the dataset's head. Without the head, nobody sees a version.
pub(super) async fn publish(
    member: &ProjectMember,
    publication: Publication,
    table: Blob,
    limits: DecodingLimits,
    evidence: Evidence,
) -> Result<PublishedDataset, PublishError> {
    publication.check().map_err(PublishError::Argument)?;
    let announced = publication.dataframe();
    let frame = publication.frame.clone();
    let draft = member.project.store.draft()?;
    let written = spawn_blocking(move || to_parquet(&announced, &frame, &table, &limits, draft)).await;
    let written = written.expect("writing a table does not panic")?;
    let WrittenTable { file, data_sha256 } = written.map_err(PublishError::Table)?;
    let bytes = file.len();
    if bytes > BYTES {
        return Err(PublishError::TooLarge { bytes });
    }
    let Evidence {
        cell,
        producer,
        origin,
        mut fetches,
        mut artifacts,
    } = evidence;
    let mut loads = member.loads();
    let rebound_by_scratch = origin.as_ref().is_some_and(|origin| origin.rebound_by_scratch);
    // A cell that has bound the variable itself replaces the earlier origin, but only a completed
    // cell is stamped: take both.
    if let Some(origin) = origin {
        fetches.extend(origin.fetches);
        loads.extend(origin.loads);
        artifacts.extend(origin.artifacts);
    }
    let about = ArtifactDescription {
        kind: Kind::Dataframe,
        media_type: PARQUET.to_owned(),
        origin: Some(Origin {
            session: member.session.clone(),
            cell: Some(cell),
            name: publication.variable.clone(),
            inputs: artifacts.into_iter().collect(),
        }),
    };
    let store = &member.project.store;
    let sha256 = store.put_draft(file, &about).await?;
    let mut version = DatasetVersion {
        sha256,
        data_sha256,
        bytes,
        published_unix_ms: clock::unix_millis(),
        rows: publication.rows,
        columns: publication.columns,
        index: publication.index,
        library: publication.library,
        session: member.session.clone(),
        logical_id: logical_id(
            producer.as_deref(),
            publication.variable.as_deref(),
            &fetches,
            &loads,
        ),
        variable: publication.variable,
        producer,
        fetches,
        loads,
        rebound_by_scratch,
    };
    let series = member.project.series(&publication.slug);
    version.published_unix_ms = series
        .append(sha256, version.published_unix_ms, |unix_ms| DatasetVersion {
            published_unix_ms: unix_ms,
            ..version.clone()
        })
        .await?;
    let slug = &publication.slug;
    let moved = series.move_head(|before: Option<PublishedDataset>| {
        let before = before.as_ref();
        let published = version.published_unix_ms;
        // Of two publishers at the same time, the later version is the current one.
        let newest = before
            .map(|it| &it.current)
            .filter(|it| it.published_unix_ms > published);
        PublishedDataset {
            slug: slug.clone(),
            title: kept(publication.title.as_ref(), before.map(|it| &it.title)),
            description: kept(publication.description.as_ref(), before.map(|it| &it.description)),
            tags: kept(publication.tags.as_ref(), before.map(|it| &it.tags)),
            notes: kept(publication.notes.as_ref(), before.map(|it| &it.notes)),
            created_unix_ms: before.map_or(published, |it| it.created_unix_ms.min(published)),
            versions: before.map_or(0, |it| it.versions) + 1,
            current: newest.unwrap_or(&version).clone(),
        }
    });
    let dataset = moved.await?;
    member.published(slug);
    Ok(dataset)
}

/// Returns what is said of a version; what is not said stays as it was.
fn kept<T: Clone + Default>(said: Option<&T>, before: Option<&T>) -> T {
    said.or(before).cloned().unwrap_or_default()
}

fn logical_id(
    producer: Option<&str>,
    variable: Option<&str>,
    fetches: &BTreeSet<String>,
    loads: &BTreeSet<String>,
) -> ArtifactId {
    // The time of a call is not part of what was called.
    let calls: BTreeSet<_> = fetches
        .iter()
        .map(|call| call.rsplit_once(" at ").map_or(call.as_str(), |(call, _)| call))
        .collect();
    // A later version of a source is the same source.
    let datasets: BTreeSet<_> = loads
        .iter()
        .map(|load| load.split_once('@').map_or(load.as_str(), |(slug, _)| slug))
        .collect();
    let identity = json!(["dataset", producer, variable, calls, datasets]);
    ArtifactId::of(identity.to_string().as_bytes())
}

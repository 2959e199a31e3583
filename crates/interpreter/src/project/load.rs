//! Finding a dataset, and checking that a session may load it.

use std::fs::File;

use cellblock_artifact::{ArtifactError, ArtifactId};

use super::{DatasetVersion, Project, ProjectMember, PublishedDataset};

/// Maximum number of names in a message.
const LISTED: usize = 10;
/// Minimum number of digits by which a version is named.
const DIGITS: usize = 4;

/// A dataset that cannot be loaded, in words for a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Nothing has been published in the project.
    #[error(
        "no dataset has been published in the project `{project}`; publish one with publish_dataset(df, \
         \"{slug}\", title=…)"
    )]
    None {
        /// Name of the project.
        project: String,
        /// Slug that was requested.
        slug: String,
    },
    /// There is no dataset with this slug.
    #[error("the project `{project}` has no dataset {slug:?}; it has {known}")]
    NoMatch {
        /// Name of the project.
        project: String,
        /// Slug that was requested.
        slug: String,
        /// Slugs that exist.
        known: String,
    },
    /// The dataset has no version with this sha256.
    #[error(
        "the dataset {slug:?} has no version {version:?}; give {DIGITS} or more digits of the sha256 of \
         one of {known}"
    )]
    NoVersion {
        /// The dataset.
        slug: String,
        /// Version that was requested.
        version: String,
        /// Versions that exist.
        known: String,
    },
    /// Several versions begin with these digits.
    #[error(
        "{slug:?} is ambiguous, because {count} versions begin with {version:?}: {known}; give more digits"
    )]
    Ambiguous {
        /// The dataset.
        slug: String,
        /// Version that was requested.
        version: String,
        /// Number of versions.
        count: usize,
        /// The versions.
        known: String,
    },
    /// Another session has published it, and this one has not looked at it.
    #[error(
        "{slug:?} was published by {session} at {at}{producer}; look at it first: \
         read_dataset(\"{slug}\") in a cell of its own shows its columns, notes and origin, and later \
         cells can load it"
    )]
    NotSeen {
        /// The dataset.
        slug: String,
        /// Session that published it.
        session: String,
        /// Time of the publication, as RFC 3339.
        at: String,
        /// From what, if known.
        producer: String,
    },
    /// Its bytes are gone, damaged, or cannot be read.
    #[error(
        "the bytes of the dataset {slug:?} are missing or damaged in the artifact store; publish it \
         again, or ask the operator to repair the store"
    )]
    Bytes {
        /// The dataset.
        slug: String,
        /// The cause.
        #[source]
        source: ArtifactError,
    },
    /// The store failed.
    #[error("the artifact store failed; its operator's log has the reason")]
    Store(#[from] ArtifactError),
}

/// A dataset that a session may load, with its bytes as Parquet.
#[derive(Debug)]
pub(super) struct LoadedDataset {
    pub(super) slug: String,
    pub(super) version: DatasetVersion,
    pub(super) file: File,
}

/// Finds a dataset.
pub(super) async fn find(project: &Project, slug: &str) -> Result<PublishedDataset, LoadError> {
    if let Some(dataset) = project.dataset(slug).await? {
        return Ok(dataset);
    }
    let known = project.datasets().await?;
    let slug = slug.chars().take(super::NAME_CHARS).collect();
    let project = project.name.clone();
    if known.is_empty() {
        return Err(LoadError::None { project, slug });
    }
    let mut names: Vec<_> = known.iter().map(|it| it.slug.as_str()).collect();
    // The most similar ones first.
    names.sort_by(|one, other| {
        strsim::jaro_winkler(other, &slug).total_cmp(&strsim::jaro_winkler(one, &slug))
    });
    let known = listed(names.into_iter().map(str::to_owned));
    Err(LoadError::NoMatch { project, slug, known })
}

/// Finds a version, `slug` or `slug@digits`, that a session may load, and opens its bytes, which are checked.
pub(super) async fn load(member: &ProjectMember, name: &str) -> Result<LoadedDataset, LoadError> {
    let (slug, digits) = match name.split_once('@') {
        Some((slug, digits)) => (slug, Some(digits)),
        None => (name, None),
    };
    let dataset = find(&member.project, slug).await?;
    if !member.may_load(&dataset) {
        return Err(LoadError::NotSeen {
            slug: slug.to_owned(),
            at: dataset.current.published_at(),
            session: dataset.current.session,
            producer: dataset
                .current
                .producer
                .map_or_else(String::new, |producer| format!(" from `{producer}`")),
        });
    }
    let version = match digits {
        Some(digits) => version(&member.project, slug, digits).await?,
        None => dataset.current,
    };
    let store = &member.project.store;
    let bytes = |source| LoadError::Bytes {
        slug: slug.to_owned(),
        source,
    };
    let file = store.verified_file(version.sha256).await.map_err(bytes)?;
    Ok(LoadedDataset {
        slug: slug.to_owned(),
        version,
        file,
    })
}

async fn version(project: &Project, slug: &str, digits: &str) -> Result<DatasetVersion, LoadError> {
    let mut versions = project.versions(slug).await?;
    let matches = |id: &ArtifactId| digits.len() >= DIGITS && id.to_string().starts_with(digits);
    // Publishing equal data again makes a version with the same bytes.
    let mut found: Vec<_> = versions.iter().map(|it| it.sha256).filter(matches).collect();
    found.sort_unstable();
    found.dedup();
    let short = |id: &ArtifactId| id.to_string().chars().take(12).collect::<String>();
    let version = digits.chars().take(64).collect();
    match found[..] {
        [id] => {
            let at = versions
                .iter()
                .rposition(|it| it.sha256 == id)
                .unwrap_or_default();
            Ok(versions.swap_remove(at))
        }
        [] => Err(LoadError::NoVersion {
            slug: slug.to_owned(),
            version,
            known: listed(versions.iter().rev().map(|it| short(&it.sha256))),
        }),
        _ => Err(LoadError::Ambiguous {
            slug: slug.to_owned(),
            version,
            count: found.len(),
            known: listed(found.iter().map(short)),
        }),
    }
}

fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let mut names: Vec<_> = names.take(LISTED).map(|name| format!("`{name}`")).collect();
    names.extend((more > 0).then(|| format!("{more} more")));
    names.join(", ")
}

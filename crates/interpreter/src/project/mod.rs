//! Projects: datasets that sessions of one owner share.
//!
//! ```text
//! session A ──publish_dataset(df, "gdp")──> version 1, 2, … of `gdp` in the artifact store
//! session B ──read_dataset("gdp")──> what it is ──load_dataset("gdp")──> an equal data frame
//! ```
//!
//! A session loads what another session has published only after it has looked at it, so that a
//! name that two sessions chose by chance does not bring unexpected data into a computation.
//! Versions are only added, see [`cellblock_artifact::VersionSeries`].
//!
//! Tables come from a kernel as Arrow. The host checks them like outputs and writes the Parquet
//! itself. Their description is what the kernel says; sessions, times, sizes and calls of
//! connectors are what the host saw.

use cellblock_artifact::{ArtifactError, Store, VersionSeries};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

mod call;
mod calls;
mod dataset;
mod export;
mod load;
mod member;
mod publication;
mod publish;

pub use call::publish_call;
pub(crate) use calls::ProjectCalls;
pub use dataset::{DatasetVersion, PublishedDataset};
pub use export::ExportFormat;
pub use load::LoadError;
pub use member::ProjectMember;
pub use publish::PublishError;

use crate::error::{Error, Result};

/// Maximum number of characters of the name of a project or a dataset.
const NAME_CHARS: usize = 64;
/// Maximum number of concurrent requests to the store.
const AT_ONCE: usize = 16;

/// A project: the datasets that an owner's sessions share under a name.
#[derive(Clone, Debug)]
pub struct Project {
    store: Store,
    owner: String,
    name: String,
}

impl Project {
    /// Returns the project of an owner with this name. It exists once something is published in it.
    pub fn new(store: Store, owner: impl Into<String>, name: impl Into<String>) -> Result<Self> {
        let (owner, name) = (owner.into(), name.into());
        check_name(&name).map_err(|reason| Error::Argument {
            name: "project",
            missing: false,
            reason,
        })?;
        Ok(Self { store, owner, name })
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its datasets, sorted by slug.
    pub async fn datasets(&self) -> Result<Vec<PublishedDataset>, ArtifactError> {
        let slugs = self.store.series_below(&[&self.owner, &self.name]).await?;
        let read = stream::iter(slugs).map(async |slug| self.dataset(&slug).await);
        let datasets: Vec<_> = read.buffered(AT_ONCE).try_collect().await?;
        Ok(datasets.into_iter().flatten().collect())
    }

    /// Returns a dataset, if there is one with this slug.
    pub async fn dataset(&self, slug: &str) -> Result<Option<PublishedDataset>, ArtifactError> {
        match check_name(slug) {
            Ok(()) => self.series(slug).head().await,
            Err(_) => Ok(None),
        }
    }

    /// Returns the versions of a dataset, oldest first; none if there is no such dataset.
    pub async fn versions(&self, slug: &str) -> Result<Vec<DatasetVersion>, ArtifactError> {
        match self.dataset(slug).await? {
            Some(_) => self.series(slug).versions().await,
            None => Ok(Vec::new()),
        }
    }

    /// Removes a dataset with all its versions. Returns whether there was one.
    pub async fn remove(&self, slug: &str) -> Result<bool, ArtifactError> {
        match check_name(slug) {
            Ok(()) => self.series(slug).remove().await,
            Err(_) => Ok(false),
        }
    }

    /// Returns the store with the datasets.
    pub fn store(&self) -> &Store {
        &self.store
    }

    fn series(&self, slug: &str) -> VersionSeries {
        self.store.series(&[&self.owner, &self.name, slug])
    }
}

/// Checks the name of a project or a dataset. The reason says what is wrong, and what to do.
pub fn check_name(name: &str) -> std::result::Result<(), String> {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let begins = name.starts_with(plain);
    let fits = name.len() <= NAME_CHARS && name.chars().all(|it| plain(it) || matches!(it, '_' | '-'));
    if begins && fits {
        return Ok(());
    }
    Err(format!(
        "{:?} is not a valid name; use 1 to {NAME_CHARS} lowercase letters, digits, `_` and `-`, and \
         begin with a letter or digit, such as `inflation_monthly`",
        name.chars().take(NAME_CHARS).collect::<String>()
    ))
}

#[cfg(test)]
mod tests;

//! A session's part in a project: which datasets it has looked at, and which its cell has loaded.

use std::collections::BTreeSet;

use parking_lot::{Mutex, MutexGuard};

use super::load::{self, LoadError};
use super::{Project, PublishedDataset};

/// A session in a project.
#[derive(Debug)]
pub struct ProjectMember {
    pub(super) project: Project,
    /// Id of the session.
    pub(super) session: String,
    known: Mutex<MemberState>,
}

#[derive(Debug, Default)]
struct MemberState {
    /// Datasets that the session has looked at or published.
    seen: BTreeSet<String>,
    /// Datasets that the code of the current cell has read. They count as seen once the cell has
    /// ended, when its caller can see what it printed.
    read: BTreeSet<String>,
    /// Datasets that the current cell has loaded, as `slug@sha256`.
    loads: BTreeSet<String>,
}

impl ProjectMember {
    /// Makes a session a member, which has already looked at some datasets.
    pub(crate) fn new(project: Project, session: String, seen: &[String]) -> Self {
        let known = MemberState {
            seen: seen.iter().cloned().collect(),
            ..MemberState::default()
        };
        Self {
            project,
            session,
            known: Mutex::new(known),
        }
    }

    /// Returns the project.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Returns a dataset; from now on, the session may load it.
    pub async fn read_dataset(&self, slug: &str) -> Result<PublishedDataset, LoadError> {
        let dataset = load::find(&self.project, slug).await?;
        self.known().seen.insert(slug.to_owned());
        Ok(dataset)
    }

    /// Returns whether the session may load a dataset: it has published the current version, or
    /// looked at the dataset.
    pub fn may_load(&self, dataset: &PublishedDataset) -> bool {
        dataset.current.session == self.session || self.known().seen.contains(&dataset.slug)
    }

    pub(super) fn published(&self, slug: &str) {
        self.known().seen.insert(slug.to_owned());
    }

    pub(super) fn read_by_code(&self, slug: &str) {
        self.known().read.insert(slug.to_owned());
    }

    pub(super) fn loaded(&self, reference: String) {
        self.known().loads.insert(reference);
    }

    /// Returns what the current cell has loaded so far.
    pub(super) fn loads(&self) -> BTreeSet<String> {
        self.known().loads.clone()
    }

    /// Ends a cell, and returns what it has loaded.
    pub(crate) fn end_cell(&self) -> BTreeSet<String> {
        let mut known = self.known();
        let MemberState { seen, read, loads } = &mut *known;
        seen.append(read);
        std::mem::take(loads)
    }

    fn known(&self) -> MutexGuard<'_, MemberState> {
        self.known.lock()
    }
}

//! The part of a session that goes into every new sandbox.

use std::sync::Arc;

use super::datasets::Dataset;
use super::files::CollectionState;
use super::kept::WholeStreams;
use super::outputs::HandedOver;
use super::volume::OpenVolume;
use crate::connector::Grants;
use crate::input::Input;
use crate::project::ProjectMember;

/// Things that a session puts into each of its sandboxes, and takes out of it.
#[derive(Debug)]
pub(super) struct Contents {
    /// Inputs that every new kernel has bound.
    pub(super) inputs: Vec<Input>,
    /// Datasets that every new sandbox shows.
    pub(super) datasets: Vec<Dataset>,
    /// Its volume.
    pub(super) volume: Option<OpenVolume>,
    /// Its part in a project.
    pub(super) member: Option<Arc<ProjectMember>>,
    /// The session's connectors.
    pub(super) grants: Grants,
    /// Files that cells have handed over, as they were then.
    pub(super) collected: CollectionState,
    /// Files that commands have handed over.
    pub(super) handed_over: HandedOver,
    /// Whole streams of commands in the sandbox.
    pub(super) whole: WholeStreams,
    /// Commands that were run.
    pub(super) commands: u64,
}

impl Contents {
    pub(super) fn new(
        grants: Grants,
        member: Option<Arc<ProjectMember>>,
        volume: Option<OpenVolume>,
    ) -> Self {
        Self {
            inputs: Vec::new(),
            datasets: Vec::new(),
            volume,
            member,
            grants,
            collected: CollectionState::default(),
            handed_over: HandedOver::default(),
            whole: WholeStreams::default(),
            commands: 0,
        }
    }
}

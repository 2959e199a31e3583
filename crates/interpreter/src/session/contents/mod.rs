//! The part of a session that goes into every new sandbox.

use std::sync::Arc;

use crate::connector::Grants;
use crate::input::Input;
use crate::project::ProjectMember;
use crate::session::contents::collection::{CollectionState, HandedOver};
use crate::session::contents::spool::Dataset;
use crate::session::contents::volume::OpenVolume;
use crate::session::runtime::capture::WholeStreams;

pub(in crate::session) mod archive;
pub(in crate::session) mod change;
pub(in crate::session) mod collection;
pub(in crate::session) mod dataset;
pub(in crate::session) mod datasets;
pub(in crate::session) mod describe;
pub(in crate::session) mod disk;
pub(in crate::session) mod edit;
pub(in crate::session) mod files;
pub(in crate::session) mod inputs;
pub(in crate::session) mod offered;
pub(in crate::session) mod outputs;
pub(in crate::session) mod patch;
pub(crate) mod skills;
pub(crate) mod spool;
pub(in crate::session) mod volume;

/// Things that a session puts into each of its sandboxes, and takes out of it.
#[derive(Debug)]
pub(in crate::session) struct Contents {
    /// Inputs that every new kernel has bound.
    pub(in crate::session) inputs: Vec<Input>,
    /// Datasets that every new sandbox shows.
    pub(in crate::session) datasets: Vec<Dataset>,
    /// The session's volume.
    pub(in crate::session) volume: Option<OpenVolume>,
    /// The session's part in a project.
    pub(in crate::session) member: Option<Arc<ProjectMember>>,
    /// The session's connectors.
    pub(in crate::session) grants: Grants,
    /// Files that cells have handed over, as they were then.
    pub(in crate::session) collected: CollectionState,
    /// Files that commands have handed over.
    pub(in crate::session) handed_over: HandedOver,
    /// Whole streams of commands in the sandbox.
    pub(in crate::session) whole: WholeStreams,
    /// Commands that were run.
    pub(in crate::session) commands: u64,
}

impl Contents {
    pub(in crate::session) fn new(
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

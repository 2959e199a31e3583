//! Methods that the host offers to the code of a session.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::connector::Grants;
use crate::handle::mint;
use crate::project::{ProjectCalls, ProjectMember};
use crate::session::branches::checkpoints::tries::TryMethods;
use crate::session::contents::Contents;
use crate::session::journal::Journal;
use crate::session::options::SessionOptions;
use crate::session::runtime::Runtime;
use crate::session::runtime::calls::{HostMethods, InProject, ResultsOnly};

/// The set of names that binds the functions for datasets.
const DATASETS: &str = "datasets";

impl SessionOptions {
    /// Makes the session a member of its project, if it has one, and binds the functions for datasets.
    pub(in crate::session) fn join(&mut self) -> Option<Arc<ProjectMember>> {
        let project = self.project.clone()?;
        let id = self.id.get_or_insert_with(|| mint("session_"));
        if self.prelude.iter().all(|it| it != DATASETS) {
            self.prelude.push(DATASETS.to_owned());
        }
        Some(Arc::new(ProjectMember::new(project, id.clone(), &self.seen)))
    }
}

impl Contents {
    /// Ends a cell, and returns the datasets that it has loaded.
    pub(in crate::session) fn take_loads(&self) -> BTreeSet<String> {
        self.member
            .as_ref()
            .map_or_else(BTreeSet::new, |member| member.end_cell())
    }
}

impl Runtime {
    /// Returns what a cell can call. What is derived from tool results comes from them alone.
    pub(in crate::session) fn offered(
        &self,
        contents: &Contents,
        journal: &Journal,
        derives: bool,
        grants: &Grants,
        cell: u64,
        producer: Option<String>,
    ) -> Box<dyn HostMethods> {
        let host = self.offered_to_cells(contents, journal, derives, grants, cell, producer);
        if self.trial.is_some() {
            return Box::new(TryMethods(host));
        }
        host
    }

    fn offered_to_cells(
        &self,
        contents: &Contents,
        journal: &Journal,
        derives: bool,
        grants: &Grants,
        cell: u64,
        producer: Option<String>,
    ) -> Box<dyn HostMethods> {
        match &contents.member {
            _ if derives => Box::new(ResultsOnly),
            Some(member) => Box::new(InProject {
                grants: grants.clone(),
                project: ProjectCalls {
                    member: Arc::clone(member),
                    cell,
                    producer,
                    origins: Arc::new(journal.lineage.origins().clone()),
                    grants: grants.clone(),
                    limits: self.shared.decoding.limits,
                },
            }),
            None => Box::new(grants.clone()),
        }
    }
}

//! Work of the session's task for processes: it makes the sandbox, and reports when it is gone.

use cellblock_sandbox::guest::GuestLink;
use futures_util::FutureExt as _;

use crate::error::{Error, Result};
use crate::run_record::RunDependency;
use crate::session::Session;
use crate::session::contents::Contents;
use crate::session::effects::Effects;
use crate::session::journal::Journal;
use crate::session::runtime::Runtime;

impl Session {
    /// Makes the sandbox for processes, if there is none, and returns the link to its guest.
    pub(super) async fn attach(&self) -> Result<GuestLink> {
        let effects = Effects::changing(RunDependency::Processes);
        self.ask(effects, |actor| {
            let (runtime, contents, journal) = actor.parts();
            runtime.attach(contents, journal).boxed()
        })
        .await
    }
}

impl Runtime {
    /// Makes sure that there is a sandbox for processes.
    pub(in crate::session) async fn attach(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
    ) -> Result<GuestLink> {
        // The next cell or command reports what was lost.
        self.lost_files = self.settled(contents, journal).await?.pop();
        let sandbox = self.sandbox.as_ref().ok_or(Error::Closed)?;
        Ok(sandbox.guest().link())
    }

    /// Tells processes which sandbox there is, and which layers it has.
    pub(in crate::session) fn show_processes(&self) {
        if let Some(sandbox) = &self.sandbox {
            self.processes
                .attach(sandbox.guest().link(), &self.layers, self.way_out_env());
        }
    }
}

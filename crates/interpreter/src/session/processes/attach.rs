//! Work of the session's task for processes: it makes the sandbox, and reports when it is gone.

use cellblock_sandbox::guest::GuestLink;

use super::super::actor::Actor;
use crate::error::{Error, Result};

impl Actor {
    /// Makes sure that there is a sandbox for processes.
    pub(in crate::session) async fn attach(&mut self) -> Result<GuestLink> {
        // The next cell or command reports what was lost.
        self.lost_files = self.settled().await?.pop();
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

//! Hibernation: a session gives back its processes and keeps its files. The next request starts a new kernel, and the next cell reports
//! that the variables are gone.

use serde::{Deserialize, Serialize};

use super::actor::Actor;
use super::timeline::Happened;
use super::{Request, Session};
use crate::error::Result;

/// Note for the next cell.
const HIBERNATED: &str = "the session was hibernated; all variables are gone; files in /workspace are kept. \
                          Run what defines your variables again";

/// What a hibernated session has lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Hibernated {
    /// Whether it had variables, which are gone.
    pub lost_variables: bool,
    /// Number of checkpoints that are gone.
    pub lost_checkpoints: usize,
}

impl Session {
    /// Ends the kernel, all [processes](Self::processes) and the checkpoints, and frees their memory. Files are kept. The next request that
    /// needs a kernel gets a new one.
    pub async fn hibernate(&self) -> Result<Hibernated> {
        self.ask(|answer| Request::Hibernate { answer }).await
    }
}

impl Actor {
    pub(super) async fn hibernate(&mut self) -> Result<Hibernated> {
        if self.loss().is_some() {
            self.discard();
        }
        self.processes.end_all().await;
        self.run_exit_handlers().await;
        let Some(sandbox) = &self.sandbox else {
            return Ok(Hibernated::default());
        };
        let snapshots = self.kept.numbers();
        self.kept.lose();
        self.kernel = None;
        sandbox.guest().kill_all_but(&[]).await?;
        for snapshot in &snapshots {
            sandbox.guest().discard(*snapshot).await?;
        }
        self.note_event(Happened::Hibernated);
        let lost_variables = std::mem::take(&mut self.has_variables);
        if lost_variables {
            self.unreported.push(HIBERNATED.to_owned());
        }
        Ok(Hibernated {
            lost_variables,
            lost_checkpoints: snapshots.len(),
        })
    }
}

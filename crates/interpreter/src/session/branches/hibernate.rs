//! Hibernation: a session gives back its processes and keeps what it can.
//!
//! ```text
//! backends that suspend sandboxes   the whole machine, with variables and files ──> disk ──next request──> the same machine
//! others                            files stay in the sandbox; the next request starts a new kernel, and the next cell reports
//!                                   that the variables are gone
//! ```

use std::time::Duration;

use cellblock_sandbox::backend::{Lease, Suspension};
use cellblock_sandbox::limits::NetworkPolicy;
use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::session::Session;
use crate::session::actor::Actor;
use crate::session::branches::dormancy::StoredMachine;
use crate::session::effects::Effects;
use crate::session::journal::Journal;
use crate::session::journal::timeline::TimelineEvent;
pub use crate::session::options::OnIdle;
use crate::session::runtime::Runtime;

/// Note for the next cell.
const HIBERNATED: &str = "the session was hibernated; all variables are gone; files in /workspace are kept. \
                          Run what defines your variables again";
/// Number of lost files that are named.
const NAMED: u32 = 10;

/// Parts that a hibernated session has lost, and those that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Hibernated")]
pub struct HibernationSummary {
    /// Whether it had variables, which are gone.
    pub lost_variables: bool,
    /// Number of checkpoints that are gone.
    pub lost_checkpoints: usize,
    /// Size in bytes of its variables and files on disk; absent if its files are still in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_bytes: Option<u64>,
}

impl Session {
    /// Ends all [processes](Self::processes), and frees the memory of the session. Backends that
    /// can, gVisor and microVMs, write its variables and files to disk, where they stay until the
    /// next request; a session with a volume or the network `egress` is an exception. Others end
    /// the kernel and the checkpoints, and keep the files. If the state cannot be written, the
    /// session goes on.
    pub async fn hibernate(&self) -> Result<HibernationSummary> {
        self.ask(Effects::REST, |actor| actor.hibernate().boxed()).await
    }

    /// The same with files alone, also on backends that can keep more. No cell reports that the
    /// variables are gone, because the caller asks for it.
    pub async fn hibernate_files(&self) -> Result<HibernationSummary> {
        self.ask(Effects::SAVED, |actor| actor.hibernate_files().boxed())
            .await
    }

    /// Returns whether it is hibernated.
    pub fn is_hibernated(&self) -> bool {
        self.resting.is_so()
    }
}

impl Runtime {
    /// Goes on in a sandbox that has the session's state.
    pub(in crate::session) fn take_up(&mut self, journal: &mut Journal, lease: Lease) {
        self.shared.in_use().insert(lease.sandbox.id().to_owned());
        self.sandbox = Some(lease.sandbox);
        self.kernel = Some(lease.kernel);
        self.show_processes();
        journal.note_start();
    }
}

impl Actor {
    pub(in crate::session) async fn hibernate(&mut self) -> Result<HibernationSummary> {
        if self.runtime.loss().is_some() {
            self.runtime.discard(&mut self.contents, &mut self.journal);
        }
        let hibernated = if let Some(asleep) = &self.runtime.asleep {
            HibernationSummary {
                kept_bytes: Some(asleep.dormant.bytes()),
                ..HibernationSummary::default()
            }
        } else if self.runtime.shared.backend.suspends()
            && self.contents.volume.is_none()
            && self.runtime.limits.network != NetworkPolicy::Egress
        {
            self.sleep().await?
        } else {
            let rested = self.rest().await?;
            if rested.lost_variables {
                self.journal.unreported.push(HIBERNATED.to_owned());
            }
            rested
        };
        self.note_hibernation();
        Ok(hibernated)
    }

    async fn hibernate_files(&mut self) -> Result<HibernationSummary> {
        if self.runtime.loss().is_some() {
            self.runtime.discard(&mut self.contents, &mut self.journal);
        }
        let rested = self.rest().await?;
        self.note_hibernation();
        Ok(rested)
    }

    fn note_hibernation(&mut self) {
        let there = self.runtime.sandbox.is_some() || self.runtime.asleep.is_some();
        self.runtime.resting.set(there);
        if there {
            self.journal.note_event(TimelineEvent::Hibernated);
        }
    }

    /// Keeps only files.
    async fn rest(&mut self) -> Result<HibernationSummary> {
        self.runtime.processes.end_all().await;
        self.runtime.run_exit_handlers(&mut self.journal).await;
        self.journal.chain.reset();
        let Some(sandbox) = &self.runtime.sandbox else {
            return Ok(HibernationSummary::default());
        };
        let snapshots = self.runtime.kept.numbers();
        self.runtime.kept.lose();
        self.runtime.kernel = None;
        sandbox.guest().kill_all_but(&[]).await?;
        for snapshot in &snapshots {
            sandbox.guest().discard(*snapshot).await?;
        }
        Ok(HibernationSummary {
            lost_variables: std::mem::take(&mut self.runtime.has_variables),
            lost_checkpoints: snapshots.len(),
            kept_bytes: None,
        })
    }

    /// Writes the machine to disk.
    async fn sleep(&mut self) -> Result<HibernationSummary> {
        if self.runtime.sandbox.is_none() {
            return Ok(HibernationSummary::default());
        }
        self.runtime.ready(&mut self.contents, &mut self.journal).await?;
        self.runtime.processes.end_all().await;
        let (Some(sandbox), Some(kernel)) = (self.runtime.sandbox.take(), self.runtime.kernel.take()) else {
            return Err(Error::Closed);
        };
        let id = sandbox.id().to_owned();
        let listed = sandbox.guest().list("/workspace", None, NAMED).await;
        let listed = listed.unwrap_or_default();
        match sandbox.suspend(kernel).await {
            Ok(Suspension::Dormant(dormant)) => {
                self.runtime.shared.returned(&id);
                let kept_bytes = Some(dormant.bytes());
                self.runtime.asleep = Some(StoredMachine {
                    dormant,
                    files: listed.files.into_iter().map(|file| file.path).collect(),
                    total: listed.total,
                });
                Ok(HibernationSummary {
                    kept_bytes,
                    ..HibernationSummary::default()
                })
            }
            Ok(Suspension::Refused(lease, error)) => {
                self.runtime.take_up(&mut self.journal, *lease);
                Err(error.into())
            }
            Err(error) => {
                self.runtime.shared.returned(&id);
                self.runtime.discard(&mut self.contents, &mut self.journal);
                Err(error.into())
            }
        }
    }

    /// Ends the hibernation.
    pub(in crate::session) async fn wake(&mut self) {
        self.runtime.resting.set(false);
        let Some(asleep) = self.runtime.asleep.take() else {
            return;
        };
        match asleep.dormant.wake().await {
            Ok(lease) => self.runtime.take_up(&mut self.journal, lease),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "could not restore a hibernated session"
                );
                self.runtime.discard(&mut self.contents, &mut self.journal);
                let files = lost_files(&asleep.files, asleep.total);
                self.journal.unreported.clear();
                self.journal.unreported.push(format!(
                    "the session was hibernated, and its state on disk cannot be restored; all variables \
                     are gone, and {files}. Run what defines your variables and writes your files again"
                ));
                self.runtime.lost_files = Some(format!(
                    "the session was hibernated, and its state on disk cannot be restored; {files}. Write \
                     them again"
                ));
            }
        }
    }

    /// Hibernates or ends a session that nobody has used for long; returns how long to wait then.
    pub(in crate::session) async fn end_or_hibernate(&mut self) -> Duration {
        if self.runtime.options.on_idle == OnIdle::Hibernate && !self.runtime.resting.is_so() {
            self.runtime
                .save_volume_between_cells(&mut self.contents, &mut self.journal)
                .await;
            match self.hibernate().await {
                Ok(hibernated) => {
                    tracing::info!(
                        session = self.journal.id,
                        ?hibernated,
                        "hibernated an idle session"
                    );
                    return self.runtime.options.hibernation;
                }
                Err(error) => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    session = self.journal.id,
                    "could not hibernate an idle session, which is ended"
                ),
            }
        }
        self.end_idle().await;
        Duration::ZERO
    }
}

/// Says which files are gone.
fn lost_files(some: &[String], total: u64) -> String {
    if some.is_empty() {
        return "all files are gone".to_owned();
    }
    let names: Vec<_> = some.iter().map(|name| format!("`{name}`")).collect();
    let more = total.saturating_sub(some.len() as u64);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("all files are gone, which are {}{more}", names.join(", "))
}

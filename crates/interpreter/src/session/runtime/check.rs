//! Checking a cell without running it.

use std::collections::BTreeMap;
use std::time::Instant;

use cellblock_protocol::ToKernel;
use tokio::sync::{mpsc, oneshot};

use crate::cell::Cell;
use crate::error::Result;
use crate::execution::{Event, Execution, Outcome, SandboxReport};
use crate::session::contents::Contents;
use crate::session::journal::Journal;
use crate::session::runtime::RunTerms;
use crate::session::runtime::Runtime;
use crate::session::runtime::calls::BuiltIn;

/// Note of code that may run.
const NOT_RUN: &str = "the code was checked and not run; nothing was found that would be rejected";

impl Runtime {
    /// Checks a cell's syntax, what the guard says of it, and the names of connectors' functions.
    /// Nothing of the session changes, not even the number of its next cell.
    pub(in crate::session) async fn check(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        cell: Cell,
        events: Option<mpsc::Sender<Event>>,
        asker: Option<&mut oneshot::Sender<Result<Execution>>>,
    ) -> Result<Execution> {
        let timeout = cell.timeout.unwrap_or(self.limits.cell_timeout);
        self.ready(contents, journal).await?;
        let message = ToKernel::Check {
            cell: self.number(),
            code: cell.code,
            name: cell
                .name
                .unwrap_or_else(|| format!("<cell {}>", journal.cells + 1)),
            line: cell.line,
            mode: cell.mode,
        };
        let terms = RunTerms::watched(timeout, events, asker, &BuiltIn);
        let started = Instant::now();
        let ran = self.run(journal, &message, terms).await?;
        let duration = started.elapsed();
        let verdict = self.judge(&ran, timeout).await?;
        self.has_variables &= self.kernel.is_some();
        let note = match verdict.outcome {
            Outcome::Completed => Some(NOT_RUN.to_owned()),
            _ => verdict.note,
        };
        Ok(Execution {
            cell: 0,
            outcome: verdict.outcome,
            state: ran.aftermath.state(),
            outputs: ran.outputs,
            outputs_dropped: ran.outputs_dropped,
            stdout: ran.stdout.finish(),
            stderr: ran.stderr.finish(),
            files: Vec::new(),
            skipped_files: Vec::new(),
            findings: ran.findings,
            fetches: Vec::new(),
            fetches_dropped: 0,
            origins: BTreeMap::new(),
            note,
            duration,
            sandbox: self.sandbox_report(),
        })
    }

    /// Returns where cells run.
    pub(in crate::session) fn sandbox_report(&self) -> SandboxReport {
        SandboxReport {
            backend: self.shared.backend.name().to_owned(),
            wall: self.shared.backend.wall().map(ToOwned::to_owned),
            lacks: self.shared.backend.lacks(),
            image: self.shared.image_id.clone(),
            network: self.limits.network,
            protections: self.shared.backend.report(),
        }
    }
}

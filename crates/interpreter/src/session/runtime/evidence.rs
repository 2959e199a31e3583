//! Evidence for judging a cell: the sandbox's usage and its disks.

use std::time::Duration;

use cellblock_sandbox::jail::protection::Protection;

use crate::error::Result;
use crate::session::runtime::Runtime;
use crate::session::runtime::judge;
use crate::session::runtime::run::{End, RequestResult};

impl Runtime {
    /// Fails when Cellblock's own part of the sandbox is gone, rather than the kernel alone.
    pub(in crate::session) async fn judge(
        &mut self,
        ran: &RequestResult,
        timeout: Duration,
    ) -> Result<judge::Verdict> {
        let report = self.shared.backend.report();
        let mut evidence = judge::Evidence {
            ran,
            timeout,
            limits: &self.limits,
            counted: judge::CgroupCounters {
                memory: report.is_active(Protection::MemoryCgroup),
                processes: report.is_active(Protection::ProcessCgroup),
            },
            usage: self.usage,
            before: self.usage,
            disks: Vec::new(),
            files_kept: true,
        };
        if let (Some(sandbox), true) = (&self.sandbox, judge::needs_evidence(ran)) {
            let usage = sandbox.usage().await;
            let disks = sandbox.guest().disks().await;
            evidence.usage = *usage.as_ref().unwrap_or(&self.usage);
            let (disks, unanswered) = match disks {
                Ok(disks) => (disks, None),
                Err(error) => (Vec::new(), Some(error)),
            };
            let mut errors = usage.err().into_iter().chain(unanswered);
            let gone = errors.find(|error| error.effect() == crate::error::Effect::Destroys);
            evidence.files_kept = gone.is_none();
            // Memory that ran out may have taken the guest along; everything else that ends it is
            // not the cell's doing.
            let by_memory = evidence.usage.memory_kills > evidence.before.memory_kills;
            if let (End::Lost(_), false, Some(gone)) = (&ran.end, by_memory, gone) {
                return Err(gone.into());
            }
            evidence.disks = disks;
            self.usage = evidence.usage;
        }
        self.has_files &= evidence.files_kept;
        Ok(judge::judge(&evidence))
    }
}

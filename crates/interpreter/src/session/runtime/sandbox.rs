//! A session's sandbox: made on first use, replaced when it is lost, ended with the session.

use cellblock_protocol::text::counted;
use cellblock_protocol::{Bundle, CellMode, Language, OutputLimits, ToKernel};
use cellblock_sandbox::backend::{Kernel, Usage};
use cellblock_sandbox::channel::write_frame;

use crate::error::{Error, Result};
use crate::execution::{Outcome, Resource};
use crate::session::PreparedSandbox;
use crate::session::contents::Contents;
use crate::session::contents::collection::{CollectionState, HandedOver};
use crate::session::journal::Journal;
use crate::session::runtime::Runtime;
use crate::session::runtime::calls::{BuiltIn, CallLimits};
use crate::session::runtime::capture::WholeStreams;
use crate::session::runtime::run::{CellTerms, run};
use crate::session::runtime::standby::Standby;

/// Rows of the head, and of the tail, of a table that is too large to be sent.
const PREVIEW_ROWS: u32 = 500;
/// Note for the next cell after a kernel or a whole sandbox was lost between cells.
const KERNEL_LOST: &str = "the kernel was lost and replaced; all variables are gone; files in /workspace \
                           are kept. Run what defines your variables again";
const SANDBOX_LOST: &str = "the sandbox was lost and replaced; all variables and files are gone. \
                            Run what defines your variables and writes your files again";
/// The same for the next command.
const FILES_LOST: &str = "the sandbox was lost and replaced; all files are gone. Write them again";

impl Runtime {
    /// Makes sure that there is a sandbox, and says which, and whether it was made for this.
    pub(in crate::session) async fn prepare(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
    ) -> Result<PreparedSandbox> {
        let before = self.sandbox.as_ref().map(|sandbox| sandbox.id().to_owned());
        self.ready(contents, journal).await?;
        let id = self.sandbox.as_ref().ok_or(Error::Closed)?.id().to_owned();
        Ok(PreparedSandbox {
            made: before.as_ref() != Some(&id),
            sandbox: id,
        })
    }

    pub(in crate::session) fn discard(&mut self, contents: &mut Contents, journal: &mut Journal) {
        if self.has_state() {
            let ended = self.loss();
            let ended = ended.as_ref().and_then(Error::lost_process);
            let told = |lost: &str| ended.map_or(lost.to_owned(), |it| format!("{it} has ended; {lost}"));
            journal.unreported.clear();
            journal.unreported.push(told(SANDBOX_LOST));
            self.lost_files = Some(told(FILES_LOST));
        }
        (self.has_files, self.has_variables) = (false, false);
        journal.chain.lose();
        self.kernel = None;
        journal.unreported.extend(self.kept.lose());
        self.trial = None;
        self.processes.lose();
        self.way_out.close();
        if let Some(volume) = &mut contents.volume {
            volume.lose();
        }
        if let Some(sandbox) = self.sandbox.take() {
            self.shared.returned(sandbox.id());
        }
        self.furnished = false;
        self.bound = None;
        self.usage = Usage::default();
        contents.collected = CollectionState::default();
        contents.handed_over = HandedOver::default();
        contents.whole = WholeStreams::default();
    }

    /// Whether the loss of the sandbox is a loss for its user.
    pub(in crate::session) fn has_state(&self) -> bool {
        self.has_files || self.has_variables || !self.processes.is_empty()
    }

    /// Returns the reason that the sandbox is lost, if it did not cause the loss itself.
    pub(in crate::session) fn loss(&self) -> Option<Error> {
        Some(self.sandbox.as_ref()?.lost()?.into())
    }

    /// Runs the `atexit` handlers of cells, within the grace period of an interrupted cell.
    pub(in crate::session) async fn run_exit_handlers(&mut self, journal: &mut Journal) {
        let message = ToKernel::Execute {
            cell: self.number(),
            code: String::new(),
            name: "<exit>".to_owned(),
            line: 1,
            language: Language::Python,
            argv: Vec::new(),
            mode: CellMode::Exec,
            echo: false,
            store: true,
            last: true,
            references: Vec::new(),
            report_names: false,
            grace_ms: None,
        };
        // The session's last cell has run them already.
        let left = self.has_variables && journal.exited_in != journal.cells;
        let (true, Some(kernel)) = (left, &mut self.kernel) else {
            return;
        };
        let terms = CellTerms {
            limits: &self.limits,
            timeout: self.limits.grace,
            interrupts: None,
            events: None,
            asker: None,
            decoding: &self.shared.decoding,
            standby: &mut self.standby,
            host: &BuiltIn,
            calls: CallLimits::default(),
        };
        if let Err(error) = run(kernel, &message, terms).await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "exit handlers did not run to their end"
            );
        }
    }

    /// Makes sure that the packages that the session has from its beginning are on the kernel's path.
    pub(in crate::session) async fn require_own(&mut self, journal: &mut Journal) -> Result<()> {
        let requirements = self.options.requirements.clone();
        self.require(journal, &requirements).await?;
        self.options.requirements.clear();
        Ok(())
    }

    /// Makes sure that packages are on the kernel's path.
    pub(in crate::session) async fn require(
        &mut self,
        journal: &mut Journal,
        requirements: &[String],
    ) -> Result<()> {
        if requirements.is_empty() {
            return Ok(());
        }
        let allowance = self.options.fetch_allowance.as_deref();
        let layer = self.shared.layer(requirements, allowance).await?;
        if !self.layers.contains(&layer) {
            if let Some(sandbox) = &self.sandbox {
                self.shared.show_layer(sandbox.as_ref(), &layer).await?;
            }
            self.layers.push(layer);
            self.show_processes();
            let message = self.configuration(Vec::new());
            if let Some(kernel) = &mut self.kernel {
                self.standby.sent(&message, 0);
                if write_frame(&mut kernel.writer, &message, &[]).await.is_err() {
                    // It has died meanwhile; the next one is told when it starts.
                    self.lost_between_cells(journal).await;
                }
            }
        }
        Ok(())
    }

    /// Makes sure that there is a sandbox with a live kernel that has the session's inputs.
    pub(in crate::session) async fn ready(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
    ) -> Result<()> {
        // Before the kernel, whose end may be noticed later.
        if self.loss().is_some() {
            self.discard(contents, journal);
        }
        self.require_own(journal).await?;
        self.hear_out(journal).await?;
        if self
            .kernel
            .as_ref()
            .is_some_and(|kernel| kernel.end.borrow().is_some())
        {
            self.lost_between_cells(journal).await;
        }
        if self.kernel.is_some() {
            return Ok(());
        }
        let bundles = contents.grants.bundles().await;
        journal.unreported.extend(bundles.iter().filter_map(|bundle| {
            let reason = bundle.unavailable.as_ref()?;
            Some(format!(
                "the connector `{}` is not complete: {reason}",
                bundle.name
            ))
        }));
        self.bundles.clone_from(&bundles);
        let message = self.configuration(bundles);
        loop {
            self.begin(contents, journal, &message).await?;
            // Setup code that ended its kernel is left out the next time.
            if self.set_up(journal).await? {
                break;
            }
        }
        if !self.furnished {
            self.furnish(contents, journal).await?;
        }
        for input in contents.inputs.clone() {
            self.bind_uploaded(journal, &input, false).await?;
        }
        Ok(())
    }

    /// Takes a new kernel, in the sandbox that is there if possible.
    async fn begin(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        message: &ToKernel,
    ) -> Result<()> {
        let mut kernel = match self.revive(contents, journal).await {
            Some(kernel) => kernel,
            None => self.settle(contents, journal).await?,
        };
        if write_frame(&mut kernel.writer, message, &[]).await.is_err() {
            // It died before its first message, perhaps with its launcher: once more, from the beginning.
            self.discard(contents, journal);
            kernel = self.settle(contents, journal).await?;
            write_frame(&mut kernel.writer, message, &[]).await?;
        }
        journal.lineage.clear();
        self.kept.begin();
        self.standby = Standby::default();
        self.standby.sent(message, 0);
        self.kernel = Some(kernel);
        self.interrupts.unseen = false;
        journal.note_start();
        Ok(())
    }

    /// Ends what a cell that started too many processes has left, and would write into the streams of the
    /// next one.
    pub(in crate::session) async fn end_others(&mut self, outcome: &Outcome) {
        let too_many =
            matches!(outcome, Outcome::LimitExceeded(exceeded) if exceeded.which == Resource::Processes);
        if too_many {
            self.end_all_but_kernel().await;
        }
    }

    async fn end_all_but_kernel(&mut self) {
        if let (Some(sandbox), Some(kernel)) = (&self.sandbox, &self.kernel) {
            let spared = self.kept.with(Some(kernel)).await;
            if let Err(error) = sandbox.guest().kill_all_but(&spared).await {
                tracing::info!(error = &error as &dyn std::error::Error, "processes are left");
            }
            kernel.discard_written();
        }
    }

    /// Discards what processes and threads of earlier cells have written since these cells ended,
    /// and leaves a note for the next one. If more processes were started than there may be, those
    /// that are left would go on writing, and are ended.
    pub(in crate::session) async fn discard_late_output(&mut self, journal: &mut Journal) {
        let (true, Some(sandbox), Some(kernel)) = (self.has_variables, &self.sandbox, &self.kernel) else {
            return;
        };
        let bytes = kernel.discard_written();
        if bytes == 0 {
            return;
        }
        journal.unreported.push(format!(
            "{} of output left out: processes or threads of earlier cells wrote it after those cells had \
             ended. Let them write to a file instead, and read that",
            counted(bytes, "byte")
        ));
        let Ok(usage) = sandbox.usage().await else { return };
        if usage.process_refusals > self.usage.process_refusals {
            self.end_all_but_kernel().await;
            journal.unreported.push(format!(
                "an earlier cell started more processes than the limit of {}, so all other processes of \
                 the sandbox were ended",
                self.limits.processes
            ));
        }
        self.usage = usage;
    }

    /// Forgets a kernel that ended while no cell ran.
    pub(in crate::session) fn lose_kernel(&mut self, journal: &mut Journal) {
        self.kernel = None;
        if std::mem::take(&mut self.has_variables) {
            journal.unreported.push(KERNEL_LOST.to_owned());
        }
    }

    /// A fresh kernel in the sandbox that is there, so that its files survive; `None` when that cannot be.
    async fn revive(&mut self, contents: &mut Contents, journal: &mut Journal) -> Option<Kernel> {
        let sandbox = self.sandbox.as_ref()?;
        let revived = async {
            sandbox.guest().kill_all_but(&self.kept.pids().await).await?;
            sandbox.start_kernel().await
        };
        match revived.await {
            Ok(kernel) => Some(kernel),
            Err(error) => {
                tracing::info!(
                    error = &error as &dyn std::error::Error,
                    "sandbox lost with its kernel"
                );
                self.discard(contents, journal);
                None
            }
        }
    }

    /// Takes a new sandbox.
    pub(in crate::session) async fn settle(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
    ) -> Result<Kernel> {
        let lease = self.shared.lease(&self.limits, self.options.pooled).await?;
        let sandbox = self.sandbox.insert(lease.sandbox);
        for layer in &self.layers {
            self.shared.show_layer(sandbox.as_ref(), layer).await?;
        }
        let mut filled = self.open_way_out(journal).await;
        self.show_processes();
        if filled.is_ok() {
            filled = self.fill_skills().await;
        }
        if filled.is_ok() {
            filled = self.fill_archive(contents).await;
        }
        if filled.is_ok() {
            filled = self.fill_volume(contents, journal).await;
        }
        if let Err(error) = filled {
            // Half a volume must not be saved as a whole one, and no cell runs without its way out.
            self.discard(contents, journal);
            return Err(error);
        }
        Ok(lease.kernel)
    }

    /// Configures a kernel, at its start and again when its path grows.
    pub(in crate::session) fn configuration(&self, connectors: Vec<Bundle>) -> ToKernel {
        let limits = &self.limits;
        ToKernel::Configure {
            prelude: self.options.prelude.clone(),
            guard: self.options.guard,
            limits: OutputLimits {
                outputs: limits.outputs,
                output_bytes: limits.output_bytes,
                text_chars: limits.output_chars,
                rows_preview: PREVIEW_ROWS,
                result_bytes: limits.result_bytes,
            },
            sys_path: self
                .layers
                .iter()
                .map(|layer| format!("/opt/layers/{layer}"))
                .collect(),
            rescue: self.options.rescue,
            connectors,
            outputs: self.shared.base.manifest().outputs.clone(),
        }
    }
}

//! The task that owns a session's state.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::binding::Binding;
use crate::cell::Cell;
use crate::connector::{FetchRecord, GrantTerms, Grants};
use crate::error::{Error, Result};
use crate::execution::{Event, Execution, Outcome};
use crate::handle::mint;
use crate::lineage::EndedCell;
use crate::memory;
use crate::project::ProjectMember;
use crate::session::contents::Contents;
use crate::session::contents::volume::OpenVolume;
use crate::session::count::ExecutionCount;
use crate::session::interrupts::InterruptReceiver;
use crate::session::journal::Journal;
use crate::session::journal::attribution::CellProducts;
use crate::session::options::SessionOptions;
use crate::session::processes::Table;
use crate::session::request::Request;
use crate::session::runtime::{RunTerms, Runtime};
use crate::session::unkept;
use crate::shared::InterpreterState;

/// A session's state.
#[derive(Debug)]
pub(super) struct Actor {
    pub(super) runtime: Runtime,
    pub(super) contents: Contents,
    pub(super) journal: Journal,
}

impl Actor {
    pub(super) fn new(
        shared: Arc<InterpreterState>,
        mut options: SessionOptions,
        member: Option<Arc<ProjectMember>>,
        interrupts: InterruptReceiver,
        processes: Arc<Table>,
    ) -> Self {
        let id = options.id.clone().unwrap_or_else(|| mint("session_"));
        let terms = GrantTerms {
            session: Some(id.clone()),
            store: Some(shared.store.clone()),
            shared: Arc::clone(&shared.answers),
            allowance: options.fetch_allowance.clone(),
        };
        let grants = Grants::new(&options.connectors, terms);
        let volume = options.volume.take().map(OpenVolume::new);
        Self {
            runtime: Runtime::new(shared, options, interrupts, processes),
            contents: Contents::new(grants, member, volume),
            journal: Journal::new(id),
        }
    }

    /// Returns its parts, for what needs several of them.
    pub(super) const fn parts(&mut self) -> (&mut Runtime, &mut Contents, &mut Journal) {
        (&mut self.runtime, &mut self.contents, &mut self.journal)
    }

    /// Serves the requests of a session's handles to its end.
    pub(super) async fn serve(mut self, mut queue: mpsc::Receiver<Request>) {
        while let Some(request) = self.next(&mut queue).await {
            let Some(request) = self.hold_back(request).await else {
                continue;
            };
            let effects = request.effects();
            if effects.wakes {
                self.wake().await;
            }
            self.journal.chain.note(effects);
            match request {
                Request::Execute {
                    cell,
                    binding,
                    events,
                    mut answer,
                } => {
                    let executed = self.execute_recorded(cell, binding, events, &mut answer).await;
                    let _ = answer.send(self.conclude(executed));
                }
                Request::Command { order, mut answer } => {
                    let counted = ExecutionCount::begin("workbench", order.argv.join("\0").as_bytes());
                    let (runtime, contents, journal) = self.parts();
                    let result = runtime.run_command(contents, journal, &order, &mut answer).await;
                    counted.command(&result);
                    let _ = answer.send(self.conclude(result));
                }
                Request::Task(task) => task.run(&mut self).await,
                Request::Close { answer } => {
                    let closed = self.end().await;
                    let _ = answer.send(closed);
                    memory::settle();
                    return;
                }
            }
        }
        let _ = self.end().await;
        memory::settle();
    }

    /// Ends the sandbox, lets others have the volume, and completes the records of runs.
    async fn end(&mut self) -> Result<()> {
        let closed = self.close().await;
        self.contents.release_volume().await;
        self.journal.recorder.flush().await;
        closed
    }

    /// Runs a cell, counts it, and makes a record of its run.
    async fn execute_recorded(
        &mut self,
        cell: Cell,
        binding: Option<Arc<Binding>>,
        events: Option<mpsc::Sender<Event>>,
        asker: &mut oneshot::Sender<Result<Execution>>,
    ) -> Result<Execution> {
        let toolset = binding.as_ref().map_or("interpreter", |_| "derivation");
        let counted = ExecutionCount::begin(toolset, cell.code.as_bytes());
        let (runtime, contents, journal) = self.parts();
        let recording = runtime.recording(contents, journal, &cell, binding.as_deref());
        let result = self.execute(cell, binding.as_ref(), events, Some(asker)).await;
        counted.cell(&result);
        let (runtime, contents, journal) = self.parts();
        runtime.record(contents, journal, recording, &result).await;
        result
    }

    /// Ends a request, once for each.
    pub(super) fn conclude<T>(&mut self, result: Result<T>) -> Result<T> {
        self.runtime.interrupts.over();
        self.give_up_broken(result)
    }

    /// Gives up a sandbox that an error says is broken. A guest that broke the protocol gets no
    /// second chance; the next request starts in a fresh sandbox.
    pub(super) fn give_up_broken<T>(&mut self, result: Result<T>) -> Result<T> {
        let destroys = match &result {
            Err(Error::Sandbox(error)) => error.effect() == crate::error::Effect::Destroys,
            Err(Error::Output(error)) => error.is_from_the_kernel(),
            _ => false,
        };
        if !destroys {
            return result;
        }
        // A guest that is gone because its machine is says nothing of that.
        let loss = self.runtime.loss();
        self.runtime.discard(&mut self.contents, &mut self.journal);
        loss.map_or(result, Err)
    }

    pub(super) async fn execute(
        &mut self,
        mut cell: Cell,
        binding: Option<&Arc<Binding>>,
        events: Option<mpsc::Sender<Event>>,
        asker: Option<&mut oneshot::Sender<Result<Execution>>>,
    ) -> Result<Execution> {
        let (runtime, contents, journal) = self.parts();
        cell.check()?;
        if cell.dry_run {
            return runtime.check(contents, journal, cell, events, asker).await;
        }
        let timeout = cell.timeout.unwrap_or(runtime.limits.cell_timeout);
        runtime.require(journal, &cell.requirements).await?;
        runtime.ready(contents, journal).await?;
        let references = runtime.refer(binding).await?;
        journal.cells += 1;
        let number = journal.cells;
        let message = runtime.cell_message(journal, &mut cell, references);
        runtime.discard_late_output(journal).await;
        let before = std::mem::take(&mut journal.unreported);
        (runtime.has_files, runtime.has_variables, runtime.lost_files) = (true, true, None);
        let grants = contents.grants.of_cell(runtime.write_mode(&cell));
        let host = runtime.offered(
            contents,
            journal,
            binding.is_some(),
            &grants,
            number,
            cell.producer.clone(),
        );
        let started = std::time::Instant::now();
        journal.chain.begin(started);
        let terms = RunTerms::watched(timeout, events, asker, &*host);
        let ran = runtime.run(journal, &message, terms).await;
        let duration = started.elapsed();
        let (fetches, fetches_dropped) = grants.take_records().await;
        let mut ran = match ran {
            Ok(ran) => ran,
            Err(error) => {
                journal.unreported = before;
                return Err(error);
            }
        };
        let verdict = runtime.judge(&ran, timeout).await?;
        if ran.stopped.is_some() {
            journal
                .unreported
                .extend(fetches.iter().find_map(FetchRecord::why_stopped));
        }
        // The verdict tells of the loss.
        runtime.has_variables &= runtime.kernel.is_some();
        if cell.last && verdict.outcome == Outcome::Completed {
            journal.exited_in = number;
        }
        runtime.end_others(&verdict.outcome).await;
        let names = ran.names.take().unwrap_or_default();
        runtime
            .trial
            .iter_mut()
            .for_each(|trial| trial.note(names.clone()));
        let artifacts: BTreeSet<_> = fetches.iter().filter_map(FetchRecord::artifact_id).collect();
        let inputs = journal.lineage.artifacts_behind(&names.read, artifacts.clone());
        let origins = journal.lineage.enter(EndedCell {
            number,
            producer: cell.producer.as_deref(),
            completed: verdict.outcome == Outcome::Completed,
            names,
            fetches: fetches.iter().filter_map(FetchRecord::reference).collect(),
            artifacts,
            loads: contents.take_loads(),
        });
        let collected = if cell.collect_files && ran.files && runtime.sandbox.is_some() {
            runtime.collect(contents).await
        } else {
            (Vec::new(), Vec::new())
        };
        let made = CellProducts {
            outputs: &ran.outputs,
            files: &collected.0,
            fetches: &fetches,
        };
        runtime.attribute(journal, number, &made, &inputs).await;
        runtime.save_volume_after_cell(contents, journal).await;
        journal.unreported.extend(unkept::note(&ran.unkept));
        Ok(Execution {
            cell: number,
            outcome: verdict.outcome,
            state: ran.aftermath.state(),
            outputs: ran.outputs,
            outputs_dropped: ran.outputs_dropped,
            stdout: ran.stdout.finish(),
            stderr: ran.stderr.finish(),
            files: collected.0,
            skipped_files: collected.1,
            findings: ran.findings,
            fetches,
            fetches_dropped,
            origins,
            note: journal.note(before, verdict.note),
            duration,
            sandbox: runtime.sandbox_report(),
        })
    }
}

//! The task that owns a session's state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "egress")]
use cellblock_egress::EgressPolicy;
use cellblock_protocol::{Guard, KernelOutcome, Rescue, ToKernel};
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Kernel, Sandbox, Usage};
use tokio::sync::{mpsc, oneshot};

use super::Request;
use super::attribution::CellProducts;
use super::calls::{BuiltIn, CallLimits, HostMethods};
use super::checkpoints::{Checkpoints, Trial};
use super::count::ExecutionCount;
use super::datasets::Dataset;
use super::files::CollectionState;
use super::hibernate::{HibernationFlag, OnIdle, StoredMachine};
use super::inputs::BoundInputs;
use super::interrupts::InterruptReceiver;
use super::kept::WholeStreams;
use super::outputs::HandedOver;
use super::processes::Table;
use super::recorder::Recorder;
use super::recording::RunChain;
use super::run::{CellTerms, End, RequestResult, run};
use super::setup::SetupSnippet;
use super::standby::Standby;
use super::timeline::{Timeline, TimelineEvent};
use super::unkept;
use super::volume::OpenVolume;
#[cfg(feature = "egress")]
use super::way_out::EgressLog;
use super::way_out::WayOut;
use crate::base::HeldLayer;
use crate::binding::Binding;
use crate::cell::Cell;
use crate::connector::{Bundle, Connector, FetchAllowance, FetchRecord, GrantTerms, Grants};
use crate::error::{Error, Result};
use crate::execution::{Event, Execution, Outcome};
use crate::handle::mint;
use crate::input::Input;
use crate::lineage::{EndedCell, Ledger, VariableOrigin};
use crate::memory;
use crate::project::{Project, ProjectMember};
use crate::run_record::RunSink;
use crate::shared::InterpreterState;
use crate::volume::SessionVolume;

/// Options of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Sets of names that are bound before the first cell; see `docs/protocol.md`.
    pub prelude: Vec<String>,
    /// Guard that checks code before it runs. It is a help for models, not a security boundary.
    pub guard: Guard,
    /// Code that runs before the first cell, and again after a reset and in each new kernel.
    pub setup: Vec<SetupSnippet>,
    /// Limits; by default the interpreter's, whose sandboxes are kept ready.
    pub limits: Option<Limits>,
    /// Whether a sandbox may come from the pool.
    pub pooled: bool,
    /// Whether, and how surely, variables survive a cell that kills its kernel; see `docs/rescue.md`.
    pub rescue: Rescue,
    /// Maximum idle time of a sandbox; the session itself continues, in a new one.
    pub idle: Duration,
    /// Action after that.
    pub on_idle: OnIdle,
    /// Time for which a session is kept that was hibernated because nobody had used it.
    pub hibernation: Duration,
    /// Id of the session in the origins of its artifacts; by default, a random one.
    pub id: Option<String>,
    /// Connectors that its code may call. Cells that derive from tool results may call none.
    pub connectors: Vec<Arc<dyn Connector>>,
    /// Packages that it has from its beginning, in addition to those of the image. They are
    /// installed before its first cell or command.
    pub requirements: Vec<String>,
    /// Allowances of its code for fetches of its connectors and for layers of packages; any amount
    /// by default.
    pub fetch_allowance: Option<Arc<dyn FetchAllowance>>,
    /// Project whose datasets its code may publish and load.
    pub project: Option<Project>,
    /// Datasets of the project that it may load without having looked at them, by slug.
    pub seen: Vec<String>,
    /// Policy of the hosts that code reaches with `network: egress`, which needs it.
    #[cfg(feature = "egress")]
    pub egress: Option<EgressPolicy>,
    /// Takes a record of each request to a host; none are kept by default.
    #[cfg(feature = "egress")]
    pub egress_log: Option<Arc<dyn EgressLog>>,
    /// Volume whose files it has in `/workspace/volume`.
    pub volume: Option<SessionVolume>,
    /// Takes a record of each cell; none are made by default.
    pub runs: Option<Arc<dyn RunSink>>,
}

/// Concludes a request with its result, which is its answer.
macro_rules! reply {
    ($actor:ident, $answer:ident, $result:expr) => {{
        let result = $result;
        let _ = $answer.send($actor.conclude(result));
    }};
}

/// The same for a request that may change files of the volume.
macro_rules! reply_saved {
    ($actor:ident, $answer:ident, $result:expr) => {{
        let result = $result;
        $actor.save_volume_between_cells().await;
        let _ = $answer.send($actor.conclude(result));
    }};
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            prelude: vec!["analysis".into(), "documents".into()],
            guard: Guard::Off,
            setup: Vec::new(),
            limits: None,
            pooled: true,
            rescue: Rescue::Idle,
            idle: Duration::from_mins(15),
            on_idle: OnIdle::End,
            hibernation: Duration::from_hours(24),
            id: None,
            connectors: Vec::new(),
            requirements: Vec::new(),
            fetch_allowance: None,
            project: None,
            seen: Vec::new(),
            #[cfg(feature = "egress")]
            egress: None,
            #[cfg(feature = "egress")]
            egress_log: None,
            volume: None,
            runs: None,
        }
    }
}

/// Binding an input, resetting and the like; none of them runs a user's loop.
const HOUSEKEEPING: Duration = Duration::from_mins(2);

/// A session's state.
#[derive(Debug)]
pub(super) struct Actor {
    pub(super) shared: Arc<InterpreterState>,
    pub(super) limits: Limits,
    pub(super) options: SessionOptions,
    pub(super) interrupts: InterruptReceiver,
    /// The sandbox, made on first use.
    pub(super) sandbox: Option<Box<dyn Sandbox>>,
    pub(super) kernel: Option<Kernel>,
    /// Sandbox on disk while the session is hibernated, if the backend can write it there.
    pub(super) asleep: Option<StoredMachine>,
    pub(super) resting: Arc<HibernationFlag>,
    pub(super) standby: Standby,
    /// Kept copies of kernels, with their checkpoints.
    pub(super) kept: Checkpoints,
    /// Whether the inputs' files are in the sandbox.
    pub(super) furnished: bool,
    pub(super) inputs: Vec<Input>,
    pub(super) datasets: Vec<Dataset>,
    /// Tool results that are in the sandbox.
    pub(super) bound: Option<BoundInputs>,
    /// Failures between cells that no cell has reported yet: lost variables and files, inputs that
    /// could not be copied into a new sandbox.
    pub(super) unreported: Vec<String>,
    /// Whether a cell has run in the kernel that is there, so that its loss is one of variables.
    pub(super) has_variables: bool,
    /// Whether a cell has run in the sandbox that is there, so that its loss is one of files.
    pub(super) has_files: bool,
    /// Note for the next command after the sandbox with its files was lost.
    pub(super) lost_files: Option<String>,
    /// Layers of packages that it has required.
    pub(super) layers: Vec<HeldLayer>,
    /// Origins of the variables of the kernel that is there.
    pub(super) lineage: Ledger,
    /// Setup code that has ended a kernel, by its place.
    pub(super) unusable_setup: BTreeSet<usize>,
    /// Cells that were run.
    pub(super) cells: u64,
    /// The cell that ran the exit handlers, to their end.
    pub(super) exited_in: u64,
    /// Messages that the kernel was to answer; their numbers tell its answers apart.
    messages: u64,
    /// Usage of the sandbox at the last look.
    pub(super) usage: Usage,
    pub(super) collected: CollectionState,
    /// Files that commands have handed over.
    pub(super) handed_over: HandedOver,
    /// Whole streams of commands in the sandbox.
    pub(super) whole: WholeStreams,
    /// Commands that were run.
    pub(super) commands: u64,
    /// Its part in a project.
    pub(super) member: Option<Arc<ProjectMember>>,
    /// The session's connectors.
    pub(super) grants: Grants,
    /// Bundles of them that the current kernel has bound.
    pub(super) bundles: Vec<Bundle>,
    /// Its id in origins of artifacts.
    pub(super) id: String,
    /// Processes beside cells.
    pub(super) processes: Arc<Table>,
    /// Its way out, with `network: egress`.
    pub(super) way_out: WayOut,
    /// Its volume.
    pub(super) volume: Option<OpenVolume>,
    /// State from before the next run, for the records of its runs.
    pub(super) chain: RunChain,
    /// Completes these records.
    pub(super) recorder: Recorder,
    /// The try that runs or is undecided.
    pub(super) trial: Option<Trial>,
    /// Events of the session outside of its cells.
    pub(super) timeline: Timeline,
}

impl Actor {
    pub(super) fn new(
        shared: Arc<InterpreterState>,
        mut options: SessionOptions,
        member: Option<Arc<ProjectMember>>,
        interrupts: InterruptReceiver,
        processes: Arc<Table>,
    ) -> Self {
        let limits = options.limits.clone().unwrap_or_else(|| shared.limits.clone());
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
            id,
            shared,
            limits,
            options,
            interrupts,
            sandbox: None,
            kernel: None,
            asleep: None,
            resting: Arc::default(),
            standby: Standby::default(),
            kept: Checkpoints::default(),
            furnished: false,
            inputs: Vec::new(),
            datasets: Vec::new(),
            bound: None,
            unreported: Vec::new(),
            has_variables: false,
            has_files: false,
            lost_files: None,
            layers: Vec::new(),
            lineage: Ledger::default(),
            unusable_setup: BTreeSet::new(),
            cells: 0,
            exited_in: 0,
            messages: 0,
            usage: Usage::default(),
            collected: CollectionState::default(),
            handed_over: HandedOver::default(),
            whole: WholeStreams::default(),
            commands: 0,
            member,
            grants,
            bundles: Vec::new(),
            processes,
            way_out: WayOut::default(),
            volume,
            chain: RunChain::default(),
            recorder: Recorder::default(),
            trial: None,
            timeline: Timeline::default(),
        }
    }

    pub(super) async fn serve(mut self, mut queue: mpsc::Receiver<Request>) {
        while let Some(request) = self.next(&mut queue).await {
            let Some(request) = self.hold_back(request) else {
                continue;
            };
            if request.wakes() {
                self.wake().await;
            }
            self.chain.note(&request);
            match request {
                Request::Execute {
                    cell,
                    binding,
                    events,
                    mut answer,
                } => {
                    let toolset = binding.as_ref().map_or("interpreter", |_| "derivation");
                    let counted = ExecutionCount::begin(toolset, cell.code.as_bytes());
                    let recording = self.recording(&cell, binding.as_deref());
                    let result = self
                        .execute(cell, binding.as_ref(), events, Some(&mut answer))
                        .await;
                    counted.cell(&result);
                    self.record(recording, &result).await;
                    let _ = answer.send(self.conclude(result));
                }
                Request::Prepare { answer } => reply!(self, answer, self.prepare().await),
                Request::Lend { connectors, answer } => self.lend(&connectors, answer).await,
                Request::Bind { input, answer } => reply!(self, answer, self.bind(input).await),
                Request::Get { name, answer } => reply!(self, answer, self.get(name).await),
                Request::Variables { answer } => reply!(self, answer, self.variables().await),
                Request::Origins { answer } => _ = answer.send(Ok(self.origins())),
                Request::Usage { answer } => reply!(self, answer, self.usage().await),
                Request::Reset { answer } => reply!(self, answer, self.reset().await),
                Request::ReadFile { path, most, answer } => {
                    reply!(self, answer, self.read_file(&path, most).await);
                }
                Request::WriteFile {
                    path,
                    content,
                    answer,
                } => reply_saved!(self, answer, self.write_file(&path, &content).await),
                Request::ListFiles { root, most, answer } => {
                    reply!(self, answer, self.list_files(&root, most).await);
                }
                Request::OpenFile { path, answer } => reply!(self, answer, self.open_file(&path).await),
                Request::PutFile { path, file, answer } => {
                    reply_saved!(self, answer, self.put_file(&path, file).await);
                }
                Request::RemoveFile { path, answer } => {
                    reply_saved!(self, answer, self.remove_file(&path).await);
                }
                Request::Command { order, mut answer } => {
                    let counted = ExecutionCount::begin("workbench", order.argv.join("\0").as_bytes());
                    let result = self.run_command(&order, &mut answer).await;
                    counted.command(&result);
                    let _ = answer.send(self.conclude(result));
                }
                Request::AddDataset {
                    name,
                    extension,
                    spooled,
                    answer,
                } => reply!(self, answer, self.add_dataset(name, extension, spooled).await),
                Request::ReplaceFile {
                    path,
                    content,
                    answer,
                } => reply_saved!(self, answer, self.replace_file(&path, content).await),
                Request::EditFile { path, change, answer } => {
                    reply_saved!(self, answer, self.edit_file(&path, &change).await);
                }
                Request::Checkpoint(request) => self.answer_checkpoint(request).await,
                Request::Try(order) => self.answer_try(order).await,
                Request::Hibernate { answer } => reply_saved!(self, answer, self.hibernate().await),
                Request::Fork(order) => self.answer_fork(order).await,
                Request::Attach { answer } => reply!(self, answer, self.attach().await),
                Request::Recorded { answer } => {
                    self.recorder.flush().await;
                    let _ = answer.send(Ok(()));
                }
                Request::Close { answer } => {
                    let closed = self.close().await;
                    self.release_volume().await;
                    self.recorder.flush().await;
                    let _ = answer.send(closed);
                    memory::settle();
                    return;
                }
            }
        }
        let _ = self.close().await;
        self.release_volume().await;
        self.recorder.flush().await;
        memory::settle();
    }

    /// Ends a request. A guest that broke the protocol gets no second chance; the next request
    /// starts in a fresh sandbox.
    pub(super) fn conclude<T>(&mut self, result: Result<T>) -> Result<T> {
        self.interrupts.over();
        let destroys = match &result {
            Err(Error::Sandbox(error)) => error.effect() == crate::error::Effect::Destroys,
            Err(Error::Output(error)) => error.is_from_the_kernel(),
            _ => false,
        };
        if !destroys {
            return result;
        }
        // A guest that is gone because its machine is says nothing of that.
        let loss = self.loss();
        self.discard();
        loss.map_or(result, Err)
    }

    pub(super) async fn execute(
        &mut self,
        cell: Cell,
        binding: Option<&Arc<Binding>>,
        events: Option<mpsc::Sender<Event>>,
        asker: Option<&mut oneshot::Sender<Result<Execution>>>,
    ) -> Result<Execution> {
        cell.check()?;
        if cell.dry_run {
            return self.check(cell, events, asker).await;
        }
        let timeout = cell.timeout.unwrap_or(self.limits.cell_timeout);
        self.require(&cell.requirements).await?;
        self.ready().await?;
        let references = self.refer(binding).await?;
        self.cells += 1;
        let number = self.cells;
        let message = ToKernel::Execute {
            cell: self.number(),
            name: cell.name.unwrap_or_else(|| format!("<cell {number}>")),
            code: cell.code,
            line: cell.line,
            language: cell.language,
            argv: cell.argv,
            mode: cell.mode,
            echo: cell.echo,
            store: cell.store,
            last: cell.last,
            references,
            report_names: cell.language.is_python()
                && (self.trial.is_some() || self.lineage.needs_names(cell.producer.as_deref())),
            grace_ms: (!cell.language.is_python())
                .then(|| u64::try_from(self.limits.grace.as_millis()).unwrap_or(u64::MAX)),
        };
        self.discard_late_output().await;
        let before = std::mem::take(&mut self.unreported);
        (self.has_files, self.has_variables, self.lost_files) = (true, true, None);
        let grants = self.grants.of_cell(self.trial.is_some());
        let host = self.offered(binding.is_some(), &grants, number, cell.producer.clone());
        let started = std::time::Instant::now();
        self.chain.begin(started);
        let ran = self.run(&message, timeout, events, asker, true, &*host).await;
        let duration = started.elapsed();
        let (fetches, fetches_dropped) = grants.take_records().await;
        let mut ran = match ran {
            Ok(ran) => ran,
            Err(error) => {
                self.unreported = before;
                return Err(error);
            }
        };
        let verdict = self.judge(&ran, timeout).await?;
        if ran.stopped.is_some() {
            self.unreported
                .extend(fetches.iter().find_map(FetchRecord::why_stopped));
        }
        // The verdict tells of the loss.
        self.has_variables &= self.kernel.is_some();
        if cell.last && verdict.outcome == Outcome::Completed {
            self.exited_in = number;
        }
        self.end_others(&verdict.outcome).await;
        let names = ran.names.take().unwrap_or_default();
        self.trial.iter_mut().for_each(|trial| trial.note(names.clone()));
        let artifacts: BTreeSet<_> = fetches.iter().filter_map(FetchRecord::artifact_id).collect();
        let inputs = self.lineage.artifacts_behind(&names.read, artifacts.clone());
        let origins = self.lineage.enter(EndedCell {
            number,
            producer: cell.producer.as_deref(),
            completed: verdict.outcome == Outcome::Completed,
            names,
            fetches: fetches.iter().filter_map(FetchRecord::reference).collect(),
            artifacts,
            loads: self.take_loads(),
        });
        let collected = if cell.collect_files && ran.files && self.sandbox.is_some() {
            self.collect().await
        } else {
            (Vec::new(), Vec::new())
        };
        let made = CellProducts {
            outputs: &ran.outputs,
            files: &collected.0,
            fetches: &fetches,
        };
        self.attribute(number, &made, &inputs).await;
        self.save_volume_after_cell().await;
        self.unreported.extend(unkept::note(&ran.unkept));
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
            note: self.note(before, verdict.note),
            duration,
            sandbox: self.sandbox_report(),
        })
    }

    /// Returns the origins of the variables that are there.
    fn origins(&self) -> BTreeMap<String, VariableOrigin> {
        let there = self.kernel.as_ref().map(|_| self.lineage.origins().clone());
        there.unwrap_or_default()
    }

    pub(super) fn number(&mut self) -> u64 {
        self.messages += 1;
        self.messages
    }

    pub(super) async fn run(
        &mut self,
        message: &ToKernel,
        timeout: Duration,
        events: Option<mpsc::Sender<Event>>,
        asker: Option<&mut oneshot::Sender<Result<Execution>>>,
        stoppable: bool,
        host: &dyn HostMethods,
    ) -> Result<RequestResult> {
        let kernel = self.kernel.as_mut().ok_or(Error::Closed)?;
        let terms = CellTerms {
            limits: &self.limits,
            timeout,
            interrupts: stoppable.then_some(&mut self.interrupts),
            events,
            asker,
            decoding: &self.shared.decoding,
            standby: &mut self.standby,
            host,
            calls: CallLimits::default(),
        };
        terms.standby.sent(message, self.cells);
        let mut ran = run(kernel, message, terms).await?;
        self.interrupts.unseen = ran.stopped.is_some();
        if matches!(ran.end, End::Lost(_)) {
            ran.aftermath = self.rescue().await;
        }
        Ok(ran)
    }

    /// A request that user code has no part in: anything but completion is an error, given as its
    /// message. What is done for the sake of another request is not `stoppable`: an interrupt is
    /// meant for that one.
    pub(super) async fn housekeeping(
        &mut self,
        message: &ToKernel,
        stoppable: bool,
    ) -> Result<Result<RequestResult, String>> {
        let mut ran = self
            .run(message, HOUSEKEEPING, None, None, stoppable, &BuiltIn)
            .await?;
        if let (End::Done { .. }, Some(unkept)) = (&ran.end, ran.unkept.pop()) {
            return Err(unkept.error);
        }
        Ok(match &ran.end {
            End::Done {
                outcome: KernelOutcome::Completed,
                ..
            } => Ok(ran),
            End::Done {
                error: Some(error), ..
            } => Err(error.message.clone()),
            End::Done { .. } => Err("it was interrupted".to_owned()),
            End::Lost(_) => {
                self.lose_kernel();
                Err("the kernel ended meanwhile".to_owned())
            }
        })
    }

    async fn reset(&mut self) -> Result<()> {
        self.processes.end_all().await;
        self.hear_out().await?;
        self.grants.forget();
        if self.kernel.is_none() {
            return Ok(());
        }
        let message = ToKernel::Reset { cell: self.number() };
        match self.housekeeping(&message, true).await? {
            Ok(_) => {
                self.note_event(TimelineEvent::Reset);
                self.lineage.clear();
                self.set_up().await.map(drop)
            }
            Err(reason) => Err(Error::Request(format!("reset the session: {reason}"))),
        }
    }
}

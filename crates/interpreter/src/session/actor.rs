//! The task that owns a session's state.

use std::sync::Arc;
use std::time::Duration;

use cellblock_protocol::{Guard, KernelOutcome, OutputLimits, Rescue, ToKernel, Variable};
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Kernel, Sandbox, Usage};
use cellblock_sandbox::channel::write_frame;
use cellblock_sandbox::jail::protection::Protection;
use tokio::sync::{mpsc, watch};

use super::files::Collected;
use super::run::{End, Ran, Terms, run};
use super::standby::Standby;
use super::{Request, judge};
use crate::cell::Cell;
use crate::error::{Error, Result};
use crate::execution::{Event, Execution, Outcome, Resource, SandboxReport};
use crate::input::Input;
use crate::interpreter::Shared;
use crate::output::Output;

/// How a session is set up.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Sets of names that are bound before the first cell; see `docs/protocol.md`.
    pub prelude: Vec<String>,
    /// What code is checked for before it runs.
    pub guard: Guard,
    /// Limits; by default the interpreter's, whose sandboxes are kept ready.
    pub limits: Option<Limits>,
    /// Whether a sandbox may come from the pool.
    pub pooled: bool,
    /// Whether, and how surely, variables survive a cell that kills its kernel; see `docs/rescue.md`.
    pub rescue: Rescue,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            prelude: vec!["analysis".into(), "documents".into()],
            guard: Guard::Off,
            limits: None,
            pooled: true,
            rescue: Rescue::Idle,
        }
    }
}

/// Rows of the head, and of the tail, of a table that is too large to be sent.
const PREVIEW_ROWS: u32 = 500;
/// What the next cell is told when a kernel or a whole sandbox was lost and no cell could tell.
const KERNEL_LOST: &str = "the kernel was lost and replaced; all variables are gone; files in /workspace are kept. \
                           Run what defines your variables again";
const SANDBOX_LOST: &str = "the sandbox was lost and replaced; all variables and files are gone. \
                            Run what defines your variables and writes your files again";
/// Binding an input, resetting and the like; none of them runs a user's loop.
const HOUSEKEEPING: Duration = Duration::from_mins(2);

/// A session's state.
#[derive(Debug)]
pub(super) struct Actor {
    pub(super) shared: Arc<Shared>,
    pub(super) limits: Limits,
    pub(super) options: SessionOptions,
    interrupts: watch::Receiver<u64>,
    /// The sandbox, made on first use.
    pub(super) sandbox: Option<Box<dyn Sandbox>>,
    pub(super) kernel: Option<Kernel>,
    pub(super) standby: Standby,
    /// Whether the inputs' files are in the sandbox.
    furnished: bool,
    inputs: Vec<Input>,
    /// What went wrong between cells, until a cell has told: lost variables and files, inputs that could not be copied into a new sandbox.
    pub(super) untold: Vec<String>,
    /// Whether a cell has run in the kernel that is there, so that its loss is one of variables.
    has_variables: bool,
    /// Whether a cell has run in the sandbox that is there, so that its loss is one of files.
    has_files: bool,
    layers: Vec<String>,
    /// Cells that were run.
    cells: u64,
    /// Messages that the kernel was to answer; their numbers tell its answers apart.
    messages: u64,
    /// What the sandbox had used when last asked.
    usage: Usage,
    pub(super) collected: Collected,
}

impl Actor {
    pub(super) fn new(
        shared: Arc<Shared>,
        options: SessionOptions,
        interrupts: watch::Receiver<u64>,
    ) -> Self {
        let limits = options.limits.clone().unwrap_or_else(|| shared.limits.clone());
        Self {
            shared,
            limits,
            options,
            interrupts,
            sandbox: None,
            kernel: None,
            standby: Standby::default(),
            furnished: false,
            inputs: Vec::new(),
            untold: Vec::new(),
            has_variables: false,
            has_files: false,
            layers: Vec::new(),
            cells: 0,
            messages: 0,
            usage: Usage::default(),
            collected: Collected::default(),
        }
    }

    pub(super) async fn serve(mut self, mut queue: mpsc::Receiver<Request>) {
        while let Some(request) = queue.recv().await {
            match request {
                Request::Execute { cell, events, answer } => {
                    let result = self.execute(cell, events).await;
                    let _ = answer.send(self.keep_or_destroy(result));
                }
                Request::Bind { input, answer } => {
                    let result = self.bind(input).await;
                    let _ = answer.send(self.keep_or_destroy(result));
                }
                Request::Get { name, answer } => {
                    let result = self.get(name).await;
                    let _ = answer.send(self.keep_or_destroy(result));
                }
                Request::Variables { answer } => {
                    let result = self.variables().await;
                    let _ = answer.send(self.keep_or_destroy(result));
                }
                Request::Reset { answer } => {
                    let result = self.reset().await;
                    let _ = answer.send(self.keep_or_destroy(result));
                }
                Request::ReadFile { path, answer } => {
                    let result = self.read_file(&path).await;
                    let _ = answer.send(self.keep_or_destroy(result));
                }
                Request::WriteFile {
                    path,
                    content,
                    answer,
                } => {
                    let result = self.write_file(&path, &content).await;
                    let _ = answer.send(self.keep_or_destroy(result));
                }
                Request::Close { answer } => {
                    let _ = answer.send(self.close().await);
                    return;
                }
            }
        }
        let _ = self.close().await;
    }

    /// A guest that broke the protocol gets no second chance; the next request starts in a fresh sandbox.
    fn keep_or_destroy<T>(&mut self, result: Result<T>) -> Result<T> {
        let destroys = match &result {
            Err(Error::Sandbox(error)) => error.effect() == crate::error::Effect::Destroys,
            Err(Error::Output(error)) => error.is_from_the_kernel(),
            _ => false,
        };
        if destroys {
            self.discard();
        }
        result
    }

    fn discard(&mut self) {
        if self.has_files || self.has_variables {
            self.untold.clear();
            self.untold.push(SANDBOX_LOST.to_owned());
        }
        (self.has_files, self.has_variables) = (false, false);
        self.kernel = None;
        self.sandbox = None;
        self.furnished = false;
        self.usage = Usage::default();
        self.collected = Collected::default();
    }

    async fn close(&mut self) -> Result<()> {
        self.kernel = None;
        match self.sandbox.take() {
            Some(sandbox) => Ok(sandbox.destroy().await?),
            None => Ok(()),
        }
    }

    async fn execute(&mut self, cell: Cell, events: Option<mpsc::Sender<Event>>) -> Result<Execution> {
        let timeout = cell.timeout.unwrap_or(self.limits.cell_time);
        self.require(&cell.requirements).await?;
        self.ready().await?;
        self.cells += 1;
        let number = self.cells;
        let message = ToKernel::Execute {
            cell: self.number(),
            name: cell.name.unwrap_or_else(|| format!("<cell {number}>")),
            code: cell.code,
            line: cell.line,
            mode: cell.mode,
            echo: cell.echo,
            store: cell.store,
            references: Vec::new(),
        };
        let started = std::time::Instant::now();
        let before = std::mem::take(&mut self.untold);
        (self.has_files, self.has_variables) = (true, true);
        let ran = match self.run(&message, timeout, events).await {
            Ok(ran) => ran,
            Err(error) => {
                self.untold = before;
                return Err(error);
            }
        };
        let duration = started.elapsed();
        let verdict = self.judge(&ran, timeout).await?;
        // The verdict tells of the loss.
        self.has_variables &= self.kernel.is_some();
        self.end_others(&verdict.outcome).await;
        let collected = if cell.collect_files && ran.files && self.sandbox.is_some() {
            self.collect().await?
        } else {
            (Vec::new(), Vec::new())
        };
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
            note: self.note(before, verdict.note),
            duration,
            sandbox: SandboxReport {
                backend: self.shared.backend.name().to_owned(),
                image: self.shared.image_id.clone(),
                protections: self.shared.backend.report(),
            },
        })
    }

    /// What a model must be told besides the outcome.
    fn note(&mut self, before: Vec<String>, of_outcome: Option<String>) -> Option<String> {
        let notes: Vec<_> = before
            .into_iter()
            .chain(self.untold.drain(..))
            .chain(of_outcome)
            .collect();
        (!notes.is_empty()).then(|| notes.join(". "))
    }

    fn number(&mut self) -> u64 {
        self.messages += 1;
        self.messages
    }

    /// What a cell that started too many processes has left would write into the streams of the next one.
    async fn end_others(&self, outcome: &Outcome) {
        let too_many =
            matches!(outcome, Outcome::LimitExceeded(exceeded) if exceeded.which == Resource::Processes);
        if let (true, Some(sandbox), Some(kernel)) = (too_many, &self.sandbox, &self.kernel) {
            if let Err(error) = sandbox.guest().kill_all_but(kernel.pid).await {
                tracing::info!(error = &error as &dyn std::error::Error, "processes are left");
            }
            kernel.discard_written();
        }
    }

    /// Fails when Cellblock's own part of the sandbox is gone, rather than the kernel alone.
    async fn judge(&mut self, ran: &Ran, timeout: Duration) -> Result<judge::Verdict> {
        let report = self.shared.backend.report();
        let mut evidence = judge::Evidence {
            ran,
            timeout,
            limits: &self.limits,
            counted: judge::Counted {
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
            // Memory that ran out may have taken the guest along; everything else that ends it is not the cell's doing.
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

    /// Makes sure that packages are on the kernel's path.
    async fn require(&mut self, requirements: &[String]) -> Result<()> {
        if requirements.is_empty() {
            return Ok(());
        }
        let layer = self.shared.layer(requirements).await?;
        if !self.layers.contains(&layer) {
            self.layers.push(layer);
            if let Some(kernel) = &mut self.kernel {
                let message = configure(&self.options, &self.limits, &self.layers);
                self.standby.sent(&message, 0);
                if write_frame(&mut kernel.writer, &message, &[]).await.is_err() {
                    // It has died meanwhile; the next one is told when it starts.
                    self.lost_between_cells().await;
                }
            }
        }
        Ok(())
    }

    /// Makes sure that there is a sandbox with a live kernel that has the session's inputs.
    pub(super) async fn ready(&mut self) -> Result<()> {
        if self
            .kernel
            .as_ref()
            .is_some_and(|kernel| kernel.end.borrow().is_some())
        {
            self.lost_between_cells().await;
        }
        if self.kernel.is_some() {
            return Ok(());
        }
        let mut kernel = match self.revive().await {
            Some(kernel) => kernel,
            None => self.settle().await?,
        };
        let message = configure(&self.options, &self.limits, &self.layers);
        if write_frame(&mut kernel.writer, &message, &[]).await.is_err() {
            // It died before its first message, perhaps with its launcher: once more, from the beginning.
            self.discard();
            kernel = self.settle().await?;
            write_frame(&mut kernel.writer, &message, &[]).await?;
        }
        self.standby = Standby::default();
        self.standby.sent(&message, 0);
        self.kernel = Some(kernel);
        if !self.furnished {
            self.furnish().await?;
        }
        for input in self.inputs.clone() {
            self.bind_uploaded(&input).await?;
        }
        Ok(())
    }

    /// Copies all inputs into a new sandbox. One whose file has gone from the host is given up, and the next cell says so: the session
    /// goes on without it.
    async fn furnish(&mut self) -> Result<()> {
        for input in std::mem::take(&mut self.inputs) {
            match self.upload(&input).await {
                Ok(()) => self.inputs.push(input),
                // The reason names a path of the host, which is nothing for a model.
                Err(Error::Input { name, reason }) => {
                    tracing::warn!(name, reason, "gave up an input");
                    self.untold.push(format!(
                        "input `{name}` could not be copied into a new sandbox and is no longer bound"
                    ));
                }
                Err(error) => {
                    self.inputs.push(input);
                    return Err(error);
                }
            }
        }
        self.furnished = true;
        Ok(())
    }

    /// Forgets a kernel that ended while no cell ran.
    fn lose_kernel(&mut self) {
        self.kernel = None;
        if std::mem::take(&mut self.has_variables) {
            self.untold.push(KERNEL_LOST.to_owned());
        }
    }

    /// A fresh kernel in the sandbox that is there, so that its files survive; `None` when that cannot be.
    async fn revive(&mut self) -> Option<Kernel> {
        let sandbox = self.sandbox.as_ref()?;
        let revived = async {
            sandbox.guest().kill_all().await?;
            sandbox.start_kernel().await
        };
        match revived.await {
            Ok(kernel) => Some(kernel),
            Err(error) => {
                tracing::info!(
                    error = &error as &dyn std::error::Error,
                    "sandbox lost with its kernel"
                );
                self.discard();
                None
            }
        }
    }

    /// Takes a new sandbox.
    async fn settle(&mut self) -> Result<Kernel> {
        let lease = self.shared.lease(&self.limits, self.options.pooled).await?;
        self.sandbox = Some(lease.sandbox);
        Ok(lease.kernel)
    }

    async fn run(
        &mut self,
        message: &ToKernel,
        timeout: Duration,
        events: Option<mpsc::Sender<Event>>,
    ) -> Result<Ran> {
        let kernel = self.kernel.as_mut().ok_or(Error::Closed)?;
        let terms = Terms {
            limits: &self.limits,
            timeout,
            interrupts: &mut self.interrupts,
            events,
            decoding: &self.shared.decoding,
            standby: &mut self.standby,
        };
        terms.standby.sent(message, self.cells);
        let mut ran = run(kernel, message, terms).await?;
        if matches!(ran.end, End::Lost(_)) {
            ran.aftermath = self.rescue().await;
        }
        match ran.failure.take() {
            Some(failure) => {
                // Nobody else tells of the loss.
                if self.kernel.is_none() {
                    self.lose_kernel();
                }
                Err(failure)
            }
            None => Ok(ran),
        }
    }

    /// A request that user code has no part in: anything but completion is an error, given as its message.
    async fn housekeeping(&mut self, message: &ToKernel) -> Result<Result<Ran, String>> {
        let ran = self.run(message, HOUSEKEEPING, None).await?;
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

    async fn bind(&mut self, input: Input) -> Result<()> {
        // Opened first: what cannot be read must not cost a sandbox, nor replace what was bound.
        input.open(self.limits.data_bytes)?;
        self.ready().await?;
        let bound = match self.upload(&input).await {
            Ok(()) => self.bind_uploaded(&input).await,
            refused => refused,
        };
        if let Err(refused) = bound {
            self.restore_file(&input).await;
            return Err(refused);
        }
        self.inputs.retain(|bound| bound.name() != input.name());
        self.inputs.push(input);
        self.furnished = true;
        Ok(())
    }

    /// Puts back the file that a refused input has overwritten: a reset or the next kernel reads it again.
    async fn restore_file(&mut self, refused: &Input) {
        let path = refused.sandbox_path();
        let before = self.inputs.iter().find(|bound| bound.sandbox_path() == path);
        if let Some(before) = before.cloned() {
            self.furnished &= self.upload(&before).await.is_ok();
        }
    }

    async fn upload(&mut self, input: &Input) -> Result<()> {
        let content = input.open(self.limits.data_bytes)?;
        let sandbox = self.sandbox.as_ref().ok_or(Error::Closed)?;
        // Writable for its owner, who appends part by part; code finds it on a read-only mount.
        sandbox
            .guest()
            .write(&input.sandbox_path(), 0o644, content)
            .await?;
        Ok(())
    }

    async fn bind_uploaded(&mut self, input: &Input) -> Result<()> {
        let message = ToKernel::Bind {
            cell: self.number(),
            name: input.name().to_owned(),
            format: input.format,
            path: Some(input.sandbox_path()),
        };
        match self.housekeeping(&message).await? {
            Ok(_) => Ok(()),
            Err(reason) => Err(input.refuse(reason)),
        }
    }

    async fn get(&mut self, name: String) -> Result<Option<Output>> {
        self.ready().await?;
        let message = ToKernel::Get {
            cell: self.number(),
            name,
        };
        let ran = self.housekeeping(&message).await?;
        Ok(ran.ok().and_then(|mut ran| ran.outputs.pop()))
    }

    async fn variables(&mut self) -> Result<Vec<Variable>> {
        self.ready().await?;
        let message = ToKernel::Variables { cell: self.number() };
        match self.housekeeping(&message).await? {
            Ok(ran) => Ok(ran.variables),
            Err(reason) => Err(Error::Request(format!("list the variables: {reason}"))),
        }
    }

    async fn reset(&mut self) -> Result<()> {
        if self.kernel.is_none() {
            return Ok(());
        }
        let message = ToKernel::Reset { cell: self.number() };
        match self.housekeeping(&message).await? {
            Ok(_) => Ok(()),
            Err(reason) => Err(Error::Request(format!("reset the session: {reason}"))),
        }
    }
}

/// What a kernel is told before anything else, and again when there is more on its path.
fn configure(options: &SessionOptions, limits: &Limits, layers: &[String]) -> ToKernel {
    ToKernel::Configure {
        prelude: options.prelude.clone(),
        guard: options.guard,
        limits: OutputLimits {
            outputs: limits.outputs,
            output_bytes: limits.output_bytes,
            text_chars: limits.output_chars,
            rows_preview: PREVIEW_ROWS,
            result_bytes: limits.result_bytes,
        },
        sys_path: layers
            .iter()
            .map(|layer| format!("/opt/layers/{layer}"))
            .collect(),
        rescue: options.rescue,
    }
}

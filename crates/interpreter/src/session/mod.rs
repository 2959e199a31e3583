//! Sessions: a kernel with its sandbox, across cells. One task owns each; handles send it messages.

use std::collections::BTreeMap;
use std::fs::File;
use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use cellblock_protocol::Guard;
pub use cellblock_protocol::Variable;
use cellblock_sandbox::limits::NetworkPolicy;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot};

use crate::binding::Binding;
use crate::cell::Cell;
use crate::connector::Connector;
use crate::error::{Error, Result};
use crate::execution::{Event, Execution};
use crate::input::Input;
use crate::lineage::VariableOrigin;
use crate::output::Output;
use crate::project::ProjectMember;
use crate::run_record::RunDependency;
use crate::shared::InterpreterState;
use crate::skill::SessionSkill;

mod actor;
mod branches;
mod contents;
mod count;
mod effects;
#[cfg(feature = "egress")]
mod egress;
mod interrupts;
mod journal;
mod lifetime;
mod options;
pub mod ports;
pub mod processes;
mod program;
mod request;
mod runtime;
mod unkept;
mod until;

pub use branches::{checkpoints, fork, hibernate};
pub(crate) use contents::change::{Change, EditError};
pub use contents::dataset::{DatasetMount, DatasetSource, MountKind};
pub use contents::describe::{ColumnType, DatasetShape};
pub use contents::disk::{FileListing, ListedFile, OpenedFile};
pub(crate) use contents::edit::{EditOutcome, EditRefused, RefusedFile};
#[doc(hidden)]
pub use contents::files::fuzz_file_name;
pub(crate) use contents::patch::{FileAction, FileChange, PatchCause, PatchRefused};
pub(crate) use contents::skills::check as check_skills;
pub(crate) use contents::spool;
pub use journal::timeline;
#[cfg(feature = "egress")]
pub use options::EgressLog;
pub use options::{SessionOptions, SetupSnippet};
pub use program::{ProgramRun, SandboxProgram};
pub use runtime::command::CommandEnd;
pub(crate) use runtime::command::{CommandOrder, CommandResult, Listener};
pub use runtime::usage::SessionUsage;
#[cfg(feature = "egress")]
pub use runtime::way_out::is_reserved_variable;
pub use until::until;

use actor::Actor;
use branches::dormancy::HibernationFlag;
use contents::datasets;
use effects::Effects;
use interrupts::Interrupts;
use request::{Request, Task};

/// Requests that may wait for the session's task.
const QUEUE: usize = 16;
/// Events that may wait for their reader; beyond that the cell's output waits.
const EVENTS: usize = 256;

/// A handle to a session. Clones share it; when the last one is dropped its sandbox is destroyed.
#[derive(Clone, Debug)]
pub struct Session {
    requests: mpsc::Sender<Request>,
    interrupts: Arc<Interrupts>,
    /// The host's folder for datasets on their way into sandboxes.
    spool: Arc<Path>,
    /// Whether they can be mounted there.
    mounts: bool,
    added: Arc<Mutex<Vec<DatasetMount>>>,
    member: Option<Arc<ProjectMember>>,
    network: NetworkPolicy,
    table: Arc<processes::Table>,
    /// Whether its code is checked before it runs.
    guarded: bool,
    skills: Arc<[SessionSkill]>,
    resting: Arc<HibernationFlag>,
    timeline: timeline::Timeline,
    #[cfg(feature = "egress")]
    egress: Arc<egress::EgressTerms>,
}

/// A cell that runs, with what happens meanwhile.
#[derive(Debug)]
pub struct RunningCell {
    /// Output as it comes. Reading it is optional, but a reader that stops without dropping it
    /// holds up the cell.
    pub events: mpsc::Receiver<Event>,
    result: oneshot::Receiver<Result<Execution>>,
}

impl RunningCell {
    /// Waits for the cell's end; events not read until then are dropped.
    pub async fn finish(self) -> Result<Execution> {
        drop(self.events);
        ended(self.result).await
    }

    /// Returns the events and the cell's end, to be awaited at the same time.
    pub fn split(self) -> (mpsc::Receiver<Event>, impl Future<Output = Result<Execution>>) {
        (self.events, ended(self.result))
    }
}

async fn ended(result: oneshot::Receiver<Result<Execution>>) -> Result<Execution> {
    result.await.map_err(|_| Error::Closed)?
}

/// The sandbox that the next cell runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedSandbox {
    /// Its id, unique on this host at any time.
    pub sandbox: String,
    /// Whether it was taken just now, rather than by an earlier request.
    pub made: bool,
}

impl Session {
    pub(crate) fn start(shared: Arc<InterpreterState>, options: SessionOptions) -> Self {
        let (session, actor, queue) = Self::build(shared, options);
        tokio::spawn(actor.serve(queue));
        session
    }

    /// Makes a session whose task does not run yet.
    fn build(
        shared: Arc<InterpreterState>,
        mut options: SessionOptions,
    ) -> (Self, Actor, mpsc::Receiver<Request>) {
        let (requests, queue) = mpsc::channel(QUEUE);
        let mounts = datasets::can_mount(&shared);
        let spool = shared.base.spool().into();
        let (interrupts, interrupted) = interrupts::interrupts();
        let member = options.join();
        let limits = options.limits.as_ref().unwrap_or(&shared.limits);
        let network = limits.network;
        let table: Arc<processes::Table> = Arc::default();
        let guarded = options.guard != Guard::Off;
        let skills = options.skills.clone().into();
        let actor = Actor::new(shared, options, member.clone(), interrupted, Arc::clone(&table));
        let resting = Arc::clone(&actor.runtime.resting);
        let session = Self {
            requests,
            interrupts: Arc::new(interrupts),
            spool,
            mounts,
            added: Arc::default(),
            member,
            network,
            table,
            guarded,
            skills,
            resting,
            timeline: actor.journal.timeline.clone(),
            #[cfg(feature = "egress")]
            egress: Arc::clone(&actor.runtime.way_out.terms),
        };
        (session, actor, queue)
    }

    /// Runs a cell to its end. User code that fails is `Ok`: see [`Outcome`](crate::execution::Outcome).
    pub async fn execute(&self, cell: impl Into<Cell>) -> Result<Execution> {
        let cell = cell.into();
        self.request(|answer| Request::Execute {
            cell,
            binding: None,
            events: None,
            answer,
        })
        .await
    }

    /// Starts a cell and hands out its output as it comes.
    pub async fn start_cell(&self, cell: impl Into<Cell>) -> Result<RunningCell> {
        let (sender, events) = mpsc::channel(EVENTS);
        let (answer, result) = oneshot::channel();
        let request = Request::Execute {
            cell: cell.into(),
            binding: None,
            events: Some(sender),
            answer,
        };
        self.send(request).await?;
        Ok(RunningCell { events, result })
    }

    /// Runs one expression; its value is the only output.
    pub async fn eval(&self, expression: impl Into<String>) -> Result<Execution> {
        self.execute(Cell::expression(expression)).await
    }

    /// Makes the sandbox now rather than with the first cell.
    pub async fn prepare(&self) -> Result<PreparedSandbox> {
        self.ask(Effects::USE, |actor| {
            let (runtime, contents, journal) = actor.parts();
            runtime.prepare(contents, journal).boxed()
        })
        .await
    }

    /// Lends connectors to the next cells, in the place of those that were lent before. Code that
    /// names one of these after that has its calls rejected. A connector that is lent hides the
    /// session's own with the same name.
    pub async fn lend(&self, connectors: Vec<Arc<dyn Connector>>) -> Result<()> {
        self.ask(Effects::USE, move |actor| {
            let (runtime, contents, journal) = actor.parts();
            async move { runtime.lend(contents, journal, &connectors).await }.boxed()
        })
        .await
    }

    /// Runs a cell that finds tool results bound; its output goes to `events` as it comes.
    pub(crate) async fn execute_bound(
        &self,
        cell: Cell,
        binding: Option<Arc<Binding>>,
        events: Option<mpsc::Sender<Event>>,
    ) -> Result<Execution> {
        self.request(|answer| Request::Execute {
            cell,
            binding,
            events,
            answer,
        })
        .await
    }

    /// Replaces the destinations that the session gives up and the headers of its requests, at once and
    /// also while a cell runs: see [`EgressProxy::replace`](cellblock_egress::EgressProxy::replace). Its
    /// policy must be `replaceable`.
    ///
    /// # Errors
    ///
    /// The session reaches no hosts, or a header is invalid. The rules are as before then.
    pub fn replace_egress(
        &self,
        restriction: cellblock_egress::EgressRestriction,
        headers: Vec<cellblock_egress::HeaderRule>,
    ) -> Result<()> {
        self.egress.replace(restriction, headers)
    }

    /// Returns the network that its code can use.
    pub const fn network(&self) -> NetworkPolicy {
        self.network
    }

    /// Returns its skills.
    pub fn skills(&self) -> &[SessionSkill] {
        &self.skills
    }

    /// Returns its part in its project, if it has one.
    pub fn member(&self) -> Option<&ProjectMember> {
        self.member.as_deref()
    }

    /// Returns the origin of a variable; `None` if no cell with a [producer](Cell::produced_by) has made it.
    pub async fn origin(&self, name: impl Into<String>) -> Result<Option<VariableOrigin>> {
        Ok(self.origins().await?.remove(&name.into()))
    }

    /// Returns the origins of the variables that cells with a [producer](Cell::produced_by) have made, by
    /// name.
    pub async fn origins(&self) -> Result<BTreeMap<String, VariableOrigin>> {
        self.ask(Effects::USE, |actor| {
            ready(Ok(actor.runtime.origins(&actor.journal))).boxed()
        })
        .await
    }

    /// Returns the last [`MAX_EVENTS`](timeline::MAX_EVENTS) events of the session, the oldest first;
    /// also while a cell runs.
    pub fn events(&self) -> Vec<timeline::SessionEvent> {
        self.timeline.events().iter().cloned().collect()
    }

    /// A variable as a typed output; `None` when there is none of that name.
    pub async fn get(&self, name: impl Into<String>) -> Result<Option<Output>> {
        let name = name.into();
        self.ask(Effects::USE, move |actor| {
            let (runtime, contents, journal) = actor.parts();
            runtime.get(contents, journal, name).boxed()
        })
        .await
    }

    /// The session's variables, without those that were there from the start.
    pub async fn variables(&self) -> Result<Vec<Variable>> {
        self.ask(Effects::USE, |actor| {
            let (runtime, contents, journal) = actor.parts();
            runtime.variables(contents, journal).boxed()
        })
        .await
    }

    /// Returns the resources that the session's sandbox uses; `None` while it has none.
    pub async fn usage(&self) -> Result<Option<SessionUsage>> {
        self.ask(Effects::NONE, |actor| actor.runtime.usage().boxed())
            .await
    }

    /// Binds an input, also again after a reset or the loss of the kernel. Returns what was
    /// detected of it, in words, if it is not plain: its separator, decimal mark, encoding,
    /// compression or sheet. The next execution's note says it, too.
    pub async fn bind(&self, input: Input) -> Result<Vec<String>> {
        self.ask(Effects::USE, move |actor| {
            let (runtime, contents, journal) = actor.parts();
            runtime.bind(contents, journal, input).boxed()
        })
        .await
    }

    /// Drops all variables but the inputs, and ends all [processes](Self::processes).
    pub async fn reset(&self) -> Result<()> {
        self.ask(Effects::RESET, |actor| {
            let (runtime, contents, journal) = actor.parts();
            runtime.reset(contents, journal).boxed()
        })
        .await
    }

    /// Stops the cell that runs now, or is the next to run, if there is one; one that was not begun
    /// yet ends before its code does anything. Its variables are kept unless it does not listen.
    /// Later requests are not stopped.
    pub fn interrupt(&self) {
        self.interrupts.interrupt();
    }

    /// Drives `work`, which uses this session, to its end. Once `cancel` completes, interrupts the
    /// session again and again until the work ends.
    pub fn until<T>(
        &self,
        cancel: impl Future<Output = ()>,
        work: impl Future<Output = T>,
    ) -> impl Future<Output = T> {
        until(|| self.interrupt(), cancel, work)
    }

    /// Reads a file of the sandbox, up to the limit for collected files.
    pub async fn read_file(&self, path: impl Into<String>) -> Result<Vec<u8>> {
        let path = path.into();
        self.ask(Effects::USE, move |actor| {
            async move { actor.runtime.read_file(&path, None).await }.boxed()
        })
        .await
    }

    /// Reads a file of the sandbox that has at most so many bytes; a larger one is refused before
    /// it is held in memory.
    pub async fn read_file_within(&self, path: impl Into<String>, most: u64) -> Result<Vec<u8>> {
        let path = path.into();
        self.ask(Effects::USE, move |actor| {
            async move { actor.runtime.read_file(&path, Some(most)).await }.boxed()
        })
        .await
    }

    /// Writes a file of the sandbox; parents are made.
    pub async fn write_file(&self, path: impl Into<String>, content: impl Into<Vec<u8>>) -> Result<()> {
        let (path, content) = (path.into(), content.into());
        self.ask(Effects::FILES, move |actor| {
            let (runtime, contents, journal) = actor.parts();
            async move { runtime.write_file(contents, journal, &path, &content).await }.boxed()
        })
        .await
    }

    /// Lists the regular files below a folder of the sandbox: `/workspace` or `/tmp`, or one below
    /// them. A session that has no sandbox has no files.
    pub async fn list_files(&self, root: impl Into<String>, most: u32) -> Result<FileListing> {
        let root = root.into();
        self.ask(Effects::USE, move |actor| {
            async move { actor.runtime.list_files(&root, most).await }.boxed()
        })
        .await
    }

    /// Copies a file of the sandbox into an unlinked file of the host, up to the limit for collected files.
    pub async fn open_file(&self, path: impl Into<String>) -> Result<OpenedFile> {
        let path = path.into();
        self.ask(Effects::USE, move |actor| {
            async move { actor.runtime.open_file(&path).await }.boxed()
        })
        .await
    }

    /// Writes a file of the sandbox from one of the host, read from where it stands; parents are
    /// made. Cells do not hand it back unless they change it.
    pub async fn put_file(&self, path: impl Into<String>, file: File) -> Result<()> {
        let path = path.into();
        self.ask(Effects::FILES, move |actor| {
            let (runtime, contents, journal) = actor.parts();
            async move { runtime.put_file(contents, journal, &path, file).await }.boxed()
        })
        .await
    }

    /// Removes a file of the sandbox. One that is not there is an error.
    pub async fn remove_file(&self, path: impl Into<String>) -> Result<()> {
        let path = path.into();
        self.ask(Effects::FILES, move |actor| {
            async move { actor.runtime.remove_file(&path).await }.boxed()
        })
        .await
    }

    /// Runs a command to its end.
    pub(crate) async fn command(&self, order: CommandOrder) -> Result<CommandResult> {
        self.request(|answer| Request::Command { order, answer }).await
    }

    /// Adds a file of the host as a dataset: it appears in `/tmp/data`, read-only, at once where a
    /// sandbox lives, and in each that is made later. The answer says under which name, how it got
    /// there, and what is in it.
    ///
    /// An error of the kind `Input` says that the file cannot be read, or not converted; the
    /// session is as it was.
    pub async fn add_dataset(&self, name: String, source: DatasetSource) -> Result<DatasetMount> {
        let folder = Arc::clone(&self.spool);
        let extension = source.format().extension();
        let mounts = self.mounts;
        let spooled = tokio::task::spawn_blocking(move || spool::spool(&source, &folder, mounts))
            .await
            .expect("making a dataset ready does not panic");
        let spooled = spooled.map_err(|reason| Error::Input {
            name: name.clone(),
            reason,
        })?;
        let effects = Effects::changing(RunDependency::Datasets);
        let mounted = self.ask(effects, move |actor| {
            let (runtime, contents, _) = actor.parts();
            runtime.add_dataset(contents, name, extension, spooled).boxed()
        });
        let mounted = mounted.await?;
        self.added().push(mounted.clone());
        Ok(mounted)
    }

    /// Returns the datasets in the order in which they were added.
    pub fn datasets(&self) -> Vec<DatasetMount> {
        self.added().clone()
    }

    fn added(&self) -> MutexGuard<'_, Vec<DatasetMount>> {
        self.added.lock()
    }

    /// Replaces or makes a file in one step.
    pub(crate) async fn replace_file(
        &self,
        path: String,
        content: Vec<u8>,
    ) -> Result<std::result::Result<(), RefusedFile>> {
        self.ask(Effects::FILES, move |actor| {
            let (runtime, contents, journal) = actor.parts();
            async move { runtime.replace_file(contents, journal, &path, content).await }.boxed()
        })
        .await
    }

    /// Changes a file in one step.
    pub(crate) async fn edit_file(&self, path: String, change: Change) -> Result<EditOutcome> {
        self.ask(Effects::FILES, move |actor| {
            let (runtime, contents, journal) = actor.parts();
            async move { runtime.edit_file(contents, journal, &path, &change).await }.boxed()
        })
        .await
    }

    /// Changes several files in one step, each of at most `limit` bytes before and after: all, or none.
    pub(crate) async fn patch_files(
        &self,
        changes: Vec<FileChange>,
        limit: u64,
    ) -> Result<std::result::Result<(), PatchRefused>> {
        self.ask(Effects::FILES, move |actor| {
            let (runtime, contents, journal) = actor.parts();
            async move { runtime.patch_files(contents, journal, &changes, limit).await }.boxed()
        })
        .await
    }

    /// Waits until the records of all its runs are handed over.
    pub(crate) async fn recorded(&self) -> Result<()> {
        self.ask(Effects::NONE, |actor| {
            async {
                actor.journal.recorder.flush().await;
                Ok(())
            }
            .boxed()
        })
        .await
    }

    /// Ends the session and completes when its sandbox is gone, and the records of its runs are handed over.
    pub async fn close(&self) -> Result<()> {
        self.request(|answer| Request::Close { answer }).await
    }

    /// Ends the session and interrupts what runs in it; completes when its sandbox is gone.
    pub async fn close_now(&self) -> Result<()> {
        self.until(ready(()), self.close()).await
    }

    /// Has the session's task do some work, and returns its result.
    async fn ask<T: Send + 'static>(
        &self,
        effects: Effects,
        work: impl for<'a> FnOnce(&'a mut Actor) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.request(|answer| Request::Task(Task::new(effects, answer, work)))
            .await
    }

    async fn request<T>(&self, request: impl FnOnce(oneshot::Sender<Result<T>>) -> Request) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        self.send(request(answer)).await?;
        answered.await.map_err(|_| Error::Closed)?
    }

    async fn send(&self, request: Request) -> Result<()> {
        let place = self.requests.reserve().await.map_err(|_| Error::Closed)?;
        self.interrupts.asking();
        place.send(request);
        Ok(())
    }
}

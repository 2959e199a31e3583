//! Answers of a session's host: descriptions, prompts, and calls of tools in their turn.

use std::future::ready;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cellblock_interpreter::hosting::{Resident, ResidentSession};
use cellblock_interpreter::toolset::ToolEvent;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::broadcast;
use tokio_util::task::TaskTracker;

use super::connection::{failure, send, tell};
use super::{Service, branches, cells, processes};
use crate::error::Error;
use crate::exit_code::ExitCode;
use crate::session::plan::{SessionDataset, SessionPlan};
use crate::session::toolbox::Toolbox;
use crate::session::wire::{Description, HostAnswer, HostCommand, HostFrame, ProcessAsk, SessionAsk};
use crate::session_error::WireError;

/// The session that is hosted, with what its connections share.
#[derive(Debug)]
pub(crate) struct SessionService<T> {
    toolbox: T,
    plan: SessionPlan,
    calls: AtomicU64,
    /// Those that came after the plan's.
    datasets: Mutex<Vec<SessionDataset>>,
    branches: TaskTracker,
}

/// Reason that a call is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GivenUp {
    /// Nobody waits for it any more.
    Left,
    /// The session ends.
    Closing,
}

impl<T> SessionService<T> {
    /// A session as it was planned.
    pub(crate) fn new(toolbox: T, plan: SessionPlan) -> Self {
        Self::branch(toolbox, plan, TaskTracker::new())
    }

    /// A fork of such a session, beside the other forks.
    pub(super) fn branch(toolbox: T, plan: SessionPlan, branches: TaskTracker) -> Self {
        Self {
            branches,
            toolbox,
            plan,
            calls: AtomicU64::new(0),
            datasets: Mutex::default(),
        }
    }

    pub(super) const fn toolbox(&self) -> &T {
        &self.toolbox
    }

    pub(super) const fn plan(&self) -> &SessionPlan {
        &self.plan
    }

    fn datasets(&self) -> MutexGuard<'_, Vec<SessionDataset>> {
        self.datasets.lock()
    }
}

impl<T: Toolbox> Service for SessionService<T> {
    async fn answer(session: Arc<Resident<Self>>, stream: UnixStream, ask: HostCommand) -> io::Result<()> {
        let (reader, writer) = stream.into_split();
        HostClient { reader, writer }.answer(&session, ask).await
    }

    fn branches(&self) -> TaskTracker {
        self.branches.clone()
    }
}

impl<T: Toolbox> ResidentSession for SessionService<T> {
    fn idle_timeout(&self) -> Duration {
        self.plan.lifetime()
    }

    fn interrupt(&self) {
        self.toolbox.interrupt();
    }

    async fn close(&self) -> cellblock_interpreter::Result<()> {
        self.toolbox.close().await
    }
}

fn description<T: Toolbox>(session: &Resident<SessionService<T>>) -> Description {
    let mut plan = session.plan.clone();
    plan.datasets.extend(session.datasets().iter().cloned());
    Description {
        process: std::process::id(),
        plan,
        calls: session.calls.load(Ordering::Relaxed),
        running: session.holds(),
        idle_seconds: session.idle().as_secs_f64(),
    }
}

struct HostClient {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
}

impl HostClient {
    async fn answer<T: Toolbox>(
        &mut self,
        shared: &Arc<Resident<SessionService<T>>>,
        ask: HostCommand,
    ) -> io::Result<()> {
        let answer = match ask {
            HostCommand::Describe => HostAnswer::Description {
                description: Box::new(description(shared)),
            },
            HostCommand::Prompt => HostAnswer::Prompt {
                text: shared.toolbox.prompt(),
            },
            HostCommand::Call {
                tool,
                arguments,
                watch,
            } => match self.call(shared, &tool, arguments, watch).await? {
                Some(answer) => answer,
                None => return Ok(()),
            },
            HostCommand::Process { what } => match self.process(shared, what).await? {
                Some(answer) => answer,
                None => return Ok(()),
            },
            HostCommand::Session { what } => match self.session(shared, what).await? {
                Some(answer) => answer,
                None => return Ok(()),
            },
            HostCommand::AddDataset { dataset } => add_dataset(shared, &dataset).await,
            HostCommand::Sandbox => failure(&Error::Refused(
                "a session's host has no sandboxes for others".to_owned(),
            )),
            HostCommand::Stop => return Ok(()),
        };
        tell(&mut self.writer, &answer).await
    }

    /// Calls a tool when it is its turn; no answer where nobody waits for one.
    async fn call<T: Toolbox>(
        &mut self,
        shared: &Arc<Resident<SessionService<T>>>,
        tool: &str,
        arguments: Value,
        watch: bool,
    ) -> io::Result<Option<HostAnswer>> {
        let turn = tokio::select! {
            biased;
            () = self.left() => return Ok(None),
            turn = shared.turn() => turn,
        };
        let Ok(turn) = turn else { return Ok(Some(closed())) };
        shared.calls.fetch_add(1, Ordering::Relaxed);
        let mut events = watch.then(|| shared.toolbox.events());
        let mut call = pin!(shared.toolbox.call(tool, arguments));
        let given_up = loop {
            tokio::select! {
                biased;
                () = shared.closed() => break GivenUp::Closing,
                event = next(&mut events) => if self.pass_on(event).await.is_err() {
                    break GivenUp::Left;
                },
                result = &mut call => {
                    // What it wrote last.
                    while let Some(Ok(event)) = events.as_mut().map(broadcast::Receiver::try_recv) {
                        self.pass_on(event).await?;
                    }
                    return Ok(Some(match result {
                        Ok(result) => HostAnswer::Result { result },
                        Err(error) => failure(&error),
                    }));
                }
                () = left(&mut self.reader) => break GivenUp::Left,
            }
        };
        // Before others have their turn it is over.
        let _ = turn.until(ready(()), call).await;
        drop(turn);
        Ok((given_up == GivenUp::Closing).then(closed))
    }

    /// Runs a cell or uses checkpoints when it is its turn; no answer where nobody waits for one.
    async fn session<T: Toolbox>(
        &mut self,
        shared: &Arc<Resident<SessionService<T>>>,
        ask: SessionAsk,
    ) -> io::Result<Option<HostAnswer>> {
        let turn = tokio::select! {
            biased;
            () = self.left() => return Ok(None),
            turn = shared.turn() => turn,
        };
        let (Ok(turn), Some(session)) = (turn, shared.toolbox.session()) else {
            return Ok(Some(closed()));
        };
        shared.calls.fetch_add(1, Ordering::Relaxed);
        let mut work = pin!(async {
            match ask {
                SessionAsk::Fork { count, reseed } => branches::fork(shared, count, reseed).await,
                ask => cells::answer(session, ask).await,
            }
        });
        let given_up = tokio::select! {
            biased;
            () = shared.closed() => GivenUp::Closing,
            answer = &mut work => return Ok(Some(answer.unwrap_or_else(|error| failure(&error)))),
            () = self.left() => GivenUp::Left,
        };
        // Before others have their turn it is over.
        let _ = turn.until(ready(()), work).await;
        drop(turn);
        Ok((given_up == GivenUp::Closing).then(closed))
    }

    /// Does something with processes, whatever runs meanwhile; no answer where nobody waits for one.
    async fn process<T: Toolbox>(
        &mut self,
        shared: &Arc<Resident<SessionService<T>>>,
        ask: ProcessAsk,
    ) -> io::Result<Option<HostAnswer>> {
        let (Some(_held), Some(session)) = (shared.hold(), shared.toolbox.session()) else {
            return Ok(Some(closed()));
        };
        let answer = tokio::select! {
            biased;
            () = shared.closed() => return Ok(Some(closed())),
            answer = processes::answer(session, ask) => answer,
            () = self.left() => return Ok(None),
        };
        Ok(Some(match answer {
            Ok((output, answer)) => {
                if !output.is_empty() {
                    send(&mut self.writer, &HostFrame::Stdout(output)).await?;
                }
                answer
            }
            Err(error) => failure(&error),
        }))
    }

    async fn left(&mut self) {
        left(&mut self.reader).await;
    }

    async fn pass_on(&mut self, event: ToolEvent) -> io::Result<()> {
        match event {
            ToolEvent::Stdout(bytes) => send(&mut self.writer, &HostFrame::Stdout(bytes)).await,
            ToolEvent::Stderr(bytes) => send(&mut self.writer, &HostFrame::Stderr(bytes)).await,
            ToolEvent::Visualization { path, media_type, .. } => {
                tell(&mut self.writer, &HostAnswer::Visualization { path, media_type }).await
            }
        }
    }
}

/// Completes when the client is gone. It has said all that it may say.
async fn left(reader: &mut OwnedReadHalf) {
    let _ = reader.read(&mut [0]).await;
}

/// Returns the next event; never, if nobody watches.
async fn next(events: &mut Option<broadcast::Receiver<ToolEvent>>) -> ToolEvent {
    if let Some(receiver) = events {
        loop {
            match receiver.recv().await {
                Ok(event) => return event,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => break,
            }
        }
    }
    std::future::pending().await
}

async fn add_dataset<T: Toolbox>(
    shared: &Arc<Resident<SessionService<T>>>,
    dataset: &SessionDataset,
) -> HostAnswer {
    let Some(_held) = shared.hold() else {
        return closed();
    };
    tokio::select! {
        biased;
        () = shared.closed() => closed(),
        added = shared.toolbox.add_dataset(dataset) => match added {
            Ok(added) => {
                shared.datasets().push(dataset.clone());
                HostAnswer::AddedDataset { added }
            }
            Err(error) => failure(&error),
        },
    }
}

fn closed() -> HostAnswer {
    HostAnswer::Failure {
        failure: WireError {
            messages: vec!["the session ended before the call did".to_owned()],
            hints: vec!["start another with `cellblock session start`".to_owned()],
            code: ExitCode::Backend,
        },
    }
}

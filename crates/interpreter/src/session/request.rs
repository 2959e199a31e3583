//! Requests of a session's handles to its task.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::binding::Binding;
use crate::cell::Cell;
use crate::error::{Error, Result};
use crate::execution::{Event, Execution};
use crate::run_record::RunDependency;
use crate::session::actor::Actor;
use crate::session::runtime::command::{CommandOrder, CommandResult};

/// A request to the task of a session.
#[derive(Debug)]
pub(super) enum Request {
    Execute {
        cell: Cell,
        binding: Option<Arc<Binding>>,
        events: Option<mpsc::Sender<Event>>,
        answer: oneshot::Sender<Result<Execution>>,
    },
    Command {
        order: CommandOrder,
        answer: oneshot::Sender<Result<CommandResult>>,
    },
    Task(Task),
    Close {
        answer: oneshot::Sender<Result<()>>,
    },
}

/// Relation of a request to the state of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effects {
    /// Whether it ends a hibernation.
    pub(super) wakes: bool,
    /// Whether it is served while a try is undecided.
    pub(super) beside_try: bool,
    /// Whether the volume is saved after it.
    saves_volume: bool,
    /// Change beside cells, for the records of runs.
    pub(super) change: Option<StateChange>,
}

/// Something that a request changes beside cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateChange {
    /// A dependency of later runs.
    Dependency(RunDependency),
    /// Variables are dropped.
    Reset,
}

impl Effects {
    /// Those of most requests: they wait for the decision about a try, and end a hibernation.
    pub(super) const USE: Self = Self {
        wakes: true,
        beside_try: false,
        saves_volume: false,
        change: None,
    };
    /// None: the request looks at what is known without the sandbox.
    pub(super) const NONE: Self = Self {
        wakes: false,
        beside_try: true,
        ..Self::USE
    };
    /// Those of a request that writes or removes files.
    pub(super) const FILES: Self = Self {
        change: Some(StateChange::Dependency(RunDependency::Files)),
        ..Self::SAVED
    };
    /// Those of a request after which the volume is saved.
    pub(super) const SAVED: Self = Self {
        saves_volume: true,
        ..Self::USE
    };

    /// Those of a request that drops variables.
    pub(super) const RESET: Self = Self {
        change: Some(StateChange::Reset),
        ..Self::USE
    };
    /// Those of a decision about a try.
    pub(super) const DECISION: Self = Self {
        beside_try: true,
        ..Self::SAVED
    };
    /// Those of a request that begins a hibernation.
    pub(super) const REST: Self = Self {
        wakes: false,
        ..Self::SAVED
    };

    /// Those of a request that changes what later runs depend on.
    pub(super) const fn changing(dependency: RunDependency) -> Self {
        Self {
            change: Some(StateChange::Dependency(dependency)),
            ..Self::USE
        }
    }
}

/// Work that gets the session's state, or the reason that it may not have it.
type Work = Box<dyn for<'a> FnOnce(Result<&'a mut Actor>) -> BoxFuture<'a, ()> + Send>;

/// Work on the state of a session that none but its task may touch.
pub(super) struct Task {
    effects: Effects,
    work: Work,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("effects", &self.effects)
            .finish_non_exhaustive()
    }
}

impl Task {
    /// A task that answers with the result of its work.
    pub(super) fn new<T: Send + 'static>(
        effects: Effects,
        answer: oneshot::Sender<Result<T>>,
        work: impl for<'a> FnOnce(&'a mut Actor) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Self {
        Self::self_answering(effects, move |actor| {
            Box::pin(async move {
                let result = match actor {
                    Ok(actor) => {
                        let result = work(&mut *actor).await;
                        if effects.saves_volume {
                            let (runtime, contents, journal) = actor.parts();
                            runtime.save_volume_between_cells(contents, journal).await;
                        }
                        actor.conclude(result)
                    }
                    Err(error) => Err(error),
                };
                // Nobody may wait any more.
                let _ = answer.send(result);
            })
        })
    }

    /// A task whose work ends its request and answers it.
    pub(super) fn self_answering(
        effects: Effects,
        work: impl for<'a> FnOnce(Result<&'a mut Actor>) -> BoxFuture<'a, ()> + Send + 'static,
    ) -> Self {
        Self {
            effects,
            work: Box::new(work),
        }
    }

    pub(super) async fn run(self, actor: &mut Actor) {
        (self.work)(Ok(actor)).await;
    }
}

impl Request {
    pub(super) const fn effects(&self) -> Effects {
        match self {
            Self::Execute { .. } => Effects::USE,
            Self::Command { .. } => Effects::changing(RunDependency::Commands),
            Self::Task(task) => task.effects,
            Self::Close { .. } => Effects::NONE,
        }
    }

    /// Answers the request with an error.
    pub(super) async fn refuse(self, error: Error) {
        // Nobody may wait any more.
        match self {
            Self::Execute { answer, .. } => drop(answer.send(Err(error))),
            Self::Command { answer, .. } => drop(answer.send(Err(error))),
            Self::Task(task) => (task.work)(Err(error)).await,
            Self::Close { answer } => drop(answer.send(Err(error))),
        }
    }
}

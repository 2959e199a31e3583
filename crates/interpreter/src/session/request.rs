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
use crate::session::effects::Effects;
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

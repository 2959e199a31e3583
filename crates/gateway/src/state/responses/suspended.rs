//! Turns whose code waits for its client: their responses have ended, and the next request of the
//! client goes on with them.
//!
//! The code holds its container meanwhile. It does not wait for ever: in the end its calls fail,
//! and it comes to its end without a client.

use std::collections::HashMap;

use cellblock_agent::turn::{Evidence, SuspendedCode};
use cellblock_agent::wire::Item;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::state::Gateway;

/// Turns that wait, by the ids of their responses.
#[derive(Debug, Default)]
pub(crate) struct SuspendedTurns(Mutex<HashMap<String, SuspendedTurn>>);

#[derive(Debug)]
struct SuspendedTurn {
    turn: WaitingTurn,
    code: SuspendedCode,
    /// Ends the task that limits its time.
    _over: DropGuard,
}

/// State of a turn that waits.
#[derive(Clone, Debug)]
pub(crate) struct WaitingTurn {
    pub(crate) owner: String,
    /// Id of its response.
    pub(crate) response: String,
    /// Id of its conversation.
    pub(crate) conversation: Option<String>,
    /// Ids of the calls that the client has to answer.
    pub(crate) calls: Vec<String>,
    /// Ids of the model's calls that have no result yet.
    pub(crate) unanswered: Vec<String>,
    /// Items that the model has read and said.
    pub(crate) items: Vec<Item>,
    /// Whether that is in the records.
    pub(crate) stored: bool,
    pub(crate) container: Option<String>,
    pub(crate) evidence: Option<Evidence>,
}

impl SuspendedTurns {
    /// Finds a turn of an owner.
    pub(crate) fn find(&self, owner: &str, is: impl Fn(&WaitingTurn) -> bool) -> Option<WaitingTurn> {
        let all = self.all();
        let mut turns = all.values().map(|suspended| &suspended.turn);
        turns.find(|turn| turn.owner == owner && is(turn)).cloned()
    }

    /// Takes the code of an owner's turn. What nobody goes on with is stopped.
    pub(crate) fn take(&self, owner: &str, response: &str) -> Option<SuspendedCode> {
        let mut all = self.all();
        all.get(response)
            .filter(|suspended| suspended.turn.owner == owner)?;
        all.remove(response).map(|suspended| suspended.code)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, SuspendedTurn>> {
        self.0.lock()
    }
}

/// Keeps code until its client answers, or its time is over.
pub(crate) fn add(gateway: &Gateway, turn: WaitingTurn, code: SuspendedCode) {
    let over = CancellationToken::new();
    let (owner, response) = (turn.owner.clone(), turn.response.clone());
    let suspended = SuspendedTurn {
        turn,
        code,
        _over: over.clone().drop_guard(),
    };
    gateway
        .responses
        .suspended
        .all()
        .insert(response.clone(), suspended);
    let (tasks, gateway) = (gateway.tasks.clone(), gateway.clone());
    tasks.spawn(async move {
        tokio::select! {
            () = over.cancelled() => return,
            // No request can answer it any more.
            () = gateway.stopping.cancelled() => {
                return drop(gateway.responses.suspended.take(&owner, &response));
            }
            () = sleep(gateway.options.responses.function_timeout) => {}
        }
        let Some(code) = gateway.responses.suspended.take(&owner, &response) else {
            return;
        };
        tracing::info!(response, "code waited in vain for its client");
        tokio::select! {
            () = code.finish() => {}
            () = gateway.ending.cancelled() => {}
        }
    });
}

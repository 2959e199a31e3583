//! The sandbox of a conversation, or of one run.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use cellblock_interpreter::hosting::ResidentGuard;
use cellblock_interpreter::limits::NetworkPolicy;
use parking_lot::{Mutex, MutexGuard};

use super::access::Caller;
use super::error::Problem;
use super::names;
use super::state::State;
use crate::host::SessionWish;
use crate::session::DialectSession;

/// Number of stored files that are remembered for a name.
const MAX_VERSIONS: usize = 64;
/// Maximum length of a hint.
const MAX_HINT: usize = 1024;

/// A conversation's sandbox that does not expire meanwhile.
pub(super) type HeldConversation = ResidentGuard<DialectSession<Conversation>>;

/// Data that is kept with the session of a conversation.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// The stored files that each name of the working directory has had, in the order in which it
    /// had them. Code may have changed the file since, which then stays: a client names an input in
    /// each run.
    placed: Mutex<HashMap<String, Vec<String>>>,
    used: AtomicBool,
}

impl Conversation {
    /// Begins a run; says whether it is the first one.
    pub(super) fn begin(&self) -> bool {
        !self.used.swap(true, Ordering::Relaxed)
    }

    /// Whether the sandbox has had this stored file under this name.
    pub(super) fn had(&self, name: &str, file: &str) -> bool {
        let placed = self.placed();
        placed
            .get(name)
            .is_some_and(|files| files.iter().any(|it| it == file))
    }

    pub(super) fn place(&self, name: &str, file: &str) {
        let mut placed = self.placed();
        let files = placed.entry(name.to_owned()).or_default();
        if files.len() >= MAX_VERSIONS {
            files.remove(0);
        }
        files.push(file.to_owned());
    }

    fn placed(&self) -> MutexGuard<'_, HashMap<String, Vec<String>>> {
        self.placed.lock()
    }
}

/// A sandbox for a run.
#[derive(Debug)]
pub(super) struct RunSandbox {
    pub(super) held: HeldConversation,
    /// Whether it was there before.
    pub(super) reused: bool,
    /// Whether it stays for later runs.
    pub(super) stays: bool,
}

impl RunSandbox {
    /// Ends the sandbox, unless it stays.
    pub(super) async fn leave(&self, state: &State) {
        if !self.stays {
            state.conversations.end(&self.held).await;
        }
    }
}

/// Returns the sandbox of a conversation, or a new one.
pub(super) async fn room(state: &State, caller: &Caller, hint: Option<&str>) -> Result<RunSandbox, Problem> {
    let hint = hint.filter(|it| !it.is_empty());
    if hint.is_some_and(|it| it.len() > MAX_HINT) {
        return Err(Problem::invalid(format!(
            "`runtime_session_hint` has more than {MAX_HINT} bytes"
        )));
    }
    let owner = &caller.owner;
    let id = hint.map_or_else(names::id, |hint| {
        names::derived(&format!("{:?} {hint:?}", owner.name()))
    });
    let _opening = state.opening.lock().await;
    if let Some(held) = state.conversations.hold(owner.name(), &id) {
        return Ok(RunSandbox {
            held,
            reused: true,
            stays: true,
        });
    }
    let wish = SessionWish {
        id,
        idle: state.options.idle_timeout,
        network: NetworkPolicy::None,
        prelude: vec!["analysis".to_owned()],
        ..SessionWish::default()
    };
    let opened = state
        .host
        .open(&state.conversations, owner, wish, Conversation::default());
    Ok(RunSandbox {
        held: opened.await?,
        reused: false,
        stays: hint.is_some(),
    })
}

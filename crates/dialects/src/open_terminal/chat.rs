//! Whose sandbox a request is for: one for each owner of a key, user and chat.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use cellblock_interpreter::hosting::{HostingLimits, Owner, ResidentGuard};
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest as _, Sha256};

use super::notebooks::{self, Notebooks};
use super::options::OpenTerminalOptions;
use super::problem::Problem;
use crate::bounded::BoundedName;
use crate::host::{DialectHost, SessionWish};
use crate::presented::{header, peer, secret};
use crate::session::{DialectSession, DialectSessions};

/// Home of every user, and where each chat begins.
pub(super) const HOME: &str = "/workspace";
/// Maximum length of an id that a client gives.
const MAX_ID: usize = 256;

/// The dialect. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct OpenTerminal {
    pub(super) host: DialectHost,
    pub(super) options: Arc<OpenTerminalOptions>,
    sessions: DialectSessions<Chat>,
    /// Held while a sandbox is looked for and made, so that one chat does not get two.
    making: Arc<tokio::sync::Mutex<()>>,
}

/// Data that is kept with a chat's sandbox.
#[derive(Debug)]
pub(super) struct Chat {
    cwd: Mutex<String>,
    /// Terminals that a person looks at, by their ids; the one opened last is the last.
    shown: Mutex<Vec<String>>,
    pub(super) notebooks: Notebooks,
}

/// A chat's sandbox.
pub(super) type HeldChat = ResidentGuard<DialectSession<Chat>>;

/// Caller of a request, and the chat that it is for.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) owner: Owner,
    /// Id of the chat's sandbox.
    id: String,
}

impl OpenTerminal {
    pub(super) fn new(host: &DialectHost, options: &OpenTerminalOptions) -> Self {
        let limits = HostingLimits {
            per_owner: options.max_per_key,
            ..HostingLimits::default()
        };
        Self {
            host: host.clone(),
            options: Arc::new(options.clone()),
            sessions: host.sessions(limits),
            making: Arc::default(),
        }
    }

    /// Holds the chat's sandbox, which is made if there is none.
    pub(super) async fn chat(&self, caller: &Caller) -> Result<HeldChat, Problem> {
        if let Some(held) = self.existing(caller) {
            return Ok(held);
        }
        let _making = self.making.lock().await;
        if let Some(held) = self.existing(caller) {
            return Ok(held);
        }
        let wish = SessionWish {
            id: caller.id.clone(),
            idle: self.options.idle_timeout,
            network: self.options.network,
            prelude: ["analysis", "documents", "notebook"].map(str::to_owned).to_vec(),
            setup: vec![notebooks::setup()],
            skills: self.host.meter.skills(&caller.owner).await?,
            ..SessionWish::default()
        };
        let kept = Chat {
            cwd: Mutex::new(HOME.to_owned()),
            shown: Mutex::default(),
            notebooks: Notebooks::default(),
        };
        Ok(self.host.open(&self.sessions, &caller.owner, wish, kept).await?)
    }

    /// Holds the chat's sandbox, if there is one.
    pub(super) fn existing(&self, caller: &Caller) -> Option<HeldChat> {
        self.sessions.hold(caller.owner.name(), &caller.id)
    }
}

impl Chat {
    pub(super) fn cwd(&self) -> String {
        lock(&self.cwd).clone()
    }

    pub(super) fn set_cwd(&self, cwd: BoundedName) {
        *lock(&self.cwd) = cwd.into_inner();
    }

    /// Returns the terminal that a person opened last and looks at.
    pub(super) fn shown(&self) -> Option<String> {
        lock(&self.shown).last().cloned()
    }

    /// Notes that a person looks at a terminal; returns whether nobody did.
    pub(super) fn show(&self, id: &str) -> bool {
        let mut shown = lock(&self.shown);
        let is_new = !shown.iter().any(|it| it == id);
        if is_new {
            shown.push(id.to_owned());
        }
        is_new
    }

    pub(super) fn hide(&self, id: &str) {
        lock(&self.shown).retain(|it| it != id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl Caller {
    /// One of an owner, whose user and chat are in the headers.
    pub(super) fn new(owner: Owner, headers: &HeaderMap, chat: Option<&str>) -> Result<Self, Problem> {
        let user = header(headers, "x-user-id").unwrap_or_default();
        let chat = header(headers, "x-session-id").or(chat).unwrap_or_default();
        for (name, id) in [("X-User-Id", user), ("X-Session-Id", chat)] {
            if id.len() > MAX_ID {
                let length = id.len();
                return Err(Problem::invalid(format!(
                    "`{name}` has {length} bytes, the limit is {MAX_ID}"
                )));
            }
        }
        let id = id(&[owner.name(), user, chat]);
        Ok(Self { owner, id })
    }
}

/// Returns the id of the sandbox that these name together. Nobody can choose names that give the id
/// of another's.
fn id(names: &[&str]) -> String {
    let mut hash = Sha256::new();
    for name in names {
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
    }
    let mut id = "ot_".to_owned();
    for byte in &hash.finalize()[..16] {
        let _ = write!(id, "{byte:02x}");
    }
    id
}

impl FromRequestParts<OpenTerminal> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, terminal: &OpenTerminal) -> Result<Self, Problem> {
        let secret = secret(&parts.headers, &["bearer"]);
        let owner = terminal
            .host
            .owner(secret, parts.uri.path(), peer(&parts.extensions))
            .await?;
        Self::new(owner, &parts.headers, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_only_look_alike_when_joined_have_different_ids() {
        let ids = [
            id(&["a", "bc", ""]),
            id(&["ab", "c", ""]),
            id(&["a", "b", "c"]),
            id(&["", "a", "bc"]),
        ];
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        assert_eq!(ids[0], id(&["a", "bc", ""]));
    }
}

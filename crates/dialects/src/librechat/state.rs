//! State that the routes share.

use std::ops::Deref;
use std::sync::Arc;

use cellblock_interpreter::hosting::HostingLimits;
use tokio::sync::Mutex;

use super::LibreChatOptions;
use super::conversation::Conversation;
use super::jwt::Verifier;
use super::rounds::Rounds;
use super::storage::Storage;
use crate::host::DialectHost;
use crate::session::DialectSessions;

/// State that the routes share. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct State(Arc<LibreChatState>);

#[derive(Debug)]
pub(super) struct LibreChatState {
    pub(super) host: DialectHost,
    pub(super) options: LibreChatOptions,
    pub(super) verifier: Option<Verifier>,
    pub(super) storage: Storage,
    pub(super) conversations: DialectSessions<Conversation>,
    pub(super) rounds: Rounds,
    /// Held while a conversation's sandbox is looked for and made: a client that calls two tools at
    /// once means the same one.
    pub(super) opening: Mutex<()>,
}

impl State {
    pub(super) fn new(host: &DialectHost, options: &LibreChatOptions) -> Self {
        Self(Arc::new(LibreChatState {
            host: host.clone(),
            options: options.clone(),
            verifier: options.jwt.as_ref().map(Verifier::new),
            storage: Storage::new(options.retention, options.max_files),
            conversations: host.sessions(HostingLimits::default()),
            rounds: Rounds::default(),
            opening: Mutex::default(),
        }))
    }
}

impl Deref for State {
    type Target = LibreChatState;

    fn deref(&self) -> &LibreChatState {
        &self.0
    }
}

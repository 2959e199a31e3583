//! The conversations that use a session.

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::conversations::McpConversation;

/// Idle timeout of a session whose conversations have all ended. Some frameworks open a
/// conversation for each call and end it at once, so the handle has to work for a while.
pub(super) const LEFT_TIMEOUT: Duration = Duration::from_mins(10);
/// Conversations that are remembered. A session with more of them is kept like one of a client that
/// names none.
const MOST: usize = 100;

/// The conversations that use a session.
#[derive(Debug, Default)]
pub(crate) struct SessionUsers(Mutex<Users>);

#[derive(Debug, Default)]
struct Users {
    /// Those that have not ended.
    open: BTreeSet<McpConversation>,
    /// Whether a client used it that names no conversation, whose end cannot be seen.
    unnamed: bool,
    /// Whether all conversations that used it have ended.
    left: bool,
}

impl SessionUsers {
    /// Remembers that a call of this conversation uses the session.
    pub(super) fn enter(&self, conversation: Option<&McpConversation>) {
        let mut users = self.users();
        users.left = false;
        match conversation {
            Some(conversation) if users.open.len() < MOST => {
                users.open.insert(conversation.clone());
            }
            _ => users.unnamed = true,
        }
    }

    /// Forgets a conversation that has ended.
    pub(super) fn leave(&self, conversation: &McpConversation) {
        let mut users = self.users();
        let used = users.open.remove(conversation);
        users.left |= used && users.open.is_empty() && !users.unnamed;
    }

    /// Whether this conversation uses the session.
    pub(super) fn include(&self, conversation: &McpConversation) -> bool {
        self.users().open.contains(conversation)
    }

    /// Whether all conversations that used the session have ended.
    pub(super) fn have_left(&self) -> bool {
        self.users().left
    }

    fn users(&self) -> MutexGuard<'_, Users> {
        self.0.lock()
    }
}

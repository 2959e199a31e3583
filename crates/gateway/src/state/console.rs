//! Sign-ins to the console.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use ring::hmac::Key;
use tokio::sync::OnceCell;

use crate::now;

/// Maximum number of tickets that are remembered as ended.
const MAX_ENDED: usize = 100_000;

/// State that the tickets of a gateway share.
#[derive(Debug, Default)]
pub(crate) struct ConsoleTickets {
    /// The key that signs them, read when the first is made or opened.
    pub(crate) key: OnceCell<Key>,
    /// Those that their owners have ended before their time, and when that is.
    ended: Mutex<BTreeMap<String, u64>>,
}

impl ConsoleTickets {
    /// Ends a ticket before its time.
    pub(crate) fn end(&self, id: String, until: u64) {
        let mut ended = self.ended.lock();
        let now = now();
        ended.retain(|_, until| *until > now);
        if ended.len() < MAX_ENDED {
            ended.insert(id, until);
        }
    }

    /// Whether a ticket was ended.
    pub(crate) fn has_ended(&self, id: &str) -> bool {
        let ended = self.ended.lock();
        ended.contains_key(id)
    }
}

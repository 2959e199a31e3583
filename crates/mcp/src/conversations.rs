//! Calls at work by their conversation and id, so that one request can stop another, and the
//! conversations that have ended.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use ::http::HeaderMap;
use ::http::request::Parts;
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::RequestId;
use tokio_util::sync::CancellationToken;

use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::mint;

/// The first revision in which a client stops a call by closing its stream.
const STREAMS_STOP: &str = "2026-07-28";
const REVISION: &str = "mcp-protocol-version";
/// The header that names a conversation.
pub(crate) const CONVERSATION: &str = "mcp-session-id";

/// State that a client and its requests have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct McpConversation {
    owner: Owner,
    name: String,
}

/// The beginning of a conversation's name, if its client shows images. It is in the name so that
/// every gateway knows it.
const SHOWS_IMAGES: &str = "conv_images_";

impl McpConversation {
    /// Returns a name for a new one.
    pub(crate) fn mint(shows_images: bool) -> String {
        mint(if shows_images { SHOWS_IMAGES } else { "conv_" })
    }

    /// Whose it is.
    pub(crate) const fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Whether its client shows a model images.
    pub(crate) fn shows_images(&self) -> bool {
        self.name.starts_with(SHOWS_IMAGES)
    }
}

type OpenCalls = HashMap<(McpConversation, RequestId), CancellationToken>;

/// The calls that are at work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversations {
    calls: Arc<Mutex<OpenCalls>>,
    ended: Arc<Mutex<EndedConversations>>,
}

/// The latest conversations that clients have ended, at most [`REMEMBERED`] of them, as hashes:
/// names come from clients.
#[derive(Debug, Default)]
struct EndedConversations {
    hasher: RandomState,
    latest: VecDeque<u64>,
}

/// Ended conversations that are remembered, of all owners.
const REMEMBERED: usize = 4096;

/// A call that can be stopped until this is dropped.
#[derive(Debug)]
pub(crate) struct CallGuard {
    conversations: Conversations,
    call: (McpConversation, RequestId),
}

impl Conversations {
    /// Lets the call be stopped by the conversation that it belongs to. An id that is used twice
    /// names the later call.
    pub(crate) fn follow(
        &self,
        conversation: McpConversation,
        id: RequestId,
        stop: CancellationToken,
    ) -> CallGuard {
        let call = (conversation, id);
        self.calls().insert(call.clone(), stop);
        CallGuard {
            conversations: self.clone(),
            call,
        }
    }

    /// Stops a call, if it is at work.
    pub(crate) fn stop(&self, conversation: &McpConversation, id: &RequestId) {
        let found = self.calls().get(&(conversation.clone(), id.clone())).cloned();
        if let Some(stop) = found {
            stop.cancel();
        }
    }

    /// Remembers that its client has ended a conversation.
    pub(crate) fn end(&self, conversation: &McpConversation) {
        let ended = &mut *self.ended();
        if ended.latest.len() == REMEMBERED {
            ended.latest.pop_front();
        }
        ended.latest.push_back(ended.hasher.hash_one(conversation));
    }

    /// Whether its client has ended a conversation, as far as that is remembered.
    pub(crate) fn has_ended(&self, conversation: &McpConversation) -> bool {
        let ended = self.ended();
        ended.latest.contains(&ended.hasher.hash_one(conversation))
    }

    fn calls(&self) -> MutexGuard<'_, OpenCalls> {
        self.calls.lock()
    }

    fn ended(&self) -> MutexGuard<'_, EndedConversations> {
        self.ended.lock()
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.conversations.calls().remove(&self.call);
    }
}

/// The conversation of an owner that a request belongs to.
pub(crate) fn conversation(parts: &Parts, owner: Owner) -> Option<McpConversation> {
    let name = parts.headers.get(CONVERSATION)?.to_str().ok()?;
    (!stops_by_stream(&parts.headers)).then(|| McpConversation {
        owner,
        name: name.to_owned(),
    })
}

/// Whether this client stops calls by closing their streams. Revisions are dates.
pub(crate) fn stops_by_stream(headers: &HeaderMap) -> bool {
    let revision = headers.get(REVISION).and_then(|value| value.to_str().ok());
    revision.is_some_and(|revision| revision >= STREAMS_STOP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_stopped_by_its_own_conversation_while_it_is_at_work() {
        let conversations = Conversations::default();
        let of = |owner: &str, name: &str| McpConversation {
            owner: Owner::new(owner),
            name: name.into(),
        };
        let (id, stop) = (RequestId::Number(7), CancellationToken::new());
        let followed = conversations.follow(of("anna", "conv_1"), id.clone(), stop.clone());
        for other in [of("ben", "conv_1"), of("anna", "conv_2")] {
            conversations.stop(&other, &id);
        }
        conversations.stop(&of("anna", "conv_1"), &RequestId::Number(8));
        assert!(!stop.is_cancelled());
        conversations.stop(&of("anna", "conv_1"), &id);
        assert!(stop.is_cancelled());
        drop(followed);
        assert!(conversations.calls().is_empty());
    }

    #[test]
    fn the_latest_ended_conversations_are_remembered_by_owner_and_name() {
        let conversations = Conversations::default();
        let of = |owner: &str, name: usize| McpConversation {
            owner: Owner::new(owner),
            name: name.to_string(),
        };
        conversations.end(&of("anna", 0));
        assert!(conversations.has_ended(&of("anna", 0)));
        assert!(!conversations.has_ended(&of("ben", 0)) && !conversations.has_ended(&of("anna", 1)));
        (1..=REMEMBERED).for_each(|name| conversations.end(&of("anna", name)));
        assert!(!conversations.has_ended(&of("anna", 0)));
        assert!(conversations.has_ended(&of("anna", 1)) && conversations.has_ended(&of("anna", REMEMBERED)));
    }
}

//! Containers: the sandboxes of conversations.

use cellblock_gateway::{ContainerOptions, Options, StickyKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use crate::config::units::{Bytes, Time};

/// Containers, the sandboxes of conversations.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Containers {
    /// Default idle timeout of a container.
    pub(crate) idle: Time,
    /// Maximum idle timeout that a client can request for a container.
    pub(crate) max_idle: Time,
    /// Maximum number of containers with a sandbox at a time per owner.
    pub(crate) per_owner: usize,
    /// Maximum number of containers with a sandbox at a time, for all owners; by default as many as
    /// use an eighth of the machine's memory at 32 MiB each.
    pub(crate) sandboxes: Option<usize>,
    /// Number of cells of responses that run at the same time, and more while the processors are
    /// idle; by default twice the number of processors.
    pub(crate) concurrent: Option<usize>,
    /// Maximum number of idle containers that only one response has used. Above it, the least
    /// recently used ones end first.
    pub(crate) one_shots: usize,
    /// Idle timeout of a container that only one response has used, if that response is not stored
    /// and has no sticky key.
    pub(crate) brief_idle: Time,
    /// Maximum time that code waits for its turn and for a sandbox.
    pub(crate) wait: Time,
    /// Maximum memory that a client can request for a container; by default the machine's memory.
    pub(crate) max_memory: Option<Bytes>,
    /// How long expired containers and their files are kept.
    pub(crate) kept: Time,
    /// Maximum size of an image that is sent inline; for larger ones, the address is sent.
    pub(crate) inline_picture: Bytes,
    /// Request fields that identify the container of a conversation that is sent back as bare text;
    /// the first field present applies. `session` is `metadata.session`. `user` and
    /// `safety_identifier` give all conversations of a person one container.
    pub(crate) sticky_keys: Vec<Sticky>,
    /// Base URL of file addresses in answers, such as `https://cellblock.example`; without it they
    /// begin with `/`.
    pub(crate) public_url: String,
}

/// A request field that identifies the container of its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sticky {
    /// `metadata.session`: all requests of a session use one container.
    Session,
    /// `prompt_cache_key`: the requests of one conversation use one container.
    PromptCacheKey,
    /// `safety_identifier`: all requests of a person use one container.
    SafetyIdentifier,
    /// `user`: all requests of a person use one container.
    User,
}

impl From<Sticky> for StickyKey {
    fn from(key: Sticky) -> Self {
        match key {
            Sticky::Session => Self::Session,
            Sticky::PromptCacheKey => Self::PromptCacheKey,
            Sticky::SafetyIdentifier => Self::SafetyIdentifier,
            Sticky::User => Self::User,
        }
    }
}

impl Default for Containers {
    fn default() -> Self {
        let options = ContainerOptions::default();
        Self {
            idle: Time(options.idle),
            max_idle: Time(options.max_idle),
            per_owner: options.per_owner,
            sandboxes: options.sandboxes,
            concurrent: options.concurrent,
            one_shots: options.one_shots,
            brief_idle: Time(options.brief_idle),
            wait: Time(options.wait),
            max_memory: options.max_memory.map(Bytes),
            kept: Time(options.kept),
            inline_picture: Bytes(options.inline_picture),
            sticky_keys: vec![Sticky::Session, Sticky::PromptCacheKey],
            public_url: options.public_url,
        }
    }
}

impl Containers {
    pub(in crate::config) fn apply(&self, options: &mut Options) {
        options.containers = ContainerOptions {
            idle: self.idle.0,
            max_idle: self.max_idle.0,
            per_owner: self.per_owner,
            sandboxes: self.sandboxes,
            concurrent: self.concurrent,
            one_shots: self.one_shots,
            brief_idle: self.brief_idle.0,
            wait: self.wait.0,
            max_memory: self.max_memory.map(|bytes| bytes.0),
            kept: self.kept.0,
            inline_picture: self.inline_picture.0,
            sticky_keys: self.sticky_keys.iter().copied().map(StickyKey::from).collect(),
            public_url: self.public_url.clone(),
        };
    }

    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        check.positive(&["containers", "idle"], self.idle);
        if self.idle > self.max_idle {
            let (time, most) = (self.idle, self.max_idle);
            let message =
                format!("{time} are more than `containers.max_idle`, {most}; raise that one, or lower this");
            check.wrong(&["containers", "idle"], message);
        }
        let lacking = [
            ("per_owner", Some(self.per_owner), "without a container"),
            ("sandboxes", self.sandboxes, "without a sandbox"),
            ("concurrent", self.concurrent, "without a turn"),
        ];
        for (key, count, without) in lacking {
            if count == Some(0) {
                let message = format!("{without} no code runs; write 1 or more");
                check.wrong(&["containers", key], message);
            }
        }
    }
}

//! Containers: the sandboxes of conversations.

use cellblock_gateway::{ContainerOptions, Options, StickyKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use crate::config::units::{Bytes, Time};

/// Containers: the sandboxes of conversations.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Containers {
    /// How long a container is kept that is not used, unless its client says.
    pub(crate) idle: Time,
    /// The longest such time that a client may ask for.
    pub(crate) max_idle: Time,
    /// Maximum number of containers with a sandbox at a time per owner.
    pub(crate) per_owner: usize,
    /// Maximum number of containers with a sandbox at a time, of all owners; by default as many as take an eighth of the machine's memory at
    /// 32 MiB each.
    pub(crate) sandboxes: Option<usize>,
    /// Number of cells of responses that run at once, and more while the processors are idle; by default twice the number of processors.
    pub(crate) concurrent: Option<usize>,
    /// Number of idle containers that are kept which one response has made and no second one has used. Others of them end, the one unused for
    /// the longest first.
    pub(crate) one_shots: usize,
    /// How long one of these is kept if its response is not stored and has no sticky key.
    pub(crate) brief_idle: Time,
    /// How long code waits for its turn, and for a sandbox.
    pub(crate) wait: Time,
    /// The most memory that a client may ask for; without it, the machine's.
    pub(crate) max_memory: Option<Bytes>,
    /// How long expired ones and their files are remembered.
    pub(crate) kept: Time,
    /// The largest picture that is sent within an answer; of others an address is sent.
    pub(crate) inline_picture: Bytes,
    /// Fields of a request by which a conversation that is sent back as bare text finds its container again, the first that is there:
    /// `session` is `metadata.session`, and `user` and `safety_identifier` give all conversations of a person one container.
    pub(crate) sticky_keys: Vec<Sticky>,
    /// What such addresses begin with, such as `https://cellblock.example`; without it they begin with `/`.
    pub(crate) public_url: String,
}

/// A field of a request by which the container of its conversation is found again.
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

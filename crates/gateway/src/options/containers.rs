//! Options of containers.

use std::time::Duration;

use cellblock_settings::{Size, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Containers, the sandboxes of conversations.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContainerOptions {
    /// Default idle timeout of a container.
    #[serde(with = "Time")]
    pub idle_timeout: Duration,
    /// Maximum idle timeout that a client can request for a container.
    #[serde(with = "Time")]
    pub max_idle_timeout: Duration,
    /// Maximum number of containers with a sandbox at a time per key.
    pub max_per_key: usize,
    /// Maximum number of containers with a sandbox at a time, for all keys; by default as many as
    /// use an eighth of the machine's memory at 32 MiB each.
    pub max_sandboxes: Option<usize>,
    /// Maximum number of cells of responses that run at the same time, and more while the processors
    /// are idle; by default twice the number of processors.
    pub max_concurrent: Option<usize>,
    /// Maximum number of idle containers that only one response has used. Above it, the least
    /// recently used ones end first.
    pub max_one_shots: usize,
    /// Idle timeout of a container that only one response has used, if that response is not stored
    /// and has no sticky key.
    #[serde(with = "Time")]
    pub one_shot_idle_timeout: Duration,
    /// Maximum time that code waits for its turn and for a sandbox.
    #[serde(with = "Time")]
    pub wait_timeout: Duration,
    /// Maximum time that code waits for a sandbox while its key has used up `quotas.sandboxes` or
    /// `max_per_key` with sessions and containers that do not end by themselves soon.
    #[serde(with = "Time")]
    pub quota_wait_timeout: Duration,
    /// Maximum memory that a client can request for a container; by default the machine's memory.
    pub max_memory: Option<Size>,
    /// Time for which expired containers and their files are kept.
    #[serde(with = "Time")]
    pub retention: Duration,
    /// Project of all containers, whose datasets their code can publish and load. Each key has its
    /// own project of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Maximum size of an image that is sent inline; for larger ones, the address is sent.
    #[serde(with = "Size")]
    pub max_inline_image: u64,
    /// Request fields that identify the container of a conversation that is sent back as bare text;
    /// the first field present applies. `session` is `metadata.session`. `user` and
    /// `safety_identifier` give all conversations of a person one container.
    pub sticky_keys: Vec<StickyKey>,
    /// Base URL of file addresses in answers, such as `https://cellblock.example`; without it they
    /// begin with `/`.
    pub public_url: String,
}

/// A request field that identifies the container of its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StickyKey {
    /// `metadata.session`: all requests of a session use one container.
    Session,
    /// `prompt_cache_key`: the requests of one conversation use one container.
    PromptCacheKey,
    /// `safety_identifier`: all requests of a person use one container.
    SafetyIdentifier,
    /// `user`: all requests of a person use one container.
    User,
}

impl StickyKey {
    /// The key as records have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::PromptCacheKey => "prompt_cache_key",
            Self::SafetyIdentifier => "safety_identifier",
            Self::User => "user",
        }
    }
}

impl Default for ContainerOptions {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_mins(20),
            max_idle_timeout: Duration::from_hours(24),
            max_per_key: 128,
            max_sandboxes: None,
            max_concurrent: None,
            // With the two that the pool has ready they are eight.
            max_one_shots: 6,
            one_shot_idle_timeout: Duration::from_secs(30),
            wait_timeout: Duration::from_mins(10),
            quota_wait_timeout: Duration::from_secs(20),
            max_memory: None,
            retention: Duration::from_hours(7 * 24),
            project: None,
            max_inline_image: 4 << 20,
            sticky_keys: vec![StickyKey::Session, StickyKey::PromptCacheKey],
            public_url: String::new(),
        }
    }
}

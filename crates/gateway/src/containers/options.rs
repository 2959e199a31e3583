//! How containers are set up.

use std::time::Duration;

/// A field of a request by which the container of its conversation is found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StickyKey {
    /// `metadata.session`.
    Session,
    /// `prompt_cache_key`.
    PromptCacheKey,
    /// `safety_identifier`.
    SafetyIdentifier,
    /// `user`.
    User,
}

impl StickyKey {
    /// The key as configurations and records have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::PromptCacheKey => "prompt_cache_key",
            Self::SafetyIdentifier => "safety_identifier",
            Self::User => "user",
        }
    }
}

/// How containers are set up.
#[derive(Clone, Debug)]
pub struct ContainerOptions {
    /// After how long without use one expires that says nothing of it.
    pub idle: Duration,
    /// The longest such time that a client may ask for.
    pub max_idle: Duration,
    /// The most containers that an owner has at a time.
    pub per_owner: usize,
    /// Maximum number of containers with a sandbox at a time, of all owners; by default as many as take an eighth of the machine's memory.
    pub sandboxes: Option<usize>,
    /// How many cells run at once, and more while the machine is idle; twice as many as there are processors, where nothing is said.
    pub concurrent: Option<usize>,
    /// How many idle containers are kept that responses made for themselves and that no second response has come back to.
    pub one_shots: usize,
    /// How long one of these is kept if its response is not stored and has no key by which it is found.
    pub brief_idle: Duration,
    /// How long code waits for its turn and for room for its sandbox.
    pub wait: Duration,
    /// The most bytes of memory that a client may ask for; the machine's memory, where nothing is said.
    pub max_memory: Option<u64>,
    /// How long expired containers and their files are remembered.
    pub kept: Duration,
    /// The most bytes of a picture that is sent as a `data:` URL; of others an address is sent.
    pub inline_picture: u64,
    /// Fields by which a conversation that names neither an item nor a response finds its container, the one that counts first.
    pub sticky_keys: Vec<StickyKey>,
    /// What stands before such addresses, such as `https://cellblock.example`; nothing, where clients know the host.
    pub public_url: String,
}

impl Default for ContainerOptions {
    fn default() -> Self {
        Self {
            idle: Duration::from_mins(20),
            max_idle: Duration::from_hours(24),
            per_owner: 128,
            sandboxes: None,
            concurrent: None,
            // With the two that the pool has ready they are eight.
            one_shots: 6,
            brief_idle: Duration::from_secs(30),
            wait: Duration::from_mins(10),
            max_memory: None,
            kept: Duration::from_hours(7 * 24),
            inline_picture: 4 << 20,
            sticky_keys: vec![StickyKey::Session, StickyKey::PromptCacheKey],
            public_url: String::new(),
        }
    }
}

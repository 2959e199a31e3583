//! Hints for the cache of prompts of a provider.

use serde::{Deserialize, Serialize};

/// Hints of a request for the cache of prompts, beside its key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptCache {
    /// Older form of the lifetime: `in_memory` or `24h`.
    #[serde(
        rename = "prompt_cache_retention",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub retention: Option<String>,
    /// Places in the prompt and their lifetime.
    #[serde(
        rename = "prompt_cache_options",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub options: Option<PromptCacheOptions>,
}

/// Places in a prompt up to which it is cached, and their lifetime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptCacheOptions {
    /// Places: `implicit` or `explicit`.
    pub mode: String,
    /// Minimum lifetime: `30m` or `12h`.
    pub ttl: String,
    /// Whether the request only prepares a conversation and asks no model.
    #[serde(skip)]
    pub prewarm: bool,
}

impl PromptCache {
    /// Returns whether the request only prepares a conversation and asks no model.
    pub fn prewarms(&self) -> bool {
        self.options.as_ref().is_some_and(|options| options.prewarm)
    }
}

//! A provider of models.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cellblock_agent::provider::chat::ChatDialect;
use cellblock_agent::provider::{Retries, Timeouts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;

/// A model provider.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Provider")]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderSection {
    /// Protocol of the provider.
    #[serde(rename = "type")]
    pub(crate) kind: ProviderKind,
    /// Base URL of the API, without the name of an operation, such as `http://127.0.0.1:11434/v1`.
    #[serde(default)]
    pub(crate) base_url: Option<String>,
    /// Environment variable with the provider's key.
    #[serde(default)]
    pub(crate) key_env: Option<String>,
    /// File with the server's key.
    #[serde(default)]
    pub(crate) key_file: Option<PathBuf>,
    /// Allow sending the key to another machine over unencrypted `http://`.
    #[serde(default)]
    pub(crate) allow_http: bool,
    /// Models of the provider: names, or prefixes followed by `*`. The closest match applies. By
    /// default, all models that no other provider has.
    #[serde(default)]
    pub(crate) models: Vec<String>,
    /// Model names that clients use, mapped to the provider's own names.
    #[serde(default)]
    pub(crate) rename: BTreeMap<String, String>,
    /// Whether the models can see images that tools create, such as charts. Images from users are
    /// always sent.
    #[serde(default)]
    pub(crate) vision: bool,
    /// Timeouts of the provider.
    #[serde(default)]
    pub(crate) timeouts: Timeouts,
    /// Retries of a request before any part of the answer has arrived.
    #[serde(default)]
    pub(crate) retries: Retries,
    /// Fields that the server accepts; for `type: chat`.
    #[serde(default)]
    pub(crate) dialect: ChatDialect,
    /// File with the answers; for `type: scripted`.
    #[serde(default)]
    pub(crate) script: Option<PathBuf>,
}

/// Protocol of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Kind")]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProviderKind {
    /// Chat Completions: vLLM, Ollama, llama.cpp, OpenAI and most others.
    Chat,
    /// The Responses API.
    Responses,
    /// Answers from a file, for tests and demonstrations.
    Scripted,
    /// No language model: runs the Python block of a message, or a small analysis of its own.
    Demo,
}

impl ProviderKind {
    /// Whether a key of a provider means something.
    pub(in crate::config) fn has(self, key: &str) -> bool {
        match key {
            "base_url" | "key_env" | "key_file" | "allow_http" | "timeouts" | "retries" => {
                matches!(self, Self::Chat | Self::Responses)
            }
            "dialect" => self == Self::Chat,
            "script" => self == Self::Scripted,
            _ => true,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Scripted => "scripted",
            Self::Demo => "demo",
        }
    }
}

impl ProviderSection {
    /// The models, or what stands for them when none are written.
    pub(crate) fn patterns(&self) -> Vec<String> {
        match self.kind {
            _ if !self.models.is_empty() => self.models.clone(),
            ProviderKind::Demo => vec!["demo".to_owned()],
            _ => vec!["*".to_owned()],
        }
    }

    pub(in crate::config) fn check(&self, name: &str, check: &mut Check<'_>) {
        let path = |key| ["providers", name, key];
        let remote = matches!(self.kind, ProviderKind::Chat | ProviderKind::Responses);
        if remote && self.base_url.is_none() {
            check.wrong(
                &["providers", name],
                "missing key `base_url`: the server's address, such as `http://127.0.0.1:11434/v1`",
            );
        }
        if self.kind == ProviderKind::Scripted && self.script.is_none() {
            check.wrong(
                &["providers", name],
                "missing key `script`: the file with the answers",
            );
        }
        for key in [
            "base_url",
            "key_env",
            "key_file",
            "allow_http",
            "timeouts",
            "retries",
            "dialect",
            "script",
        ] {
            if !self.kind.has(key) && check.has(&path(key)) {
                check.wrong(
                    &path(key),
                    format!("has no effect with `type: {}`; remove it", self.kind.name()),
                );
            }
        }
        if self.key_env.is_some() && self.key_file.is_some() {
            check.wrong(
                &path("key_file"),
                "cannot be combined with `key_env`; remove one of the two",
            );
        }
        for (place, pattern) in self.models.iter().enumerate() {
            let inside = pattern.strip_suffix('*').unwrap_or(pattern);
            if pattern.is_empty() || inside.contains('*') {
                check.wrong(
                    &["providers", name, "models", &place.to_string()],
                    "must be the name of a model, or a prefix followed by `*`",
                );
            }
        }
        let timeouts = &self.timeouts;
        for (key, time) in [
            ("connect", timeouts.connect),
            ("first", timeouts.first),
            ("idle", timeouts.idle),
            ("total", timeouts.total),
        ] {
            check.positive(&["providers", name, "timeouts", key], time);
        }
        if self.retries.count > 10 {
            check.wrong(&["providers", name, "retries", "count"], "must be at most 10");
        }
    }
}

//! A provider of models.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cellblock_agent::provider as gateway;
use cellblock_agent::provider::chat::Dialect as Spoken;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use cellblock_settings::Time;

/// A model provider.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    /// Protocol of the provider.
    #[serde(rename = "type")]
    pub(crate) kind: Kind,
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
    pub(crate) dialect: Dialect,
    /// File with the answers; for `type: scripted`.
    #[serde(default)]
    pub(crate) script: Option<PathBuf>,
}

/// Protocol of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Chat Completions: vLLM, Ollama, llama.cpp, OpenAI and most others.
    Chat,
    /// The Responses API.
    Responses,
    /// Answers from a file, for tests and demonstrations.
    Scripted,
    /// No language model: runs the Python block of a message, or a small analysis of its own.
    Demo,
}

impl Kind {
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

/// Timeouts of a provider.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Timeouts {
    /// Timeout for connecting.
    pub(crate) connect: Time,
    /// Timeout until the answer begins.
    pub(crate) first: Time,
    /// Maximum pause within an answer.
    pub(crate) idle: Time,
    /// Maximum duration of an answer.
    pub(crate) total: Time,
}

impl Default for Timeouts {
    fn default() -> Self {
        let timeouts = gateway::Timeouts::default();
        Self {
            connect: Time(timeouts.connect),
            first: Time(timeouts.first),
            idle: Time(timeouts.idle),
            total: Time(timeouts.total),
        }
    }
}

/// Retries of requests to a provider.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Retries {
    /// Number of retries after the first attempt.
    pub(crate) count: u32,
    /// Wait before the first retry; it doubles for each further retry.
    pub(crate) first: Time,
    /// Maximum wait.
    pub(crate) most: Time,
}

impl Default for Retries {
    fn default() -> Self {
        let gateway::Retries { count, first, most } = gateway::Retries::default();
        Self {
            count,
            first: Time(first),
            most: Time(most),
        }
    }
}

/// Fields that a Chat Completions server accepts; servers differ in these.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Dialect {
    /// Field for the maximum number of tokens.
    pub(crate) max_tokens_field: MaxTokensField,
    /// Role of instructions.
    pub(crate) system_role: SystemRole,
    /// Whether, and in which field, reasoning is sent back to models that need it between their
    /// calls.
    pub(crate) send_reasoning: SendReasoning,
    /// Whether to request the token usage of a stream.
    pub(crate) stream_usage: bool,
    /// Whether the server supports `parallel_tool_calls`; it is sent only if a request forbids
    /// parallel calls.
    pub(crate) parallel_tool_calls: bool,
    /// Whether the server supports `strict` in a function; it is sent only if a request sets it.
    pub(crate) strict: bool,
}

impl Default for Dialect {
    fn default() -> Self {
        let spoken = Spoken::default();
        Self {
            max_tokens_field: MaxTokensField::MaxTokens,
            system_role: SystemRole::System,
            send_reasoning: SendReasoning::Never,
            stream_usage: spoken.stream_usage,
            parallel_tool_calls: spoken.parallel_tool_calls,
            strict: spoken.strict,
        }
    }
}

/// Field for the maximum number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MaxTokensField {
    /// Used by most servers.
    MaxTokens,
    /// Required by newer OpenAI models.
    MaxCompletionTokens,
}

/// Whether, and in which field, reasoning is sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SendReasoning {
    /// Do not send it: some servers reject it.
    Never,
    /// In the field in which the server sent it.
    Same,
    /// In `reasoning`.
    Reasoning,
    /// In `reasoning_content`.
    ReasoningContent,
}

/// Role of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SystemRole {
    /// Used by most servers.
    System,
    /// Required by newer OpenAI models.
    Developer,
}

impl Provider {
    /// The models, or what stands for them when none are written.
    pub(crate) fn patterns(&self) -> Vec<String> {
        match self.kind {
            _ if !self.models.is_empty() => self.models.clone(),
            Kind::Demo => vec!["demo".to_owned()],
            _ => vec!["*".to_owned()],
        }
    }

    pub(in crate::config) fn check(&self, name: &str, check: &mut Check<'_>) {
        let path = |key| ["providers", name, key];
        let remote = matches!(self.kind, Kind::Chat | Kind::Responses);
        if remote && self.base_url.is_none() {
            check.wrong(
                &["providers", name],
                "the key `base_url` is missing: the server's address, such as `http://127.0.0.1:11434/v1`",
            );
        }
        if self.kind == Kind::Scripted && self.script.is_none() {
            check.wrong(
                &["providers", name],
                "the key `script` is missing: the file with the answers",
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
                    format!("it is of no use with `type: {}`; remove it", self.kind.name()),
                );
            }
        }
        if self.key_env.is_some() && self.key_file.is_some() {
            check.wrong(
                &path("key_file"),
                "it cannot stand beside `key_env`: there is one key; remove one of the two",
            );
        }
        for (place, pattern) in self.models.iter().enumerate() {
            let inside = pattern.strip_suffix('*').unwrap_or(pattern);
            if pattern.is_empty() || inside.contains('*') {
                check.wrong(
                    &["providers", name, "models", &place.to_string()],
                    "write a model's name, or the beginning of names and one `*` at the end",
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
            check.positive(&["providers", name, "timeouts", key], time.0);
        }
        if self.retries.count > 10 {
            check.wrong(
                &["providers", name, "retries", "count"],
                "10 tries more are the most",
            );
        }
    }
}

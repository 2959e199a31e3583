//! A provider of models.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cellblock_gateway::provider as gateway;
use cellblock_gateway::provider::chat::Dialect as Spoken;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use crate::config::units::Time;

/// A provider of models.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    /// How it is spoken to.
    #[serde(rename = "type")]
    pub(crate) kind: Kind,
    /// Its address, up to the name of an operation, such as `http://127.0.0.1:11434/v1`.
    #[serde(default)]
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds its key.
    #[serde(default)]
    pub(crate) key_env: Option<String>,
    /// The file that holds its key.
    #[serde(default)]
    pub(crate) key_file: Option<PathBuf>,
    /// Send the key over `http://` to another machine, where anybody on the way reads it.
    #[serde(default)]
    pub(crate) allow_http: bool,
    /// Its models: names, or beginnings of names and a `*`. The closest counts. Without any, every model that no other provider has.
    #[serde(default)]
    pub(crate) models: Vec<String>,
    /// Names that clients use, and the provider's own name for each.
    #[serde(default)]
    pub(crate) rename: BTreeMap<String, String>,
    /// Whether its models see pictures: those that tools make, such as charts, are shown to them. What users show is sent in any case.
    #[serde(default)]
    pub(crate) vision: bool,
    /// How long it may say nothing.
    #[serde(default)]
    pub(crate) timeouts: Timeouts,
    /// How often it is asked again as long as nothing was answered.
    #[serde(default)]
    pub(crate) retries: Retries,
    /// What it accepts; for `type: chat`.
    #[serde(default)]
    pub(crate) dialect: Dialect,
    /// The file with its answers; for `type: scripted`.
    #[serde(default)]
    pub(crate) script: Option<PathBuf>,
}

/// How a provider is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Chat Completions: vLLM, Ollama, llama.cpp, OpenAI and most others.
    Chat,
    /// The Responses API.
    Responses,
    /// Answers that stand in a file, for tests and demonstrations.
    Scripted,
    /// No model: runs the Python block of a message, or a small analysis of its own.
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

/// How long a provider may say nothing.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Timeouts {
    /// Until it is connected to.
    pub(crate) connect: Time,
    /// Until its answer begins.
    pub(crate) first: Time,
    /// Between two pieces of its answer.
    pub(crate) idle: Time,
    /// Until the end of its answer, however busy it is.
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

/// How often a provider is asked again.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Retries {
    /// Tries after the first.
    pub(crate) count: u32,
    /// The wait before the second try; each later one is twice as long.
    pub(crate) first: Time,
    /// The longest wait.
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

/// What a server of Chat Completions accepts, where servers differ.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Dialect {
    /// The field for the most tokens.
    pub(crate) max_tokens_field: MaxTokensField,
    /// The role of instructions.
    pub(crate) system_role: SystemRole,
    /// Whether, and in which field, reasoning is sent back to models that want it between their calls.
    pub(crate) send_reasoning: SendReasoning,
    /// Whether it is asked for the tokens that an answer took.
    pub(crate) stream_usage: bool,
    /// Whether it knows the field `parallel_tool_calls`, which is sent only where a request forbids such calls.
    pub(crate) parallel_tool_calls: bool,
    /// Whether it knows `strict` in a function, which is sent only where a request demands it.
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

/// The field for the most tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MaxTokensField {
    /// As most servers have it.
    MaxTokens,
    /// As newer models of OpenAI want it.
    MaxCompletionTokens,
}

/// Whether, and in which field, reasoning is sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SendReasoning {
    /// It is not: some servers refuse it.
    Never,
    /// In the field in which the server told it.
    Same,
    /// In `reasoning`.
    Reasoning,
    /// In `reasoning_content`.
    ReasoningContent,
}

/// The role of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SystemRole {
    /// As most servers have it.
    System,
    /// As newer models of OpenAI want it.
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
            check.positive(&["providers", name, "timeouts", key], time);
        }
        if self.retries.count > 10 {
            check.wrong(
                &["providers", name, "retries", "count"],
                "10 tries more are the most",
            );
        }
    }
}

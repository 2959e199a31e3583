//! The models that a configuration offers, with their providers.

use std::sync::Arc;

use cellblock_agent::provider::chat::{ChatCompletions, Dialect as Spoken, ReasoningBack};
use cellblock_agent::provider::demo::Demo;
use cellblock_agent::provider::responses::Responses;
use cellblock_agent::provider::script::Script;
use cellblock_agent::provider::{Endpoint, Key, Provider as Asked, Retries, Timeouts};
use cellblock_gateway::{Models, Offer};

use super::check::Check;
use super::sections::provider::{Dialect, Kind, MaxTokensField, Provider, SendReasoning, SystemRole};
use super::{ConfigError, Loaded};

impl Loaded {
    /// The models, after those that there are. Keys are read now, nothing is asked yet.
    pub(crate) fn models(&self, mut models: Models) -> Result<Models, ConfigError> {
        let mut check = Check::new(&self.tree);
        for (name, provider) in &self.settings.providers.models {
            let Some(asked) = self.provider(name, provider, &mut check) else {
                continue;
            };
            models = models.offer(Offer {
                name: name.clone(),
                patterns: provider.patterns(),
                rename: provider.rename.clone(),
                vision: provider.vision,
                provider: asked,
            });
        }
        models = models.options(self.settings.models);
        if check.mistakes.is_empty() {
            Ok(models)
        } else {
            Err(ConfigError::Wrong(check.mistakes))
        }
    }

    fn provider(&self, name: &str, provider: &Provider, check: &mut Check<'_>) -> Option<Arc<dyn Asked>> {
        Some(match provider.kind {
            Kind::Chat => {
                let chat = ChatCompletions::new(self.endpoint(name, provider, check)?);
                Arc::new(chat.dialect(spoken(&provider.dialect)))
            }
            Kind::Responses => Arc::new(Responses::new(self.endpoint(name, provider, check)?)),
            Kind::Demo => Arc::new(Demo),
            Kind::Scripted => Arc::new(self.script(name, provider, check)?),
        })
    }

    fn script(&self, name: &str, provider: &Provider, check: &mut Check<'_>) -> Option<Script> {
        let path = self.path(provider.script.as_deref()?);
        match super::file::script(&path) {
            Ok(script) => Some(script),
            Err(error) => {
                check.failed(&["providers", name, "script"], &error);
                None
            }
        }
    }

    fn endpoint(&self, name: &str, provider: &Provider, check: &mut Check<'_>) -> Option<Endpoint> {
        let key = match (&provider.key_env, &provider.key_file) {
            (Some(variable), _) => Some(("key_env", Key::from_environment(variable))),
            (None, Some(file)) => Some(("key_file", Key::from_file(&self.path(file)))),
            (None, None) => None,
        };
        let key = match key {
            Some((_, Ok(key))) => Some(key),
            Some((written, Err(error))) => {
                check.failed(&["providers", name, written], &error);
                return None;
            }
            None => None,
        };
        let timeouts = Timeouts {
            connect: provider.timeouts.connect.0,
            first: provider.timeouts.first.0,
            idle: provider.timeouts.idle.0,
            total: provider.timeouts.total.0,
        };
        let retries = Retries {
            count: provider.retries.count,
            first: provider.retries.first.0,
            most: provider.retries.most.0,
        };
        let base = provider.base_url.as_deref()?;
        let endpoint = if provider.allow_http {
            Endpoint::in_the_clear(base, key)
        } else {
            Endpoint::new(base, key)
        };
        match endpoint.and_then(|endpoint| endpoint.timeouts(timeouts)) {
            Ok(endpoint) => Some(endpoint.retries(retries)),
            Err(error) => {
                check.failed(&["providers", name, "base_url"], &error);
                None
            }
        }
    }
}

fn spoken(dialect: &Dialect) -> Spoken {
    Spoken {
        max_tokens_field: match dialect.max_tokens_field {
            MaxTokensField::MaxTokens => "max_tokens",
            MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
        }
        .to_owned(),
        system_role: match dialect.system_role {
            SystemRole::System => "system",
            SystemRole::Developer => "developer",
        }
        .to_owned(),
        reasoning: match dialect.send_reasoning {
            SendReasoning::Never => ReasoningBack::Never,
            SendReasoning::Same => ReasoningBack::Same,
            SendReasoning::Reasoning => ReasoningBack::Field("reasoning".to_owned()),
            SendReasoning::ReasoningContent => ReasoningBack::Field("reasoning_content".to_owned()),
        },
        stream_usage: dialect.stream_usage,
        parallel_tool_calls: dialect.parallel_tool_calls,
        strict: dialect.strict,
    }
}

//! The models that a configuration offers, with their providers.

use std::sync::Arc;

use cellblock_agent::provider::chat::ChatCompletions;
use cellblock_agent::provider::demo::Demo;
use cellblock_agent::provider::responses::Responses;
use cellblock_agent::provider::script::Script;
use cellblock_agent::provider::{Endpoint, Key, Provider as Asked};
use cellblock_gateway::{Models, Offer};

use super::check::Check;
use super::sections::provider::{Kind, Provider};
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
                Arc::new(chat.dialect(provider.dialect.clone()))
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
        let base = provider.base_url.as_deref()?;
        let endpoint = if provider.allow_http {
            Endpoint::in_the_clear(base, key)
        } else {
            Endpoint::new(base, key)
        };
        match endpoint.and_then(|endpoint| endpoint.timeouts(provider.timeouts)) {
            Ok(endpoint) => Some(endpoint.retries(provider.retries)),
            Err(error) => {
                check.failed(&["providers", name, "base_url"], &error);
                None
            }
        }
    }
}

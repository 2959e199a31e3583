//! The models that a configuration offers, with their providers.

use std::sync::Arc;

use cellblock_agent::provider::chat::ChatCompletions;
use cellblock_agent::provider::demo::Demo;
use cellblock_agent::provider::responses::Responses;
use cellblock_agent::provider::script::Script;
use cellblock_agent::provider::{Provider as Asked, ProviderEndpoint, ProviderKey};
use cellblock_gateway::{Models, Offer};

use super::check::Check;
use super::sections::provider::{ProviderKind, ProviderSection};
use super::{ConfigError, LoadedConfig};

impl LoadedConfig {
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

    fn provider(
        &self,
        name: &str,
        provider: &ProviderSection,
        check: &mut Check<'_>,
    ) -> Option<Arc<dyn Asked>> {
        Some(match provider.kind {
            ProviderKind::Chat => {
                let chat = ChatCompletions::new(self.endpoint(name, provider, check)?);
                Arc::new(chat.dialect(provider.dialect.clone()))
            }
            ProviderKind::Responses => Arc::new(Responses::new(self.endpoint(name, provider, check)?)),
            ProviderKind::Demo => Arc::new(Demo),
            ProviderKind::Scripted => Arc::new(self.script(name, provider, check)?),
        })
    }

    fn script(&self, name: &str, provider: &ProviderSection, check: &mut Check<'_>) -> Option<Script> {
        let path = self.path(provider.script.as_deref()?);
        match super::file::script(&path) {
            Ok(script) => Some(script),
            Err(error) => {
                check.failed(&["providers", name, "script"], &error);
                None
            }
        }
    }

    fn endpoint(
        &self,
        name: &str,
        provider: &ProviderSection,
        check: &mut Check<'_>,
    ) -> Option<ProviderEndpoint> {
        let key = match (&provider.key_env, &provider.key_file) {
            (Some(variable), _) => Some(("key_env", ProviderKey::from_environment(variable))),
            (None, Some(file)) => Some(("key_file", ProviderKey::from_file(&self.path(file)))),
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
            ProviderEndpoint::in_the_clear(base, key)
        } else {
            ProviderEndpoint::new(base, key)
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

//! A provider whose answers are counted.

use std::sync::Arc;

use cellblock_agent::provider::{ModelEvent, ModelRequest, ModelStream, OwnModel, Provider, ProviderError};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;

/// Calls another provider, and counts its responses.
pub(crate) struct ObservedProvider {
    name: Arc<str>,
    provider: Arc<dyn Provider>,
}

impl ObservedProvider {
    /// Counts under a name; those of providers are configured, so there are few.
    pub(crate) fn new(name: &str, provider: Arc<dyn Provider>) -> Self {
        let name = name.into();
        Self { name, provider }
    }
}

impl Provider for ObservedProvider {
    fn count(&self, request: ModelRequest) -> BoxFuture<'_, Result<Option<u64>, ProviderError>> {
        self.provider.count(request)
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<OwnModel>, ProviderError>> {
        self.provider.models()
    }

    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        Box::pin(async move {
            let model = request.model.clone();
            super::asked(&self.name, &model);
            let stream = self.provider.stream(request).await;
            let stream = stream.inspect_err(|_| super::failed(&self.name))?;
            let name = Arc::clone(&self.name);
            let stream = stream.inspect(move |event| match event {
                Ok(ModelEvent::Usage(usage)) => super::spent(&name, &model, usage),
                Ok(_) => {}
                Err(_) => super::failed(&name),
            });
            Ok(Box::pin(stream) as ModelStream)
        })
    }
}

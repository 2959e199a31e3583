//! A model that waits for its test.

use std::sync::Arc;

use cellblock_agent::provider::{Finish, ModelEvent, ModelRequest, ModelStream, Provider, ProviderError};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::Semaphore;

/// Says something, and goes on when it is let.
#[derive(Debug)]
pub(crate) struct WaitingProvider(Arc<Semaphore>);

impl WaitingProvider {
    /// The model, and what lets it go on: one permit for each answer.
    pub(crate) fn new() -> (Arc<Self>, Arc<Semaphore>) {
        let gate = Arc::new(Semaphore::new(0));
        (Arc::new(Self(Arc::clone(&gate))), gate)
    }
}

impl Provider for WaitingProvider {
    fn stream(&self, _: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        let gate = Arc::clone(&self.0);
        let first = stream::iter([Ok(ModelEvent::Text("first".to_owned()))]);
        let rest = stream::once(async move {
            gate.acquire().await.map_err(|_| ProviderError::Cut)?.forget();
            Ok(ModelEvent::Text(" last".to_owned()))
        });
        let end = stream::iter([Ok(ModelEvent::Finish(Finish::Stop))]);
        Box::pin(async move { Ok(first.chain(rest).chain(end).boxed()) })
    }
}

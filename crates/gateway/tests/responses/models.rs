//! Models that behave in ways that scripts cannot: they never end, or break.

use cellblock_agent::provider::{ModelEvent, ModelRequest, ModelStream, Provider, ProviderError};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _};

/// Talks for ever.
#[derive(Debug)]
pub(crate) struct EndlessProvider;

impl Provider for EndlessProvider {
    fn stream(&self, _: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        answer(stream::repeat_with(|| Ok(ModelEvent::Text("x".repeat(64 << 10)))).boxed())
    }
}

/// Says something, and panics.
#[derive(Debug)]
pub(crate) struct PanickingProvider;

impl Provider for PanickingProvider {
    fn stream(&self, _: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        let first = stream::iter([Ok(ModelEvent::Text("first".to_owned()))]);
        let then = stream::once(async { panic!("as the test wants it") });
        answer(first.chain(then).boxed())
    }
}

fn answer(
    events: BoxStream<'static, Result<ModelEvent, ProviderError>>,
) -> BoxFuture<'static, Result<ModelStream, ProviderError>> {
    Box::pin(async move { Ok(events) })
}

//! OpenAI's containers and files: sessions under the names that its SDKs know.

use std::sync::Arc;

use axum::Router;
use cellblock_interpreter::SessionOptions;

use crate::server::{Caller, Gateway};
use crate::turn::{Runner, SessionRunner};
use crate::wire::{ApiError, Container, Ids};

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
}

/// What runs the code of a response, in the container that its request names.
#[expect(clippy::unused_async, reason = "containers are looked up in the records")]
pub(crate) async fn runner(
    gateway: &Gateway,
    _caller: &Caller,
    _container: &Container,
) -> Result<Arc<dyn Runner>, ApiError> {
    let session = gateway.interpreter.session(SessionOptions::default());
    let id = Ids::random().mint("cntr");
    Ok(Arc::new(SessionRunner::new(
        id,
        session,
        gateway.interpreter.store().clone(),
    )))
}

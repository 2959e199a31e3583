//! A request whose body says what it needs: a route finds out that another gateway has it, and what
//! stands before the route sends it there.

use std::cell::Cell;

use cellblock_agent::wire::ApiError;

use super::unreachable;
use crate::records::holders::HoldingGateway;

tokio::task_local! {
    static WANTED: Cell<Option<HoldingGateway>>;
}

/// Does something that may note another gateway; returns that, too.
pub(crate) async fn noting<T>(work: impl Future<Output = T>) -> (T, Option<HoldingGateway>) {
    let noted = async {
        let done = work.await;
        (done, WANTED.with(Cell::take))
    };
    WANTED.scope(Cell::new(None), noted).await
}

/// Whether a request can be sent to another gateway: not if it came from one.
pub(super) fn can_note() -> bool {
    WANTED.try_with(|_| ()).is_ok()
}

/// Notes the gateway that a request has to be sent to. The error ends the route.
pub(super) fn note(holder: HoldingGateway) -> ApiError {
    let error = unreachable(&holder, "gateway_unreachable", "the request was not sent there");
    // Without a place for it, the error says it.
    let _ = WANTED.try_with(|wanted| wanted.set(Some(holder)));
    error
}

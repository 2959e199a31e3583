//! The control API: sandboxes are created, found, copied and ended here, with a key.

mod answer;
mod branch;
mod create;
mod list;
mod manage;
mod metrics;
mod network;
mod network_request;
mod off;
mod page;
mod pause;
mod request;
mod retries;
mod snapshots;
mod templates;

use axum::Router;
use axum::routing::{get, post, put};

pub(super) use answer::{ENVD_VERSION, iso, processors};
pub(super) use create::shared;
pub(super) use network::NetworkRules;
pub(super) use off::template as off_template;
pub(super) use retries::Retries;
pub(super) use snapshots::delete as delete_snapshot;
pub(super) use templates::is_served;

use super::state::E2b;

pub(super) fn routes() -> Router<E2b> {
    Router::new()
        .route("/sandboxes", post(create::create).get(list::running))
        .route("/v2/sandboxes", post(create::create).get(list::page))
        .route("/sandboxes/metrics", get(metrics::of_many))
        .route("/sandboxes/{id}", get(manage::get).delete(manage::kill))
        .route("/sandboxes/{id}/metrics", get(metrics::of_one))
        .route("/sandboxes/{id}/timeout", post(manage::timeout))
        .route("/sandboxes/{id}/refreshes", post(manage::refresh))
        .route("/sandboxes/{id}/connect", post(pause::connect))
        .route("/v2/sandboxes/{id}/connect", post(pause::connect))
        .route("/sandboxes/{id}/resume", post(pause::resume))
        .route("/sandboxes/{id}/pause", post(pause::pause))
        .route("/sandboxes/{id}/network", put(network::update))
        .route("/sandboxes/{id}/fork", post(branch::fork))
        .route("/sandboxes/{id}/snapshots", post(snapshots::create))
        .route("/snapshots", get(snapshots::list))
        .route("/templates/aliases/{alias}", get(templates::by_alias))
        .merge(off::routes())
}

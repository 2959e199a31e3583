//! The Responses API.
//!
//! ```text
//! create ────> prepare ──> Job::play ──> events to the client, or to the log of a background response
//! socket ────┤   │             │
//! chat ──────┤   │             │    as chunks of a completion
//! messages ──┘   │             │    as those of Anthropic's Messages API
//!                │             └ keep: the response, what its model read and said, its items
//!                └ resolve: references, compactions; truncate: conversations that are too long
//! ```

mod answered;
mod chat;
mod commands;
mod compact;
mod container;
pub(crate) mod conversation;
mod create;
mod keep;
mod list;
mod messages;
mod prepare;
mod programmatic;
mod programs;
mod research;
mod resolve;
mod resume;
mod retrieve;
mod returned;
mod run;
mod socket;
mod socket_message;
mod start;
mod stow;
mod stream;
mod tokens;
mod truncate;
mod turn_seal;

use axum::Router;
use axum::routing::{get, post};

pub(crate) use keep::read as kept;
pub(crate) use resolve::resolve;

pub(crate) use start::{hold, release, start};

use crate::state::Gateway;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/chat/completions", post(chat::create).get(chat::stored))
        .route(
            "/v1/chat/completions/{id}",
            get(chat::stored).post(chat::stored).delete(chat::stored),
        )
        .route("/v1/messages", post(messages::create))
        .route("/v1/messages/count_tokens", post(messages::count))
        .route("/v1/responses", post(create::create).get(list::list_or_open))
        .route("/v1/responses/compact", post(compact::compact))
        .route("/v1/responses/input_tokens", post(tokens::count))
        .route("/v1/responses/{id}", get(retrieve::get).delete(retrieve::delete))
        .route("/v1/responses/{id}/cancel", post(retrieve::cancel))
        .route("/v1/responses/{id}/input_items", get(retrieve::input_items))
        .route("/v1/responses/{id}/model_items", get(list::model_items))
}

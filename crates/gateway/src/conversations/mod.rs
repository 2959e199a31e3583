//! The Conversations API: conversations that are kept here, item by item.
//!
//! `/v1/responses` goes on in one that its request names, and leaves its input and its output there
//! (`responses/conversation.rs`).

mod items;
mod routes;

pub(crate) use routes::routes;

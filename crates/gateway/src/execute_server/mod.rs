//! Servers that run code and keep nothing: `POST /execute`, `GET /health`, and no more.
//!
//! A call is sent once. Only connecting is tried again; whatever may have reached the server is
//! never repeated. What it answers is an allegation: bounded, read strictly where it matters, and
//! shown as what it is.

mod address;
mod answer;
mod client;
mod error;
mod place;
mod runner;
mod show;
#[cfg(test)]
mod tests;

pub use answer::{CodeFile, ExecuteEnd, ExecuteServerAnswer};
pub use client::{Execute, ExecuteServer, ExecuteServerOptions, ServerHealth};
pub use error::ExecuteServerError;
pub use place::{StartExecuteServer, StartedExecuteServer};
pub use runner::{ExecuteRunner, FileStorage};
pub use show::{NOTHING_KEPT, ShownAnswer, show};

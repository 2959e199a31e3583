//! Containers and files over HTTP, with real sandboxes, as clients use them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod analysis;
mod attachments;
mod checkpoints;
mod files;
mod found;
mod lifetime;
mod load;
mod network;
mod records;
mod skills;
mod support;

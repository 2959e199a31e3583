//! Sessions, cells, executions and typed outputs: the Cellblock product API.
//!
//! - [`Interpreter`] holds an image, a backend and a store, and creates sessions.
//! - [`Session`] is a Python kernel in a sandbox of its own; variables live from cell to cell.
//!   [`Input`]s bind data into it.
//! - [`Execution`] is one run of a [`Cell`]: its [outcome](execution::Outcome), typed [`Output`]s,
//!   streams and files.
//!
//! ```text
//! Cell ──Session::execute──> Execution { outcome, outputs, stdout, stderr, files, note }
//! ```
//!
//! Python that raises, runs too long or kills its kernel is `Ok(Execution)`; an [`Error`] means
//! that Cellblock itself failed. Nothing here knows HTTP, MCP or a terminal. See
//! `examples/embed.rs` for a program that uses this crate.

pub mod alias;
mod base;
mod binding;
pub mod builder;
pub mod cell;
mod checkpoint_error;
pub mod connector;
pub mod contract;
pub mod conversion;
pub mod error;
pub mod execution;
mod finding;
mod fork_error;
mod handle;
mod host_call;
pub mod hosting;
pub mod input;
mod interpreter;
pub mod json_error;
pub mod lineage;
pub mod memory;
pub mod output;
pub mod page;
pub mod picture;
mod port_error;
mod process_error;
pub mod project;
mod rejection;
#[cfg(feature = "remote")]
pub mod remote;
#[cfg(feature = "walls")]
pub use cellblock_walls as walls;
pub mod render;
pub mod replay;
pub mod report;
pub mod run_record;
pub mod separator;
#[cfg(feature = "remote")]
mod serve;
pub mod session;
mod shared;
pub mod skill;
mod stream;
pub mod toolset;
mod unsent;
pub mod volume;
pub mod watched;

pub use cellblock_artifact as artifact;
pub use cellblock_chart as chart;
#[cfg(feature = "egress")]
pub use cellblock_egress as egress;
pub use cellblock_image as image;
pub use cellblock_protocol::{json_size, text};
pub use cellblock_sandbox::jail::protection;
pub use cellblock_sandbox::{limits, pool, random_bytes};
pub use toolset::{derivation, workbench};

pub use cell::Cell;
pub use error::{Error, Result};
pub use execution::Execution;
pub use handle::mint;
pub use input::Input;
pub use interpreter::Interpreter;
pub use output::Output;
pub use session::Session;

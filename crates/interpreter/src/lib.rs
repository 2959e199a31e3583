//! Sessions, cells, executions and typed outputs: the Cellblock product API.
//!
//! - [`Interpreter`] holds an image, a backend and a store, and makes sessions.
//! - [`Session`] is a Python kernel in a sandbox of its own; variables live from cell to cell.
//! - [`Execution`] is what came of one [`Cell`]: an [`Outcome`], typed [`output`]s, streams and files.
//!
//! ```text
//! Cell ──Session::execute──> Execution { outcome, outputs, stdout, stderr, files, note }
//! ```
//!
//! Python that raises, runs too long or kills its kernel is `Ok(Execution)`; `Err` means that Cellblock could not do its own work. Nothing
//! here knows HTTP, MCP or a terminal. See `examples/embed.rs` for a program that uses this crate.

pub mod alias;
mod base;
mod binding;
mod cell;
pub mod contract;
pub mod derivation;
mod error;
mod execution;
mod finding;
mod input;
mod interpreter;
pub mod output;
mod picture;
mod rejection;
#[cfg(feature = "remote")]
mod remote_base;
pub mod render;
pub mod report;
#[cfg(feature = "remote")]
mod serve;
mod session;
mod stream;
pub mod watched;
pub mod workbench;

pub use cell::Cell;
pub use cellblock_chart as chart;
pub use cellblock_protocol::{CellMode, Guard, InputFormat, Rescue, Variable, text};
#[cfg(feature = "remote")]
pub use cellblock_remote as remote;
pub use cellblock_sandbox::boot;
pub use cellblock_sandbox::jail::protection::Demands;
pub use cellblock_sandbox::limits::{Limits, MAX_CELL_TIME};
pub use error::{Blame, Effect, Error, Result, Retry};
pub use execution::{
    Event, Exceeded, Execution, Outcome, ProducedFile, Resource, SandboxReport, SkippedFile, State,
    StreamText,
};
pub use finding::Finding;
pub use input::Input;
pub use interpreter::{Config, Interpreter};
pub use picture::{Drawn, PictureFormat, vega_lite_of};
pub use rejection::Rejection;
#[cfg(feature = "remote")]
pub use remote_base::Remote;
#[cfg(feature = "remote")]
pub use serve::Terms;
#[doc(hidden)]
pub use session::fuzz_file_name;
pub use session::{
    CommandEnd, FileListing, ListedFile, OpenedFile, Prepared, Program, ProgramRun, Running, Session,
    SessionOptions,
};
pub use workbench::Workbench;

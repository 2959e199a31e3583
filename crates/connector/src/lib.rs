//! Connectors that an operator writes in a configuration, without Rust: functions that code in a
//! sandbox calls and the host answers.
//!
//! ```text
//! options ──compiled──> HttpConnector ──> the fixed host of `base_url`; an OpenAPI document becomes such requests
//!                          │ arguments: encoded, never spliced       │ answers: bounded, typed
//!                          └ secrets: inserted here, never returned <┘
//!           ──> FilesConnector ──> files below `root`, never through a link or `..`; or objects below `s3://…`
//!           ──> CommandConnector ──> a program of the operator, in a process of its own
//!           ──> SqlConnector ──> a database, in a transaction that only reads
//! ```
//!
//! A session grants connectors, checks arguments, answers equal calls once and removes secrets
//! (`cellblock_interpreter::connector`). Nothing here knows sandboxes, cells or models. A mistake
//! in the options is a [`OptionMistake`] with its key.

mod address;
mod card;
mod columns;
mod command;
mod files;
mod given;
mod http;
mod mistake;
mod openapi;
mod options;
pub mod process;
mod python;
mod rate;
mod rows;
mod sent;
mod sql;
mod table_writer;
mod template;
mod words;

pub use address::is_public;
pub use command::CommandConnector;
pub use files::FilesConnector;
pub use given::GivenValues;
pub use http::{BodyError, HttpConnector, retry_after, whole_body};
pub use mistake::OptionMistake;
pub use options::{
    CellType, ConnectorOptions, ConnectorType, FunctionOptions, GivenValue, PageOptions, Rate, ResultOptions,
    RetryOptions, SecretSource,
};
pub use python::PythonValues;
pub use sql::SqlConnector;
pub use words::short_line;

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
mod openapi;
mod options;
pub mod process;
mod python;
mod rate;
mod recipe;
mod rows;
mod sent;
mod sql;
mod table_writer;
mod template;
mod types;
mod words;

pub use address::is_public;
pub use command::{CommandConnector, CommandOptions, ProgramOptions};
pub use files::{FilesConnector, FilesOptions};
pub use given::GivenValues;
pub use http::{BodyError, HttpConnector, HttpFunctions, RequestOptions, retry_after, whole_body};
pub use openapi::OpenapiOptions;
pub use options::{GivenValue, SecretSource, TypeOptions, is_secret, secret_file, variable};
pub use python::PythonOptions;
pub use recipe::OptionMistake;
pub use sql::{SqlConnector, SqlOptions};
pub use types::ConnectorOptions;
pub use words::short_line;

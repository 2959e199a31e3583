//! Toolsets: tools that models call, whichever interface offers them.
//!
//! ```text
//! ToolsetKind ──open(session)──> Toolset ──call(name, arguments)──> ToolResult
//!      └ definitions, prompt: before there is a session
//! ```
//!
//! [`TOOLSETS`] is the one list: an interface offers the kinds that it is given, and knows none of
//! their tools.

use std::any::Any;
use std::fmt::Debug;

pub use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::error::Result;
use crate::execution::Execution;
use crate::session::checkpoints::rehearsals::Rehearsal;

mod definition;
pub mod derivation;
pub mod diff;
mod event;
mod kind;
mod name;
pub mod notebook;
pub mod patch;
pub mod program;
pub mod python;
pub mod shell;
pub mod workbench;

pub use definition::{ToolDefinition, ToolEffect, input_schema, object, output_schema};
pub use event::ToolEvent;
pub use kind::{OpenToolset, TOOLSETS, ToolsetKind, ToolsetTerms, WriteTerms};

use derivation::DerivationResult;
use shell::ShellReport;

/// Tools over one session.
pub trait Toolset: Any + Debug + Send + Sync {
    /// Returns the tools in the order in which they are listed.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// Calls one of the tools. A call that a model can repair is rejected in the result; an error
    /// means that Cellblock itself failed.
    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: Value,
        watch: Watch<'a>,
    ) -> BoxFuture<'a, Result<ToolResult>>;

    /// Returns the section of a system prompt that explains the tools and the session's data.
    fn prompt(&self) -> String;

    /// Gives up what the toolset keeps outside of its session.
    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

impl dyn Toolset {
    /// Returns the toolset as the type that it was opened as.
    pub fn downcast<T: Toolset>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// Receives events while a call runs.
pub type Watch<'a> = &'a mut (dyn FnMut(ToolEvent) + Send);

/// Result of a call.
#[derive(Debug)]
pub enum ToolResult {
    /// A cell ran.
    Cell {
        /// Its code.
        code: String,
        /// The run.
        execution: Box<Execution>,
    },
    /// A cell was rehearsed, and its effects are undone.
    Rehearsed {
        /// Its code.
        code: String,
        /// The rehearsal.
        rehearsal: Box<Rehearsal>,
    },
    /// Code derived from recorded results, or a chart was drawn from one.
    Derived(Box<DerivationResult>),
    /// Commands of a shell ran.
    Commands(Box<ShellReport>),
    /// Anything else. `"success": false` marks a call that did nothing.
    Json(Value),
}

impl ToolResult {
    /// Returns the result of a rehearsal, which is that of a cell if its effects were kept.
    fn rehearsed(code: String, rehearsal: Rehearsal) -> Self {
        if rehearsal.kept {
            let execution = Box::new(rehearsal.execution);
            return Self::Cell { code, execution };
        }
        let rehearsal = Box::new(rehearsal);
        Self::Rehearsed { code, rehearsal }
    }
}

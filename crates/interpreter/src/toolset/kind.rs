//! The toolsets that there are.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::derivation::{DerivationPolicy, LentResults};
use super::shell::ShellListener;
use super::workbench::{Profile, WorkbenchOptions};
use super::{ToolDefinition, Toolset, derivation, notebook, python, workbench};
use crate::connector::{Connector, IntendedWrite};
use crate::error::Result;
use crate::interpreter::Interpreter;
use crate::session::Session;

/// All toolsets. A new one adds its line here.
pub static TOOLSETS: [ToolsetKind; 4] = [python::KIND, workbench::KIND, derivation::KIND, notebook::KIND];

/// A kind of toolset: its name, and how it is opened over a session.
#[derive(Clone, Copy, Debug)]
pub struct ToolsetKind {
    /// Name by which it is chosen.
    pub name: &'static str,
    /// Purpose of its tools, for people.
    pub summary: &'static str,
    /// Subject that its prompt explains.
    pub about: &'static str,
    /// Sets of names that its sessions bind at the start; none for those that every session binds.
    pub prelude: &'static [&'static str],
    /// Whether its tools work on results of other tools, which somebody has to record in the session.
    pub on_results: bool,
    /// Returns the tools before there is a session.
    pub definitions: fn(&ToolsetTerms) -> Vec<ToolDefinition>,
    /// Returns the section of a system prompt before there is a session.
    pub prompt: fn(&ToolsetTerms) -> String,
    /// Opens it over a session.
    pub open: OpenToolset,
}

/// Opens a toolset over a session.
pub type OpenToolset =
    for<'a> fn(&'a Interpreter, Session, &'a ToolsetTerms) -> BoxFuture<'a, Result<Arc<dyn Toolset>>>;

/// Terms that an interface grants to its toolsets.
#[derive(Clone, Debug)]
pub struct ToolsetTerms {
    /// Owner of the results that a session records.
    pub owner: String,
    /// Time that code has by default.
    pub timeout: Duration,
    /// Maximum time that a call may ask for.
    pub max_timeout: Duration,
    /// Names of the datasets that every session has.
    pub datasets: Vec<String>,
    /// Libraries that code may import.
    pub libraries: Vec<String>,
    /// The host's folder for files that commands leave.
    pub output_dir: Option<PathBuf>,
    /// Profile that scripts should use.
    pub profile: Profile,
    /// Results that are recorded already; without them a derivation begins with none.
    pub results: Option<LentResults>,
    /// Connectors of the session, for toolsets that explain them.
    pub connectors: Vec<Arc<dyn Connector>>,
    /// Listener to commands of a shell.
    pub listener: Option<ShellListener>,
    /// Terms of calls that need approval.
    pub writes: WriteTerms,
}

/// Terms of the calls that need approval, for code that a toolset runs.
#[derive(Clone, Debug, Default)]
pub enum WriteTerms {
    /// Nobody can be asked: such calls fail.
    #[default]
    Unasked,
    /// Code that can make such calls is only rehearsed.
    Rehearsed,
    /// These calls were approved, and no others.
    Approved(Vec<IntendedWrite>),
}

impl Default for ToolsetTerms {
    fn default() -> Self {
        Self {
            owner: String::new(),
            timeout: DerivationPolicy::default().cell_timeout,
            max_timeout: WorkbenchOptions::default().max_timeout,
            datasets: Vec::new(),
            libraries: Vec::new(),
            output_dir: None,
            profile: Profile::default(),
            results: None,
            connectors: Vec::new(),
            listener: None,
            writes: WriteTerms::default(),
        }
    }
}

impl ToolsetKind {
    /// Whether its one tool runs cells, for which most interfaces have a way of their own.
    pub fn runs_cells(self) -> bool {
        [python::KIND, notebook::KIND].contains(&self)
    }
}

impl PartialEq for ToolsetKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ToolsetKind {}

//! Processes that clients have started, by their numbers.

use std::collections::{BTreeMap, HashMap};

use cellblock_interpreter::session::processes::Processes;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::error::shortened;
use super::connect::{Fault, RpcResult};
use crate::bounded::{BoundedDescription, BoundedName};

/// A program to start, as E2B describes it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Config {
    pub(super) cmd: String,
    pub(super) args: Vec<String>,
    pub(super) envs: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
}

/// Selector of the process that a request is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Selector {
    pub(super) pid: Option<u32>,
    pub(super) tag: Option<String>,
}

/// A process that a client has started.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Its id among the session's processes.
    pub(super) id: String,
    /// Whether it has a terminal, which has only one stream.
    pub(super) terminal: bool,
    pub(super) config: BoundedDescription<Config>,
    pub(super) tag: Option<BoundedName>,
}

impl Process {
    /// Returns its entry in a list.
    pub(super) fn shown(&self) -> Value {
        let mut shown = json!({ "config": self.config, "pid": self.pid });
        if let Some(tag) = &self.tag {
            shown["tag"] = json!(tag);
        }
        shown
    }

    /// Describes it in an error.
    pub(super) fn describe(&self) -> String {
        let words = std::iter::once(&self.config.cmd).chain(&self.config.args);
        let command: Vec<_> = words.map(String::as_str).collect();
        format!(
            "command `{}` with pid {}",
            shortened(&command.join(" ")),
            self.pid
        )
    }
}

/// All of a sandbox.
#[derive(Debug, Default)]
pub(super) struct ProcessTable(Mutex<HashMap<u32, Process>>);

impl ProcessTable {
    pub(super) fn add(&self, process: Process, processes: Processes<'_>) {
        let known: Vec<_> = processes.list().into_iter().map(|it| it.id).collect();
        let mut all = self.all();
        // Those whose output the session has dropped.
        all.retain(|_, it| known.contains(&it.id));
        all.insert(process.pid, process);
    }

    pub(super) fn find(&self, selector: &Selector) -> RpcResult<Process> {
        let all = self.all();
        let found = match (selector.pid, &selector.tag) {
            (Some(pid), _) => all.get(&pid).cloned(),
            (None, Some(tag)) => all
                .values()
                .find(|it| it.tag.as_ref().is_some_and(|it| **it == *tag))
                .cloned(),
            (None, None) => return Err(Fault::invalid("the request names no process")),
        };
        found.ok_or_else(|| match (selector.pid, &selector.tag) {
            (Some(pid), _) => Fault::not_found(format!("process with pid {pid} not found")),
            (None, tag) => Fault::not_found(format!(
                "process with tag {:?} not found",
                tag.as_deref().unwrap_or_default()
            )),
        })
    }

    /// Returns those that run.
    pub(super) fn running(&self, processes: Processes<'_>) -> Vec<Process> {
        use cellblock_interpreter::session::processes::ProcessState;

        let all = self.all();
        let listed = processes.list().into_iter();
        let running = listed.filter(|it| it.state == ProcessState::Running);
        let known = running.filter_map(|it| all.values().find(|known| known.id == it.id));
        known.cloned().collect()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u32, Process>> {
        self.0.lock()
    }
}

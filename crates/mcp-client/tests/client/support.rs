//! Servers for the tests, and their recordings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::{ToolReply, ToolServer};
use cellblock_mcp_client::{Address, ForeignServer, ServerOptions, StdioProgram, Transport};
pub(crate) use cellblock_testkit::wait::until;
use serde_json::{Map, Value, json};

/// Longer than anything takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_mins(2);

/// Enough for a Python to start on a busy machine.
pub(crate) fn options() -> ServerOptions {
    ServerOptions {
        timeout: LONG,
        connect_timeout: LONG,
        ..ServerOptions::default()
    }
}

/// A limit that a test waits for.
pub(crate) const SHORT: Duration = Duration::from_millis(400);

pub(crate) fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client/servers/stdio.py")
}

/// A server that is a script; its records are in a file.
#[derive(Debug)]
pub(crate) struct ScriptedServer {
    pub(crate) server: Arc<ForeignServer>,
    pub(crate) folder: tempfile::TempDir,
}

pub(crate) fn scripted(how: &str, options: ServerOptions) -> ScriptedServer {
    scripted_with(&[how], options)
}

pub(crate) fn scripted_with(arguments: &[&str], options: ServerOptions) -> ScriptedServer {
    let notes = tempfile::tempdir().unwrap();
    let mut command = vec!["python3".to_owned(), script().display().to_string()];
    command.extend(arguments.iter().map(ToString::to_string));
    let notes_file = notes.path().join("notes").display().to_string();
    let program = StdioProgram {
        command,
        environment: vec![("NOTES".to_owned(), notes_file)],
    };
    let server = ForeignServer::new("weather", Transport::Stdio(program), options);
    ScriptedServer {
        server: Arc::new(server),
        folder: notes,
    }
}

impl ScriptedServer {
    /// The lines that the server has recorded so far.
    pub(crate) fn notes(&self) -> Vec<String> {
        noted(&self.folder)
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        let notes = self.notes();
        let pids = notes.iter().filter_map(|note| note.strip_prefix("pid "));
        pids.map(|pid| pid.parse().unwrap()).collect()
    }
}

/// The lines that a server has recorded in a folder so far.
pub(crate) fn noted(folder: &tempfile::TempDir) -> Vec<String> {
    let text = std::fs::read_to_string(folder.path().join("notes")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

pub(crate) fn at(url: &str, options: ServerOptions) -> ForeignServer {
    let address = Address::new(url, &[], false).unwrap();
    ForeignServer::new("weather", Transport::Http(address), options)
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other}"),
    }
}

/// A call's result.
pub(crate) async fn result(server: &ForeignServer, tool: &str, arguments: Value) -> Value {
    match server.call(tool, object(arguments)).await.unwrap() {
        ToolReply::Result(value) => value,
        ToolReply::Failed(text) => panic!("{text}"),
    }
}

/// Returns the reason that a call of `work` failed.
pub(crate) async fn refused(server: &ForeignServer) -> String {
    refused_with(server, json!({})).await
}

pub(crate) async fn refused_with(server: &ForeignServer, arguments: Value) -> String {
    let error = server.call("work", object(arguments)).await.unwrap_err();
    let told = error.to_string();
    assert!(!told.contains("python") && !told.contains('/'), "{told}");
    told
}

/// A call that every server answers correctly.
pub(crate) async fn good(server: &ForeignServer) -> Value {
    result(server, "work", json!({"be": "good"})).await
}

pub(crate) async fn names(server: &ForeignServer) -> Vec<String> {
    let offered = server.tools().await.unwrap();
    offered.tools.iter().map(|tool| tool.name.clone()).collect()
}

/// Returns whether a process runs or is a zombie.
pub(crate) fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

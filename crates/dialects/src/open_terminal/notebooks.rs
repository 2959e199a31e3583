//! `/notebooks`: a person opens a notebook's file in Open WebUI and runs its cells.
//!
//! Every open notebook has variables of its own in the chat's kernel. The file is read before each
//! cell and written after it, so that nothing is lost that a model has changed in it since.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use cellblock_interpreter::execution::{Event, Outcome};
use cellblock_interpreter::json_error;
use cellblock_interpreter::session::SetupSnippet;
use cellblock_interpreter::{Cell, Output, Session, mint};
use parking_lot::{Mutex, MutexGuard};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::arguments::json;
use super::chat::{Caller, HOME, HeldChat, OpenTerminal};
use super::files::PathQuery;
use super::problem::Problem;
use super::workspace::perform;
use crate::attended::attended;
use crate::bounded::BoundedName;
use crate::decoder::TextDecoder;
use crate::files;
use crate::host::DialectHost;
use crate::notebook::{ends_with_expression, raised};
use crate::shown::{ShownOutput, shown};

/// Maximum number of open notebooks of a chat.
const MAX_NOTEBOOKS: usize = 32;
/// Maximum size of what a cell writes that is kept in the notebook, in bytes.
const MAX_TEXT: usize = 1 << 20;

/// The open notebooks of a chat.
#[derive(Debug, Default)]
pub(super) struct Notebooks {
    open: Mutex<BTreeMap<String, Arc<Notebook>>>,
    /// Whether there has ever been one.
    used: AtomicBool,
}

/// An open notebook.
#[derive(Debug)]
struct Notebook {
    /// Its id, which also names its variables in the kernel.
    id: String,
    path: BoundedName,
    /// The kernel that its file names.
    kernel: BoundedName,
    /// Number of cells that it has run.
    count: AtomicU64,
    /// Held while a cell runs.
    running: tokio::sync::Mutex<()>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CellRequest {
    cell_index: i64,
    source: Option<String>,
}

/// The file of a notebook, as far as it matters here.
#[derive(Debug, Deserialize, Serialize)]
struct NotebookDocument {
    cells: Vec<Map<String, Value>>,
    #[serde(default)]
    metadata: Value,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Notebooks {
    fn open(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Notebook>>> {
        self.open.lock()
    }

    fn find(&self, id: &str) -> Result<Arc<Notebook>, Problem> {
        let found = self.open().get(id).cloned();
        found.ok_or_else(|| missing(id))
    }

    /// Whether the kernel may have another's variables than those of `run_python`.
    pub(super) fn share_the_kernel(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }
}

impl Notebook {
    fn is_running(&self) -> bool {
        self.running.try_lock().is_err()
    }
}

/// Remembers the names that a notebook begins with, before any code has run.
pub(super) fn setup() -> SetupSnippet {
    SetupSnippet {
        name: "<notebooks>".to_owned(),
        code: format!("{CONTEXTS}.begin(globals())"),
        guarded: false,
    }
}

/// The part of the kernel that exchanges sets of variables.
const CONTEXTS: &str = "__import__('cellblock_kernel.cell.contexts', fromlist=['_'])";

/// Gives the kernel the variables of a notebook, or of `run_python`, which has no name. It is the
/// caller's turn.
pub(super) async fn enter(session: &Session, name: &str, directory: &str) -> Result<(), Problem> {
    exchange(session, "enter", name, directory).await
}

async fn exchange(session: &Session, action: &str, name: &str, directory: &str) -> Result<(), Problem> {
    let directory = json!(directory).to_string();
    let cell = Cell {
        echo: false,
        collect_files: false,
        // A text of JSON, whose characters Python may write otherwise.
        ..Cell::new(format!(
            "{CONTEXTS}.{action}('python', '{name}', __import__('json').loads({}))",
            json!(directory)
        ))
    };
    let execution = session.execute(cell).await?;
    if execution.outcome == Outcome::Completed {
        return Ok(());
    }
    let reason = raised(&execution).map_or_else(String::new, |it| format!(": {}", it.message));
    let message =
        format!("the variables of the notebook could not be brought back{reason}; run the cell again");
    Err(Problem::new(StatusCode::BAD_GATEWAY, message))
}

/// A text of a notebook that is kept while it is open.
fn bounded(name: &str, text: &str) -> Result<BoundedName, Problem> {
    BoundedName::new(text.to_owned())
        .map_err(|error| Problem::invalid(format!("the notebook's {name} is {error}")))
}

/// `POST /notebooks`: opens the notebook of a path.
pub(super) async fn open(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let asked: PathQuery = json(&body)?;
    asked.check()?;
    let held = terminal.chat(&caller).await?;
    let (answer, content): (Value, _) = perform(&held, "content.read_bytes", &asked).await?;
    let path = answer["path"].as_str().unwrap_or_default();
    let document = NotebookDocument::parse(&content, path)?;
    let spec = &document.metadata["kernelspec"];
    let kernel = spec["name"].as_str().unwrap_or("python3").to_owned();
    let language = spec["language"].as_str().unwrap_or("python");
    if language != "python" && !kernel.starts_with("python") {
        let message = format!(
            "`{path}` is a notebook of {language} (kernel `{kernel}`); notebooks here run Python: change \
             its kernel"
        );
        return Err(Problem::new(StatusCode::BAD_REQUEST, message));
    }
    let notebooks = &held.kept.notebooks;
    let mut open = notebooks.open();
    if open.len() >= MAX_NOTEBOOKS {
        let message =
            format!("the chat has {MAX_NOTEBOOKS} open notebooks, which is the limit; close one of them");
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, message));
    }
    let notebook = Notebook {
        id: mint(""),
        path: bounded("path", path)?,
        kernel: bounded("kernel", &kernel)?,
        count: AtomicU64::new(0),
        running: tokio::sync::Mutex::default(),
    };
    let answer = json!({"id": notebook.id, "kernel": notebook.kernel, "status": "ready"});
    open.insert(notebook.id.clone(), Arc::new(notebook));
    notebooks.used.store(true, Ordering::Relaxed);
    Ok(Json(answer))
}

/// `GET /notebooks/{id}`.
pub(super) async fn get(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let (_, notebook) = find(&terminal, &caller, &id)?;
    let status = if notebook.is_running() { "busy" } else { "ready" };
    Ok(Json(json!({
        "id": id, "path": notebook.path, "kernel": notebook.kernel, "status": status,
    })))
}

/// `DELETE /notebooks/{id}`: forgets its variables. The file stays.
pub(super) async fn close(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let (held, notebook) = find(&terminal, &caller, &id)?;
    held.kept.notebooks.open().remove(&id);
    if notebook.is_running() {
        held.session.interrupt();
    }
    if notebook.count.load(Ordering::Relaxed) > 0 {
        let turn = held.turn().await?;
        let session = held.session.clone();
        let work = async move { exchange(&session, "drop", &id, HOME).await };
        attended(&terminal.host, turn, work).await.transpose()?;
    }
    Ok(Json(json!({"status": "stopped"})))
}

/// `POST /notebooks/{id}/execute`: runs a cell.
pub(super) async fn execute(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let asked: CellRequest = json(&body)?;
    let (held, notebook) = find(&terminal, &caller, &id)?;
    if notebook.is_running() {
        let message = "a cell of this notebook is running; wait until it has ended";
        return Err(Problem::new(StatusCode::CONFLICT, message));
    }
    let turn = held.turn().await?;
    let (host, session) = (terminal.host.clone(), held.session.clone());
    let work = async move {
        let _running = notebook.running.lock().await;
        let permit = host.cell(&caller.owner).await?;
        let answer = notebook.run(&host, &session, asked).await?;
        drop(permit);
        Ok::<_, Problem>(answer)
    };
    let done = attended(&terminal.host, turn, work).await;
    let stopped = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
    Ok(Json(done.ok_or_else(stopped)??))
}

fn find(terminal: &OpenTerminal, caller: &Caller, id: &str) -> Result<(HeldChat, Arc<Notebook>), Problem> {
    let held = terminal.existing(caller).ok_or_else(|| missing(id))?;
    let notebook = held.kept.notebooks.find(id)?;
    Ok((held, notebook))
}

fn missing(id: &str) -> Problem {
    Problem::missing(format!(
        "there is no open notebook `{id}`; open one with `POST /notebooks`"
    ))
}

impl Notebook {
    /// Runs a cell of the file, and writes what it shows into the file.
    async fn run(&self, host: &DialectHost, session: &Session, asked: CellRequest) -> Result<Value, Problem> {
        let path = json!({ "path": self.path });
        let (_, content): (IgnoredAny, _) =
            files::perform(session, HOME, "content.read_bytes", &path).await?;
        let mut document = NotebookDocument::parse(&content, &self.path)?;
        let number = document.cells.len();
        let at = usize::try_from(asked.cell_index).ok();
        let cell = at.and_then(|at| document.cells.get_mut(at)).ok_or_else(|| {
            let message = format!(
                "there is no cell {} in `{}`, which has {number} cells from 0",
                asked.cell_index, *self.path
            );
            Problem::new(StatusCode::BAD_REQUEST, message)
        })?;
        if let Some(source) = asked.source {
            cell.insert("source".to_owned(), source.into());
        }
        if cell.get("cell_type").is_none_or(|it| it != "code") {
            return Ok(json!({"status": "ok", "execution_count": null, "outputs": []}));
        }
        let directory = self.path.rsplit_once('/').map_or("/", |(directory, _)| directory);
        enter(session, &self.id, directory).await?;
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let code = source(cell);
        let (is_error, outputs) = outputs(host, session, &code, count).await?;
        cell.insert("outputs".to_owned(), outputs.clone().into());
        cell.insert("execution_count".to_owned(), count.into());
        let status = if is_error { "error" } else { "ok" };
        let mut answer = json!({"status": status, "execution_count": count, "outputs": outputs});
        let written = json!({"path": self.path, "content": document.text()});
        let saved = files::operate::<IgnoredAny>(session, HOME, "content.write", &written).await;
        if let Err(fault) = saved {
            answer["note"] = format!("the notebook could not be saved: {}", fault.message).into();
        }
        Ok(answer)
    }
}

impl NotebookDocument {
    fn parse(bytes: &[u8], path: &str) -> Result<Self, Problem> {
        serde_json::from_slice(bytes).map_err(|error| {
            let error = json_error::describe(&error);
            let message = format!("`{path}` is not a notebook of format 4: {error}");
            Problem::new(StatusCode::BAD_REQUEST, message)
        })
    }

    /// The file, as Jupyter writes it.
    fn text(&self) -> String {
        let mut text = Vec::new();
        let form = serde_json::ser::PrettyFormatter::with_indent(b" ");
        // Writing to memory does not fail, and its keys are texts.
        let _ = self.serialize(&mut serde_json::Serializer::with_formatter(&mut text, form));
        text.push(b'\n');
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// The code of a cell, which is a text or a list of lines.
fn source(cell: &Map<String, Value>) -> String {
    match cell.get("source") {
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    }
}

/// Runs code, and returns whether it failed and its outputs as notebooks have them.
async fn outputs(
    host: &DialectHost,
    session: &Session,
    code: &str,
    count: u64,
) -> Result<(bool, Vec<Value>), Problem> {
    let cell = Cell {
        collect_files: false,
        timeout: Some(host.max_cell_timeout),
        ..Cell::new(code)
    };
    let cell = cell.from_file(format!("<cell {count}>"), 1);
    let mut running = session.start_cell(cell).await?;
    let [mut stdout, mut stderr] = [TextDecoder::default(), TextDecoder::default()];
    let mut outputs = CellOutputs::default();
    while let Some(event) = running.events.recv().await {
        match event {
            Event::Stdout(bytes) => outputs.stream("stdout", stdout.push(&bytes)),
            Event::Stderr(bytes) => outputs.stream("stderr", stderr.push(&bytes)),
            Event::Output(Output::Exception(_)) => {}
            Event::Output(output) => {
                if let ShownOutput::Value(data) = shown(host.interpreter.store(), &output).await {
                    outputs.show(&data);
                }
            }
            Event::Display(display) => {
                if let ShownOutput::Value(data) = shown(host.interpreter.store(), &display.output).await {
                    outputs.display(display.id, &data, display.update);
                }
            }
            Event::Clear { wait } => outputs.clear(wait),
        }
    }
    outputs.stream("stdout", stdout.rest());
    outputs.stream("stderr", stderr.rest());
    let execution = running.finish().await?;
    let failed = raised(&execution);
    let is_error = failed.is_some();
    if let Some(failed) = failed {
        let mut error = failed.fields();
        error["output_type"] = "error".into();
        outputs.all.push(error);
    } else if ends_with_expression(code) {
        let last = outputs
            .all
            .iter_mut()
            .rfind(|it| it["output_type"] == "display_data");
        if let Some(result) = last {
            result["output_type"] = "execute_result".into();
            result["execution_count"] = count.into();
        }
    }
    Ok((is_error, outputs.all))
}

/// Outputs of a cell so far.
#[derive(Debug, Default)]
struct CellOutputs {
    all: Vec<Value>,
    /// IDs of the displays among the outputs, with their places.
    displays: Vec<(String, usize)>,
    /// Whether the next output removes those before it.
    is_clearing: bool,
    /// Bytes of text of its streams.
    bytes: usize,
}

impl CellOutputs {
    /// Adds what was written to a stream, to the piece before it if that is of the same stream.
    fn stream(&mut self, name: &str, mut text: String) {
        if text.is_empty() {
            return;
        }
        self.begin();
        if self.bytes >= MAX_TEXT {
            return;
        }
        self.bytes += text.len();
        if self.bytes >= MAX_TEXT {
            text = format!(
                "\n[what follows was left out: a notebook keeps {MAX_TEXT} bytes of a cell's text]\n"
            );
        }
        let last = self.all.last_mut().filter(|it| it["name"] == name);
        match last.and_then(|it| it.get_mut("text")) {
            Some(Value::String(before)) => before.push_str(&text),
            _ => self
                .all
                .push(json!({"output_type": "stream", "name": name, "text": text})),
        }
    }

    fn show(&mut self, data: &Map<String, Value>) {
        self.begin();
        self.all
            .push(json!({"output_type": "display_data", "data": data, "metadata": {}}));
    }

    /// Shows a value under an ID. An update of what another cell has shown changes nothing here, as
    /// in a notebook.
    fn display(&mut self, id: String, data: &Map<String, Value>, update: bool) {
        if !update {
            self.show(data);
            self.displays.push((id, self.all.len() - 1));
            return;
        }
        self.begin();
        for (_, place) in self.displays.iter().filter(|(own, _)| *own == id) {
            self.all[*place]["data"] = json!(data);
        }
    }

    fn clear(&mut self, wait: bool) {
        self.is_clearing = true;
        if !wait {
            self.begin();
        }
    }

    fn begin(&mut self) {
        if std::mem::take(&mut self.is_clearing) {
            self.all.clear();
            self.displays.clear();
            self.bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_stream_are_joined_up_to_a_limit() {
        let mut written = CellOutputs::default();
        for (name, text) in [("stdout", "a"), ("stdout", "b"), ("stderr", "c"), ("stdout", "d")] {
            written.stream(name, text.to_owned());
        }
        let texts: Vec<_> = written
            .all
            .iter()
            .map(|it| it["text"].as_str().unwrap())
            .collect();
        assert_eq!(texts, ["ab", "c", "d"]);
        written.stream("stdout", "e".repeat(MAX_TEXT));
        written.stream("stdout", "f".to_owned());
        let last = written.all.last().unwrap()["text"].as_str().unwrap();
        assert!(
            last.starts_with("d\n[what follows") && last.ends_with("text]\n"),
            "{last}"
        );
    }

    #[test]
    fn displays_are_replaced_and_outputs_are_cleared() {
        let data = |text: &str| Map::from_iter([("text/plain".to_owned(), json!(text))]);
        let mut written = CellOutputs::default();
        written.display("a".to_owned(), &data("1"), false);
        written.show(&data("2"));
        written.display("a".to_owned(), &data("3"), true);
        written.display("elsewhere".to_owned(), &data("4"), true);
        let shown = |written: &CellOutputs| {
            let texts = written.all.iter().map(|it| it["data"]["text/plain"].clone());
            texts.collect::<Vec<_>>()
        };
        assert_eq!(shown(&written), ["3", "2"]);
        written.clear(true);
        assert_eq!(shown(&written), ["3", "2"]);
        written.show(&data("5"));
        assert_eq!(shown(&written), ["5"]);
        written.stream("stdout", "x".to_owned());
        written.clear(false);
        assert!(written.all.is_empty());
    }

    #[test]
    fn a_file_keeps_what_is_not_known_here() {
        let file = br#"{"cells": [{"cell_type": "code", "source": ["a\n", "b"], "x": 1}], "nbformat": 4, "other": [true]}"#;
        let document = NotebookDocument::parse(file, "a.ipynb").unwrap();
        assert_eq!(source(&document.cells[0]), "a\nb");
        let again: Value = serde_json::from_str(&document.text()).unwrap();
        assert_eq!(
            (&again["other"], &again["cells"][0]["x"]),
            (&json!([true]), &json!(1))
        );
        assert!(NotebookDocument::parse(b"{\"worksheets\": []}", "a.ipynb").is_err());
        assert!(NotebookDocument::parse(b"{\"cells\": [1]}", "a.ipynb").is_err());
    }
}

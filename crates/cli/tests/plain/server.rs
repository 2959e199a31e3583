//! `cellblock serve`, asked over each of its protocols.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use cellblock_testkit::{binary, home};
use reqwest::blocking::{Client, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::shown::{FaceSummary, raised};

const CONFIG: &str = "dialects: {e2b: {}, librechat: {}}\n";
const LIMIT: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(crate) struct PlainServer {
    child: Child,
    url: String,
    http: Client,
    _folder: TempDir,
}

impl PlainServer {
    pub(crate) fn start() -> Self {
        let _another_test_was_first = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("cellblock.yaml");
        std::fs::write(&config, CONFIG).unwrap();
        let mut child = Command::new(binary().unwrap())
            .args(["serve", "--demo", "--listen", "127.0.0.1:0", "--config"])
            .arg(config)
            // The home of all tests, with their images.
            .env("CELLBLOCK_HOME", home().unwrap())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        let mut url = None;
        while url.is_none() {
            let mut line = String::new();
            assert!(printed.read_line(&mut line).unwrap() > 0, "the server ended");
            url = line.trim().strip_prefix("listening on ").map(str::to_owned);
        }
        thread::spawn(move || printed.read_to_end(&mut Vec::new()));
        Self {
            child,
            url: url.unwrap(),
            http: Client::builder()
                .tls_certs_only([])
                .timeout(LIMIT)
                .build()
                .unwrap(),
            _folder: folder,
        }
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.http.post(format!("{}{path}", self.url));
        serde_json::from_str(&send(request, body)).unwrap()
    }

    /// Ends a session, so that the next one has room.
    fn delete(&self, path: &str) {
        let request = self.http.delete(format!("{}{path}", self.url));
        let answer = request.header("x-api-key", "e2b_0").send().unwrap();
        let (status, text) = (answer.status(), answer.text().unwrap());
        assert!(status.is_success(), "{path}: {status}: {text}");
    }

    /// The outputs of a cell, in the form of `cellblock run --json`.
    pub(crate) fn rest(&self, code: &str) -> FaceSummary {
        let session = self.post("/v1/sessions", &json!({}));
        let id = session["id"].as_str().unwrap();
        let cell = self.post(&format!("/v1/sessions/{id}/cells"), &json!({"code": code}));
        self.delete(&format!("/v1/sessions/{id}"));
        let outputs = cell["outputs"].as_array().unwrap();
        let failed = outputs.iter().find(|it| it["type"] == "exception");
        let files = cell["files"].as_array().unwrap();
        let tables = outputs.iter().filter(|it| it["type"] == "dataframe");
        FaceSummary {
            charts: outputs.iter().filter(|it| it["type"] == "figure").count(),
            files: files.iter().map(|it| text(&it["name"])).collect(),
            exception: failed.map(|it| text(&it["exception"])),
            text: failed.map_or_else(
                || tables.map(|it| names(&it["columns"])).collect(),
                |it| text(&it["traceback"]),
            ),
        }
    }

    /// Returns what a client of OpenAI's API sees of a call.
    pub(crate) fn responses(&self, code: &str) -> FaceSummary {
        let response = self.post(
            "/v1/responses",
            &json!({
                "model": "demo",
                "input": format!("```python\n{code}\n```"),
                "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}],
                "include": ["code_interpreter_call.outputs"],
            }),
        );
        let items = response["output"].as_array().unwrap();
        let call = items
            .iter()
            .find(|it| it["type"] == "code_interpreter_call")
            .unwrap();
        let outputs = call["outputs"].as_array().unwrap();
        let logs = outputs.iter().filter_map(|it| it["logs"].as_str());
        let logs: String = logs.collect();
        let container = text(&call["container_id"]);
        let request = self
            .http
            .get(format!("{}/v1/containers/{container}/files", self.url));
        let files: Value = serde_json::from_str(&request.send().unwrap().text().unwrap()).unwrap();
        let files = files["data"].as_array().unwrap();
        self.delete(&format!("/v1/containers/{container}"));
        FaceSummary {
            charts: outputs.iter().filter(|it| it["type"] == "image").count(),
            files: files.iter().map(|it| text(&it["path"])).collect(),
            exception: raised(&logs),
            text: logs,
        }
    }

    /// Returns what a client of E2B sees of a run.
    pub(crate) fn e2b(&self, code: &str) -> FaceSummary {
        let made = self
            .http
            .post(format!("{}/e2b/v2/sandboxes", self.url))
            .header("x-api-key", "e2b_0");
        let made: Value = serde_json::from_str(&send(made, &json!({"templateID": "base"}))).unwrap();
        let inside = |request: RequestBuilder| {
            let request = request.header("e2b-sandbox-id", text(&made["sandboxID"]));
            request.header("x-access-token", text(&made["envdAccessToken"]))
        };
        let run = inside(self.http.post(format!("{}/e2b/execute", self.url)));
        let answer = send(run, &json!({"code": code}));
        let lines: Vec<Value> = answer
            .lines()
            .map(|it| serde_json::from_str(it).unwrap())
            .collect();
        let results = lines.iter().filter(|it| it["type"] == "result");
        let failed = lines.iter().find(|it| it["type"] == "error");
        let listed = inside(
            self.http
                .post(format!("{}/e2b/filesystem.Filesystem/ListDir", self.url)),
        );
        let listed: Value =
            serde_json::from_str(&send(listed, &json!({"path": "/home/user", "depth": 1}))).unwrap();
        let files = listed["entries"].as_array().cloned().unwrap_or_default();
        self.delete(&format!("/e2b/sandboxes/{}", text(&made["sandboxID"])));
        FaceSummary {
            // Not every picture: like E2B's kernel, this one also shows pictures as code saves them.
            charts: results
                .clone()
                .filter(|it| it["png"].is_string() && it["chart"].is_object())
                .count(),
            files: files.iter().map(|it| text(&it["name"])).collect(),
            exception: failed.map(|it| text(&it["name"])),
            text: failed.map_or_else(
                || results.filter_map(|it| it["text"].as_str()).collect(),
                |it| text(&it["traceback"]),
            ),
        }
    }

    /// Returns what LibreChat's tool sees of a run.
    pub(crate) fn librechat(&self, code: &str) -> FaceSummary {
        let ran = self.post("/librechat/exec", &json!({"lang": "py", "code": code}));
        let files = ran["files"].as_array().unwrap();
        let names = files.iter().map(|it| text(&it["name"]));
        let (charts, files): (Vec<_>, _) = names.partition(|it| it.starts_with("figure-"));
        let stderr = text(&ran["stderr"]);
        FaceSummary {
            charts: charts.len(),
            files,
            exception: raised(&stderr),
            text: format!("{}{stderr}", text(&ran["stdout"])),
        }
    }
}

/// Sends JSON, and returns the text of an answer that has to be a success.
fn send(request: RequestBuilder, body: &Value) -> String {
    let request = request
        .header("content-type", "application/json")
        .body(body.to_string());
    let answer = request.send().unwrap();
    let status = answer.status();
    let text = answer.text().unwrap();
    assert!(status.is_success(), "{status}: {text}");
    text
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("not a string: {value}"))
        .to_owned()
}

/// The names of columns.
fn names(columns: &Value) -> String {
    let columns = columns.as_array().unwrap().iter();
    columns.map(|it| text(&it["name"])).collect::<Vec<_>>().join(" ")
}

impl Drop for PlainServer {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
    }
}

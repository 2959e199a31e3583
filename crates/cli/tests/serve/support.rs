//! A server with a folder of its own, a server of models that answers as it is told, and requests to both.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use cellblock_testkit::{LeakOwner, bare_image, binary, home};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Maximum time for something on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// A running `cellblock serve`. It is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct GatewayProcess {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Lines that it printed after its address.
    lines: mpsc::Receiver<String>,
    pub(crate) folder: TempDir,
}

/// Writes `cellblock.yaml` into a folder and begins to serve there.
pub(crate) fn serve(config: &str, args: &[&str], environment: &[(&str, &str)]) -> GatewayProcess {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cellblock.yaml"), config).unwrap();
    serve_in(folder, args, environment)
}

/// Begins to serve in a folder, at a free port unless the arguments have another address.
pub(crate) fn serve_in(folder: TempDir, args: &[&str], environment: &[(&str, &str)]) -> GatewayProcess {
    let address: &[&str] = if args.contains(&"--listen") {
        &[]
    } else {
        &["--listen", "127.0.0.1:0"]
    };
    let mut child = Command::new(binary().unwrap())
        .arg("serve")
        .args(address)
        .args(args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("CELLBLOCK_HOME", home().unwrap())
        .env("CELLBLOCK_IMAGE", bare_image().unwrap())
        .env("CELLBLOCK_SERVE__STATE", folder.path().join("state"))
        .envs(environment.iter().copied())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let first = lines.recv_timeout(PATIENCE).unwrap();
    let address = first
        .strip_prefix("listening on http://")
        .unwrap()
        .parse()
        .unwrap();
    GatewayProcess {
        child,
        address,
        lines,
        folder,
    }
}

impl GatewayProcess {
    /// The next line that it prints.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        ask(self.address, "GET", path, "")
    }

    /// The text at a path.
    pub(crate) fn text(&self, path: &str) -> (u16, String) {
        ask_text(self.address, "GET", path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        ask(self.address, "POST", path, &body.to_string())
    }

    /// Asks with these headers.
    pub(crate) fn ask(&self, call: &str, headers: &[(&str, &str)], body: &Value) -> (u16, String) {
        let (method, path) = call.split_once(' ').unwrap();
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        ask_with(self.address, method, path, headers, &body)
    }

    /// Posts a message of MCP; gives that of its answer which answers it.
    pub(crate) fn message(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, body) = ask_text(self.address, "POST", path, &body.to_string());
        let mut data = body.lines().filter_map(|line| line.strip_prefix("data: "));
        let last = data.next_back().unwrap_or_default();
        (status, serde_json::from_str(last).unwrap_or_default())
    }

    /// Asks the demonstration to run code, after a response where there is one.
    pub(crate) fn run_code(&self, code: &str, after: Option<&Value>) -> Value {
        let request = json!({
            "model": "demo",
            "input": format!("```python\n{code}\n```"),
            "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}],
            "include": ["code_interpreter_call.outputs"],
            "previous_response_id": after.map(|response| &response["id"]),
        });
        let (status, answer) = self.respond(&request);
        assert_eq!(
            (status, &answer["status"]),
            (200, &json!("completed")),
            "{answer}"
        );
        answer
    }

    /// Whose things are to be counted when it has ended.
    pub(crate) fn owner(&self) -> LeakOwner {
        LeakOwner::of(self.child.id())
    }

    /// Asks a model.
    pub(crate) fn respond(&self, request: &Value) -> (u16, Value) {
        ask(self.address, "POST", "/v1/responses", &request.to_string())
    }

    /// Tells it to end, and gives its exit code.
    pub(crate) fn end(mut self, signal: Signal) -> Option<i32> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the text of a response.
pub(crate) fn said(response: &Value) -> String {
    let items = response["output"].as_array().unwrap();
    let parts = items
        .iter()
        .flat_map(|item| item["content"].as_array().into_iter().flatten());
    parts.filter_map(|part| part["text"].as_str()).collect()
}

/// The call of code in a response: its status, and all that its client is shown.
pub(crate) fn call(response: &Value) -> (String, String) {
    let items = response["output"].as_array().unwrap();
    let mut calls = items
        .iter()
        .filter(|item| item["type"] == "code_interpreter_call");
    let call = calls.next().unwrap();
    assert!(calls.next().is_none(), "{response}");
    let outputs = call["outputs"].as_array().unwrap();
    let logs = outputs.iter().filter_map(|output| output["logs"].as_str());
    (call["status"].as_str().unwrap().to_owned(), logs.collect())
}

/// Asks once, and reads JSON.
fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, Value) {
    let (status, body) = ask_text(address, method, path, body);
    (status, serde_json::from_str(&body).unwrap_or_default())
}

/// Asks once, over a connection of its own.
fn ask_text(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    ask_with(address, method, path, &[], body)
}

fn ask_with(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    // A client of MCP takes both; the others get events when they ask for them.
    let mut more = match path {
        "/mcp" => "accept: application/json, text/event-stream\r\n".to_owned(),
        _ => String::new(),
    };
    for (name, value) in headers {
        more.extend([name, ": ", value, "\r\n"]);
    }
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\n{more}content-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// A server of models, or a proxy: it keeps the heads and bodies that it gets.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Upstream {
    /// A server of Chat Completions that says this, and lists two models.
    pub(crate) fn saying(text: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A client may be gone before it has its answer.
                let _ = answer(stream, text, &kept);
            }
        });
        Self { address, asked }
    }

    /// Each request's first line, and its body.
    pub(crate) fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().clone()
    }
}

fn answer(mut stream: TcpStream, text: &str, kept: &Mutex<Vec<(String, Value)>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head)? > 0 {}
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let listed = head.starts_with("get ");
    kept.lock()
        .push((head, serde_json::from_slice(&body).unwrap_or_default()));
    let (kind, body) = if listed {
        let list = json!({"object": "list", "data": [{"id": "qwen3", "created": 7}, {"id": "org/llama"}]});
        ("application/json", list.to_string())
    } else {
        let chunk = json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]});
        ("text/event-stream", format!("data: {chunk}\n\ndata: [DONE]\n\n"))
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{body}"
    )
}

//! Code at a server that only executes: one of ours, and one that goes wrong in every way.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use cellblock_testkit::{Cli, CommandOutput, require};
use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{call, said, serve};

const EXECUTES: &str = "code runs at the server at `sandbox_url`, which only executes: variables and \
                        files are not kept from call to call, and there are no containers and no \
                        sessions, and nothing is served at `/mcp`";

#[test]
fn code_runs_at_a_server_that_keeps_nothing_and_its_files_come_back() {
    require!(UserNamespaces);
    let there = serve("", &["--demo"], &[]);
    let config = format!(
        "providers: {{code_interpreter: {{enabled: true, settings: {{sandbox_url: 'http://{}/', \
         execution_timeout: 30.0}}}}}}",
        there.address
    );
    let here = serve(&config, &["--demo"], &[]);
    assert_eq!(here.line(), EXECUTES);
    let code = "import os\nx = 41\nopen(os.environ['OUTPUT_DIR'] + '/r.csv', 'w').write('a,b\\n1,2\\n')\n\
                print(x + 1)";
    let first = here.run_code(code, None);
    let (status, told) = call(&first);
    assert_eq!(
        (status.as_str(), told.as_str()),
        ("completed", "42\n[files]\nr.csv (8 bytes)")
    );
    assert!(
        said(&first).contains("Nothing is kept from call to call here"),
        "{first}"
    );
    let cited = &first["output"][2]["content"][0]["annotations"][0];
    assert_eq!(cited["filename"], "r.csv", "{first}");
    let content = format!(
        "/v1/containers/{}/files/{}/content",
        cited["container_id"].as_str().unwrap(),
        cited["file_id"].as_str().unwrap()
    );
    assert_eq!(here.text(&content), (200, "a,b\n1,2\n".to_owned()));

    let second = here.run_code("print('x' in globals())", Some(&first));
    assert_eq!(call(&second), ("completed".to_owned(), "False\n".to_owned()));

    // What needs a sandbox that stays is told to be missing, each in its own form.
    for (path, body) in [
        ("/v1/sessions", json!({})),
        ("/v1/containers", json!({"name": "c"})),
    ] {
        let (status, error) = here.post(path, &body);
        assert_eq!(
            (status, &error["error"]["code"]),
            (400, &json!("nothing_kept")),
            "{path}: {error}"
        );
    }
    assert_eq!(here.post("/execute", &json!({"code": "1"})).0, 501);
    assert_eq!(here.post("/mcp", &json!({})).0, 404);
    assert_eq!(here.get("/health").0, 501);
    assert_eq!(here.get("/readyz"), (200, json!({"status": "ok"})));
    let tools = json!([{"type": "code_interpreter", "container": "cntr_1"}]);
    let (status, error) = here.respond(&json!({"model": "demo", "input": "x", "tools": tools}));
    assert_eq!((status, &error["error"]["code"]), (400, &json!("nothing_kept")));
    assert_eq!(error["error"]["param"], "tools[0].container");

    // Files of the user are sent along.
    let part =
        json!({"type": "input_file", "filename": "in.csv", "file_data": "data:text/csv;base64,Nyw4Cg=="});
    let text = json!({"type": "input_text", "text": "```python\nprint(open('in.csv').read())\n```"});
    let tools = json!([{"type": "code_interpreter", "container": {"type": "auto"}}]);
    let (status, answer) = here.respond(&json!({
        "model": "demo", "tools": tools, "include": ["code_interpreter_call.outputs"],
        "input": [{"role": "user", "content": [part, text]}],
    }));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(call(&answer), ("completed".to_owned(), "7,8\n\n".to_owned()));

    assert_eq!(there.end(Signal::TERM), Some(0));
    assert_eq!(here.get("/readyz").0, 503);
    let third = here.run_code("print(1)", None);
    let (status, told) = call(&third);
    assert_eq!(
        (status.as_str(), told.as_str()),
        (
            "failed",
            "The code was not run: the sandbox cannot be reached. Try again, or answer without it."
        )
    );
    assert_eq!(here.end(Signal::INT), Some(0));
}

/// A server of `/execute` and `/health` that does what code asks it for, and keeps count.
struct FakeServer {
    address: SocketAddr,
    executed: Arc<Mutex<Vec<Value>>>,
}

impl FakeServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let executed = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&executed);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A client may be gone before it has its answer.
                let _ = answer(stream, &kept);
            }
        });
        Self { address, executed }
    }
}

fn answer(mut stream: TcpStream, executed: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head)? > 0 {}
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let (status, body) = if head.starts_with("get /health ") {
        assert!(head.contains("authorization: bearer sk-far"), "{head}");
        (
            "200 OK",
            json!({"status": "healthy", "mode": "python"}).to_string(),
        )
    } else if head.starts_with("post /execute ") {
        let asked: Value = serde_json::from_slice(&body)?;
        let code = asked["code"].as_str().unwrap_or_default().trim().to_owned();
        executed.lock().push(asked);
        match code.as_str() {
            "busy" => (
                "429 Too Many Requests",
                json!({"error": "at capacity"}).to_string(),
            ),
            "fail" => (
                "500 Internal Server Error",
                json!({"error": "broken"}).to_string(),
            ),
            "slow" => (
                "200 OK",
                json!({"status": "error", "exit_code": -1, "stderr": "execution timed out after 7 seconds"})
                    .to_string(),
            ),
            "lie" => ("200 OK", "{\"status\": \"maybe\"}".to_owned()),
            // Its answer is cut off.
            _ => return stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"),
        }
    } else {
        ("404 Not Found", String::new())
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

#[test]
fn remote_errors_reach_the_model_and_no_code_is_sent_twice() {
    require!(UserNamespaces);
    let fake = FakeServer::start();
    let config = format!(
        "sandbox_url: http://{}\nsandbox_key_env: FAR_KEY\nlimits: {{cell_timeout: 7}}",
        fake.address
    );
    let here = serve(&config, &["--demo"], &[("FAR_KEY", "sk-far")]);
    assert_eq!(here.line(), EXECUTES);
    let expected = [
        (
            "busy",
            "failed",
            "The code was not run: the sandbox is at capacity. Try again, or answer without it.",
        ),
        (
            "fail",
            "failed",
            "The sandbox failed, and whether the code ran is not known. Try again, or answer without it.",
        ),
        (
            "slow",
            "incomplete",
            "[stderr]\nexecution timed out after 7 secondsThe code was stopped, or could not be started; \
             it had 7 s. Do less in one call.",
        ),
        (
            "lie",
            "failed",
            "The sandbox gave an answer that cannot be read, and whether the code ran is not known. Try \
             again, or answer without it.",
        ),
        (
            "cut",
            "failed",
            "The sandbox gave no answer in time, and whether the code ran is not known. Try less, or \
             answer without it.",
        ),
    ];
    for (code, status, told) in expected {
        let answer = here.run_code(code, None);
        assert_eq!(call(&answer), (status.to_owned(), told.to_owned()), "{code}");
    }
    let executed = fake.executed.lock().clone();
    let codes: Vec<_> = executed
        .iter()
        .map(|asked| asked["code"].as_str().unwrap().trim())
        .collect();
    assert_eq!(codes, ["busy", "fail", "slow", "lie", "cut"]);
    assert!(
        executed.iter().all(|asked| asked["timeout_seconds"] == 7),
        "{executed:?}"
    );
    assert_eq!(here.end(Signal::INT), Some(0));
}

fn refused(config: &str) -> CommandOutput {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cellblock.yaml"), config).unwrap();
    let cli = Cli::new(["serve", "--demo", "--listen", "127.0.0.1:0"]).folder(folder.path());
    cli.env("CELLBLOCK_SERVE__STATE", folder.path().join("state"))
        .env("FAR_KEY", "sk-far")
        .run()
        .unwrap()
}

#[test]
fn an_unusable_server_is_reported_at_the_start() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let told = refused(&format!("sandbox_url: http://{gone}"));
    assert_eq!(told.code(), 70, "{}", told.stderr);
    let start = format!("error: use the sandboxes at `http://{gone}/`\n  caused by: ");
    assert!(told.stderr.starts_with(&start), "{}", told.stderr);
    assert!(
        told.stderr.ends_with(
            "hint: see that `sandbox_url` is the address of a server that runs, and that its key is right\n"
        ),
        "{}",
        told.stderr
    );

    let fake = FakeServer::start();
    let told = refused(&format!(
        "sandbox_url: http://{}\nsandbox_key_env: FAR_KEY\nremote: {{serve: true}}",
        fake.address
    ));
    assert_eq!(told.code(), 2, "{}", told.stderr);
    assert!(told.stderr.contains("have no sandboxes"), "{}", told.stderr);

    let told = refused("sandbox_url: http://10.1.2.3:8080");
    assert_eq!(told.code(), 2, "{}", told.stderr);
}

#[test]
fn an_unknown_sandbox_key_is_reported_at_the_start() {
    require!(UserNamespaces);
    let there = serve("remote: {serve: true}\nauth: {required: true}", &["--demo"], &[]);
    let told = refused(&format!(
        "sandbox_url: http://{}\nsandbox_key_env: FAR_KEY",
        there.address
    ));
    assert_eq!(told.code(), 78, "{}", told.stderr);
    assert!(
        told.stderr
            .contains("it returned HTTP status 401: it requires another key"),
        "{}",
        told.stderr
    );
    assert!(!told.stderr.contains("sk-far"), "{}", told.stderr);
}

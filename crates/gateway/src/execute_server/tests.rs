//! The client against servers that answer as told, and as nobody should.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_agent::provider::ProviderKey;
use cellblock_agent::turn::{OutputFile, Runner, ToolsetCall};
use cellblock_agent::wire::{FunctionOutput, InterpreterOutput, ItemStatus, Part};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{
    CodeFile, Execute, ExecuteEnd, ExecuteRunner, ExecuteServer, ExecuteServerError, ExecuteServerOptions,
    FileStorage, NOTHING_KEPT, show,
};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

/// A server that answers each call of `/execute` with the same.
struct AnswerServer {
    address: String,
    calls: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for AnswerServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
struct FakeServer {
    calls: Arc<AtomicUsize>,
    answer: Arc<dyn Fn(Value, HeaderMap) -> Response + Send + Sync>,
    health: Value,
}

async fn serve(
    health: Value,
    answer: impl Fn(Value, HeaderMap) -> Response + Send + Sync + 'static,
) -> AnswerServer {
    let calls = Arc::new(AtomicUsize::new(0));
    let told = FakeServer {
        calls: Arc::clone(&calls),
        answer: Arc::new(answer),
        health,
    };
    let router = Router::new()
        .route(
            "/execute",
            post(
                |State(told): State<FakeServer>, headers: HeaderMap, body: String| async move {
                    told.calls.fetch_add(1, Ordering::SeqCst);
                    (told.answer)(serde_json::from_str(&body).unwrap(), headers)
                },
            ),
        )
        .route(
            "/health",
            get(|State(told): State<FakeServer>| async move { told.health.to_string() }),
        )
        .with_state(told);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    AnswerServer { address, calls, task }
}

async fn answering(answer: Value) -> AnswerServer {
    serve(json!({"status": "healthy"}), move |_, _| {
        answer.to_string().into_response()
    })
    .await
}

fn client(server: &AnswerServer) -> ExecuteServer {
    ExecuteServer::new(&server.address, ExecuteServerOptions::default()).unwrap()
}

fn print() -> Execute {
    Execute {
        code: "print(6 * 7)".to_owned(),
        timeout: Duration::from_secs(5),
        ..Execute::default()
    }
}

fn ok(stdout: &str) -> Value {
    json!({"status": "success", "stdout": stdout, "stderr": "", "exit_code": 0, "execution_time_ms": 12})
}

#[tokio::test]
async fn code_is_sent_as_it_is_and_its_output_comes_back() {
    let server = serve(json!({"status": "healthy"}), |body, headers| {
        assert_eq!(headers["authorization"], "Bearer sk-x");
        assert_eq!(
            body,
            json!({
                "code": "print(6 * 7)", "timeout_seconds": 2, "requirements": ["six"],
                "files": {"a.csv": STANDARD.encode("x")},
            })
        );
        ok("42\n").to_string().into_response()
    })
    .await;
    let options = ExecuteServerOptions {
        key: Some(ProviderKey::new("sk-x").unwrap()),
        ..ExecuteServerOptions::default()
    };
    let client = ExecuteServer::new(&server.address, options).unwrap();
    let execute = Execute {
        requirements: vec!["six".to_owned()],
        timeout: Duration::from_millis(1200),
        files: [("a.csv".to_owned(), b"x".to_vec())].into(),
        ..print()
    };
    let executed = client.run(&execute).await.unwrap();
    assert_eq!(
        (executed.ended, executed.stdout.as_str(), executed.took_ms),
        (ExecuteEnd::Succeeded, "42\n", Some(12))
    );
}

#[tokio::test]
async fn the_ways_in_which_code_ends_are_distinguished() {
    for (answer, ended) in [
        (
            json!({"status": "success", "exit_code": 0.0}),
            ExecuteEnd::Succeeded,
        ),
        (
            json!({"status": "error", "stderr": "ValueError: x", "exit_code": 1}),
            ExecuteEnd::Failed(Some(1)),
        ),
        (
            json!({"status": "error", "exit_code": 137.0}),
            ExecuteEnd::Failed(Some(137)),
        ),
        (
            json!({"status": "error", "stdout": null}),
            ExecuteEnd::Failed(None),
        ),
        (
            json!({"status": "error", "stderr": "package installation failed: no six", "exit_code": -1}),
            ExecuteEnd::NotInstalled,
        ),
        (
            json!({"status": "error", "stderr": "execution timed out after 5 seconds", "exit_code": -1}),
            ExecuteEnd::Stopped,
        ),
        (
            json!({"status": "timeout", "execution_time_ms": 5000.7}),
            ExecuteEnd::Stopped,
        ),
    ] {
        let server = answering(answer.clone()).await;
        let executed = client(&server).run(&print()).await.unwrap();
        assert_eq!(executed.ended, ended, "{answer}");
    }
}

#[tokio::test]
async fn files_come_with_their_bytes_and_under_names_that_lead_nowhere() {
    let server = answering(json!({
        "status": "success", "stdout": "", "exit_code": 0,
        "files_produced": {
            "plot.png": STANDARD.encode(PNG), "../../etc/data\u{1b}.csv": STANDARD.encode("a,b"),
            "broken": "%%%", "..": "",
        },
    }))
    .await;
    let executed = client(&server).run(&print()).await.unwrap();
    let file = |name: &str, bytes: &[u8]| CodeFile {
        name: name.to_owned(),
        bytes: bytes.to_vec(),
    };
    assert_eq!(
        executed.files,
        [file("file", b""), file("data.csv", b"a,b"), file("plot.png", PNG)]
    );
    assert_eq!(executed.skipped, ["broken: its bytes cannot be read"]);
    let shown = show(&executed, 5.0);
    let url = format!("data:image/png;base64,{}", STANDARD.encode(PNG));
    assert!(shown.outputs.contains(&InterpreterOutput::Image { url }));
    assert!(shown.outputs.contains(&InterpreterOutput::Logs {
        logs: "[files]\nfile (0 bytes)\ndata.csv (3 bytes)".to_owned()
    }));
}

#[tokio::test]
async fn a_model_reads_that_nothing_is_kept() {
    let server = answering(ok("42\n")).await;
    let runner = ExecuteRunner::new(client(&server), Duration::from_secs(5));
    assert_eq!(runner.about(), Some(NOTHING_KEPT));
    let place = runner.place(0).await;
    let other = runner.place(1).await;
    assert!(place.container().starts_with("cntr_"), "{}", place.container());
    assert_ne!(place.container(), other.container());
    let ran = place.run(ToolsetCall::cell("print(6 * 7)", &[])).await;
    assert_eq!(ran.status, ItemStatus::Completed);
    assert_eq!(
        ran.outputs,
        [InterpreterOutput::Logs {
            logs: "42\n".to_owned()
        }]
    );
    let text = |text: &str| Part::InputText {
        text: text.to_owned(),
    };
    let read = vec![text("42\n"), text("[exit code] 0"), text(NOTHING_KEPT)];
    assert_eq!(ran.result, FunctionOutput::Parts(read));
    assert_eq!(ran.made, []);
}

/// Keeps files by their names.
struct Shelf;

impl FileStorage for Shelf {
    fn keep<'a>(&'a self, container: &'a str, file: CodeFile) -> BoxFuture<'a, Option<OutputFile>> {
        let made = OutputFile {
            container: container.to_owned(),
            id: format!("cfile_{}", file.bytes.len()),
            path: format!("/mnt/data/{}", file.name),
        };
        Box::pin(async move { Some(made) })
    }
}

#[tokio::test]
async fn files_are_stored_where_possible() {
    let server = answering(json!({
        "status": "success", "exit_code": 0, "files_produced": {"a.csv": STANDARD.encode("a,b")},
    }))
    .await;
    let runner = ExecuteRunner::new(client(&server), Duration::from_secs(5)).keeping(Arc::new(Shelf));
    let place = runner.place(0).await;
    let ran = place.run(ToolsetCall::cell("", &[])).await;
    let made = OutputFile {
        container: place.container().to_owned(),
        id: "cfile_3".to_owned(),
        path: "/mnt/data/a.csv".to_owned(),
    };
    assert_eq!(ran.made, [made]);
}

#[tokio::test]
async fn rejections_and_failures_are_distinguished_and_not_retried() {
    for (status, told, ran_nothing) in [
        (
            429,
            "The code was not run: the sandbox is at capacity. Try again, or answer without it.",
            true,
        ),
        (
            400,
            "The code was not run: the sandbox refused it: at capacity (3/3 max concurrent executions).",
            true,
        ),
        (
            500,
            "The sandbox failed, and whether the code ran is not known. Try again, or answer without it.",
            false,
        ),
        (
            503,
            "The sandbox failed, and whether the code ran is not known. Try again, or answer without it.",
            false,
        ),
    ] {
        let server = serve(json!({"status": "healthy"}), move |_, _| {
            let body = json!({"error": "at capacity (3/3 max concurrent executions)"});
            (StatusCode::from_u16(status).unwrap(), body.to_string()).into_response()
        })
        .await;
        let error = client(&server).run(&print()).await.unwrap_err();
        assert_eq!(error.told(), told);
        assert_eq!(error.ran_nothing(), ran_nothing, "{error}");
        assert_eq!(server.calls.load(Ordering::SeqCst), 1, "{status}");
    }
}

#[tokio::test]
async fn an_invalid_result_is_an_error() {
    for body in [
        "",
        "<html>",
        "[]",
        "{}",
        r#"{"status": "fine"}"#,
        r#"{"status": "success", "stdout": 7}"#,
        r#"{"status": "success", "exit_code": "0"}"#,
    ] {
        let server = serve(json!({"status": "healthy"}), move |_, _| body.into_response()).await;
        let error = client(&server).run(&print()).await.unwrap_err();
        assert!(
            matches!(error, ExecuteServerError::Unread { .. }),
            "{body}: {error}"
        );
        assert_eq!(server.calls.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn an_answer_without_end_is_read_no_further_than_the_limit() {
    let server = serve(json!({"status": "healthy"}), |_, _| {
        let chunk = bytes::Bytes::from(vec![b' '; 64 << 10]);
        let endless = futures_util::stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
        Body::from_stream(endless).into_response()
    })
    .await;
    let options = ExecuteServerOptions {
        answer_bytes: 1 << 20,
        ..ExecuteServerOptions::default()
    };
    let client = ExecuteServer::new(&server.address, options).unwrap();
    let error = client.run(&print()).await.unwrap_err();
    assert!(
        matches!(error, ExecuteServerError::TooLarge { limit: 1_048_576 }),
        "{error}"
    );
}

#[tokio::test]
async fn an_unreachable_server_is_tried_four_times_and_reported() {
    let client = ExecuteServer::new("http://127.0.0.1:1", ExecuteServerOptions::default()).unwrap();
    let before = std::time::Instant::now();
    let error = client.run(&print()).await.unwrap_err();
    assert!(matches!(error, ExecuteServerError::Unreachable { .. }), "{error}");
    assert!(error.ran_nothing());
    assert!(!error.to_string().contains("127.0.0.1"), "{error}");
    // The pauses between the tries.
    assert!(before.elapsed() >= Duration::from_millis(700));
}

#[tokio::test]
async fn requests_that_may_have_arrived_are_never_resent() {
    // Takes the request and closes, with and without the beginning of an answer.
    for begun in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"sta"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                let mut buffer = [0; 4096];
                let _ = stream.read(&mut buffer).await;
                let _ = stream.write_all(begun.as_bytes()).await;
            }
        });
        let client = ExecuteServer::new(&address, ExecuteServerOptions::default()).unwrap();
        let error = client.run(&print()).await.unwrap_err();
        assert!(matches!(error, ExecuteServerError::Cut { .. }), "{error}");
        assert!(!error.ran_nothing());
        assert_eq!(calls.load(Ordering::SeqCst), 1, "{begun:?}");
        task.abort();
    }
}

#[tokio::test]
async fn only_a_server_that_is_healthy_and_runs_python_is_used() {
    for (health, reason) in [
        (
            json!({
                "status": "healthy", "mode": "python", "runtime_version": "3.12", "capacity": 3,
                "current_load": 0.0,
                "uptime_seconds": 12.5
            }),
            None,
        ),
        (json!({"status": "healthy"}), None),
        (json!({"status": "starting"}), Some("its status is `starting`")),
        (
            json!({"status": "healthy", "mode": "node"}),
            Some("its mode is `node`"),
        ),
    ] {
        let server = serve(health, |_, _| ok("").to_string().into_response()).await;
        let told = client(&server).health().await;
        match reason {
            None => assert_eq!(told.unwrap().status, "healthy"),
            Some(reason) => assert_eq!(
                told.unwrap_err().to_string(),
                format!("the execution server is not ready: {reason}")
            ),
        }
    }
}

#[test]
fn an_unencrypted_address_is_rejected() {
    let wrong = |address: &str, allow_plain| {
        let options = ExecuteServerOptions {
            allow_plain,
            ..ExecuteServerOptions::default()
        };
        ExecuteServer::new(address, options).unwrap_err().to_string()
    };
    assert!(wrong("http://10.0.0.1:8080", false).contains("would let code and data travel unencrypted"));
    assert!(wrong("http://sandbox:8080", false).contains("use `https://`, or allow it"));
    assert!(
        wrong("https://user:secret@host", true).ends_with("must not hold a password; give the key by itself")
    );
    assert!(wrong("file:///x", true).ends_with("has to begin with `http://` or `https://` and a host"));
    for fit in [
        "http://127.0.0.1:1",
        "http://[::1]:1/x/",
        "http://localhost",
        "https://host",
    ] {
        ExecuteServer::new(fit, ExecuteServerOptions::default()).unwrap();
    }
}

//! A third-party server: `@modelcontextprotocol/server-everything`, over both of its transports.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use cellblock_agent::{ToolReply, ToolServer};
use cellblock_mcp_client::{ForeignServer, ServerOptions, StdioProgram, Transport};
use cellblock_testkit::{require, workspace_root};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::support::{at, names, object, options, refused, result, until};

fn script() -> PathBuf {
    let folder = workspace_root().join("tests/clients/everything/node_modules");
    folder.join("@modelcontextprotocol/server-everything/dist/index.js")
}

/// The server over HTTP, ended when dropped.
struct ReferenceServer(Child, u16);

impl ReferenceServer {
    /// Ends it with everything that it started: `node` may be a program that starts Node.
    fn end(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let _gone_already = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
            let _gone_already = self.0.wait();
        }
    }
}

impl Drop for ReferenceServer {
    fn drop(&mut self) {
        self.end();
    }
}

async fn serve() -> ReferenceServer {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let process = ReferenceServer(spawn(port), port);
    until("it listens", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    })
    .await;
    process
}

fn spawn(port: u16) -> Child {
    Command::new("node")
        .arg(script())
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap()
}

fn over_stdio(options: ServerOptions) -> ForeignServer {
    let program = StdioProgram {
        command: vec![
            "node".to_owned(),
            script().display().to_string(),
            "stdio".to_owned(),
        ],
        environment: vec![("GIVEN".to_owned(), "here".to_owned())],
    };
    ForeignServer::new("everything", Transport::Stdio(program), options)
}

/// Behavior over both transports.
async fn works(server: &ForeignServer) {
    let offered = server.tools().await.unwrap();
    assert_eq!(offered.left_out, []);
    let names = names(server).await;
    for name in [
        "echo",
        "get-sum",
        "get-structured-content",
        "get-tiny-image",
        "get-resource-reference",
    ] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    let sum = offered.tools.iter().find(|tool| tool.name == "get-sum").unwrap();
    assert_eq!(sum.input_schema["required"], json!(["a", "b"]));
    assert_eq!(
        result(server, "echo", json!({"message": "hallo"})).await,
        "Echo: hallo"
    );
    assert_eq!(
        result(server, "get-sum", json!({"a": 1, "b": 2})).await,
        "The sum of 1 and 2 is 3."
    );
    let weather = result(server, "get-structured-content", json!({"location": "Chicago"})).await;
    assert!(
        weather["temperature"].is_number() && weather["conditions"].is_string(),
        "{weather}"
    );
    let picture = result(server, "get-tiny-image", json!({})).await;
    let blocks = picture.as_array().unwrap();
    assert_eq!(blocks[0], "Here's the image you requested:");
    assert_eq!(
        (&blocks[1]["type"], &blocks[1]["mimeType"]),
        (&json!("image"), &json!("image/png"))
    );
    assert!(blocks[1]["data"].as_str().unwrap().starts_with("iVBORw0KGgo"));
    let blob = result(
        server,
        "get-resource-reference",
        json!({"resourceType": "Blob", "resourceId": 1}),
    )
    .await;
    assert_eq!(blob[1]["uri"], "demo://resource/dynamic/blob/1");
    assert!(blob[1]["data"].is_string());
    let links = result(server, "get-resource-links", json!({"count": 1})).await;
    assert_eq!(links[1]["type"], "resource_link");
    let reply = server.call("get-sum", object(json!({"a": "x"}))).await.unwrap();
    let ToolReply::Failed(said) = reply else {
        panic!("{reply:?}")
    };
    assert!(said.contains("expected number, received string"), "{said}");
}

#[tokio::test]
async fn a_foreign_server_over_stdio_works() {
    require!(EverythingServer);
    let server = over_stdio(options());
    works(&server).await;
    let environment: Value = result(&server, "get-env", json!({})).await;
    assert_eq!(environment["GIVEN"], "here");
    assert_eq!(environment.get("CARGO_PKG_NAME"), None);
}

#[tokio::test]
async fn a_foreign_server_over_http_works() {
    require!(EverythingServer);
    let process = serve().await;
    works(&at(&format!("http://127.0.0.1:{}/mcp", process.1), options())).await;
}

#[tokio::test]
async fn a_foreign_server_continues_after_a_timeout() {
    require!(EverythingServer);
    let process = serve().await;
    let short = ServerOptions {
        timeout: std::time::Duration::from_secs(2),
        ..options()
    };
    for server in [
        over_stdio(short.clone()),
        at(&format!("http://127.0.0.1:{}/mcp", process.1), short),
    ] {
        assert!(names(&server).await.len() > 5);
        let long = object(json!({"duration": 600, "steps": 600}));
        let error = server
            .call("trigger-long-running-operation", long)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(
                "did not answer the call of `trigger-long-running-operation` within 2 s, the limit `timeout`"
            ),
            "{error}"
        );
        assert_eq!(
            result(&server, "echo", json!({"message": "still"})).await,
            "Echo: still"
        );
    }
}

#[tokio::test]
async fn a_restarted_foreign_server_is_reconnected() {
    require!(EverythingServer);
    let mut process = serve().await;
    let server = at(&format!("http://127.0.0.1:{}/mcp", process.1), options());
    assert_eq!(result(&server, "echo", json!({"message": "a"})).await, "Echo: a");
    process.end();
    let refused = refused(&server).await;
    assert_eq!(
        refused,
        "the server `weather` cannot be reached; continue without it, or try again later"
    );
    process.0 = spawn(process.1);
    let port = process.1;
    until("it listens", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    })
    .await;
    assert_eq!(result(&server, "echo", json!({"message": "b"})).await, "Echo: b");
}

#[test]
fn the_foreign_server_is_locked_with_hashes() {
    let read = |file: &str| -> Value {
        let path = workspace_root().join("tests/clients/everything").join(file);
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let (project, lock) = (read("package.json"), read("package-lock.json"));
    let packages = lock["packages"].as_object().unwrap();
    for (name, version) in project["dependencies"].as_object().unwrap() {
        assert_eq!(packages[&format!("node_modules/{name}")]["version"], *version);
    }
    for (path, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
        assert!(
            package["integrity"].as_str().unwrap().starts_with("sha512-"),
            "{path}"
        );
        assert_eq!(package.get("resolved"), None, "{path}");
    }
}

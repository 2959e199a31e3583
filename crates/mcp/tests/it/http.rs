//! The server over HTTP: whose request it is, from where, and what closing a stream does.

use axum::Router;
use axum::http::request::Parts;
use cellblock_interpreter::hosting::Owner;
use cellblock_mcp::Server;
use cellblock_mcp::http::{HttpOptions, service};
use rmcp::ClientServiceExt;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Client, McpConnection, block_on, done, newest, refused, revisions, run, server, until};

/// Whoever calls is whom a header names, as a gateway's authentication would say.
fn owner(parts: &Parts) -> Option<Owner> {
    let named = parts.headers.get("authorization")?.to_str().ok()?;
    Some(Owner::new(named.strip_prefix("Bearer ")?))
}

/// Serves at a port of its own, which is given.
async fn serve(server: &Server) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let options = HttpOptions {
        allowed_origins: vec!["http://localhost:*".into()],
        ..HttpOptions::default()
    };
    let router = Router::new().route_service("/mcp", service(server, owner, options));
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

async fn client(port: u16, key: &str, mode: rmcp::ClientLifecycleMode) -> McpConnection {
    // Built with the rest of the workspace, the client brings no cryptography of its own; an error
    // means that there is some already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = StreamableHttpClientTransportConfig::with_uri(format!("http://127.0.0.1:{port}/mcp"))
        .auth_header(key);
    let transport = StreamableHttpClientTransport::from_config(config);
    Client::default()
        .serve_with_lifecycle(transport, mode)
        .await
        .unwrap()
}

/// Posts a request of the newest revision; gives the open connection.
async fn post(port: u16, headers: &str, method: &str, name: &str, params: Value) -> TcpStream {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 1,
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let name = if name.is_empty() {
        String::new()
    } else {
        format!("Mcp-Name: {name}\r\n")
    };
    let request = format!(
        "POST /mcp HTTP/1.1\r\n{headers}Content-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n\
         {body}",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    // A request that is refused by its length is not read to its end.
    let _read = stream.write_all(request.as_bytes()).await;
    stream
}

/// The first line of the answer.
async fn status(port: u16, headers: &str) -> String {
    let mut stream = post(port, headers, "tools/list", "", json!({})).await;
    let mut answer = vec![0; 4096];
    let read = stream.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn both_revisions_run_python_over_http() {
    block_on(async {
        let port = serve(&server(|_| {}).await).await;
        for revision in revisions() {
            let client = client(port, "anna", revision).await;
            let ran = run(&client, None, "print('printed'); 6 * 7").await;
            assert_eq!(ran["outputs"][0]["value"], 42);
        }
    });
}

#[test]
fn an_owner_sees_nothing_of_another() {
    block_on(async {
        let port = serve(&server(|_| {}).await).await;
        let (anna, ben) = (
            client(port, "anna", newest()).await,
            client(port, "ben", newest()).await,
        );
        let made = run(&anna, None, "secret = 1\nopen('a.csv', 'w').write('x')").await;
        let session = made["session_id"].as_str().unwrap();
        assert_eq!(
            done(&ben, "list_sessions", json!({})).await["sessions"],
            json!([])
        );
        for (tool, arguments) in [
            ("run_python", json!({"code": "secret", "session_id": session})),
            ("interrupt_session", json!({"session_id": session})),
            ("close_session", json!({"session_id": session})),
            ("list_files", json!({"session_id": session})),
            (
                "start_process",
                json!({"session_id": session, "command": ["true"]}),
            ),
            ("use_process", json!({"session_id": session, "action": "list"})),
            ("download_file", json!({"session_id": session, "path": "a.csv"})),
            (
                "upload_file",
                json!({"session_id": session, "path": "a.csv", "content": "y"}),
            ),
        ] {
            let told = refused(&ben, tool, arguments).await;
            assert!(told.starts_with("there is no session"), "{tool}: {told}");
            assert!(
                told.ends_with("Leave `session_id` out to begin a new one"),
                "{tool}: {told}"
            );
        }
        let artifact = made["files"][0]["uri"].as_str().unwrap().to_owned();
        let file = format!("cellblock://sessions/{session}/files/workspace/a.csv");
        for uri in [artifact, file] {
            let request = rmcp::model::ReadResourceRequestParams::new(uri);
            assert!(anna.read_resource(request.clone()).await.is_ok());
            assert!(ben.read_resource(request).await.is_err());
        }
        assert_eq!(ben.list_resources(None).await.unwrap().resources, []);
    });
}

#[test]
fn a_host_or_origin_that_is_not_allowed_is_rejected() {
    block_on(async {
        let port = serve(&server(|_| {}).await).await;
        let own = format!("Host: 127.0.0.1:{port}\r\nAuthorization: Bearer anna\r\n");
        assert_eq!(status(port, &own).await, "HTTP/1.1 200 OK");
        let origin = format!("{own}Origin: http://localhost:3000\r\n");
        assert_eq!(status(port, &origin).await, "HTTP/1.1 200 OK");
        let origin = format!("{own}Origin: http://evil.example\r\n");
        assert_eq!(status(port, &origin).await, "HTTP/1.1 403 Forbidden");
        let host = "Host: evil.example\r\nAuthorization: Bearer anna\r\n";
        assert_eq!(status(port, host).await, "HTTP/1.1 403 Forbidden");
    });
}

#[test]
fn a_request_without_an_owner_gets_nothing() {
    block_on(async {
        let port = serve(&server(|_| {}).await).await;
        let headers = format!("Host: 127.0.0.1:{port}\r\nConnection: close\r\n");
        let call = json!({"name": "list_sessions", "arguments": {}});
        let mut stream = post(port, &headers, "tools/call", "list_sessions", call).await;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(
            answer.contains("the request does not say whose it is"),
            "{answer}"
        );
    });
}

#[test]
fn closing_the_stream_of_a_call_stops_its_code() {
    block_on(async {
        let port = serve(&server(|_| {}).await).await;
        let client = client(port, "anna", newest()).await;
        let session = run(&client, None, "kept = 42").await["session_id"].clone();
        let headers = format!("Host: 127.0.0.1:{port}\r\nAuthorization: Bearer anna\r\n");
        let code = "print('on', flush=True)\nwhile True: pass";
        let call = json!({"name": "run_python", "arguments": {"code": code, "session_id": session}});
        let mut stream = post(port, &headers, "tools/call", "run_python", call).await;
        let mut heard = String::new();
        while !heard.contains("\"message\":\"on") {
            let mut piece = vec![0; 4096];
            let read = stream.read(&mut piece).await.unwrap();
            assert_ne!(read, 0, "{heard}");
            heard.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        drop(stream);
        until("the code is stopped", async || {
            done(&client, "list_sessions", json!({})).await["sessions"][0]["busy"] == false
        })
        .await;
        let kept = run(&client, session.as_str(), "kept").await;
        assert_eq!(kept["outputs"][0]["value"], 42);
    });
}

/// Posts a request of an earlier revision; gives the open connection.
async fn earlier(port: u16, headers: &str, body: &Value) -> TcpStream {
    let body = body.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer anna\r\n\
         {headers}Content-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n\
         {body}",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    // A request that is refused by its length is not read to its end.
    let _read = stream.write_all(request.as_bytes()).await;
    stream
}

async fn rest(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[test]
fn an_earlier_client_stops_its_call_by_a_request_of_its_own() {
    block_on(async {
        let port = serve(&server(|_| {}).await).await;
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }});
        let mut conversations = Vec::new();
        for _ in 0..2 {
            let begun = rest(earlier(port, "", &initialize).await).await;
            let name = begun
                .lines()
                .find_map(|line| line.strip_prefix("mcp-session-id: "));
            conversations.push(name.unwrap_or_else(|| panic!("{begun}")).to_owned());
        }
        assert_ne!(conversations[0], conversations[1]);
        let headers = |name: &str| format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {name}\r\n");
        let endless = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": "run_python", "arguments": {"code": "print('on', flush=True)\nwhile True: pass"},
            "_meta": {"progressToken": 1},
        }});
        let mut call = earlier(port, &headers(&conversations[0]), &endless).await;
        let mut heard = String::new();
        while !heard.contains("\"message\":\"on") {
            let mut piece = vec![0; 4096];
            let read = call.read(&mut piece).await.unwrap();
            assert_ne!(read, 0, "{heard}");
            heard.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        let give_up =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
        // What another conversation calls 7 is another call.
        for name in [&conversations[1], &conversations[0]] {
            let answer = rest(earlier(port, &headers(name), &give_up).await).await;
            assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
        }
        let end = rest(call).await;
        assert!(end.contains("\"outcome\":\"interrupted\""), "{end}");
    });
}

/// Begins a conversation of an earlier revision; gives the headers of its requests.
async fn conversation(port: u16) -> String {
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let begun = rest(earlier(port, "", &initialize).await).await;
    let name = begun
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "));
    let name = name.unwrap_or_else(|| panic!("{begun}"));
    format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {name}\r\n")
}

/// Runs code in a conversation; gives the whole answer.
async fn run_in(port: u16, headers: &str, arguments: Value) -> String {
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "run_python", "arguments": arguments}});
    rest(earlier(port, headers, &call).await).await
}

fn handle(answer: &str) -> String {
    let begin = answer.find("sess_").unwrap_or_else(|| panic!("{answer}"));
    let handle = answer[begin..]
        .chars()
        .take_while(|it| it.is_alphanumeric() || *it == '_');
    handle.collect()
}

/// Ends a conversation.
async fn delete(port: u16, headers: &str) -> String {
    let request = format!(
        "DELETE /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer anna\r\n\
         {headers}Connection: close\r\n\r\n"
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    rest(stream).await
}

#[test]
fn a_session_outlives_its_conversation_for_clients_that_open_one_for_each_call() {
    block_on(async {
        let port = serve(&server(|_| {}).await).await;
        let first = conversation(port).await;
        let made = run_in(port, &first, json!({"code": "kept = 41"})).await;
        let ended = delete(port, &first).await;
        assert!(ended.starts_with("HTTP/1.1 204"), "{ended}");
        for after in [
            run_in(port, &first, json!({"code": "kept"})).await,
            delete(port, &first).await,
        ] {
            assert!(
                after.starts_with("HTTP/1.1 404") && after.contains("has ended"),
                "{after}"
            );
        }
        let second = conversation(port).await;
        let next = json!({"code": "kept + 1", "session_id": handle(&made)});
        let ran = run_in(port, &second, next).await;
        assert!(ran.contains("\"value\":42"), "{ran}");
    });
}

#[test]
fn sessions_of_a_conversation_that_has_ended_make_room_first() {
    block_on(async {
        let port = serve(&server(|options| options.max_sessions_per_key = 2).await).await;
        let (first, second) = (conversation(port).await, conversation(port).await);
        let kept = handle(&run_in(port, &first, json!({"code": "kept = 42"})).await);
        let ended = handle(&run_in(port, &second, json!({"code": "1"})).await);
        delete(port, &second).await;
        let third = conversation(port).await;
        run_in(port, &third, json!({"code": "1"})).await;
        let ran = run_in(port, &first, json!({"code": "kept", "session_id": kept})).await;
        assert!(ran.contains("\"value\":42"), "{ran}");
        // What a conversation is told names its own sessions alone.
        let lost = run_in(port, &first, json!({"code": "1", "session_id": ended})).await;
        assert!(lost.contains("made room for another one"), "{lost}");
        assert!(
            lost.contains(&format!("Sessions of this conversation, latest first: {kept}\"")),
            "{lost}"
        );
        let foreign = run_in(port, &third, json!({"code": "1", "session_id": ended})).await;
        assert!(
            foreign.contains("there is no session") && !foreign.contains(&kept),
            "{foreign}"
        );
    });
}

#[test]
fn a_request_that_is_too_large_is_rejected_by_both_revisions() {
    block_on(async {
        let port = serve(&server(|_| {}).await).await;
        let large = "x".repeat(9 << 20);
        let headers =
            format!("Host: 127.0.0.1:{port}\r\nAuthorization: Bearer anna\r\nConnection: close\r\n");
        let params = json!({"name": "run_python", "arguments": {"code": large}});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params.clone()});
        let newest = async || post(port, &headers, "tools/call", "run_python", params.clone()).await;
        for mut stream in [newest().await, earlier(port, "", &message).await] {
            let mut answer = vec![0; 4096];
            let read = stream.read(&mut answer).await.unwrap();
            let answer = String::from_utf8_lossy(&answer[..read]);
            assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
        }
    });
}

//! Servers that share their records in Postgres.

use std::net::TcpListener;
use std::time::Duration;

use cellblock_testkit::{Cli, DatabaseServer, S3Server, home, require, wait};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::{GatewayProcess, said, serve};

/// A lease, and some time for its end to be noticed.
const LEASE: Duration = Duration::from_mins(1);

/// Two servers over one database.
struct Replicas {
    one: GatewayProcess,
    two: GatewayProcess,
    url: String,
    database: DatabaseServer,
    /// The database's tasks live here.
    _runtime: Runtime,
}

impl Replicas {
    fn start() -> Self {
        Self::with("", |_| Vec::new())
    }

    /// Starts them with more in their configuration, and in the environment of the first and of the second.
    fn with(config: &str, environment: impl Fn(usize) -> Vec<(&'static str, String)>) -> Self {
        let runtime = Runtime::new().unwrap();
        let database = runtime.block_on(DatabaseServer::postgres());
        let url = runtime.block_on(database.create_database("records"));
        Self {
            one: replica(&url, config, &environment(0)),
            two: replica(&url, config, &environment(1)),
            url,
            database,
            _runtime: runtime,
        }
    }
}

/// Starts a server whose records are in a database, and which says where others reach it.
fn replica(url: &str, config: &str, environment: &[(&str, String)]) -> GatewayProcess {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    drop(taken);
    let config = format!("records: {{env: RECORDS_URL}}\nadvertise: http://{address}\n{config}");
    let mut all = vec![("RECORDS_URL", url)];
    all.extend(environment.iter().map(|(name, value)| (*name, value.as_str())));
    serve(&config, &["--demo", "--listen", &address], &all)
}

#[test]
fn a_session_is_used_through_another_server_until_its_own_is_killed() {
    require!(UserNamespaces);
    require!(Postgres);
    let Replicas {
        one,
        two,
        database: _database,
        _runtime,
        ..
    } = Replicas::start();
    let (status, session) = one.post("/v1/sessions", &json!({}));
    assert_eq!(status, 201, "{session}");
    let path = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
    for (server, code, value) in [(&one, "x = 41; x", 41), (&two, "x + 1", 42)] {
        let (status, cell) = server.post(&format!("{path}/cells"), &json!({"code": code}));
        assert_eq!(
            (status, &cell["outputs"][0]["value"]),
            (200, &json!(value)),
            "{cell}"
        );
    }
    assert_eq!(one.end(Signal::KILL), None);
    let (status, told) = two.get(&path);
    assert_eq!(
        (status, &told["error"]["code"]),
        (503, &json!("gateway_unreachable"))
    );
    let killed = std::time::Instant::now();
    let told = wait::block_until_ok(|| match two.get(&path) {
        (404, told) => Ok(told),
        (_, told) => Err(told),
    });
    let message = told["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("the gateway that had this session has ended"),
        "{message}"
    );
    assert!(killed.elapsed() < LEASE, "{:?}", killed.elapsed());
    assert_eq!(two.end(Signal::TERM), Some(0));
}

#[test]
fn servers_with_one_database_share_responses_and_report_that_it_is_down() {
    require!(UserNamespaces);
    require!(Postgres);
    let Replicas {
        one,
        two,
        url,
        database,
        _runtime,
    } = Replicas::start();
    let response = one.run_code("print(6 * 7)", None);
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let (status, found) = two.get(&path);
    assert_eq!((status, said(&found)), (200, said(&response)));
    let next = json!({"model": "demo", "input": "Thanks", "previous_response_id": response["id"]});
    assert_eq!(two.respond(&next).0, 200);
    // A server that stops leaves the records to the others.
    assert_eq!(one.end(Signal::TERM), Some(0));
    assert_eq!(two.get(&path).0, 200);
    let listed = Cli::new(["key", "list", "--records", &url]).run().unwrap();
    assert_eq!(listed.code(), 0, "{}", listed.stderr);

    drop(database);
    let (status, told) = two.get("/readyz");
    assert_eq!(
        (status, &told["reason"]),
        (503, &json!("the records cannot be read"))
    );
    let (status, told) = two.get(&path);
    assert_eq!(
        (status, &told["error"]["code"]),
        (503, &json!("records_unavailable"))
    );
    let refused = Cli::new(["serve", "--demo", "--listen", "127.0.0.1:0", "--records", &url])
        .run()
        .unwrap();
    let expected = "see that Postgres runs and can be reached";
    assert_eq!(
        (refused.code(), refused.stdout.as_str()),
        (70, ""),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
}

/// Calls a tool of MCP, and gives its structured content.
fn tool(server: &GatewayProcess, name: &str, arguments: &Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": name, "arguments": arguments}});
    let (status, answer) = server.message("/mcp", &message);
    assert_eq!(status, 200, "{answer}");
    let content = answer["result"]["structuredContent"].clone();
    assert!(content.is_object(), "{answer}");
    content
}

/// An answer of JSON that has this status.
fn read((status, body): (u16, String), expected: u16) -> Value {
    assert_eq!(status, expected, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn sessions_of_mcp_and_of_each_dialect_are_used_through_another_server() {
    require!(UserNamespaces);
    require!(Postgres);
    let dialects = "dialects: {e2b: {}, jupyter: {}, librechat: {}, open_terminal: {}, opensandbox: {}}\n";
    let Replicas {
        one,
        two,
        database: _database,
        _runtime,
        ..
    } = Replicas::with(dialects, |_| Vec::new());
    let nothing = Value::Null;

    let ran = tool(&one, "run_python", &json!({"code": "x = 41"}));
    let next = json!({"code": "x + 1", "session_id": ran["session_id"]});
    assert_eq!(tool(&two, "run_python", &next)["outputs"][0]["value"], 42);
    let listed = tool(&two, "list_sessions", &json!({})).to_string();
    assert!(listed.contains(ran["session_id"].as_str().unwrap()), "{listed}");

    let made = one.ask(
        "POST /e2b/sandboxes",
        &[],
        &json!({"templateID": "base", "secure": true}),
    );
    let made = read(made, 201);
    let (id, token) = (&made["sandboxID"], &made["envdAccessToken"]);
    let inside = [
        ("e2b-sandbox-id", id.as_str().unwrap()),
        ("x-access-token", token.as_str().unwrap()),
    ];
    for (server, code, value) in [(&two, "x = 41\nx", "41"), (&one, "x + 1", "42")] {
        let (status, lines) = server.ask("POST /e2b/execute", &inside, &json!({"code": code}));
        assert_eq!(status, 200, "{lines}");
        assert!(lines.contains(&format!("\"{value}\"")), "{lines}");
    }
    let listed = two.ask("GET /e2b/sandboxes", &[], &nothing).1;
    assert!(listed.contains(id.as_str().unwrap()), "{listed}");

    // The first server that is asked has them, here the second one.
    let image = json!({"uri": "opensandbox/code-interpreter:v1.1.0"});
    let wanted = json!({"image": image, "entrypoint": ["x"], "timeout": 300,
        "resourceLimits": {"cpu": "1", "memory": "2Gi"}});
    let made = read(two.ask("POST /opensandbox/sandboxes", &[], &wanted), 202);
    let id = made["id"].as_str().unwrap();
    let place = format!("GET /opensandbox/sandboxes/{id}/endpoints/44772");
    let endpoint = read(one.ask(&place, &[], &nothing), 200);
    // The client goes on at the server that it has asked.
    assert_eq!(
        endpoint["endpoint"],
        format!("{}/opensandbox/execd/{id}", one.address)
    );
    let token = endpoint["headers"]["X-EXECD-ACCESS-TOKEN"].as_str().unwrap();
    let code = json!({"code": "print(6 * 7)", "context": {"language": "python"}});
    let run = format!("POST /opensandbox/execd/{id}/code");
    let (status, events) = one.ask(&run, &[("x-execd-access-token", token)], &code);
    assert!(status == 200 && events.contains("42"), "{events}");

    let kernel = read(one.ask("POST /jupyter/api/kernels", &[], &json!({})), 201);
    let path = format!("GET /jupyter/api/kernels/{}", kernel["id"].as_str().unwrap());
    assert_eq!(read(two.ask(&path, &[], &nothing), 200)["id"], kernel["id"]);

    let chat = [("x-user-id", "ann"), ("x-session-id", "c1")];
    for (server, code) in [(&one, "x = 41"), (&two, "x + 1")] {
        let ran = server.ask("POST /open-terminal/python", &chat, &json!({"code": code}));
        let ran = read(ran, 200).to_string();
        assert!(code == "x = 41" || ran.contains("42"), "{ran}");
    }

    let code = json!({"lang": "py", "code": "open('a.txt', 'w').write('kept')"});
    let ran = read(two.ask("POST /librechat/exec", &[], &code), 200);
    let file = &ran["files"][0];
    let download = format!(
        "GET /librechat/download/{}/{}",
        ran["session_id"].as_str().unwrap(),
        file["id"].as_str().unwrap()
    );
    assert_eq!(one.ask(&download, &[], &nothing).1, "kept");

    // What a server that stops in order had is gone, and another one is asked from then on.
    assert_eq!(one.end(Signal::TERM), Some(0));
    let ran = tool(&two, "run_python", &json!({"code": "6 * 7"}));
    assert_eq!(ran["outputs"][0]["value"], 42);
}

#[test]
fn an_artifact_of_one_server_is_read_at_another_one_from_s3() {
    require!(UserNamespaces);
    require!(Postgres);
    require!(S3Server);
    let store = S3Server::start();
    store.create_bucket("artifacts");
    // Each server has a folder of its own in front of the bucket.
    let homes = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for own in &homes {
        for part in ["bytecode", "images", "layers", "refs"] {
            std::os::unix::fs::symlink(home().unwrap().join(part), own.path().join(part)).unwrap();
        }
    }
    let Replicas {
        one,
        two,
        database: _database,
        _runtime,
        ..
    } = Replicas::with("", |number| {
        vec![
            ("CELLBLOCK_HOME", homes[number].path().display().to_string()),
            ("CELLBLOCK_FROZEN", "off".to_owned()),
            ("CELLBLOCK_REMOTE_STORE", "s3://artifacts/here".to_owned()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ENDPOINT_URL", store.endpoint()),
        ]
    });
    let (_, session) = one.post("/v1/sessions", &json!({}));
    let cells = format!("/v1/sessions/{}/cells", session["id"].as_str().unwrap());
    let code = json!({"code": "open('a.csv', 'w').write('0123456789')"});
    let (status, cell) = one.post(&cells, &code);
    assert_eq!(status, 200, "{cell}");
    let sha256 = cell["artifacts"][0]["sha256"].as_str().unwrap();
    let path = format!("/v1/artifacts/{sha256}");
    assert_eq!(two.text(&path), (200, "0123456789".to_owned()));
    // It outlives the server that made it.
    assert_eq!(one.end(Signal::KILL), None);
    std::fs::remove_dir_all(homes[0].path().join("artifacts")).unwrap();
    assert_eq!(two.text(&path), (200, "0123456789".to_owned()));
}

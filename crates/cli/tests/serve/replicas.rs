//! Servers that share their records in Postgres.

use std::net::TcpListener;
use std::time::Duration;

use cellblock_testkit::{Cli, DatabaseServer, require, wait};
use rustix::process::Signal;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::support::{Server, said, serve};

/// A lease, and some time for its end to be noticed.
const LEASE: Duration = Duration::from_mins(1);

/// Two servers over one database.
struct Replicas {
    one: Server,
    two: Server,
    url: String,
    database: DatabaseServer,
    /// The database's tasks live here.
    _runtime: Runtime,
}

impl Replicas {
    fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let database = runtime.block_on(DatabaseServer::postgres());
        let url = runtime.block_on(database.create_database("records"));
        Self {
            one: replica(&url),
            two: replica(&url),
            url,
            database,
            _runtime: runtime,
        }
    }
}

/// Starts a server whose records are in a database, and which says where others reach it.
fn replica(url: &str) -> Server {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    drop(taken);
    let config = format!("records: {{env: RECORDS_URL}}\nadvertise: http://{address}\n");
    serve(
        &config,
        &["--demo", "--listen", &address],
        &[("RECORDS_URL", url)],
    )
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

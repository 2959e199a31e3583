//! Connectors of the configuration in sessions over REST and `/mcp`, under keys.

use serde_json::{Value, json};

use crate::api::{Api, KEY};
use crate::mcp::client::{block_on, connect, done};
use crate::server::{Server, ServerHome, until};
use cellblock_testkit::small_image;

const CODE: &str = "gdp = fred.series('GDPC1')\nagain = fred.series('GDPC1')\n\
                    head = fred.echo(id='hunter2')['head']\n\
                    print(*head, sep='\\n')\nlen(gdp) + len(again)";

struct ConnectorServer {
    api: Api,
    server: Server,
    granted: Value,
    ungranted: Value,
    _config: tempfile::TempDir,
    _place: ServerHome,
}

/// A gateway with an API as its connector, and two keys.
fn served() -> ConnectorServer {
    let api = Api::start().unwrap();
    let config = tempfile::tempdir().unwrap();
    let text = format!("{}mcp: {{toolsets: [notebook]}}\n", api.config());
    std::fs::write(config.path().join("cellblock.yaml"), text).unwrap();
    let place = ServerHome::new();
    let yaml = config.path().join("cellblock.yaml").display().to_string();
    let key = |arguments: &[&str]| {
        let create = [&["key", "create", "--json"], arguments].concat();
        place.cellblock(&create).json().unwrap()
    };
    let grant = ["--config", &yaml, "--connectors", "fred"];
    let quota = ["--quota", "fetches_per_minute=4"];
    let granted = key(&[&["analyst"][..], &grant, &quota].concat());
    let ungranted = key(&["visitor"]);
    // Its answers are tables.
    let image = ("CELLBLOCK_IMAGE", small_image().unwrap());
    let server = place.serve_in(config.path(), &[], &[("CELLBLOCK_TEST_API_KEY", KEY), image]);
    ConnectorServer {
        api,
        server,
        granted,
        ungranted,
        _config: config,
        _place: place,
    }
}

impl ConnectorServer {
    /// Runs a cell in a new REST session of a key.
    fn run(&self, key: &Value, code: &str) -> Value {
        let bearer = format!("Bearer {}", key["secret"].as_str().unwrap());
        let headers = [("Authorization", &*bearer)];
        let post = |path: &str, body: Value| self.server.post(path, &headers, &body.to_string()).json();
        let session = post("/v1/sessions", json!({"toolset": "notebook"}));
        let path = format!("/v1/sessions/{}/cells", session["id"].as_str().unwrap());
        post(&path, json!({ "code": code }))
    }

    /// Waits for this many logged calls.
    fn logged(&self, number: usize) -> Vec<Value> {
        until(|| {
            let log = self.server.log();
            let lines = log.lines().filter_map(|line| serde_json::from_str(line).ok());
            let fetches: Vec<Value> = lines
                .filter(|line: &Value| line["target"] == "cellblock::fetches")
                .collect();
            (fetches.len() >= number).then_some(fetches)
        })
    }

    /// Checks a cell that ran [`CODE`] as the first of its key.
    fn check(&self, cell: &Value) {
        assert_eq!(cell["outputs"][0]["value"], 4, "{cell:#}");
        assert_eq!(self.api.count(), 2);
        let text = cell.to_string();
        assert!(text.contains("x-api-key: [redacted]"), "{text}");
        assert!(!text.contains("and+more"), "{text}");
    }
}

#[test]
fn a_rest_session_calls_an_api_only_with_a_key_that_is_granted_it() {
    let served = served();
    let cell = served.run(&served.granted, CODE);
    served.check(&cell);
    let fetches = cell["fetches"].as_array().unwrap();
    let calls: Vec<_> = fetches
        .iter()
        .map(|fetch| (&fetch["function"], &fetch["outcome"], &fetch["cached"]))
        .collect();
    assert_eq!(
        calls,
        [
            (&json!("series"), &json!("ok"), &json!(false)),
            (&json!("series"), &json!("ok"), &json!(true)),
            (&json!("echo"), &json!("ok"), &json!(false)),
        ]
    );
    let cell = served.run(&served.ungranted, "fred");
    assert_eq!(cell["error"]["type"], "NameError", "{cell:#}");
    let forged = "from cellblock_kernel.library import broker\n\
                  broker.call('fetch', \
                  {'connector': 'fred', 'function': 'series', 'arguments': {'series_id': 'X'}})";
    let cell = served.run(&served.ungranted, forged);
    assert_eq!(cell["fetches"][0]["outcome"], "not_granted", "{cell:#}");
    assert_eq!(served.api.count(), 2);
}

#[test]
fn a_call_over_mcp_is_logged_without_secrets_and_counted() {
    let served = served();
    let secret = served.granted["secret"].as_str().unwrap();
    let other = served.ungranted["secret"].as_str().unwrap();
    block_on(async {
        let client = connect(&served.server, Some(secret)).await;
        let cell = done(&client, "run_cell", json!({ "code": CODE })).await;
        served.check(&cell);
        let fetched = cell["fetch_log"].as_str().unwrap();
        assert!(fetched.contains("fred.series("), "{fetched}");
        let session = &cell["session_id"];
        let more = "import cellblock\n\
                    try:\n    [fred.series(f'S{n}') for n in range(3)]\n\
                    except cellblock.RateLimitError as error:\n    print(error.retry_after > 0, error)";
        let cell = done(&client, "run_cell", json!({"code": more, "session_id": session})).await;
        let printed = cell["stdout"].as_str().unwrap();
        assert!(
            printed.starts_with(
                "True fred.series: the request was not made: the quota `fetches_per_minute` of this key"
            ),
            "{printed}"
        );
        let visitor = connect(&served.server, Some(other)).await;
        let cell = done(&visitor, "run_cell", json!({"code": "'fred' in globals()"})).await;
        assert_eq!(cell["outputs"][0]["value"], false, "{cell:#}");
    });
    assert_eq!(served.api.count(), 4);
    let logged = served.logged(6);
    let first = &logged[0];
    assert_eq!(first["owner"], served.granted["id"], "{first:#}");
    assert!(
        first["session"].as_str().unwrap().starts_with("sess_"),
        "{first:#}"
    );
    assert_eq!(
        [&first["connector"], &first["function"], &first["outcome"]],
        ["fred", "series", "ok"]
    );
    assert_eq!(first["arguments"], r#"{"series_id":"GDPC1","since":null}"#);
    assert!(first["bytes"].as_u64().unwrap() > 0, "{first:#}");
    assert_eq!(logged[5]["outcome"], "rate_limit", "{:#}", logged[5]);
    assert!(!served.server.log().contains("and+more"));
    let bearer = format!("Bearer {secret}");
    let counted =
        "cellblock_fetches_total{connector=\"fred\",function=\"series\",outcome=\"ok\",cached=\"false\"}";
    assert_eq!(served.server.metric(counted, &[("Authorization", &bearer)]), 3);
}

//! Records of runs: of `cellblock run` and of a server, in one list.

use serde_json::Value;

use crate::server::ServerHome;

const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

/// The runs of a home, the newest first.
fn runs(place: &ServerHome) -> Vec<Value> {
    let list = place.cellblock(&["runs", "list", "--json"]).json().unwrap();
    list["runs"].as_array().unwrap().clone()
}

fn id(run: &Value) -> String {
    run["id"].as_str().unwrap().to_owned()
}

#[test]
fn runs_of_the_command_and_of_a_server_are_listed_and_replayed() {
    let place = ServerHome::new();
    let none = place.cellblock(&["runs", "list"]);
    assert!(none.stdout.starts_with("no runs; "), "{}", none.stdout);

    let code = "x = 20\nprint(x)";
    let run = place.cellblock(&["run", "-c", code, "-c", "x + 1"]);
    assert_eq!(run.code(), 0, "{}", run.stderr);
    let recorded = runs(&place);
    assert_eq!(recorded.len(), 2, "{recorded:?}");
    assert_eq!(recorded[0]["code"], "x + 1");
    assert_eq!(recorded[0]["owner"], "local");
    assert_eq!(recorded[0]["parent"], recorded[1]["id"]);
    let last = id(&recorded[0]);
    let replay = place.cellblock(&["runs", "replay", &last, "--json"]);
    assert_eq!(replay.code(), 0, "{} {}", replay.stdout, replay.stderr);
    let report = &replay.json().unwrap()["replay"];
    assert_eq!(report["result"], "equal", "{report}");
    assert_eq!(report["runs"].as_array().unwrap().len(), 2, "{report}");
    let export = place.cellblock(&["runs", "export", &last]).json().unwrap();
    assert_eq!(export["runs"][0]["code"], code, "{export}");

    let server = place.serve(&[]);
    let session = server.post("/v1/sessions", JSON, "{}").json();
    let path = format!("/v1/sessions/{}/cells", session["id"].as_str().unwrap());
    let body = r#"{"code": "import os\nos.urandom(8).hex()"}"#;
    let cell = server.post(&path, JSON, body).json();
    assert_eq!(cell["outcome"], "completed", "{cell}");
    let first = server.get("/v1/runs?limit=1", &[]).json();
    let last = id(&first["data"][0]);
    drop(server);
    let shown = place.cellblock(&["runs", "show", &last]);
    assert!(shown.stdout.contains("os.urandom"), "{}", shown.stdout);
    let replay = place.cellblock(&["runs", "replay", &last]);
    assert_eq!(replay.code(), 1, "{} {}", replay.stdout, replay.stderr);
    assert!(replay.stdout.contains("output 1: recorded"), "{}", replay.stdout);
    let unknown = place.cellblock(&["runs", "show", "run_0"]);
    assert_eq!(unknown.code(), 2);
    assert!(
        unknown.stderr.contains("there is no run `run_0`"),
        "{}",
        unknown.stderr
    );
}

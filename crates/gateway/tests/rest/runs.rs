//! Records of runs, their replays and exports.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Api, block_on};

fn id(session: &str) -> &str {
    session.rsplit('/').next().unwrap()
}

/// The runs of a session, the oldest first.
async fn runs(api: &Api, session: &str) -> Vec<Value> {
    let (status, page) = api
        .get(&format!("/v1/runs?order=asc&session={}", id(session)))
        .await;
    assert_eq!(status, StatusCode::OK, "{page}");
    page["data"].as_array().unwrap().clone()
}

fn of<'a>(run: &'a Value, field: &str) -> &'a str {
    run[field].as_str().unwrap()
}

/// Replays the last run of a session.
async fn replay(api: &Api, session: &str) -> Value {
    let runs = runs(api, session).await;
    let last = of(runs.last().unwrap(), "id").to_owned();
    let (status, report) = api.post(&format!("/v1/runs/{last}/replay"), &json!({})).await;
    assert_eq!(status, StatusCode::OK, "{report}");
    assert_eq!(report["run"], last.as_str());
    report
}

#[test]
fn a_run_has_a_record_of_its_code_inputs_and_outputs() {
    block_on(async {
        let api = Api::of("recorded").await;
        let inputs = json!({"inputs": {"sales": {"data": "YSxiCjEsMgo=", "format": "csv"}}});
        let session = api.session(&inputs).await;
        let code = "open('a.txt', 'w').write('x')\nprint('hi')\nsales";
        api.run(&session, code).await;
        api.run(&session, "1/0").await;
        let runs = runs(&api, &session).await;
        assert_eq!(runs.len(), 2, "{runs:?}");
        let (first, second) = (&runs[0], &runs[1]);
        assert_eq!(first["object"], "run");
        assert_eq!(first["session"], id(&session));
        assert_eq!(first["cell"], 1);
        assert_eq!(first["code"], code);
        assert_eq!(of(first, "code_sha256").len(), 64);
        assert_eq!(first["outcome"], "completed");
        assert_eq!(first["inputs"][0]["name"], "sales");
        assert_eq!(first["inputs"][0]["bytes"], 8);
        let table = "a,b\n1,2\n";
        let hash = cellblock_artifact::ArtifactId::of(table.as_bytes()).to_string();
        assert_eq!(first["inputs"][0]["sha256"], hash.as_str());
        assert_eq!(first["outputs"][0]["type"], "dataframe");
        assert_eq!(first["files"][0]["name"], "a.txt");
        let printed = cellblock_artifact::ArtifactId::of(b"hi\n").to_string();
        assert_eq!(first["stdout"]["sha256"], printed.as_str());
        assert_eq!(first["backend"], "process");
        assert_eq!(first["network"], "none");
        assert!(first["limits"]["memory_bytes"].as_u64().unwrap() > 0);
        assert!(first["image"]["digest"].as_str().is_some_and(|it| !it.is_empty()));
        assert!(first["durations"]["run_ms"].as_f64().unwrap() > 0.0);
        assert_eq!(first.get("parent"), None);
        assert_eq!(second["parent"], first["id"]);
        assert_eq!(second["outcome"], "raised");
        assert_eq!(second["error"]["type"], "ZeroDivisionError");

        let path = format!("/v1/runs/{}", of(first, "id"));
        assert_eq!(api.get(&path).await.1, *first);
        let (status, export) = api.get(&format!("{path}/export")).await;
        assert_eq!(status, StatusCode::OK, "{export}");
        assert_eq!(export["runs"][0]["code"], code);
        assert_eq!(export["inputs"][0]["data"], "YSxiCjEsMgo=");
        api.end(&session).await;
        // The record outlives its session.
        assert_eq!(api.get(&path).await.0, StatusCode::OK);

        let other = Api::of("unrecorded").await;
        for (method, path) in [
            (Method::GET, path.clone()),
            (Method::GET, format!("{path}/export")),
            (Method::POST, format!("{path}/replay")),
        ] {
            let response = other.request(method.clone(), &path).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{method} {path}");
            let error: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            assert_eq!(error["error"]["code"], "run_not_found", "{method} {path}");
        }
        let (_, all) = other.get("/v1/runs").await;
        assert_eq!(all["data"], json!([]));
    });
}

#[test]
fn a_replay_makes_the_same_or_names_what_differs() {
    block_on(async {
        let api = Api::of("replayed").await;
        let inputs = json!({"inputs": {"x": {"value": [3, 4]}}});
        let session = api.session(&inputs).await;
        api.run(&session, "total = sum(x)\nopen('t.txt', 'w').write(str(total))")
            .await;
        api.run(&session, "import pandas as pd\npd.DataFrame({'t': [total]})")
            .await;
        let report = replay(&api, &session).await;
        assert_eq!(report["object"], "run.replay");
        assert_eq!(report["result"], "equal", "{report}");
        assert_eq!(report["runs"].as_array().unwrap().len(), 2, "{report}");
        let again = report["runs"][1]["replay"].as_str().unwrap();
        let (_, again) = api.get(&format!("/v1/runs/{again}")).await;
        assert_eq!(again["replay_of"], report["run"], "{again}");

        // What a reset forgets is forgotten in the replay, too; files are kept.
        let (status, _) = api.post(&format!("{session}/reset"), &json!({})).await;
        assert!(status.is_success(), "{status}");
        api.run(&session, "print('total' in globals(), open('t.txt').read())")
            .await;
        let report = replay(&api, &session).await;
        assert_eq!(report["result"], "equal", "{report}");

        api.run(
            &session,
            "import random\nprint('fixed')\nrandom.SystemRandom().random()",
        )
        .await;
        let report = replay(&api, &session).await;
        assert_eq!(report["result"], "differs", "{report}");
        assert_eq!(report["differences"].as_array().unwrap().len(), 1, "{report}");
        assert_eq!(report["differences"][0]["what"], "output 1", "{report}");
        api.end(&session).await;
    });
}

#[test]
fn a_run_that_used_more_than_its_record_has_is_not_replayed() {
    block_on(async {
        let api = Api::of("unreplayable").await;
        let session = api.session(&json!({})).await;
        let put = api.request(Method::PUT, &format!("{session}/files/workspace/a.txt"));
        let put = put.body("from outside").send().await.unwrap();
        assert!(put.status().is_success(), "{}", put.status());
        api.run(&session, "print(open('/workspace/a.txt').read())").await;
        let report = replay(&api, &session).await;
        assert_eq!(report["result"], "impossible", "{report}");
        let reason = report["reasons"][0].as_str().unwrap();
        assert_eq!(
            reason,
            "it could use files that were written or removed between cells"
        );
        api.end(&session).await;
    });
}

#[test]
fn runs_are_listed_in_pages() {
    block_on(async {
        let api = Api::of("many runs").await;
        let session = api.session(&json!({})).await;
        for code in ["1", "2", "3"] {
            api.run(&session, code).await;
        }
        let (_, page) = api.get("/v1/runs?limit=2").await;
        let codes = |page: &Value| -> Vec<String> {
            let runs = page["data"].as_array().unwrap();
            runs.iter().map(|run| of(run, "code").to_owned()).collect()
        };
        assert_eq!(codes(&page), ["3", "2"]);
        assert_eq!(page["has_more"], true);
        let last = page["last_id"].as_str().unwrap();
        let (_, page) = api.get(&format!("/v1/runs?limit=2&after={last}")).await;
        assert_eq!(codes(&page), ["1"]);
        assert_eq!(page["has_more"], false);
        let (_, none) = api.get("/v1/runs?session=unknown").await;
        assert_eq!(none["data"], json!([]));
        let (status, error) = api.get("/v1/runs?after=run_0").await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{error}");
        api.end(&session).await;
    });
}

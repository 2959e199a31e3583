//! Maximum timeouts of code, as the gateway is set up.

use std::time::Duration;

use cellblock_gateway::Options;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Api, block_on, served};

/// A gateway that lets code run for so long.
async fn of(longest: Duration) -> Api {
    let options = Options {
        max_cell_timeout: longest,
        ..Options::default()
    };
    served(options).await
}

async fn refused(api: &Api, path: &str, body: Value, param: &str) -> String {
    let (status, refused) = api.post(path, &body).await;
    assert_eq!(
        (status, &refused["error"]["param"]),
        (StatusCode::BAD_REQUEST, &json!(param)),
        "{refused}"
    );
    refused["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn what_runs_code_has_as_long_as_the_gateway_allows_and_no_longer() {
    block_on(async {
        let api = of(Duration::from_mins(10)).await;
        let session = api.session(&json!({"limits": {"cell_time": 600}})).await;
        let limits = json!({"limits": {"cell_time": 601}});
        assert_eq!(
            refused(&api, "/v1/sessions", limits, "limits.cell_time").await,
            "it is 601, and this gateway allows 600 at most"
        );
        for (path, param) in [("cells", "timeout"), ("tools/run_python", "timeout")] {
            let path = format!("{session}/{path}");
            let (status, ran) = api.post(&path, &json!({"code": "1", "timeout": 600})).await;
            assert_eq!((status, &ran["outcome"]), (StatusCode::OK, &json!("completed")));
            let too_long = json!({"code": "1", "timeout": 601});
            assert_eq!(
                refused(&api, &path, too_long, param).await,
                "it is 601; give more than 0 and at most 600 seconds"
            );
        }
        api.end(&session).await;
    });
}

#[test]
fn commands_have_as_long_as_the_gateway_allows_and_no_longer() {
    block_on(async {
        for (longest, usual) in [(600.0, 60.0), (20.0, 20.0)] {
            let api = of(Duration::from_secs_f64(longest)).await;
            let session = api.session(&json!({"toolset": "workbench"})).await;
            let (_, tools) = api.get(&format!("{session}/tools")).await;
            let timeout = &tools["data"][0]["parameters"]["properties"]["timeout"];
            assert_eq!(
                (&timeout["maximum"], &timeout["default"]),
                (&json!(longest), &json!(usual))
            );
            let path = format!("{session}/tools/sandbox_exec");
            for timeout in [json!(longest), json!(null)] {
                let (_, ran) = api
                    .post(&path, &json!({"command": ["true"], "timeout": timeout}))
                    .await;
                assert_eq!(ran["exit_code"], 0, "{ran}");
            }
            let too_long = json!({"command": ["true"], "timeout": longest + 1.0});
            let (_, refused) = api.post(&path, &too_long).await;
            assert_eq!(
                (&refused["success"], &refused["error"]),
                (&json!(false), &json!(format!("Timeout max is {longest} seconds")))
            );
            api.end(&session).await;
        }
    });
}

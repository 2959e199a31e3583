//! Tools by their names, of every toolset.

use cellblock_gateway::Options;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::greeter;
use crate::support::{Api, block_on, served};

async fn names(api: &Api, session: &str) -> Vec<String> {
    let (_, tools) = api.get(&format!("{session}/tools")).await;
    let tools = tools["data"].as_array().unwrap().clone();
    let name = |tool: &Value| {
        assert_eq!(tool["parameters"]["type"], "object");
        tool["name"].as_str().unwrap().to_owned()
    };
    tools.iter().map(name).collect()
}

#[test]
fn an_interpreter_runs_python_under_both_names() {
    block_on(async {
        let api = Api::of("python").await;
        let session = api.session(&json!({})).await;
        assert_eq!(names(&api, &session).await, ["run_python"]);
        let (status, cell) = api
            .post(
                &format!("{session}/tools/run_python"),
                &json!({"code": "x = 2\nx"}),
            )
            .await;
        assert_eq!(
            (status, &cell["outputs"][0]["value"]),
            (StatusCode::OK, &json!(2))
        );
        let (_, cell) = api
            .post(
                &format!("{session}/tools/code_interpreter"),
                &json!({"code": "x + 1"}),
            )
            .await;
        assert_eq!(
            (&cell["cell"], &cell["outputs"][0]["value"]),
            (&json!(2), &json!(3))
        );
        let (status, unknown) = api
            .post(
                &format!("{session}/tools/sandbox_exec"),
                &json!({"command": ["ls"]}),
            )
            .await;
        assert_eq!(
            (status, &unknown["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!("tool_not_found"))
        );
        api.end(&session).await;
    });
}

#[test]
fn a_workbench_writes_edits_and_runs() {
    block_on(async {
        let api = Api::of("workbench").await;
        let session = api.session(&json!({"toolset": "workbench"})).await;
        assert_eq!(
            names(&api, &session).await,
            [
                "sandbox_exec",
                "sandbox_write_file",
                "sandbox_edit_file",
                "sandbox_apply_patch"
            ]
        );
        let call = async |tool: &str, arguments: Value| {
            let (status, answer) = api.post(&format!("{session}/tools/{tool}"), &arguments).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
            answer
        };
        let script = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\n\
                      plt.savefig('/tmp/output/p.png')\nprint('one')";
        let written = call(
            "sandbox_write_file",
            json!({"file_path": "/workspace/s.py", "content": script}),
        )
        .await;
        assert_eq!(written["success"], true);
        let edited = json!({"file_path": "/workspace/s.py", "old_string": "'one'", "new_string": "'two'"});
        assert_eq!(call("sandbox_edit_file", edited.clone()).await["success"], true);
        assert_eq!(call("sandbox_edit_file", edited).await["success"], false);
        let ran = call("sandbox_exec", json!({"command": ["python", "/workspace/s.py"]})).await;
        assert_eq!(
            (&ran["exit_code"], &ran["stdout"]),
            (&json!(0), &json!("two\n")),
            "{ran}"
        );
        assert_eq!(ran["output_files"], json!(["p.png"]));
        let picture = api.raw(&format!("{session}/files/tmp/output/p.png")).await;
        assert_eq!(picture.headers()["content-type"], "image/png");
        assert_eq!(
            api.run(&session, "open('s.py').read()[-5:]").await["outputs"][0]["value"],
            "two')"
        );
        api.end(&session).await;
    });
}

#[test]
fn a_derivation_derives_from_recorded_results_and_keeps_its_contract() {
    block_on(async {
        let api = Api::of("derivation").await;
        let session = api.session(&json!({"toolset": "derivation"})).await;
        assert_eq!(names(&api, &session).await, ["code_interpreter", "render_chart"]);
        let result = json!({"tool": "get_price_history", "value": {"rows": [{"p": 1.5}, {"p": 2.5}]}});
        let (status, recorded) = api.post(&format!("{session}/aliases"), &result).await;
        assert_eq!(
            (status, &recorded["alias"]),
            (StatusCode::CREATED, &json!("get_price_history_1")),
            "{recorded}"
        );
        let (_, listed) = api.get(&format!("{session}/aliases")).await;
        assert_eq!(listed["data"], json!([recorded]));

        let mut call = json!({
            "code": "set_result(sum(row['p'] for row in get_price_history_1['rows']))",
            "postProcessingContract": {
                "operation": "sum", "reason": "adding", "inputAliases": ["get_price_history_1"],
                "expectedArtifacts": [],
            },
        });
        let (status, derived) = api
            .post(&format!("{session}/tools/code_interpreter"), &call)
            .await;
        assert_eq!(
            (status, &derived["ok"], &derived["result"]),
            (StatusCode::OK, &json!(true), &json!(4.0)),
            "{derived}"
        );
        assert_eq!(derived["execution"]["outcome"], "completed");
        let chart = json!({"alias": "get_price_history_1", "spec": {"type": "histogram", "xKey": "p"}});
        let (_, drawn) = api.post(&format!("{session}/tools/render_chart"), &chart).await;
        let artifact = &drawn["artifacts"][0];
        assert_eq!(artifact["picture"]["mediaType"], "image/png", "{drawn}");
        for sha256 in [&artifact["sha256"], &artifact["picture"]["sha256"]] {
            let path = format!("/v1/artifacts/{}", sha256.as_str().unwrap());
            assert_eq!(api.raw(&path).await.status(), StatusCode::OK);
        }
        let document = format!("/v1/artifacts/{}", artifact["sha256"].as_str().unwrap());
        for (format, media_type, begin) in [
            ("png", "image/png", &b"\x89PNG"[..]),
            ("svg", "image/svg+xml", b"<svg"),
            ("html", "text/html; charset=utf-8", b"<!DOCTYPE html>"),
            ("vega-lite", "application/vnd.vegalite+json", b"{"),
        ] {
            let converted = api.raw(&format!("{document}?format={format}")).await;
            assert_eq!(converted.headers()["content-type"], media_type);
            let active = ["svg", "html"].contains(&format);
            assert_eq!(converted.headers().contains_key("content-disposition"), active);
            assert!(converted.bytes().await.unwrap().starts_with(begin), "{format}");
        }
        let (status, refused) = api.get(&format!("{document}?format=gif")).await;
        assert_eq!(
            (status, &refused["error"]["param"]),
            (StatusCode::BAD_REQUEST, &json!("format"))
        );

        call["postProcessingContract"]["inputAliases"] = json!(["nothing_1"]);
        let (status, refused) = api
            .post(&format!("{session}/tools/code_interpreter"), &call)
            .await;
        assert_eq!(
            (status, &refused["outcome"]),
            (StatusCode::OK, &json!("rejected"))
        );
        assert_eq!(refused["rejections"][0]["code"], "unknown_alias");
        let (status, refused) = api.post(&format!("{session}/cells"), &json!({"code": "1"})).await;
        assert_eq!(
            (status, &refused["error"]["code"]),
            (StatusCode::BAD_REQUEST, &json!("wrong_toolset"))
        );
        api.end(&session).await;
    });
}

#[test]
fn an_added_toolset_has_sessions_whose_tools_are_listed_and_called() {
    block_on(async {
        let mut options = Options::default();
        options.sessions.toolsets.push(greeter::KIND);
        let api = served(options).await;
        let session = api.session(&json!({"toolset": "greeter"})).await;
        assert_eq!(names(&api, &session).await, ["greet"]);
        let (status, greeted) = api
            .post(&format!("{session}/tools/greet"), &json!({"name": "Ada"}))
            .await;
        assert_eq!(
            (status, &greeted),
            (StatusCode::OK, &json!({"greeting": "Hello Ada"}))
        );
        let (status, refused) = api.post("/v1/sessions", &json!({"toolset": "grater"})).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let told = refused["error"]["message"].as_str().unwrap();
        assert!(
            told.ends_with("there are interpreter, workbench, derivation, notebook, greeter"),
            "{told}"
        );
        api.end(&session).await;
    });
}

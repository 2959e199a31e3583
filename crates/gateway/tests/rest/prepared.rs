//! Sessions with setup code and a guard, and cells that are only checked.

use cellblock_gateway::Options;
use cellblock_interpreter::cell::Guard;
use cellblock_interpreter::session::SetupSnippet;
use reqwest::StatusCode;
use serde_json::json;

use crate::support::{Api, block_on, served};

#[test]
fn setup_code_of_a_request_runs_before_the_first_cell_and_after_a_reset() {
    block_on(async {
        let api = Api::of("setup").await;
        let session = api
            .session(&json!({"setup": "RATE = 2\ndef tax(x): return x * RATE\nmissing"}))
            .await;
        let cell = api.run(&session, "tax(2)").await;
        assert_eq!(cell["outputs"][0]["value"], 4, "{cell}");
        assert_eq!(
            cell["note"],
            "the setup code `<setup>` failed in line 3: NameError: name 'missing' is not defined; the \
             session continues without what it did not bind"
        );
        let (_, listed) = api.get(&format!("{session}/variables")).await;
        assert_eq!(listed["data"], json!([]), "{listed}");
        let (status, _) = api.post(&format!("{session}/reset"), &json!({})).await;
        assert!(status.is_success());
        assert_eq!(api.run(&session, "tax(3)").await["outputs"][0]["value"], 6);
        api.end(&session).await;
    });
}

#[test]
fn a_dry_run_is_answered_like_a_cell_and_is_not_stored() {
    block_on(async {
        let api = Api::of("dry run").await;
        let session = api
            .session(&json!({"toolset": "notebook", "guard": "strict"}))
            .await;
        for (code, outcome) in [
            ("x = 1", "completed"),
            ("eval('1')", "rejected"),
            ("x = (", "raised"),
        ] {
            let body = json!({"code": code, "dry_run": true});
            let (status, checked) = api.post(&format!("{session}/cells"), &body).await;
            assert_eq!(
                (status, &checked["outcome"]),
                (StatusCode::OK, &json!(outcome)),
                "{checked}"
            );
            assert_eq!(checked["cell"], 0);
        }
        let unknown = json!({"code": "weather.nothing()", "dry_run": true});
        let (_, checked) = api.post(&format!("{session}/cells"), &unknown).await;
        assert_eq!(
            checked["rejections"][0]["message"],
            "the connector weather has no function 'nothing'; it has get_forecast",
            "{checked}"
        );
        let cell = api.run(&session, "'x' in globals()").await;
        assert_eq!(
            (&cell["cell"], &cell["outputs"][0]["value"]),
            (&json!(1), &json!(false))
        );
        let (_, cells) = api.get(&format!("{session}/cells")).await;
        assert_eq!(cells["data"].as_array().map(Vec::len), Some(1), "{cells}");
        api.end(&session).await;
    });
}

#[test]
fn a_cell_of_another_language_keeps_its_state_and_an_unknown_one_is_rejected() {
    block_on(async {
        let api = Api::of("languages").await;
        let session = api.session(&json!({})).await;
        for (language, code, stdout) in [
            ("bash", "x=1", ""),
            ("bash", "echo $((x + 1))", "2\n"),
            ("javascript", "const y = 3; console.log(y)", "3\n"),
        ] {
            let body = json!({"code": code, "language": language});
            let (status, cell) = api.post(&format!("{session}/cells"), &body).await;
            assert_eq!(
                (status, &cell["stdout"]),
                (StatusCode::OK, &json!(stdout)),
                "{cell}"
            );
        }
        let unknown = json!({"code": "1", "language": "ruby"});
        let (status, refused) = api.post(&format!("{session}/cells"), &unknown).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(refused.to_string().contains("javascript"), "{refused}");
        api.end(&session).await;
    });
}

#[test]
fn printing_a_table_in_a_notebook_shows_it() {
    block_on(async {
        let api = Api::of("printing").await;
        let session = api.session(&json!({"toolset": "notebook"})).await;
        let cell = api.run(&session, "print(pd.DataFrame({'a': [1]}))").await;
        assert_eq!(cell["outputs"][0]["type"], "dataframe", "{cell}");
        api.end(&session).await;
    });
}

#[test]
fn an_operator_sets_the_least_guard_and_setup_code() {
    block_on(async {
        let mut options = Options::default();
        options.cells.guard = Guard::Standard;
        options.cells.snippets = vec![SetupSnippet {
            name: "setup.py".to_owned(),
            code: "import os\ndef home(): return os.environ['HOME']".to_owned(),
            guarded: false,
        }];
        let api = served(options).await;
        let session = api.session(&json!({"setup": "import os\nos.environ"})).await;
        let cell = api.run(&session, "home()").await;
        assert_eq!(cell["outputs"][0]["value"], "/workspace", "{cell}");
        assert!(
            cell["note"]
                .as_str()
                .unwrap()
                .contains("`<setup>` failed in line 2: the guard rejected it"),
            "{cell}"
        );
        let cell = api.run(&session, "import os; os.environ").await;
        assert_eq!(cell["outcome"], "rejected", "{cell}");
        api.end(&session).await;
        let (status, refused) = api.post("/v1/sessions", &json!({"guard": "off"})).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(
            refused.to_string().contains("requires at least \\\"standard\\\""),
            "{refused}"
        );
        let strict = api.session(&json!({"guard": "strict"})).await;
        assert_eq!(api.run(&strict, "eval('1')").await["outcome"], "rejected");
        api.end(&strict).await;
    });
}

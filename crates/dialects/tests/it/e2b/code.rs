//! The code interpreter.

use reqwest::Method;
use serde_json::{Value, json};

use super::{E2bFixture, refused};
use crate::support::{RequestExt, block_on};

fn types(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|it| it["type"].as_str().unwrap()).collect()
}

#[test]
fn a_cell_is_answered_with_lines_in_e2bs_order() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 60, "secure": true})).await;
        let code = "import sys\nprint('é')\nprint('e', file=sys.stderr)\ndisplay(1.5)\n'a\\nb'";
        let lines = world.run(&sandbox, json!({"code": code})).await;
        let mut seen = types(&lines);
        assert_eq!(seen.remove(0), "number_of_executions");
        assert_eq!(seen.pop(), Some("end_of_execution"));
        assert_eq!(lines[0]["execution_count"], 1);
        seen.sort_unstable();
        assert_eq!(seen, ["result", "result", "stderr", "stdout"]);
        let stdout = lines.iter().find(|it| it["type"] == "stdout").unwrap();
        assert_eq!(stdout["text"], "é\n");
        assert!(stdout["timestamp"].as_str().unwrap().ends_with('Z'), "{stdout}");
        let results: Vec<_> = lines.iter().filter(|it| it["type"] == "result").collect();
        assert_eq!(
            (&results[0]["text"], &results[0]["is_main_result"]),
            (&json!("1.5"), &json!(false))
        );
        assert_eq!(
            (&results[1]["text"], &results[1]["is_main_result"]),
            (&json!("a\\nb"), &json!(true))
        );

        let lines = world.run(&sandbox, json!({"code": "1 / 0"})).await;
        assert_eq!(
            types(&lines),
            ["number_of_executions", "error", "end_of_execution"]
        );
        assert_eq!(lines[0]["execution_count"], 2);
        assert_eq!(
            (&lines[1]["name"], &lines[1]["value"]),
            (&json!("ZeroDivisionError"), &json!("division by zero"))
        );
        assert!(lines[1]["traceback"].as_str().unwrap().contains("1 / 0"));
    });
}

#[test]
fn values_have_the_mime_types_of_e2b() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let result = async |code: &str| {
            let lines = world.run(&sandbox, json!({"code": code})).await;
            let found = lines.iter().find(|it| it["type"] == "result").cloned();
            found.unwrap_or_else(|| panic!("{lines:#?}"))
        };
        let code = "import pandas as pd\n\
                    pd.DataFrame({'a': [1, None], 't': pd.to_datetime(['2024-01-01', '2024-01-02'])})";
        let table = result(code).await;
        assert_eq!(
            table["data"],
            json!({"a": [1.0, null], "t": ["2024-01-01T00:00:00", "2024-01-02T00:00:00"]})
        );
        assert!(table["html"].as_str().unwrap().contains("<table"), "{table}");
        assert!(table["text"].as_str().unwrap().contains("2024-01-01"), "{table}");
        assert_eq!(result("[1, {'a': None}]").await["json"], json!([1, {"a": null}]));
        let latex = result("display({'text/latex': 'x'}, raw=True)").await;
        assert_eq!(
            (&latex["latex"], latex.get("text"), &latex["extra"]),
            (&json!("x"), None, &json!({}))
        );
        let other = result("display({'text/plain': 'p', 'application/x': {'a': 1}}, raw=True)").await;
        assert_eq!(
            (&other["text"], &other["extra"]),
            (&json!("p"), &json!({"application/x": {"a": 1}}))
        );
        let code = "import matplotlib.pyplot as plt\nplt.bar(['a', 'b'], [1, 2], label='g')\n\
                    plt.xlabel('x (s)')\nplt.title('T')\nplt.show()";
        let chart = result(code).await;
        assert!(chart["png"].as_str().unwrap().starts_with("iVBOR"), "{chart}");
        assert_eq!(chart["text"], "<Figure size 640x480 with 1 Axes>");
        let expected = json!({
            "type": "bar", "title": "T", "x_label": "x (s)", "y_label": null, "x_unit": "s", "y_unit": null,
            "elements": [{"label": "a", "group": "g", "value": 1.0},
                {"label": "b", "group": "g", "value": 2.0}],
        });
        assert_eq!(sorted(&chart["chart"]), sorted(&expected));
        let code = "fig, ax = plt.subplots()\nax.pie([90, 10], labels=['n', 'y'])\nfig";
        let pie = result(code).await;
        assert_eq!(
            pie["chart"]["elements"][0],
            json!({"label": "n", "angle": 324.0, "radius": 1.0})
        );
        assert_eq!(pie["is_main_result"], true);
    });
}

/// The same with keys in order.
fn sorted(value: &Value) -> String {
    let map: std::collections::BTreeMap<_, _> = value.as_object().unwrap().iter().collect();
    format!("{map:?}")
}

#[test]
fn contexts_do_not_see_each_others_variables_and_can_be_restarted() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let create = async |body: Value| {
            let made = world
                .inside(&sandbox, Method::POST, "/contexts")
                .json(&body)
                .sent()
                .await;
            let made: Value = made.json().await.unwrap();
            made["id"].as_str().unwrap().to_owned()
        };
        let run = async |code: &str, context: &str| {
            world
                .run(&sandbox, json!({"code": code, "context_id": context}))
                .await
        };
        world
            .run(&sandbox, json!({"code": "x = 1\ndef f(): return x"}))
            .await;
        let one = create(json!({"cwd": "/tmp"})).await;
        let lines = run("x", &one).await;
        assert_eq!(lines[1]["value"], "name 'x' is not defined");
        run("x = 2", &one).await;
        assert_eq!(world.value(&sandbox, json!({"code": "f()"})).await, "1");
        let value = world
            .value(
                &sandbox,
                json!({"code": "import os; (x, os.getcwd())", "context_id": one}),
            )
            .await;
        assert_eq!(value, "(2, '/tmp')");
        assert_eq!(
            world
                .value(&sandbox, json!({"code": "import os; os.getcwd()"}))
                .await,
            "/home/user"
        );

        let (first, second) = (
            create(json!({"language": "js"})).await,
            create(json!({"language": "bash"})).await,
        );
        run("let y = 5", &first).await;
        assert_eq!(run("y", &first).await[1]["text"], "5");
        assert_eq!(
            world
                .run(&sandbox, json!({"code": "typeof y", "language": "js"}))
                .await[1]["text"],
            "undefined"
        );
        run("z=7", &second).await;
        assert_eq!(run("echo $z $(pwd)", &second).await[1]["text"], "7 /home/user\n");

        for id in [&one, &first] {
            let path = format!("/contexts/{id}/restart");
            let restarted = world.inside(&sandbox, Method::POST, &path).sent().await;
            assert_eq!(restarted.status(), 200);
        }
        assert_eq!(run("x", &one).await[1]["name"], "NameError");
        assert_eq!(run("typeof y", &first).await[1]["text"], "undefined");
        let removed = world
            .inside(&sandbox, Method::DELETE, &format!("/contexts/{one}"))
            .sent()
            .await;
        assert_eq!(removed.status(), 200);
        let body = json!({"code": "1", "context_id": one});
        let gone = world
            .inside(&sandbox, Method::POST, "/execute")
            .json(&body)
            .sent()
            .await;
        assert_eq!(refused(gone, 404).await, format!("Context {one} not found"));
        let listed: Vec<Value> = world.inside(&sandbox, Method::GET, "/contexts").read().await;
        let languages: Vec<_> = listed.iter().map(|it| it["language"].as_str().unwrap()).collect();
        assert_eq!(languages, ["python", "javascript", "javascript", "bash"]);
    });
}

#[test]
fn a_restart_ends_the_cell_that_runs() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let contexts: Vec<Value> = world.inside(&sandbox, Method::GET, "/contexts").read().await;
        let path = format!("/contexts/{}/restart", contexts[0]["id"].as_str().unwrap());
        let running = world.run(
            &sandbox,
            json!({"code": "print('on', flush=True)\nwhile True: pass"}),
        );
        let restart = async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            world.inside(&sandbox, Method::POST, &path).sent().await
        };
        let (lines, restarted) = tokio::join!(running, restart);
        assert_eq!(restarted.status(), 200);
        let error = lines.iter().find(|it| it["type"] == "error").unwrap();
        assert_eq!(error["name"], "ContextRestarting");
        assert_eq!(world.value(&sandbox, json!({"code": "1 + 1"})).await, "2");
    });
}

#[test]
fn environment_variables_are_those_of_the_sandbox_or_of_one_run() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world
            .create(json!({"timeout": 120, "envVars": {"A": "it's a"}}))
            .await;
        for (language, code) in [
            (
                "python",
                "import os; os.environ.get('A', '-') + os.environ.get('B', '-')",
            ),
            ("js", "(process.env.A ?? '-') + (process.env.B ?? '-')"),
        ] {
            let value = async |envs: Value| {
                world
                    .value(
                        &sandbox,
                        json!({"code": code, "language": language, "env_vars": envs}),
                    )
                    .await
            };
            assert_eq!(value(json!({})).await, "it's a-", "{language}");
            assert_eq!(value(json!({"A": "1", "B": "2\n"})).await, "12\\n", "{language}");
            assert_eq!(value(json!({})).await, "it's a-", "{language}");
        }
        let bash = async |envs: Value| {
            let body = json!({"code": "echo \"$A${B--}\"", "language": "bash", "env_vars": envs});
            world.run(&sandbox, body).await[1]["text"].clone()
        };
        assert_eq!(bash(json!({"A": "1", "B": "2"})).await, "12\n");
        assert_eq!(bash(json!({})).await, "it's a-\n");
        let body = json!({"code": "1", "language": "bash", "env_vars": {"a-b": ""}});
        let wrong = world
            .inside(&sandbox, Method::POST, "/execute")
            .json(&body)
            .sent()
            .await;
        assert!(refused(wrong, 400).await.contains("\"a-b\""));
    });
}

#[test]
fn a_client_that_goes_away_interrupts_its_cell() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let body = json!({"code": "x = 1\nprint('bound', flush=True)\nwhile True: pass"});
        let request = world.inside(&sandbox, Method::POST, "/execute").json(&body);
        let mut response = request.sent().await;
        let mut said = Vec::new();
        while !String::from_utf8_lossy(&said).contains("bound") {
            said.extend(response.chunk().await.unwrap().unwrap());
        }
        drop(response);
        assert_eq!(world.value(&sandbox, json!({"code": "x"})).await, "1");
    });
}

#[test]
fn the_answer_of_a_sandbox_that_is_killed_breaks_off() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let request = world
            .inside(&sandbox, Method::POST, "/execute")
            .json(&json!({"code": "while True: pass"}));
        let mut response = request.sent().await;
        response.chunk().await.unwrap();
        let killed = world
            .api(Method::DELETE, &format!("/sandboxes/{}", sandbox.id))
            .sent()
            .await;
        assert_eq!(killed.status(), 204);
        response.text().await.unwrap_err();
    });
}

#[test]
fn a_secured_sandbox_runs_code_for_its_token_only() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world
            .create(json!({"timeout": 60, "secure": true, "network": {"allowPublicTraffic": false}}))
            .await;
        let request = |access: Option<&str>| {
            let request = world
                .http
                .post(world.url("/execute"))
                .header("e2b-sandbox-id", &sandbox.id);
            let request = access.iter().fold(request, |request, access| {
                request.header("x-access-token", *access)
            });
            request.json(&json!({"code": "1"}))
        };
        refused(request(None).sent().await, 401).await;
        refused(request(Some("x")).sent().await, 401).await;
        // It has no public traffic, either.
        refused(request(sandbox.access.as_deref()).sent().await, 403).await;
        let none = world.http.post(world.url("/execute")).json(&json!({"code": "1"}));
        refused(none.sent().await, 400).await;
        let unknown = world
            .http
            .post(world.url("/execute"))
            .header("e2b-sandbox-id", "i00")
            .json(&json!({"code": "1"}));
        refused(unknown.sent().await, 502).await;
    });
}

#[test]
fn wrong_requests_say_what_is_wrong() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 60})).await;
        for (body, expected) in [
            (
                json!({"code": "1", "language": "java"}),
                "language `java` is not available",
            ),
            (
                json!({"code": "1", "language": "python", "context_id": "x"}),
                "Only one of context_id or language",
            ),
            (json!({}), "missing field `code`"),
        ] {
            let wrong = world
                .inside(&sandbox, Method::POST, "/execute")
                .json(&body)
                .sent()
                .await;
            let message = refused(wrong, 400).await;
            assert!(message.contains(expected), "{message}");
        }
    });
}

//! `run_python`: what a model and a program get of a cell.

use cellblock_mcp::ImageDisplay;
use cellblock_testkit::Schema;
use rmcp::model::ContentBlock;
use serde_json::json;

use crate::support::{
    Client, all, answer, block_on, connect, done, newest, ordinary, read, refused, revisions, run, server,
    text,
};

#[test]
fn variables_stay_in_a_session_in_both_revisions() {
    block_on(async {
        let server = server(|_| {}).await;
        for revision in revisions() {
            let client = connect(&server, Client::default(), revision).await;
            let first = run(&client, None, "radius = 3\nprint('made')").await;
            assert_eq!(first["stdout"], "made\n");
            assert_eq!(first["cell"], 1);
            let session = first["session_id"].as_str().unwrap();
            let second = run(&client, Some(session), "radius ** 2").await;
            assert_eq!(second["outputs"][0]["value"], 9);
            assert_eq!(second["session_id"], session);
            assert_eq!(second["outcome"], "completed");
        }
    });
}

#[test]
fn other_languages_keep_their_state_beside_python() {
    block_on(async {
        let client = ordinary().await;
        let first = run(&client, None, "x = 'of Python'").await;
        let session = &first["session_id"];
        for (code, stdout) in [("x=1; cd /tmp", ""), ("echo $((x + 1)) $PWD", "2 /tmp\n")] {
            let call = json!({"code": code, "language": "bash", "session_id": session});
            let ran = done(&client, "run_python", call).await;
            assert_eq!(ran["stdout"], stdout);
        }
        let ran = run(&client, session.as_str(), "x").await;
        assert_eq!(ran["outputs"][0]["value"], "of Python");
        let call = json!({"code": "1", "language": "cobol"});
        assert!(refused(&client, "run_python", call).await.contains("cobol"));
    });
}

#[test]
fn structured_content_is_what_the_output_schema_says() {
    block_on(async {
        let client = ordinary().await;
        let tools = client.list_tools(None).await.unwrap().tools;
        let tool = tools.iter().find(|tool| tool.name == "run_python").unwrap();
        let schema = serde_json::to_value(tool.output_schema.clone().unwrap()).unwrap();
        let schema = Schema::new(&schema).unwrap();
        for code in [
            "import pandas as pd; pd.DataFrame({'a': [1, 2]})",
            "import matplotlib.pyplot as plt; plt.plot([1, 2]); None",
            "1/0",
            "open('a.txt', 'w').write('x')",
            "import os; os._exit(3)",
            "def",
        ] {
            let result = answer(&client, "run_python", json!({"code": code})).await;
            let structured = result.structured_content.unwrap();
            let checked = schema.check(&structured);
            assert!(checked.is_ok(), "{code}: {checked:?}\n{structured:#}");
        }
    });
}

#[test]
fn an_exception_is_an_ordinary_answer_with_its_line_and_what_to_try() {
    block_on(async {
        let client = ordinary().await;
        let result = answer(
            &client,
            "run_python",
            json!({"code": "kept = 1\nprint('before')\ntotal + 1"}),
        )
        .await;
        // Some clients hide the text of an error from the model, which then cannot repair its code.
        assert_eq!(result.is_error, Some(false));
        let structured = result.structured_content.clone().unwrap();
        assert_eq!(structured["outcome"], "raised");
        assert_eq!(structured["error"]["line"], 3);
        assert_eq!(structured["error"]["exception"], "NameError");
        let told = text(&result);
        assert!(
            told.starts_with("NameError: name 'total' is not defined\nbefore\n"),
            "{told}"
        );
        for part in [
            "Traceback",
            "[raised in line 3 of the code]",
            "[what to try] define it first",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let session = structured["session_id"].as_str().unwrap();
        assert_eq!(
            run(&client, Some(session), "kept").await["outputs"][0]["value"],
            1
        );
    });
}

const TABLE_CHART_AND_FILE: &str = "import pandas as pd, matplotlib.pyplot as plt\n\
                                    sales = pd.DataFrame({'x': range(3)})\ndisplay(sales)\nsales.plot()\n\
                                    open('out.csv', 'w').write('x')\nNone";

#[test]
fn an_answer_is_one_text_that_names_everything_the_data_names() {
    block_on(async {
        let client = ordinary().await;
        for code in [TABLE_CHART_AND_FILE, "pass", "1 / 0", "import os; os._exit(3)"] {
            let result = answer(&client, "run_python", json!({"code": code})).await;
            assert_eq!(result.content.len(), 1, "{result:#?}");
            let told = text(&result);
            let ran = result.structured_content.unwrap();
            let outputs = ran["outputs"].as_array().unwrap().iter();
            let resources = outputs.flat_map(|shown| shown["resources"].as_array().unwrap());
            for link in resources.chain(ran["files"].as_array().unwrap()) {
                for part in ["name", "uri", "media_type"] {
                    assert!(told.contains(link[part].as_str().unwrap()), "{link}: {told}");
                }
            }
            let handle = format!("\n[session_id] {}", ran["session_id"].as_str().unwrap());
            assert!(told.ends_with(&handle), "{told}");
            let outcome = format!("[cell 1] {} in ", ran["outcome"].as_str().unwrap());
            assert!(told.contains(&outcome), "{told}");
            if let Some(message) = ran["error"]["message"].as_str() {
                assert!(told.lines().next().unwrap().ends_with(message), "{told}");
            }
        }
    });
}

#[test]
fn what_is_displayed_can_be_read_as_a_resource() {
    block_on(async {
        let client = ordinary().await;
        let ran = run(&client, None, TABLE_CHART_AND_FILE).await;
        let table = &ran["outputs"][0]["resources"][0];
        assert_eq!(table["name"], "dataframe.parquet");
        let uri = table["uri"].as_str().unwrap();
        let (bytes, media_type) = read(&client, uri).await;
        assert_eq!(media_type, "application/vnd.apache.parquet");
        // `PAR1` in base64.
        assert!(bytes.starts_with("UEFSM"), "{bytes}");
        let listed = client.list_resources(None).await.unwrap().resources;
        assert!(listed.iter().any(|resource| resource.uri == uri), "{listed:?}");
    });
}

#[test]
fn images_are_for_clients_that_show_them_and_links_for_those_that_ask() {
    block_on(async {
        for (images, name, shown) in [
            (ImageDisplay::Auto, "claude-code", true),
            (ImageDisplay::Auto, "mcp", false),
            (ImageDisplay::Always, "mcp", true),
            (ImageDisplay::Never, "claude-code", false),
        ] {
            let server = server(|options| {
                options.images = images;
                options.links = shown;
            });
            let server = server.await;
            for revision in revisions() {
                let client = Client {
                    name: Some(name),
                    ..Client::default()
                };
                let client = connect(&server, client, revision).await;
                let result = answer(&client, "run_python", json!({"code": TABLE_CHART_AND_FILE})).await;
                assert!(result.content[0].as_text().is_some(), "{images:?} {name}");
                let pictures: Vec<_> = result.content.iter().filter_map(ContentBlock::as_image).collect();
                assert_eq!(pictures.len(), usize::from(shown), "{images:?} {name}");
                assert!(
                    pictures.iter().all(|it| it.data.starts_with("iVBORw0KGgo")),
                    "a PNG"
                );
                let links = result.content.iter().filter_map(ContentBlock::as_resource_link);
                assert_eq!(links.count() > 1, shown, "{images:?} {name}");
            }
        }
    });
}

#[test]
fn integers_that_javascript_rounds_are_exact_in_the_text_and_in_the_data() {
    block_on(async {
        let client = ordinary().await;
        let result = answer(&client, "run_python", json!({"code": "2 ** 53 + 1"})).await;
        assert!(text(&result).contains("9007199254740993"), "{}", text(&result));
        let ran = result.structured_content.unwrap();
        assert_eq!(ran["outputs"][0]["value"], "9007199254740993");
    });
}

#[test]
fn an_argument_that_is_null_or_its_default_was_left_out() {
    block_on(async {
        let client = ordinary().await;
        let all = json!({
            "code": "6 * 7", "session_id": null, "timeout_seconds": null, "requirements": null,
            "producer": null, "language": null,
        });
        let ran = done(&client, "run_python", all).await;
        let handle = ran["session_id"].as_str().unwrap();
        let tools = client.list_tools(None).await.unwrap().tools;
        let schema = json!(*tools[0].input_schema);
        let mut defaults = json!({"code": "6 * 7", "session_id": ""});
        for (name, property) in schema["properties"].as_object().unwrap() {
            if let Some(default) = property.get("default") {
                defaults[name] = default.clone();
            }
        }
        assert_eq!(defaults["timeout_seconds"], 60.0);
        assert_eq!(
            done(&client, "run_python", defaults).await["outputs"][0]["value"],
            42
        );
        let earlier = json!({"code": "'earlier'", "session": handle});
        assert_eq!(done(&client, "run_python", earlier).await["session_id"], handle);
        let two = json!({"code": "1", "session": handle, "session_id": "sess_other"});
        let told = refused(&client, "run_python", two).await;
        assert!(told.contains("unknown field `session`"), "{told}");
    });
}

#[test]
fn the_uri_of_a_file_has_what_the_file_was() {
    block_on(async {
        let client = ordinary().await;
        let made = run(&client, None, "open('out.csv', 'w').write('a\\n1\\n')").await;
        let uri = made["files"][0]["uri"].as_str().unwrap();
        assert_eq!(made["files"][0]["name"], "out.csv");
        let session = made["session_id"].as_str().unwrap();
        run(&client, Some(session), "open('out.csv', 'w').write('changed')").await;
        assert_eq!(read(&client, uri).await, ("a\n1\n".into(), "text/csv".into()));
        let now = format!("cellblock://sessions/{session}/files/workspace/out.csv");
        assert_eq!(read(&client, &now).await, ("changed".into(), "text/csv".into()));
    });
}

#[test]
fn text_keeps_to_the_token_budget() {
    block_on(async {
        let server = server(|options| options.max_tokens = 1000).await;
        let client = connect(&server, Client::default(), crate::support::newest()).await;
        let code = "import pandas as pd\nprint('x' * 10_000 + '\\n' + 'end of it')\nfor n in range(30): \
                    display('word ' * 1000)\npd.DataFrame({'a': range(10000), 'b': ['long ' * 20] * 10000})";
        let result = answer(&client, "run_python", json!({"code": code})).await;
        let told = text(&result);
        assert!(
            told.chars().count() <= 4400,
            "{} characters",
            told.chars().count()
        );
        assert!(told.contains("end of it"), "{told}");
        let structured = result.structured_content.unwrap().to_string();
        assert!(structured.len() <= 12_000, "{} bytes", structured.len());
    });
}

#[test]
fn wrong_calls_are_told_with_the_field() {
    block_on(async {
        let client = ordinary().await;
        for (arguments, told) in [
            (
                json!({}),
                "wrong arguments: missing field `code`; see the input schema of `run_python`",
            ),
            (
                json!({"code": 5}),
                "wrong arguments at `code`: invalid type: integer `5`, expected a string; see the input \
                 schema of `run_python`",
            ),
            (
                json!({"code": "1", "timeout_seconds": 1000}),
                "`timeout_seconds` is 1000: give more than 0 and at most 300",
            ),
            (
                json!({"code": "  "}),
                "`code` is empty: give the Python code to run",
            ),
        ] {
            assert_eq!(refused(&client, "run_python", arguments).await, told);
        }
        let told = refused(
            &client,
            "run_python",
            json!({"code": "1", "session_id": "sess_no"}),
        )
        .await;
        assert!(told.starts_with("there is no session \"sess_no\""), "{told}");
        let wrong = client
            .call_tool_once(crate::support::call("run_pyton", json!({})))
            .await;
        assert!(
            wrong.unwrap_err().to_string().contains("there are run_python, "),
            "names the tools"
        );
    });
}

#[test]
fn a_lost_kernel_and_a_deadline_are_told_as_what_they_are() {
    block_on(async {
        let client = ordinary().await;
        let result = answer(&client, "run_python", json!({"code": "import os; os._exit(3)"})).await;
        assert_eq!(result.is_error, Some(true));
        assert!(text(&result).starts_with("KernelLost: "), "{}", text(&result));
        assert_eq!(result.structured_content.unwrap()["outcome"], "kernel_lost");
        let endless = json!({"code": "while True: pass", "timeout_seconds": 1});
        let result = answer(&client, "run_python", endless).await;
        let structured = result.structured_content.clone().unwrap();
        assert_eq!(structured["outcome"], "interrupted");
        assert_eq!(structured["variables"], "kept");
        assert!(text(&result).contains("`timeout_seconds`"), "{}", text(&result));
    });
}

#[test]
fn the_time_that_a_call_may_ask_for_is_the_operators() {
    block_on(async {
        let server = server(|options| {
            all(options);
            options.max_cell_timeout = std::time::Duration::from_secs(7);
            options.cell_timeout = std::time::Duration::from_secs(5);
        })
        .await;
        let client = connect(&server, Client::default(), newest()).await;
        let listed = client.list_tools(None).await.unwrap().tools;
        let schema = |name: &str| {
            let tool = listed.iter().find(|tool| tool.name == name).unwrap();
            serde_json::to_value(&*tool.input_schema).unwrap()["properties"].clone()
        };
        let timeout = &schema("run_python")["timeout_seconds"];
        assert_eq!(timeout["maximum"], 7.0);
        assert_eq!(
            timeout["description"],
            "Seconds after which the code is interrupted: 5 by default, 7 at most."
        );
        let timeout = &schema("sandbox_exec")["timeout"];
        assert_eq!(
            (&timeout["maximum"], &timeout["default"]),
            (&7.0.into(), &7.0.into())
        );
        let told = refused(
            &client,
            "run_python",
            json!({"code": "1", "timeout_seconds": 7.5}),
        )
        .await;
        assert_eq!(told, "`timeout_seconds` is 7.5: give more than 0 and at most 7");
        let told = refused(
            &client,
            "sandbox_exec",
            json!({"command": ["true"], "timeout": 8}),
        )
        .await;
        assert!(told.contains("Timeout max is 7 seconds"), "{told}");
    });
}

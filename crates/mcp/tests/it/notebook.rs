//! Sessions whose code calls connectors.

use cellblock_interpreter::cell::Guard;
use cellblock_interpreter::mint;
use cellblock_interpreter::session::SetupSnippet;
use cellblock_interpreter::toolset::{notebook, python};
use rmcp::model::{GetPromptRequestParams, ReadResourceRequestParams};
use serde_json::{Value, json};

use crate::support::{
    Client, answer, block_on, connect, done, newest, ordinary, read, refused, server, session, text,
};
use crate::weather::Weather;

#[test]
fn code_calls_connectors_only_if_the_notebook_is_offered() {
    block_on(async {
        for (toolset, tool, ends) in [
            (notebook::KIND, "run_cell", "21"),
            (python::KIND, "run_python", "NameError"),
        ] {
            let server = server(|options| {
                options.toolsets = vec![toolset];
                options.connectors = vec![Weather::named("weather")];
            });
            let client = connect(&server.await, Client::default(), newest()).await;
            let session = session(&client).await;
            let code = "weather.get_forecast(city='Kyiv')[0]['high']";
            let ran = answer(&client, tool, json!({"session_id": session, "code": code})).await;
            assert!(text(&ran).contains(ends), "{ran:?}");
        }
    });
}

#[test]
fn a_client_learns_which_functions_code_can_call() {
    block_on(async {
        let server = server(|options| {
            options.toolsets = vec![notebook::KIND];
            options.connectors = vec![Weather::named("weather")];
        });
        let client = connect(&server.await, Client::default(), newest()).await;
        let tools = client.list_tools(None).await.unwrap().tools;
        let tool = &tools[0];
        assert_eq!(tool.name, "run_cell");
        let description = tool.description.as_deref().unwrap();
        assert!(description.contains("functions of the host"), "{description}");
        let hints = tool.annotations.as_ref().unwrap();
        assert_eq!(hints.open_world_hint, Some(true));
        let prompt = client.get_prompt_once(GetPromptRequestParams::new("notebook"));
        let prompt = format!("{:?}", prompt.await.unwrap());
        assert!(prompt.contains("weather.get_forecast(city: string)"), "{prompt}");
    });
}

#[test]
fn variables_are_listed_and_shown_with_their_origins_and_pages() {
    block_on(async {
        let client = ordinary().await;
        let session = session(&client).await;
        let arguments = json!({"session_id": session});
        assert_eq!(
            done(&client, "list_variables", arguments).await["variables"],
            json!([])
        );
        let code = "table = pd.DataFrame({'n': range(95)}); word = 'hello'; number = 1";
        let arguments = json!({"session_id": session, "code": code, "producer": "analysis.py"});
        let ran = done(&client, "run_python", arguments).await;
        assert_eq!(ran["origins"]["table"]["producer"], "analysis.py");
        let listed = done(&client, "list_variables", json!({"session_id": session})).await;
        assert_eq!(listed["variables"][0]["name"], "table");
        assert_eq!(listed["variables"][1]["type"], "str");

        let whole = done(
            &client,
            "show_variable",
            json!({"session_id": session, "name": "table"}),
        )
        .await;
        assert_eq!(whole["value"]["rows"], 95);
        assert_eq!(whole["origin"]["producer"], "analysis.py");
        let asked = |name: &str| json!({"session_id": session, "name": name});
        let origin = done(&client, "variable_origin", asked("table")).await;
        assert_eq!(origin, ran["origins"]["table"]);
        let scratch = json!({"session_id": session, "code": "scratch = 1"});
        done(&client, "run_python", scratch).await;
        let reason = refused(&client, "variable_origin", asked("scratch")).await;
        assert!(reason.contains("it is scratch work"), "{reason}");
        let reason = refused(&client, "variable_origin", asked("nothing")).await;
        assert!(reason.contains("`list_variables`"), "{reason}");
        let page = json!({"session_id": session, "name": "table", "rows": 20, "page": -1});
        let shown = answer(&client, "show_variable", page).await;
        assert!(text(&shown).contains("Rows 81-95 of 95:\n80\n81\n"), "{shown:?}");
        let page = shown.structured_content.unwrap();
        assert_eq!(page["page"]["page"], 4);
        assert_eq!(page["page"]["rows"].as_array().unwrap().len(), 15);
        let page = json!({"session_id": session, "name": "word", "chars": 2, "page": 1});
        let shown = answer(&client, "show_variable", page).await;
        assert!(
            text(&shown).contains("Characters 3-4 of 5 (page 2 of 3):\nll"),
            "{shown:?}"
        );
        let brief = json!({"session_id": session, "name": "table", "view": "minimal"});
        let brief = answer(&client, "show_variable", brief).await;
        let brief = text(&brief);
        let (value, _) = brief.split_once("\n[output] ").unwrap();
        assert!(value.chars().count() <= 300, "{brief}");

        for (arguments, message) in [
            (json!({"name": "nothing"}), "`list_variables`"),
            (json!({"name": "number", "page": 0}), "something else"),
            (json!({"name": "word", "rows": 1}), "something else"),
            (
                json!({"name": "word", "chars": 2, "page": 3}),
                "there are 3 pages of 2 characters",
            ),
            (
                json!({"name": "table", "page": 10}),
                "there are 10 pages of 10 rows",
            ),
            (json!({"name": "table", "page": -11}), "there are 10 pages"),
            (json!({"name": "table", "rows": 0}), "give 1 to 1000"),
            (json!({"name": "table", "rows": 1001}), "give 1 to 1000"),
        ] {
            let mut arguments = arguments;
            arguments["session_id"] = json!(session);
            let refusal = refused(&client, "show_variable", arguments).await;
            assert!(refusal.contains(message), "{refusal}");
        }
    });
}

#[test]
fn sessions_have_the_operators_guard_and_setup_code() {
    block_on(async {
        let server = server(|options| {
            options.toolsets = vec![notebook::KIND];
            options.guard = Guard::Strict;
            options.setup = vec![SetupSnippet {
                name: "setup.py".to_owned(),
                code: "def total(text): return eval(text)".to_owned(),
                guarded: false,
            }];
        });
        let client = connect(&server.await, Client::default(), newest()).await;
        let session = session(&client).await;
        let code = "print(pd.DataFrame({'n': [total('20 + 22')]}))";
        let ran = answer(&client, "run_cell", json!({"session_id": session, "code": code})).await;
        assert!(text(&ran).contains("42"), "{ran:?}");
        assert!(!text(&ran).contains("stdout"), "{ran:?}");
        let refused = answer(
            &client,
            "run_cell",
            json!({"session_id": session, "code": "eval('1')"}),
        )
        .await;
        assert!(
            text(&refused).contains("eval is blocked in strict mode"),
            "{refused:?}"
        );
    });
}

#[test]
fn a_session_loads_a_dataset_of_another_one_after_its_client_has_read_it() {
    block_on(async {
        // The store of the tests outlives them.
        let server = server(|options| options.project = Some(mint("macro_")));
        let client = connect(&server.await, Client::default(), newest()).await;
        let (one, other) = (session(&client).await, session(&client).await);
        let run = |session: &str, code: &str| json!({"session_id": session, "code": code});
        let publish = "publish_dataset(pd.DataFrame({'x': [1, 2]}), 'gdp', title='GDP')['versions']";
        done(&client, "run_python", run(&one, publish)).await;
        let load = "load_dataset('gdp')['x'].sum()";
        let rejected = answer(&client, "run_python", run(&other, load)).await;
        assert!(text(&rejected).contains("look at it first"), "{rejected:?}");
        let listed = done(&client, "list_datasets", json!({"session_id": other})).await;
        assert_eq!(
            listed["datasets"][0],
            json!({"slug": "gdp", "title": "GDP", "rows": 2, "versions": 1, "seen": false})
        );
        let arguments = json!({"session_id": other, "slug": "gdp"});
        let known = done(&client, "read_dataset", arguments).await;
        assert_eq!(
            known["current"]["columns"],
            json!([{"name": "x", "dtype": "int64"}])
        );
        let loaded = answer(&client, "run_python", run(&other, load)).await;
        assert!(text(&loaded).contains('3'), "{loaded:?}");
        let arguments = json!({"session_id": other, "slug": "cpi"});
        let message = refused(&client, "read_dataset", arguments).await;
        assert!(
            message.contains("has no dataset \"cpi\"; it has `gdp`"),
            "{message}"
        );
    });
}

#[test]
fn a_variable_is_published_by_a_tool_with_the_checks_of_the_function() {
    block_on(async {
        let server = server(|options| options.project = Some(mint("growth_"))).await;
        let client = connect(&server, Client::default(), newest()).await;
        let (one, other) = (session(&client).await, session(&client).await);
        let run = |session: &str, code: &str| json!({"session_id": session, "code": code});
        let code = "frame = pd.DataFrame({'x': [1, 2]})\nnumber = 7";
        done(&client, "run_python", run(&one, code)).await;
        let publication = |variable: &str, slug: &str| {
            let title = "\"GDP\", a 'title' 📈";
            json!({"session_id": one, "variable": variable, "slug": slug, "title": title, "tags": ["macro"]})
        };
        done(&client, "publish_dataset", publication("frame", "gdp")).await;
        let arguments = json!({"session_id": other, "slug": "gdp"});
        let load = "load_dataset('gdp')['x'].sum()";
        let rejected = answer(&client, "run_python", run(&other, load)).await;
        assert!(text(&rejected).contains("look at it first"), "{rejected:?}");
        let known = done(&client, "read_dataset", arguments).await;
        assert_eq!(known["title"], "\"GDP\", a 'title' 📈", "{known}");
        assert_eq!(known["tags"], json!(["macro"]), "{known}");
        let loaded = answer(&client, "run_python", run(&other, load)).await;
        assert!(text(&loaded).contains('3'), "{loaded:?}");

        for (variable, slug, told) in [
            ("number", "gdp", "TypeError"),
            ("frame", "GDP!", "ValueError"),
            ("missing", "gdp", "NameError"),
        ] {
            let failed = answer(&client, "publish_dataset", publication(variable, slug)).await;
            assert!(text(&failed).contains(told), "{told}: {failed:?}");
        }
        for variable in ["", "1st", "frame['x']", "frame); print(1"] {
            let message = refused(&client, "publish_dataset", publication(variable, "gdp")).await;
            assert!(message.contains("which is not a name"), "{message}");
        }
        let known = done(&client, "read_dataset", json!({"session_id": one, "slug": "gdp"})).await;
        assert_eq!(known["versions"], 1, "{known}");
    });
}

#[test]
fn a_published_dataset_is_a_resource_and_reading_it_permits_to_load_it() {
    block_on(async {
        let project = mint("indices_");
        let server = server(|options| options.project = Some(project.clone())).await;
        let client = connect(&server, Client::default(), newest()).await;
        let (one, other) = (session(&client).await, session(&client).await);
        let run = |session: &str, code: &str| json!({"session_id": session, "code": code});
        let publish = "publish_dataset(pd.DataFrame({'x': [1, 2]}), 'cpi', title='CPI')['versions']";
        done(&client, "run_python", run(&one, publish)).await;
        let templates = client.list_resource_templates(None).await.unwrap();
        let template = templates.resource_templates.last().unwrap();
        assert_eq!(
            template.uri_template,
            "cellblock://projects/{project}/datasets/{slug}"
        );
        let uri = format!("cellblock://projects/{project}/datasets/cpi");
        let listed = client.list_resources(None).await.unwrap().resources;
        let resource = listed.iter().find(|it| it.uri == uri).unwrap();
        assert_eq!(resource.title.as_deref(), Some("CPI"));

        let load = "load_dataset('cpi')['x'].sum()";
        let rejected = answer(&client, "run_python", run(&other, load)).await;
        assert!(text(&rejected).contains("look at it first"), "{rejected:?}");
        let (json, media_type) = read(&client, &uri).await;
        assert_eq!(media_type, "application/json");
        let known: Value = serde_json::from_str(&json).unwrap();
        let arguments = json!({"session_id": one, "slug": "cpi"});
        assert_eq!(known, done(&client, "read_dataset", arguments).await);
        let loaded = answer(&client, "run_python", run(&other, load)).await;
        assert!(text(&loaded).contains('3'), "{loaded:?}");

        for (uri, reason) in [
            (
                &*format!("cellblock://projects/{project}/datasets/gdp2"),
                "has no dataset \"gdp2\"",
            ),
            (
                "cellblock://projects/index/datasets/cpi",
                "no session is in a project \"index\"",
            ),
        ] {
            let request = ReadResourceRequestParams::new(uri);
            let error = client.read_resource(request).await.unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    });
}

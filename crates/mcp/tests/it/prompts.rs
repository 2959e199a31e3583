//! Prompts of the toolsets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rmcp::model::{GetPromptRequestParams, GetPromptResponse};
use serde_json::json;

use crate::support::{
    Client, McpConnection, all, block_on, connect, done, engine_that_starts, newest, server, with_all,
};

async fn prompt(client: &McpConnection, name: &str, session: Option<&str>) -> String {
    let mut request = GetPromptRequestParams::new(name);
    if let Some(session) = session {
        request = request.with_arguments(json!({"session_id": session}).as_object().unwrap().clone());
    }
    let GetPromptResponse::Complete(prompt) = client.get_prompt_once(request).await.unwrap() else {
        panic!("not a prompt")
    };
    prompt.messages[0].content.as_text().unwrap().text.clone()
}

#[test]
fn each_toolset_has_a_prompt_that_names_its_tools() {
    block_on(async {
        let client = with_all().await;
        let names: Vec<_> = client
            .list_prompts(None)
            .await
            .unwrap()
            .prompts
            .into_iter()
            .map(|it| it.name)
            .collect();
        assert_eq!(names, ["interpreter", "workbench", "derivation", "notebook"]);
        assert!(prompt(&client, "notebook", None).await.contains("`run_cell`"));
        assert!(
            prompt(&client, "interpreter", None)
                .await
                .contains("`run_python`")
        );
        assert!(
            prompt(&client, "workbench", None)
                .await
                .contains("`sandbox_exec`")
        );
        let recorded = done(
            &client,
            "record_result",
            json!({"tool": "get_prices", "result": [{"day": "2026-01-01", "price": 1.5}]}),
        )
        .await;
        let session = recorded["session_id"].as_str();
        let told = prompt(&client, "derivation", session).await;
        let line = told
            .lines()
            .find(|line| line.starts_with("- `get_prices_1`: "))
            .unwrap();
        assert!(
            line.starts_with("- `get_prices_1`: table, 1 row × 2 columns, "),
            "{line}"
        );
        assert!(line.contains("; day: ") && line.contains("; price: "), "{line}");
        assert!(
            !line.contains("\\n") && line.matches("get_prices_1").count() == 1,
            "{line}"
        );
        let unknown = client
            .get_prompt_once(GetPromptRequestParams::new("other"))
            .await
            .unwrap_err();
        assert!(
            unknown
                .to_string()
                .contains("there are interpreter, workbench, derivation"),
            "{unknown}"
        );
    });
}

#[test]
fn the_libraries_are_known_before_there_is_a_session() {
    block_on(async {
        let server = engine_that_starts(all).await;
        let client = connect(&server, Client::default(), newest()).await;
        let told = prompt(&client, "derivation", None).await;
        assert!(
            told.contains("`pandas`") && told.contains("`matplotlib`"),
            "{told}"
        );
    });
}

#[test]
fn the_prompt_for_commands_names_datasets_or_says_that_there_are_none() {
    block_on(async {
        let with = |datasets: BTreeMap<String, PathBuf>| {
            server(move |options| {
                all(options);
                options.datasets = datasets;
            })
        };
        let wine = ("wine".to_owned(), "/tmp/wine.csv".into());
        for (datasets, named) in [([wine].into(), true), (BTreeMap::new(), false)] {
            let client = connect(&with(datasets).await, Client::default(), newest()).await;
            let told = prompt(&client, "workbench", None).await;
            assert_eq!(told.contains("wine"), named, "{told}");
            assert_eq!(told.contains("no datasets yet"), !named, "{told}");
        }
    });
}

//! Prompts of the toolsets.

use rmcp::model::{GetPromptRequestParams, GetPromptResponse};
use serde_json::json;

use crate::support::{Connected, block_on, done, with_all};

async fn prompt(client: &Connected, name: &str, session: Option<&str>) -> String {
    let mut request = GetPromptRequestParams::new(name);
    if let Some(session) = session {
        request = request.with_arguments(json!({"session": session}).as_object().unwrap().clone());
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
        assert_eq!(names, ["interpreter", "workbench", "derivation"]);
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
            json!({"tool": "get_prices", "result": [1, 2]}),
        )
        .await;
        let session = recorded["session"].as_str();
        let told = prompt(&client, "derivation", session).await;
        assert!(
            told.contains("`get_prices_1`") && told.contains("`pandas`"),
            "{told}"
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

//! The derivation's tools: recorded results, contracts, charts.

use serde_json::json;

use crate::support::{McpConnection, answer, block_on, done, read, text, with_all};

#[test]
fn code_derives_from_a_recorded_result_under_a_contract() {
    block_on(async {
        let client = with_all().await;
        let rows = json!([{"day": "2026-01-01", "price": 3.0}, {"day": "2026-01-02", "price": 5.0}]);
        let recorded = done(
            &client,
            "record_result",
            json!({"tool": "get_prices", "result": rows}),
        )
        .await;
        assert_eq!(recorded["alias"], "get_prices_1");
        let session = recorded["session_id"].as_str().unwrap();
        let (whole, media_type) = read(&client, recorded["uri"].as_str().unwrap()).await;
        assert_eq!(media_type, "application/json");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&whole).unwrap(), rows);

        let contract = |artifacts: serde_json::Value| {
            json!({"operation": "mean",
            "reason": "it is computed", "inputAliases": ["get_prices_1"], "expectedArtifacts": artifacts})
        };
        let code = "set_result(sum(row['price'] for row in get_prices_1) / 2)";
        let derive = |artifacts| {
            json!({"session_id": session, "code": code,
            "postProcessingContract": contract(artifacts)})
        };
        let broken = answer(&client, "code_interpreter", derive(json!(["image"]))).await;
        // It ran, so the model has to read what is wrong.
        assert_eq!(broken.is_error, Some(false));
        assert_eq!(broken.structured_content.as_ref().unwrap()["ok"], false);
        assert!(text(&broken).contains("image"), "{}", text(&broken));
        let derived = done(&client, "code_interpreter", derive(json!([]))).await;
        assert_eq!(derived["result"], 4.0);
        assert_eq!(derived["output_alias"], "code_interpreter_1");
        assert_eq!(derived["session_id"], session);

        let chart = json!({"session_id": session, "alias": "get_prices_1",
            "spec": {"type": "line", "xKey": "day", "series": [{"key": "price"}]}});
        let drawn = answer(&client, "render_chart", chart).await;
        assert_eq!(drawn.is_error, Some(false), "{}", text(&drawn));
        let uri = drawn.structured_content.as_ref().unwrap()["artifacts"][0]["url"]
            .as_str()
            .unwrap();
        assert!(
            text(&drawn).contains(&format!("bytes) {uri}")),
            "{}",
            text(&drawn)
        );
        assert_eq!(drawn.content.len(), 1);
        let (document, _) = read(&client, uri).await;
        assert!(document.contains("\"price\""), "{document}");
    });
}

#[test]
fn a_call_without_a_contract_is_rejected_before_it_runs() {
    block_on(async {
        let client = with_all().await;
        let session = crate::support::session(&client).await;
        let result = answer(
            &client,
            "code_interpreter",
            json!({"session_id": session, "code": "1"}),
        )
        .await;
        assert_eq!(result.is_error, Some(true));
        assert!(
            text(&result).contains("postProcessingContract"),
            "{}",
            text(&result)
        );
    });
}

/// Uses up all attempts of a session, and one more; gives what the last call said.
async fn use_up(client: &McpConnection, session: &str) -> String {
    let mut told = String::new();
    for _ in 0..7 {
        let result = answer(
            client,
            "code_interpreter",
            json!({"session_id": session, "code": "1"}),
        )
        .await;
        assert_eq!(result.is_error, Some(true));
        told = text(&result);
    }
    assert!(
        told.contains("5 attempts in a row failed, which is the limit"),
        "{told}"
    );
    assert!(
        told.contains("`record_result`") && told.contains("`reset_session`"),
        "{told}"
    );
    told
}

#[test]
fn a_new_result_and_a_reset_give_all_attempts_back() {
    block_on(async {
        let client = with_all().await;
        let result = json!({"tool": "get_prices", "result": [1, 2]});
        let recorded = done(&client, "record_result", result).await;
        let session = recorded["session_id"].as_str().unwrap();
        let derive = json!({
            "session_id": session,
            "code": "set_result(sum(get_prices_1))",
            "postProcessingContract":
                {"operation": "o", "reason": "r", "inputAliases": ["get_prices_1"], "expectedArtifacts": []},
        });
        use_up(&client, session).await;
        let more = json!({"session_id": session, "tool": "get_prices", "result": [3]});
        done(&client, "record_result", more).await;
        let derived = done(&client, "code_interpreter", derive.clone()).await;
        assert_eq!(
            (&derived["result"], &derived["attempts_left"]),
            (&json!(3), &json!(5))
        );

        use_up(&client, session).await;
        done(&client, "reset_session", json!({"session_id": session})).await;
        let derived = done(&client, "code_interpreter", derive).await;
        assert_eq!(derived["result"], 3);
    });
}

#[test]
fn all_mistakes_in_a_chart_are_reported_with_fields_and_valid_values() {
    block_on(async {
        let client = with_all().await;
        let rows = json!([{"day": "2026-01-01", "price": 3.0}, {"day": "2026-01-02", "price": 5.0}]);
        let recorded = done(
            &client,
            "record_result",
            json!({"tool": "get_prices", "result": rows}),
        )
        .await;
        let spec = json!({
            "xKey": "date",
            "series": [{"key": "cost", "yAxis": "middle"}],
            "legend": "yes",
        });
        let call = json!({"session_id": recorded["session_id"], "alias": "get_prices_1", "spec": spec});
        let told = text(&answer(&client, "render_chart", call).await);
        for part in [
            "spec.type: is missing",
            "valid: line, bar, area",
            "spec.xKey: no row has the key \"date\"",
            "valid: day, price",
            "spec.series[0].key: no row has the key \"cost\"",
            "spec.series[0].yAxis: \"middle\" is not valid",
            "valid: left, right",
            "spec.legend: has to be a boolean",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    });
}

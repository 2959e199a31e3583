//! The derivation's tools: recorded results, contracts, charts.

use rmcp::model::ContentBlock;
use serde_json::json;

use crate::support::{answer, block_on, done, read, text, with_all};

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
        let session = recorded["session"].as_str().unwrap();
        let (whole, media_type) = read(&client, recorded["uri"].as_str().unwrap()).await;
        assert_eq!(media_type, "application/json");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&whole).unwrap(), rows);

        let contract = |artifacts: serde_json::Value| json!({"operation": "mean", "reason": "it is computed", "inputAliases": ["get_prices_1"], "expectedArtifacts": artifacts});
        let code = "set_result(sum(row['price'] for row in get_prices_1) / 2)";
        let derive = |artifacts| json!({"session": session, "code": code, "postProcessingContract": contract(artifacts)});
        let broken = answer(&client, "code_interpreter", derive(json!(["image"]))).await;
        assert_eq!(broken.is_error, Some(true));
        assert!(text(&broken).contains("image"), "{}", text(&broken));
        let derived = done(&client, "code_interpreter", derive(json!([]))).await;
        assert_eq!(derived["result"], 4.0);
        assert_eq!(derived["outputAlias"], "code_interpreter_1");
        assert_eq!(derived["session"], session);

        let chart = json!({"session": session, "alias": "get_prices_1", "spec": {"type": "line", "xKey": "day", "series": [{"key": "price"}]}});
        let drawn = answer(&client, "render_chart", chart).await;
        assert_eq!(drawn.is_error, Some(false), "{}", text(&drawn));
        let link = drawn
            .content
            .iter()
            .find_map(ContentBlock::as_resource_link)
            .unwrap();
        let (document, _) = read(&client, &link.uri).await;
        assert!(document.contains("\"price\""), "{document}");
    });
}

#[test]
fn a_call_without_a_contract_is_refused_before_it_runs() {
    block_on(async {
        let client = with_all().await;
        let session = crate::support::session(&client).await;
        let result = answer(
            &client,
            "code_interpreter",
            json!({"session": session, "code": "1"}),
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

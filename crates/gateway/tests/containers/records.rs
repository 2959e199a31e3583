//! Records of responses refer to pictures: the bytes are in the artifact store once.

use cellblock_agent::provider::scripted::ScriptedAnswer;
use cellblock_gateway::records::Records;
use serde_json::{Value, json};

use crate::support::{Bench, block_on, runs, start};

const CHART: &str = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()";

/// Everything that the records have of responses.
async fn records(bench: &Bench) -> String {
    let all = bench.gateway.records.with(|connection| {
        let mut all = String::new();
        for sql in [
            "SELECT body || input FROM responses",
            "SELECT items FROM turns",
            "SELECT items FROM output_items",
        ] {
            let rows = connection.query(sql, &[], |row| row.get::<String>(0))?;
            all.extend(rows);
        }
        Ok(all)
    });
    all.await.unwrap()
}

fn body(more: &Value) -> Value {
    let mut body = json!({
        "model": "m", "include": ["code_interpreter_call.outputs"],
        "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}],
    });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

#[test]
fn a_chart_is_kept_once_and_the_records_refer_to_it() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |_| {}).await;
        bench.script("m", [runs("c", CHART), ScriptedAnswer::new().text("Done.")]);
        let response = bench
            .post("responses", &body(&json!({"input": "draw"})))
            .await
            .ok();
        let outputs = response["output"][0]["outputs"].as_array().unwrap();
        let picture = outputs
            .iter()
            .find_map(|output| output["url"].as_str())
            .unwrap()
            .to_owned();
        assert!(
            picture.starts_with("data:image/png;base64,") && picture.len() > 8000,
            "{response}"
        );

        let kept = records(&bench).await;
        assert!(!kept.contains("base64,"), "{kept}");
        assert!(kept.len() < 8000, "{} bytes: {kept}", kept.len());

        // Clients and models get the picture as it was.
        let path = format!("responses/{}", response["id"].as_str().unwrap());
        assert_eq!(bench.get(&path).await.ok(), response);
        for next in [
            json!({"input": "again", "previous_response_id": response["id"]}),
            json!({"input": [
                {"type": "item_reference", "id": response["output"][0]["id"]},
                {"role": "user", "content": "again"},
            ]}),
        ] {
            let script = bench.script("m", [ScriptedAnswer::new().text("Fine.")]);
            bench.post("responses", &body(&next)).await.ok();
            let asked = json!(script.asked()[0].items).to_string();
            assert!(asked.contains(&picture), "{asked}");
        }
    });
}

#[test]
fn an_address_that_looks_like_a_reference_leads_to_no_artifact() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |_| {}).await;
        bench.script("m", [runs("c", CHART), ScriptedAnswer::new().text("Done.")]);
        bench
            .post("responses", &body(&json!({"input": "draw"})))
            .await
            .ok();
        let kept = records(&bench).await;
        let reference = kept
            .split('"')
            .find(|text| text.starts_with("artifact:"))
            .unwrap()
            .to_owned();

        let eve = bench.of("eve");
        eve.script(
            "m",
            [
                ScriptedAnswer::new().text("Fine."),
                ScriptedAnswer::new().text("Fine."),
            ],
        );
        let forged = json!([{"role": "user", "content": [{"type": "input_image", "image_url": reference}]}]);
        let sent = eve
            .post("responses", &body(&json!({"input": forged, "background": true})))
            .await;
        if let Some(id) = sent.body["id"].as_str() {
            let items = eve.get(&format!("responses/{id}/input_items")).await.ok();
            assert_eq!(items["data"][0]["content"][0]["image_url"], reference);
        } else {
            assert_eq!(sent.status, 400, "{}", sent.body);
        }
    });
}

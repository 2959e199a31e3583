//! A gateway whose records are in Postgres, while Postgres is down and afterward.

use std::sync::Arc;

use cellblock_agent::provider::Provider;
use cellblock_gateway::Options;
use cellblock_gateway::records::{PostgresUrl, Records};
use cellblock_testkit::{DatabaseServer, require};
use serde_json::json;

use crate::full::{ready, until_ready};
use crate::support::{block_on, gateway, listen};
use crate::waiting::WaitingProvider;

#[test]
fn a_gateway_says_that_its_database_is_down_and_loses_no_end_when_it_is_back() {
    require!(Postgres);
    block_on(async {
        let mut database = DatabaseServer::postgres().await;
        let url = database.create_database("records").await;
        let url = PostgresUrl::new(&url, "/".as_ref()).unwrap();
        let records = Records::connect(&url).await.unwrap();
        let (model, gate) = WaitingProvider::new();
        let server = listen(gateway(model as Arc<dyn Provider>, Options::default(), records).await).await;
        until_ready(&server).await;
        gate.add_permits(1);
        let whole = server.create(json!({"input": "whole"})).await.ok();
        let whole = format!("responses/{}", whole["id"].as_str().unwrap());
        let mut running = server.stream(json!({"input": "running"})).await;
        let mut told = String::from_utf8(running.chunk().await.unwrap().unwrap().to_vec()).unwrap();

        database.kill();
        let reason = ready(&server).await;
        assert_eq!(reason.0, 503);
        assert_eq!(reason.1["reason"], "the records cannot be read", "{}", reason.1);
        let answer = server.request("GET", &whole).send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"]),
            (503, &"1".parse().unwrap())
        );
        let next = server.create(json!({"input": "next"})).await;
        assert_eq!(next.error(), (503, "records_unavailable"));
        // The model ends while nothing can be kept.
        gate.add_permits(1);
        while let Some(chunk) = running.chunk().await.unwrap() {
            told += &String::from_utf8_lossy(&chunk);
        }
        assert!(told.contains("the response could not be stored"), "{told}");

        database.restart_postgres().await;
        until_ready(&server).await;
        assert_eq!(server.get(&whole).await.ok()["status"], "completed");
        let id = told.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap();
        let ended = server.get(&format!("responses/{id}")).await.ok();
        assert_eq!(ended["status"], "failed", "{ended}");
        assert_eq!(ended["output"][0]["content"][0]["text"], "first last");
        gate.add_permits(1);
        let previous = whole.trim_start_matches("responses/");
        let next = json!({"input": "go on", "previous_response_id": previous});
        assert_eq!(server.create(next).await.ok()["status"], "completed");
    });
}

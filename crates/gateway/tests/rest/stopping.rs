//! A gateway of its own that fills up, and stops.

use std::time::Duration;

use cellblock_gateway::Options;
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{Api, block_on, ending, gateway, until};

#[test]
fn a_gateway_is_ready_when_it_is_warm_refuses_when_it_is_full_and_leaves_nothing_when_it_stops() {
    block_on(async {
        let mut options = Options::default();
        options.execute.max_concurrent = 1;
        // None of the two would come to its own end, however long that is.
        options.http.grace = Duration::from_millis(200);
        let gateway = gateway(options).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = Api::at(listener.local_addr().unwrap());
        let serving = gateway.clone();
        let served = tokio::spawn(async move { serving.serve(listener).await });
        assert_eq!(api.get("/healthz").await.0, StatusCode::OK);
        until("it is warm", || async {
            api.get("/readyz").await.0 == StatusCode::OK
        })
        .await;

        let asking = {
            let api = api.clone();
            let code = json!({"code": "while True: pass", "timeout_seconds": 600});
            tokio::spawn(async move { api.post("/execute", &code).await })
        };
        until("it is full", || async {
            api.get("/health").await.1["current_load"] == 1
        })
        .await;
        // The body is not looked at.
        let full = api
            .request(Method::POST, "/execute")
            .body("{")
            .send()
            .await
            .unwrap();
        assert_eq!(full.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(
            full.text().await.unwrap(),
            r#"{"error":"at capacity (1/1 concurrent executions)"}"#
        );

        let session = api.session(&json!({})).await;
        let endless = api.endless(&session).await;
        until("both have sandboxes", || async {
            gateway.interpreter().unwrap().sandboxes_in_use().len() == 2
        })
        .await;
        gateway.stop();
        assert_eq!(asking.await.unwrap().0, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(ending(endless).await, "interrupted");
        tokio::time::timeout(Duration::from_secs(30), served)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert!(gateway.interpreter().unwrap().sandboxes_in_use().is_empty());
    });
}

#[test]
fn an_execution_whose_client_goes_away_leaves_no_sandbox() {
    block_on(async {
        let mut options = Options::default();
        options.execute.max_concurrent = 1;
        let gateway = gateway(options).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = Api::at(listener.local_addr().unwrap());
        let serving = gateway.clone();
        tokio::spawn(async move { serving.serve(listener).await });
        let asking = {
            let api = api.clone();
            let code = json!({"code": "while True: pass", "timeout_seconds": 600});
            tokio::spawn(async move { api.post("/execute", &code).await })
        };
        until("it has a sandbox", || async {
            gateway.interpreter().unwrap().sandboxes_in_use().len() == 1
        })
        .await;
        asking.abort();
        until("it is gone", || async {
            gateway.interpreter().unwrap().sandboxes_in_use().is_empty()
        })
        .await;
        until("there is room", || async {
            api.get("/health").await.1["current_load"] == 0
        })
        .await;
        gateway.stop();
    });
}

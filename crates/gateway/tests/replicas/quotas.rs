//! Quotas that gateways share.

use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::provider::scripted::ScriptedProvider;
use cellblock_testkit::require;
use cellblock_testkit::wait::until_ok;
use serde_json::json;
use tokio::time::timeout;

use crate::support::{block_on, code, pair_with};

#[test]
fn sandboxes_of_a_key_are_counted_over_all_gateways() {
    require!(Postgres);
    block_on(async {
        let pair = pair_with(Arc::new(ScriptedProvider::new([])), |options| {
            options.quotas.sandboxes = Some(3);
        })
        .await;
        let made = (0..8).map(|number| {
            let api = [&pair.one, &pair.two][number % 2];
            async move { api.post("/v1/sessions", &json!({})).await }
        });
        let answers = futures_util::future::join_all(made).await;
        let made: Vec<_> = answers.iter().filter(|answer| answer.0 == 201).collect();
        assert_eq!(made.len(), 3, "{answers:?}");
        let refused = answers.iter().find(|answer| answer.0 != 201).unwrap();
        assert_eq!(code(refused), (429, "rate_limit_exceeded"));
        // A place that is free in one gateway is free for the other one.
        let path = format!("/v1/sessions/{}", made[0].1["id"].as_str().unwrap());
        assert_eq!(pair.one.delete(&path).await.0, 200);
        until_ok(async || match pair.two.post("/v1/sessions", &json!({})).await {
            (201, _) => Ok(()),
            (_, told) => Err(told),
        })
        .await;
        assert_eq!(pair.one.post("/v1/sessions", &json!({})).await.0, 429);
    });
}

#[test]
fn a_quota_per_minute_holds_over_all_gateways() {
    require!(Postgres);
    block_on(async {
        let pair = pair_with(Arc::new(ScriptedProvider::new([])), |options| {
            options.quotas.cells_per_minute = Some(6);
        })
        .await;
        let sessions = [
            (&pair.one, pair.one.session().await),
            (&pair.two, pair.two.session().await),
        ];
        let cells = (0..12).map(|number| {
            let (api, session) = &sessions[number % 2];
            let cells = format!("{session}/cells");
            async move { api.post(&cells, &json!({"code": "1"})).await }
        });
        // One more may be due while they run.
        let answers = futures_util::future::join_all(cells).await;
        let ran = answers.iter().filter(|answer| answer.0 == 200).count();
        assert!((6..=7).contains(&ran), "{ran}");
        let refused: Vec<_> = answers.iter().filter(|answer| answer.0 != 200).collect();
        for answer in refused {
            assert_eq!(code(answer), (429, "rate_limit_exceeded"));
            let message = answer.1["error"]["message"].as_str().unwrap();
            assert!(
                message.contains("`cells_per_minute`") && message.contains("its limit is 6"),
                "{message}"
            );
        }
    });
}

#[test]
fn cells_that_run_at_once_are_counted_over_all_gateways() {
    require!(Postgres);
    block_on(async {
        let pair = pair_with(Arc::new(ScriptedProvider::new([])), |options| {
            options.quotas.concurrent_cells = Some(1);
        })
        .await;
        let (one, two) = (&pair.one, &pair.two);
        let (session, other) = (one.session().await, two.session().await);
        let endless =
            json!({"code": "print('on', flush=True)\nwhile True: pass", "timeout": 120, "stream": true});
        let mut stream = one.start(&format!("{session}/cells"), &endless).await;
        let mut text = String::new();
        while !text.contains("cell.stdout") {
            let chunk = timeout(Duration::from_mins(1), stream.chunk()).await.unwrap();
            text += &String::from_utf8_lossy(&chunk.unwrap().unwrap());
        }
        let cells = format!("{other}/cells");
        let refused = two.post(&cells, &json!({"code": "1"})).await;
        assert_eq!(code(&refused), (429, "rate_limit_exceeded"));
        let message = refused.1["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("`concurrent_cells`") && message.contains("its limit is 1"),
            "{message}"
        );
        let stopped = two.post(&format!("{session}/interrupt"), &json!({})).await;
        assert_eq!(stopped.0, 200, "{}", stopped.1);
        until_ok(async || match two.post(&cells, &json!({"code": "1"})).await {
            (200, _) => Ok(()),
            (_, told) => Err(told),
        })
        .await;
        // Nothing is left of cells that have ended.
        until_ok(async || {
            let counted = pair.exists("SELECT 1 FROM places WHERE cells > 0").await;
            if counted {
                Err("a cell is still counted")
            } else {
                Ok(())
            }
        })
        .await;
    });
}

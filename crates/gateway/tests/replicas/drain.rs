//! Gateways that are asked to stop while others live.

use cellblock_testkit::require;
use cellblock_testkit::wait::until_ok;
use serde_json::json;

use crate::support::{block_on, code, exists, in_container, pair, read, runs, says};

#[test]
fn a_gateway_that_drains_serves_its_sessions_and_has_others_create_new_ones() {
    require!(Postgres);
    block_on(async {
        let pair = pair([]).await;
        let (one, two) = (&pair.one, &pair.two);
        let session = one.session().await;
        assert_eq!(one.run(&session, "x = 41\nx").await, 41);
        pair.gateways[0].stop();
        let (status, told) = one.get("/readyz").await;
        assert_eq!((status, &told["status"]), (503, &json!("draining")));
        let created = one.session().await;
        let mark = pair.gateways[1].mark().unwrap();
        assert!(
            created.starts_with(&format!("/v1/sessions/sess_{mark}")),
            "{created}"
        );
        assert_eq!(one.run(&session, "x + 1").await, 42);
        assert_eq!(two.run(&session, "x + 2").await, 43);
        // It ends when it has no session any more.
        assert_eq!(two.delete(&session).await.0, 200);
        let mark = pair.gateways[0].mark().unwrap();
        until_ok(async || {
            let row = format!("SELECT 1 FROM gateways WHERE substr(id, 1, 12) = '{mark}'");
            if exists(&pair.gateways[1], row).await {
                Err("the gateway has not ended")
            } else {
                Ok(())
            }
        })
        .await;
    });
}

#[test]
fn gateways_that_all_drain_reject_new_sessions_for_now() {
    require!(Postgres);
    block_on(async {
        let pair = pair([]).await;
        let sessions = [pair.one.session().await, pair.two.session().await];
        for gateway in &pair.gateways {
            gateway.stop();
        }
        let refused = pair.one.start("/v1/sessions", &json!({})).await;
        assert!(refused.headers().contains_key("retry-after"), "{refused:?}");
        assert_eq!(code(&read(refused).await), (503, "draining"));
        // What they have is still used through each other.
        assert_eq!(pair.two.run(&sessions[0], "6 * 7").await, 42);
        assert_eq!(pair.one.run(&sessions[1], "6 * 7").await, 42);
    });
}

#[test]
fn a_conversation_continues_in_another_gateway_with_its_files() {
    require!(Postgres);
    block_on(async {
        let pair = pair([
            runs("c1", "open('kept.txt', 'w').write('kept'); print(1)"),
            says("one"),
            runs("c2", "print(open('kept.txt').read())"),
            says("two"),
        ])
        .await;
        // Keeps the gateway from ending before the next turn.
        let _session = pair.one.session().await;
        let auto = json!({"type": "auto"});
        let first = pair.one.respond(in_container(&auto)).await;
        pair.gateways[0].stop();
        until_ok(async || {
            if pair.exists("SELECT 1 FROM containers WHERE holder IS NULL").await {
                Ok(())
            } else {
                Err("the container has not been handed over")
            }
        })
        .await;
        let mut next = in_container(&auto);
        next["previous_response_id"] = first["id"].clone();
        let next = pair.one.respond(next).await;
        let outputs = &next["output"][0]["outputs"];
        assert_eq!(outputs[1]["logs"], "kept\n", "{outputs}");
    });
}

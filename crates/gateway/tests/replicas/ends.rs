//! Fates of objects in a gateway that is killed, and of all gateways while Postgres is down.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::ScriptedProvider;
use cellblock_testkit::wait::until_ok;
use cellblock_testkit::{DatabaseServer, require};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::support::{
    Api, block_on, code, database, in_container, interpreter, key, pair, printed, replica, runs, says,
    shared_interpreter,
};

/// A lease, and some time for it to be noticed.
const LEASE: Duration = Duration::from_mins(1);

#[test]
fn a_killed_gateway_is_noticed_and_conversations_go_on_with_their_files() {
    require!(Postgres);
    let server = block_on(DatabaseServer::shared_postgres());
    let url = block_on(database(&server));
    let answers = [
        runs("c1", "x = 1; open('kept.txt', 'w').write('kept'); print(x)"),
        says("one"),
        runs("c2", "print(open('kept.txt').read(), 'x' in globals())"),
        says("two"),
    ];
    let provider: Arc<dyn Provider> = Arc::new(ScriptedProvider::new(answers));
    // A runtime of its own: when it is dropped, nothing of the gateway runs any more, as after SIGKILL.
    let process = Runtime::new().unwrap();
    let (gateway, address) = process.block_on(async {
        let interpreter = interpreter().await;
        replica(&url, Arc::clone(&provider), interpreter, |_| {}).await
    });
    block_on(async {
        let (_other, other) = replica(&url, provider, shared_interpreter().await, |_| {}).await;
        let key = key(&gateway, "ann").await;
        let (one, two) = (Api::new(address, &key), Api::new(other, &key));
        let session = one.session().await;
        assert_eq!(two.run(&session, "x = 1\nx").await, 1);
        let auto = json!({"type": "auto"});
        let first = one.respond(in_container(&auto)).await;
        assert_eq!(printed(&first), "1\n");

        process.shutdown_background();
        let killed = Instant::now();
        let answer = until_ok(async || {
            let answer = two.request(reqwest::Method::GET, &session).send().await.unwrap();
            // A connection that was open may break before new ones are refused.
            if answer.headers().contains_key("retry-after") {
                Ok(crate::support::read(answer).await)
            } else {
                Err(answer.status())
            }
        })
        .await;
        assert_eq!(answer.0, 503, "{}", answer.1);
        until_ok(async || match two.get(&session).await {
            (404, told) => {
                let message = told["error"]["message"].as_str().unwrap();
                assert!(
                    message.contains("the gateway that had this session has ended"),
                    "{message}"
                );
                Ok(())
            }
            (_, told) => Err(told),
        })
        .await;
        assert!(killed.elapsed() < LEASE, "{:?}", killed.elapsed());

        let mut next = in_container(&auto);
        next["previous_response_id"] = first["id"].clone();
        let next = two.respond(next).await;
        let outputs = &next["output"][0]["outputs"];
        assert!(printed(&next).starts_with("The sandbox in which code of earlier turns ran has ended."));
        assert_eq!(outputs[1]["logs"], "kept False\n", "{outputs}");
        assert_eq!(
            next["output"][0]["container_id"],
            first["output"][0]["container_id"]
        );
    });
    drop(gateway);
}

#[test]
fn requests_for_another_gateway_fail_for_now_while_postgres_is_down() {
    require!(Postgres);
    block_on(async {
        let mut server = DatabaseServer::postgres().await;
        let url = database(&server).await;
        let model: Arc<dyn Provider> = Arc::new(ScriptedProvider::new([]));
        let interpreter = shared_interpreter().await;
        let (first, at) = replica(&url, Arc::clone(&model), Arc::clone(&interpreter), |_| {}).await;
        let (_second, other) = replica(&url, model, interpreter, |_| {}).await;
        let key = key(&first, "ann").await;
        let (one, two) = (Api::new(at, &key), Api::new(other, &key));
        let session = one.session().await;
        assert_eq!(two.run(&session, "x = 41\nx").await, 41);
        server.kill();
        let asked = two.get(&session).await;
        assert_eq!(code(&asked), (503, "records_unavailable"));
        server.restart_postgres().await;
        until_ok(async || match two.get(&session).await {
            (200, _) => Ok(()),
            (_, told) => Err(told),
        })
        .await;
        assert_eq!(two.run(&session, "x + 1").await, 42);
    });
}

#[test]
fn a_gateway_without_an_address_is_named_in_the_error() {
    require!(Postgres);
    block_on(async {
        let pair = pair([]).await;
        let session = pair.one.session().await;
        pair.sql("UPDATE gateways SET address = NULL".to_owned()).await;
        let asked = pair.two.get(&session).await;
        assert_eq!(code(&asked), (503, "gateway_unreachable"));
        let message = asked.1["error"]["message"].as_str().unwrap();
        assert!(message.contains("set `advertise` there"), "{message}");
    });
}

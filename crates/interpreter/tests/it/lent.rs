//! Connectors that a session has for some of its cells, and that its client answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_interpreter::cell::Cell;
use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, FetchAnswer, FetchEffect, Redaction,
};
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::toolset::BoxFuture;
use serde_json::{Map, Value, json};

use crate::support::{block_on, exception, interpreter, run, value};

/// A client that takes its time.
#[derive(Debug)]
struct SlowClient {
    name: &'static str,
    takes: Duration,
    redaction: Redaction,
}

fn client(name: &'static str, takes: Duration) -> Vec<Arc<dyn Connector>> {
    let redaction = Redaction::default();
    vec![Arc::new(SlowClient {
        name,
        takes,
        redaction,
    })]
}

impl Connector for SlowClient {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &'static str {
        "Functions of the application."
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let card = Card {
            name: "ask".to_owned(),
            parameters: json!({"type": "object", "properties": {"what": {"type": "string"}}}),
            effect: FetchEffect::Writes,
            ..Card::default()
        };
        Box::pin(async move { Ok(vec![card]) })
    }

    fn fetch(
        &self,
        _function: &str,
        arguments: Map<String, Value>,
        _until: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        Box::pin(async move {
            tokio::time::sleep(self.takes).await;
            Ok(arguments["what"].clone().into())
        })
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }

    fn waits_for_client(&self) -> bool {
        true
    }
}

#[test]
fn a_cell_may_wait_for_its_client_longer_than_it_may_run() {
    block_on(async {
        let session = interpreter().await.session(SessionOptions::default());
        session
            .lend(client("tools", Duration::from_millis(1500)))
            .await
            .unwrap();
        let cell = |code: &str| Cell::new(code).with_timeout(Duration::from_millis(700));
        let ran = session.execute(cell("a = tools.ask(what='a')")).await.unwrap();
        assert_eq!(ran.outcome, Outcome::Completed, "{ran:?}");
        assert_eq!(value(&session, "a").await, "a");
        // Its own time is limited all the same, before and after.
        let forever = "tools.ask(what='a')\nwhile True: pass";
        let ran = session.execute(cell(forever)).await.unwrap();
        assert_eq!(ran.outcome, Outcome::Interrupted, "{ran:?}");
        let ran = session.execute(cell("while True: pass")).await.unwrap();
        assert_eq!(ran.outcome, Outcome::Interrupted, "{ran:?}");
        assert!(ran.duration < Duration::from_millis(1500), "{ran:?}");
    });
}

#[test]
fn lent_connectors_take_the_place_of_those_before() {
    block_on(async {
        let session = interpreter().await.session(SessionOptions::default());
        run(&session, "x = 1").await;
        session.lend(client("tools", Duration::ZERO)).await.unwrap();
        assert_eq!(value(&session, "tools.ask(what='b')").await, "b");
        session.lend(client("others", Duration::ZERO)).await.unwrap();
        assert_eq!(value(&session, "others.ask(what='c')").await, "c");
        let ran = run(&session, "tools.ask(what='d')").await;
        assert_eq!(
            exception(&ran).message,
            "this session has no connector `tools`; it has `others`"
        );
        // The same again leaves the names of the code alone.
        run(&session, "others = 7").await;
        session.lend(client("others", Duration::ZERO)).await.unwrap();
        assert_eq!(value(&session, "others").await, 7);
        session.lend(Vec::new()).await.unwrap();
        assert_eq!(value(&session, "x").await, 1);
    });
}

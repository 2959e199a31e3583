//! Rehearsals: code that writes in loops, which a person approves once.

use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::connector::IntendedWrite;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Cell, Session};
use serde_json::json;

use crate::shop::Shop;
use crate::support::{block_on, exception, interpreter, run, value};

const PRICES: &str = "for sku in (1, 2):\n    \
                          shop.set_price(sku=sku, price=shop.get_price(sku=sku)['price'] + sku)\n\
                      done = True";

async fn session() -> (Session, Arc<Shop>) {
    let (shop, connector) = Shop::open();
    let session = interpreter().await.session(SessionOptions {
        connectors: vec![connector],
        ..SessionOptions::default()
    });
    (session, shop)
}

fn approving(code: &str, writes: Vec<IntendedWrite>) -> Cell {
    Cell {
        approved: Some(writes),
        ..Cell::new(code)
    }
}

#[test]
fn a_rehearsal_lists_the_calls_that_write_and_leaves_nothing() {
    needs!(Checkpoints);
    block_on(async {
        let (session, shop) = session().await;
        assert!(session.needs_rehearsal().await.unwrap());
        run(&session, "done = False").await;
        let rehearsal = session.rehearse(PRICES).await.unwrap();
        assert_eq!(rehearsal.execution.outcome, Outcome::Completed, "{rehearsal:#?}");
        assert!(rehearsal.can_be_approved());
        let writes: Vec<_> = rehearsal.writes.iter().map(ToString::to_string).collect();
        assert_eq!(writes.len(), 2);
        assert!(writes[0].starts_with("shop.set_price("), "{writes:?}");
        assert_eq!(
            json!(rehearsal.writes[1].arguments),
            json!({"sku": 2, "price": 4})
        );
        let outcomes: Vec<_> = rehearsal.execution.fetches.iter().map(|it| it.outcome).collect();
        assert_eq!(outcomes, ["ok", "rehearsed", "ok", "rehearsed"]);
        assert_eq!(shop.written(), [""; 0]);
        assert_eq!(value(&session, "done").await, false);

        let ran = session
            .execute(approving(PRICES, rehearsal.writes))
            .await
            .unwrap();
        assert_eq!(ran.outcome, Outcome::Completed, "{ran:#?}");
        assert_eq!(shop.written(), ["1=3", "2=4"]);
        assert_eq!(value(&session, "done").await, true);
    });
}

#[test]
fn a_call_that_was_not_approved_stops_the_run() {
    needs!(Checkpoints);
    block_on(async {
        let (session, shop) = session().await;
        let writes = session.rehearse(PRICES).await.unwrap().writes;
        let other = "shop.set_price(sku=1, price=3)\n\
                     try: shop.set_price(sku=2, price=5)\n\
                     except Exception as error: print(error)\n\
                     shop.set_price(sku=2, price=4)";
        let ran = session.execute(approving(other, writes)).await.unwrap();
        assert_eq!(ran.outcome, Outcome::Raised, "{ran:#?}");
        assert!(
            ran.stdout
                .text
                .contains("is not among the calls that were approved"),
            "{}",
            ran.stdout.text
        );
        // Also the approved call after it is not made.
        assert_eq!(shop.written(), ["1=3"]);
        let raised = exception(&ran);
        assert!(raised.message.contains("`shop.set_price("), "{raised:?}");
    });
}

#[test]
fn code_that_writes_nothing_is_not_run_twice() {
    needs!(Checkpoints);
    block_on(async {
        let (session, shop) = session().await;
        run(&session, "count = 0").await;
        let code = "count += 1\nprice = shop.get_price(sku=1)['price']";
        let rehearsal = session.rehearse(code).await.unwrap();
        assert!(rehearsal.kept && !rehearsal.can_be_approved(), "{rehearsal:#?}");
        assert_eq!(value(&session, "f'{count} {price}'").await, "1 2");
        assert_eq!(shop.written(), [""; 0]);
    });
}

#[test]
fn a_rehearsal_that_does_not_complete_cannot_be_approved() {
    needs!(Checkpoints);
    block_on(async {
        let (session, shop) = session().await;
        run(&session, "count = 0").await;
        for code in [
            "count += 1\nshop.set_price(sku=1, price=2)['price']",
            "count += 1\nfor sku in range(201):\n    try: shop.set_price(sku=sku, price=2)\n    except \
             Exception: pass",
        ] {
            let rehearsal = session.rehearse(code).await.unwrap();
            assert!(!rehearsal.kept && !rehearsal.can_be_approved(), "{rehearsal:#?}");
            assert!(rehearsal.writes.is_empty(), "{rehearsal:#?}");
        }
        assert_eq!(value(&session, "count").await, 0);
        assert_eq!(shop.written(), [""; 0]);
    });
}

#[test]
fn code_that_nobody_approved_writes_nothing() {
    block_on(async {
        let (session, shop) = session().await;
        let ran = run(&session, "shop.set_price(sku=1, price=2)").await;
        let raised = exception(&ran);
        assert!(raised.message.contains("needs approval"), "{raised:?}");
        assert_eq!(shop.written(), [""; 0]);
        assert_eq!(value(&session, "shop.get_price(sku=1)['price']").await, 2);
        let ran = session
            .execute(approving("shop.set_price(sku=1, price=2)", Vec::new()))
            .await
            .unwrap();
        assert_eq!(ran.outcome, Outcome::Raised, "{ran:#?}");
        assert_eq!(shop.written(), [""; 0]);
    });
}

#[test]
fn a_rehearsal_whose_caller_has_gone_is_undone() {
    needs!(Checkpoints);
    block_on(async {
        let (session, shop) = session().await;
        run(&session, "x = 1").await;
        let code = "import time\nx = 2\nshop.set_price(sku=1, price=2)\ntime.sleep(3)";
        let gone = tokio::time::timeout(Duration::from_secs(1), session.rehearse(code)).await;
        gone.unwrap_err();
        assert_eq!(value(&session, "x").await, 1);
        assert_eq!(shop.written(), [""; 0]);
    });
}

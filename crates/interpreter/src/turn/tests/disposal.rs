//! The deriver is disposed of exactly once, however a turn ends.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use super::fakes::{answer, calls, derive, rejected};
use super::*;

/// How often it was closed and abandoned.
fn disposed(deriver: &Counting) -> (usize, usize) {
    let asked = deriver.asked();
    (asked.closed, asked.abandoned)
}

#[tokio::test]
async fn every_ordinary_end_closes_it_once() {
    let ends: [Vec<Act>; 4] = [
        vec![answer("done")],
        vec![derive(), answer("done")],
        vec![Act::Fail],
        vec![derive(), derive()],
    ];
    for acts in ends {
        let deriver = Counting::giving([Ok(rejected(0))]);
        let _ = run(&turn(ChartIntent::None), &mut Script::new(acts), &deriver).await;
        assert_eq!(disposed(&deriver), (1, 0));
    }
}

#[tokio::test]
async fn a_panic_of_the_model_or_of_a_tool_abandons_it() {
    for act in [Act::Panic, calls(&[("panics", json!({}))])] {
        let deriver = Counting::default();
        let shared = deriver.clone();
        let ended = tokio::spawn(async move {
            let mut script = Script::new([derive(), act]);
            run(&turn(ChartIntent::None), &mut script, &shared).await
        });
        assert!(ended.await.unwrap_err().is_panic());
        assert_eq!(deriver.asked().derived.len(), 1);
        assert_eq!(disposed(&deriver), (0, 1));
    }
}

#[tokio::test]
async fn a_turn_that_is_cancelled_abandons_it() {
    let deriver = Counting::default();
    let (mut script, turn) = (Script::new([derive(), Act::Wait]), turn(ChartIntent::None));
    start_and_drop(run(&turn, &mut script, &deriver)).await;
    assert_eq!(deriver.asked().derived.len(), 1);
    assert_eq!(disposed(&deriver), (0, 1));
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_it_closes_abandons_it() {
    let deriver = Counting {
        never_closes: true,
        ..Counting::default()
    };
    let (mut script, turn) = (Script::new([answer("done")]), turn(ChartIntent::None));
    start_and_drop(run(&turn, &mut script, &deriver)).await;
    assert_eq!(disposed(&deriver), (0, 1));
}

#[tokio::test]
async fn a_turn_that_never_started_leaves_its_deriver_to_be_dropped() {
    let deriver = Counting::default();
    let (mut script, turn) = (Script::new([answer("done")]), turn(ChartIntent::None));
    drop(run(&turn, &mut script, &deriver));
    assert_eq!(
        disposed(&deriver),
        (0, 0),
        "nothing was made, and dropping it frees what there is"
    );
}

/// Runs a future until it waits, then drops it.
async fn start_and_drop<F: Future>(future: F) {
    let mut future = pin!(future);
    let waits = poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await;
    assert!(waits, "the turn waits");
}

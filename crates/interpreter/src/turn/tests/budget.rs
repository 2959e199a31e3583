//! Steps, attempts and tokens that are used up.

use super::fakes::{answer, calls, code, derive, fetch, rejected, succeeded};
use super::*;

#[tokio::test]
async fn ten_steps_without_an_answer_end_the_turn_with_a_best_effort() {
    let mut script = Script::forever(step(fetch()));
    let outcome = run(&turn(ChartIntent::None), &mut script, &Counting::default())
        .await
        .unwrap();
    assert_eq!(outcome.steps_used, 10);
    assert_eq!(outcome.outcome, Conclusion::BestEffort);
    assert_eq!(outcome.stop_reason, StopReason::BoundedRuntimeBudget);
    assert_eq!(codes(&outcome), ["step_budget_exhausted"]);
    assert!(
        outcome.text.contains("get_reserves_1 within 2000"),
        "{}",
        outcome.text
    );
    let left: Vec<_> = script.seen.iter().map(|seen| seen.steps_left).collect();
    assert_eq!(left, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
}

#[tokio::test]
async fn a_chart_that_was_asked_for_gives_four_more_and_is_named_when_it_is_missing() {
    let mut script = Script::forever(step(fetch()));
    let outcome = run(&turn(ChartIntent::Explicit), &mut script, &Counting::default())
        .await
        .unwrap();
    assert_eq!(outcome.steps_used, 14);
    assert_eq!(codes(&outcome), ["chart_missing", "step_budget_exhausted"]);
}

#[tokio::test]
async fn the_last_step_may_answer() {
    let acts = (0..9).map(|_| fetch()).chain([answer("done")]);
    let outcome = run(
        &turn(ChartIntent::None),
        &mut Script::new(acts),
        &Counting::default(),
    )
    .await
    .unwrap();
    assert_eq!((outcome.steps_used, outcome.outcome), (10, Conclusion::Answer));
}

#[tokio::test]
async fn used_up_attempts_take_the_interpreter_away() {
    let deriver = Counting::giving([Ok(rejected(1)), Ok(rejected(0))]);
    let mut script = Script::new([derive(), derive(), fetch(), answer("without a chart")]);
    let outcome = run(&turn(ChartIntent::Explicit), &mut script, &deriver)
        .await
        .unwrap();
    assert_eq!(
        script.offered(),
        [
            vec!["get_reserves", "broken", "code_interpreter", "render_chart"],
            vec!["get_reserves", "broken", "code_interpreter", "render_chart"],
            vec!["get_reserves", "broken", "render_chart"],
            vec!["get_reserves", "broken", "render_chart"],
        ]
    );
    assert_eq!(outcome.stop_reason, StopReason::CompleteAnswer);
    assert_eq!(outcome.outcome, Conclusion::BestEffort);
    assert_eq!(codes(&outcome), ["chart_missing", "attempts_exhausted"]);
}

#[tokio::test]
async fn a_model_that_wants_nothing_but_the_interpreter_ends_the_turn() {
    let deriver = Counting::giving([Ok(rejected(0))]);
    let mut script = Script::forever(step(derive()));
    let outcome = run(&turn(ChartIntent::None), &mut script, &deriver)
        .await
        .unwrap();
    assert_eq!(outcome.stop_reason, StopReason::AttemptsExhausted);
    assert_eq!((outcome.steps_used, outcome.derivations), (2, 1));
    assert_eq!(codes(&outcome), ["attempts_exhausted"]);
    insta::assert_snapshot!(outcome.text);
}

#[tokio::test]
async fn attempts_used_up_within_a_step_stop_the_rest_of_its_cells() {
    let deriver = Counting::giving([Ok(rejected(0))]);
    let both = calls(&[
        ("code_interpreter", code()),
        ("code_interpreter", code()),
        ("get_reserves", json!({})),
    ]);
    let mut script = Script::new([both, answer("done")]);
    run(&turn(ChartIntent::None), &mut script, &deriver)
        .await
        .unwrap();
    assert_eq!(deriver.asked().derived.len(), 1);
    assert!(
        results(&script)[1].starts_with("this tool is not offered"),
        "{:?}",
        results(&script)
    );
    assert!(results(&script)[2].starts_with("get_reserves_1 within"));
}

#[tokio::test]
async fn a_failure_that_was_repaired_is_no_gap() {
    let deriver = Counting::giving([Ok(rejected(4)), Ok(succeeded(&[]))]);
    let mut script = Script::new([derive(), derive(), answer("done")]);
    let outcome = run(&turn(ChartIntent::None), &mut script, &deriver)
        .await
        .unwrap();
    assert_eq!(
        (outcome.outcome, outcome.text.as_str()),
        (Conclusion::Answer, "done")
    );
}

#[tokio::test]
async fn the_oldest_texts_are_cut_first_and_their_alias_stays() {
    let long = |text: &str| Derived {
        text: text.repeat(1000),
        ..succeeded(&[])
    };
    let mut turn = turn(ChartIntent::None);
    turn.budget.transcript_tokens = 700;
    let deriver = Counting::giving([Ok(long("a")), Ok(long("b"))]);
    let mut script = Script::new([fetch(), derive(), derive(), answer("done")]);
    run(&turn, &mut script, &deriver).await.unwrap();
    let seen = results(&script);
    assert_eq!(
        seen[1],
        format!(
            "{}… (840 more characters left out; the result is `code_interpreter_1`)",
            "a".repeat(160)
        )
    );
    assert_eq!(seen[2], "b".repeat(1000));
    let texts = seen[1].chars().count() + 1000;
    let views = (2800 - texts) / 4;
    assert_eq!(
        seen[0],
        format!(r#"get_reserves_1 within {views}: [{{"btc":2,"day":1}}]"#)
    );
}

#[tokio::test]
async fn a_text_is_cut_once() {
    let long = Derived {
        text: "a".repeat(9000),
        ..succeeded(&[])
    };
    let mut turn = turn(ChartIntent::None);
    turn.budget.transcript_tokens = 10;
    let deriver = Counting::giving([Ok(long)]);
    let mut script = Script::new([derive(), fetch(), fetch(), answer("done")]);
    run(&turn, &mut script, &deriver).await.unwrap();
    let expected = "… (8840 more characters left out; the result is `code_interpreter_1`)";
    assert_eq!(results(&script)[0], format!("{}{expected}", "a".repeat(160)));
}

fn step(act: Act) -> Step {
    match act {
        Act::Take(step) => step,
        _ => unreachable!("only steps are given"),
    }
}

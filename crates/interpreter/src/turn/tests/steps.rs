//! What becomes of calls, answers and failures.

use super::fakes::{answer, calls, code, derive, fetch, rejected, succeeded};
use super::*;
use crate::contract::ArtifactKind::{Chart, Image};

#[tokio::test]
async fn an_answer_without_a_cell_derives_nothing() {
    let (mut script, deriver) = (Script::new([fetch(), answer("two")]), Counting::default());
    let outcome = run(&turn(ChartIntent::None), &mut script, &deriver)
        .await
        .unwrap();
    let expected = TurnOutcome {
        outcome: Conclusion::Answer,
        text: "two".into(),
        gaps: vec![],
        artifacts: vec![],
        artifacts_left_out: 0,
        steps_used: 2,
        derivations: 0,
        stop_reason: StopReason::CompleteAnswer,
    };
    assert_eq!(outcome, expected);
    assert_eq!(deriver.asked().derived, []);
    assert_eq!(deriver.asked().drawn, 0);
}

#[tokio::test]
async fn fetched_data_is_reread_as_its_alias_view() {
    let (mut script, deriver) = (Script::new([fetch(), answer("two")]), Counting::default());
    run(&turn(ChartIntent::None), &mut script, &deriver)
        .await
        .unwrap();
    let Entry::Result {
        alias, text, failed, ..
    } = &script.seen[1].entries[1]
    else {
        panic!("{:?}", script.seen[1].entries);
    };
    assert_eq!(alias.as_deref(), Some("get_reserves_1"));
    assert_eq!(text, r#"get_reserves_1 within 24000: [{"btc":2,"day":1}]"#);
    assert!(!failed);
    assert_eq!(script.seen[1].request, "how did the reserves change?");
}

#[tokio::test]
async fn a_chart_that_was_asked_for_and_emitted_makes_a_whole_answer() {
    for kind in [Image, Chart] {
        let deriver = Counting::giving([Ok(succeeded(&[(kind, "a")]))]);
        let mut script = Script::new([fetch(), derive(), answer("see the chart")]);
        let outcome = run(&turn(ChartIntent::Explicit), &mut script, &deriver)
            .await
            .unwrap();
        assert_eq!(outcome.outcome, Conclusion::Answer);
        assert_eq!(outcome.artifacts[0].kind, kind);
        assert_eq!(outcome.derivations, 1);
        assert_eq!(deriver.asked().derived[0].code, "set_result(1)");
        assert_eq!(deriver.asked().derived[0].contract, json!({"operation": "o"}));
    }
}

#[tokio::test]
async fn a_chart_can_be_drawn_without_python() {
    let deriver = Counting::giving([Ok(succeeded(&[(Chart, "a")]))]);
    let mut script = Script::new([calls(&[("render_chart", json!({}))]), answer("here")]);
    let outcome = run(&turn(ChartIntent::Explicit), &mut script, &deriver)
        .await
        .unwrap();
    assert_eq!(outcome.outcome, Conclusion::Answer);
    assert_eq!((deriver.asked().drawn, outcome.derivations), (1, 0));
}

#[tokio::test]
async fn an_answer_without_the_chart_that_was_asked_for_says_so() {
    let mut script = Script::new([answer("it fell"), answer("it rose")]);
    let outcome = run(&turn(ChartIntent::Explicit), &mut script, &Counting::default())
        .await
        .unwrap();
    assert_eq!(outcome.outcome, Conclusion::BestEffort);
    assert_eq!(outcome.stop_reason, StopReason::CompleteAnswer);
    assert_eq!(codes(&outcome), ["chart_missing"]);
    insta::assert_snapshot!(outcome.text, @"
    it rose

    ## Gaps

    Tell the user about each of these gaps in plain words. Do not leave one out, and do not describe a chart or a number that is not there.

    - `chart_missing`: a chart was asked for and could not be made
    ");
}

#[tokio::test]
async fn a_model_that_forgot_the_chart_is_asked_once_and_can_still_make_it() {
    let mut script = Script::new([answer("it rose"), derive(), answer("see the chart")]);
    let deriver = Counting::giving([Ok(succeeded(&[(Image, "a")]))]);
    let outcome = run(&turn(ChartIntent::Explicit), &mut script, &deriver)
        .await
        .unwrap();
    assert_eq!(
        (outcome.outcome, outcome.text.as_str(), outcome.steps_used),
        (Conclusion::Answer, "see the chart", 3)
    );
    let Entry::Notice(notice) = &script.seen[1].entries[0] else {
        panic!("{:?}", script.seen[1].entries);
    };
    assert!(
        notice.starts_with("the user asked for a chart and none was emitted"),
        "{notice}"
    );
}

#[tokio::test]
async fn a_chart_that_was_not_asked_for_is_no_gap() {
    for intent in [ChartIntent::None, ChartIntent::Implicit] {
        let (mut script, deriver) = (Script::new([answer("it rose")]), Counting::default());
        let outcome = run(&turn(intent), &mut script, &deriver).await.unwrap();
        assert_eq!(
            (outcome.outcome, outcome.text.as_str()),
            (Conclusion::Answer, "it rose")
        );
    }
}

#[tokio::test]
async fn artifacts_of_a_call_that_failed_do_not_count() {
    let failed = Derived {
        artifacts: succeeded(&[(Image, "a")]).artifacts,
        ..rejected(4)
    };
    let mut script = Script::new([derive(), answer("here"), answer("here")]);
    let outcome = run(
        &turn(ChartIntent::Explicit),
        &mut script,
        &Counting::giving([Ok(failed)]),
    )
    .await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.artifacts, []);
    assert_eq!(
        outcome.gaps[0].message,
        "a chart was asked for and could not be made; the latest failure: the contract expects `image`, but the cell \
         emitted none"
    );
}

#[tokio::test]
async fn equal_artifacts_are_kept_once_and_the_latest_ones_at_most() {
    let all = [
        (Image, "a"),
        (Image, "b"),
        (Chart, "c"),
        (Image, "d"),
        (Image, "e"),
        (Image, "b"),
    ];
    let deriver = Counting::giving([Ok(succeeded(&all))]);
    let mut script = Script::new([derive(), answer("here")]);
    let outcome = run(&turn(ChartIntent::None), &mut script, &deriver)
        .await
        .unwrap();
    let kept: Vec<_> = outcome.artifacts.iter().map(|it| it.sha256.as_str()).collect();
    assert_eq!(kept, ["c", "d", "e", "b"]);
    assert_eq!(outcome.artifacts_left_out, 1);
    assert_eq!(outcome.outcome, Conclusion::Answer);
}

#[tokio::test]
async fn a_tool_that_fails_is_a_result_and_the_turn_goes_on() {
    let mut script = Script::new([
        calls(&[
            ("broken", json!({})),
            ("missing", json!({})),
            ("get_reserves", json!({})),
        ]),
        answer("done"),
    ]);
    let outcome = run(&turn(ChartIntent::None), &mut script, &Counting::default())
        .await
        .unwrap();
    assert_eq!(outcome.outcome, Conclusion::Answer);
    assert_eq!(
        results(&script),
        [
            "the service answered 503",
            "this tool is not offered; offered: `get_reserves`, `broken`, `panics`, `code_interpreter`, `render_chart`",
            r#"get_reserves_1 within 23967: [{"btc":2,"day":1}]"#,
        ]
    );
}

#[tokio::test]
async fn a_result_that_cannot_be_kept_is_told() {
    let mut script = Script::new([fetch(), answer("done")]);
    let mut full = Ledger {
        full: true,
        ..Ledger::default()
    };
    let turn = turn(ChartIntent::None);
    turn.run(&mut script, &mut Host, Counting::default(), &mut full)
        .await
        .unwrap();
    assert_eq!(
        results(&script),
        ["the result could not be kept: 2 results of 2 are kept"]
    );
}

#[tokio::test]
async fn an_interpreter_that_fails_itself_is_told_without_its_places() {
    let error = crate::Error::Input {
        name: "x".into(),
        reason: "could not open `/srv/secret/x`".into(),
    };
    let mut script = Script::new([derive(), answer("done"), answer("done")]);
    let outcome = run(
        &turn(ChartIntent::Explicit),
        &mut script,
        &Counting::giving([Err(error)]),
    )
    .await
    .unwrap();
    assert_eq!(
        results(&script),
        ["the interpreter could not run this call, for a reason that is not in it; go on without it"]
    );
    assert!(!outcome.text.contains("/srv"), "{}", outcome.text);
    assert!(
        outcome.text.contains("the interpreter itself failed"),
        "{}",
        outcome.text
    );
}

#[tokio::test]
async fn arguments_that_cannot_be_read_are_refused_and_reach_no_python() {
    let deriver = Counting::default();
    let mut script = Script::new([calls(&[("code_interpreter", json!({"code": 1}))]), answer("done")]);
    let outcome = run(&turn(ChartIntent::None), &mut script, &deriver)
        .await
        .unwrap();
    assert_eq!(results(&script), ["refused"]);
    assert_eq!(outcome.derivations, 1);
    let asked = deriver.asked();
    assert_eq!(asked.derived, []);
    assert_eq!(
        (asked.refused.len(), asked.refused[0][0].code.as_str()),
        (1, "wrong_type")
    );
}

#[tokio::test]
async fn a_host_tool_of_the_toolsets_name_does_not_replace_it() {
    let (mut script, deriver) = (Script::new([derive(), answer("done")]), Counting::default());
    run(&turn(ChartIntent::None), &mut script, &deriver)
        .await
        .unwrap();
    assert_eq!(deriver.asked().derived.len(), 1);
    let definitions = script.seen[0]
        .tools
        .iter()
        .filter(|tool| tool.name == "code_interpreter");
    let descriptions: Vec<_> = definitions.map(|tool| tool.description.as_str()).collect();
    assert_eq!(descriptions.len(), 1);
    assert_ne!(descriptions[0], "of the host");
}

#[tokio::test]
async fn charts_are_offered_only_where_they_are_part_of_the_toolset() {
    let mut turn = turn(ChartIntent::None);
    turn.offer.render_chart = false;
    let (mut script, deriver) = (
        Script::new([calls(&[("render_chart", json!({}))]), answer("done")]),
        Counting::default(),
    );
    run(&turn, &mut script, &deriver).await.unwrap();
    assert_eq!(
        script.offered()[0],
        ["get_reserves", "broken", "code_interpreter"]
    );
    assert_eq!(deriver.asked().drawn, 0);
}

#[tokio::test]
async fn a_model_that_fails_with_nothing_there_is_an_error() {
    let error = run(
        &turn(ChartIntent::None),
        &mut Script::new([Act::Fail]),
        &Counting::default(),
    )
    .await;
    let error = error.unwrap_err();
    assert_eq!(error.to_string(), "call the model");
    let cause = std::error::Error::source(&error).unwrap();
    assert_eq!(cause.to_string(), "the provider closed the connection");
}

#[tokio::test]
async fn a_model_that_fails_later_leaves_what_there_is() {
    let deriver = Counting::giving([Ok(succeeded(&[(Image, "a")]))]);
    let mut script = Script::new([fetch(), derive(), Act::Fail]);
    let outcome = run(&turn(ChartIntent::Explicit), &mut script, &deriver)
        .await
        .unwrap();
    assert_eq!(outcome.stop_reason, StopReason::ModelFailed);
    assert_eq!(codes(&outcome), ["model_failed"]);
    assert_eq!(outcome.artifacts.len(), 1);
    insta::assert_snapshot!(outcome.text);
}

#[tokio::test]
async fn a_step_without_a_call_is_told_to_go_on() {
    let mut script = Script::new([calls(&[]), answer("done")]);
    run(&turn(ChartIntent::None), &mut script, &Counting::default())
        .await
        .unwrap();
    assert_eq!(
        script.seen[1].entries[1],
        Entry::Notice("the step called no tool; call one, or answer".into())
    );
}

#[tokio::test]
async fn a_step_may_call_only_so_many_tools() {
    let mut turn = turn(ChartIntent::None);
    turn.budget.calls_per_step = 2;
    let many = vec![("code_interpreter", code()); 3];
    let (mut script, deriver) = (Script::new([calls(&many), answer("done")]), Counting::default());
    run(&turn, &mut script, &deriver).await.unwrap();
    assert_eq!(deriver.asked().derived.len(), 2);
    assert_eq!(results(&script)[2], "not run: a step may call at most 2 tools");
}

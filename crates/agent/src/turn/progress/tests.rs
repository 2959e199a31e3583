//! Status of a turn, by what it has reached.

use cellblock_artifact::Store;
use cellblock_interpreter::alias::Bounds;
use cellblock_interpreter::contract::ArtifactKind::{self, Chart, Image};
use serde_json::json;

use super::*;

fn progress(chart_intent: ChartIntent) -> Progress {
    Progress::new(Plan { chart_intent }, Budget::default())
}

fn succeeded(artifacts: &[(ArtifactKind, &str)]) -> DerivedFacts {
    let emitted = |(kind, sha256): &(_, &str)| AnswerArtifact {
        kind: *kind,
        sha256: (*sha256).to_owned(),
    };
    DerivedFacts {
        ok: true,
        attempts_left: 5,
        artifacts: artifacts.iter().map(emitted).collect(),
        text: "result: 42".to_owned(),
        ..DerivedFacts::default()
    }
}

fn failed(attempts_left: u32) -> DerivedFacts {
    DerivedFacts {
        failure: Some("the contract expects `image`, but the cell emitted none".to_owned()),
        attempts_left,
        ..DerivedFacts::default()
    }
}

/// Results of one tool, and the folder that they are in.
async fn fetched() -> (AliasStore, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let aliases = AliasStore::new(Store::local(dir.path()).unwrap(), "owner", Bounds::default());
    aliases
        .record("get_reserves", &json!([{"day": 1, "btc": 2}]))
        .await
        .unwrap();
    (aliases, dir)
}

async fn conclude(progress: Progress, ending: TurnEnd) -> TurnOutcome {
    let (aliases, _dir) = fetched().await;
    progress.conclude(ending, &aliases).unwrap()
}

fn answer() -> TurnEnd {
    TurnEnd::Answer("it rose".to_owned())
}

fn codes(outcome: &TurnOutcome) -> Vec<&str> {
    outcome.gaps.iter().map(|gap| gap.code.as_str()).collect()
}

#[tokio::test]
async fn an_answer_without_gaps_is_whole() {
    for intent in [ChartIntent::None, ChartIntent::Implicit] {
        let outcome = conclude(progress(intent), answer()).await;
        assert_eq!(
            (outcome.outcome, outcome.text.as_str()),
            (Conclusion::Answer, "it rose")
        );
        assert_eq!(outcome.stop_reason, StopReason::CompleteAnswer);
    }
}

#[tokio::test]
async fn an_answer_without_the_requested_chart_says_so() {
    let outcome = conclude(progress(ChartIntent::Explicit), answer()).await;
    assert_eq!(outcome.outcome, Conclusion::BestEffort);
    assert_eq!(
        outcome.text,
        "it rose\n\n## Gaps\n\n- `chart_missing`: a chart was requested but could not be made"
    );
}

#[tokio::test]
async fn a_model_is_reminded_of_the_chart_once_and_only_where_it_can_still_make_one() {
    let mut forgot = progress(ChartIntent::Explicit);
    assert!(forgot.reminder().is_some());
    assert!(forgot.reminder().is_none());

    let mut drawn = progress(ChartIntent::Explicit);
    drawn.derived(&succeeded(&[(Image, "a")]));
    assert!(drawn.reminder().is_none());

    let mut exhausted = progress(ChartIntent::Explicit);
    exhausted.attempted(&failed(0));
    assert!(exhausted.reminder().is_none());

    let mut late = progress(ChartIntent::Explicit);
    (1..14).for_each(|_| late.step());
    assert_eq!(late.steps_left(), 1);
    assert!(late.reminder().is_none());
}

#[tokio::test]
async fn used_up_attempts_are_a_gap_and_an_earlier_mistake_still_explains_it() {
    let mut progress = progress(ChartIntent::Explicit);
    for derived in [failed(1), failed(0)] {
        progress.attempted(&derived);
        progress.derived(&derived);
    }
    assert!(progress.exhausted());
    progress.derived(&DerivedFacts {
        rejections: vec![Rejection {
            code: ATTEMPTS_EXHAUSTED.to_owned(),
            message: "no attempts are left".to_owned(),
            ..Rejection::default()
        }],
        ..DerivedFacts::default()
    });
    let outcome = conclude(progress, TurnEnd::Attempts).await;
    assert_eq!(outcome.stop_reason, StopReason::AttemptsExhausted);
    assert_eq!(outcome.derivations, 2);
    assert_eq!(codes(&outcome), ["chart_missing", "attempts_exhausted"]);
    assert!(
        outcome
            .text
            .contains("the latest failure: the contract expects `image`"),
        "{}",
        outcome.text
    );
}

#[tokio::test]
async fn a_failure_that_was_repaired_is_not_a_gap() {
    let mut progress = progress(ChartIntent::None);
    for derived in [failed(4), succeeded(&[])] {
        progress.attempted(&derived);
        progress.derived(&derived);
    }
    let outcome = conclude(progress, answer()).await;
    assert_eq!(outcome.outcome, Conclusion::Answer);
}

#[tokio::test]
async fn equal_artifacts_are_kept_once_and_only_the_latest_are_carried() {
    let mut progress = progress(ChartIntent::None);
    progress.derived(&succeeded(&[
        (Image, "a"),
        (Image, "b"),
        (Chart, "c"),
        (Image, "d"),
        (Image, "e"),
        (Image, "b"),
    ]));
    let outcome = conclude(progress, answer()).await;
    let kept: Vec<_> = outcome.artifacts.iter().map(|it| it.sha256.as_str()).collect();
    assert_eq!(kept, ["c", "d", "e", "b"]);
    assert_eq!(outcome.artifacts_left_out, 1);
}

#[tokio::test]
async fn artifacts_of_a_call_that_failed_do_not_count() {
    let mut progress = progress(ChartIntent::Explicit);
    progress.derived(&DerivedFacts {
        artifacts: succeeded(&[(Image, "a")]).artifacts,
        ..failed(4)
    });
    let outcome = conclude(progress, answer()).await;
    assert_eq!(outcome.artifacts, []);
    assert_eq!(codes(&outcome), ["chart_missing"]);
}

#[tokio::test]
async fn a_failed_model_leaves_the_available_data() {
    let failing = || TurnEnd::Model("the provider closed the connection".to_owned());
    let (aliases, _dir) = fetched().await;
    assert!(
        progress(ChartIntent::None)
            .conclude(failing(), &aliases)
            .is_none()
    );

    let mut progress = progress(ChartIntent::Explicit);
    progress.fetched();
    progress.derived(&succeeded(&[(Image, "a")]));
    let outcome = progress.conclude(failing(), &aliases).unwrap();
    assert_eq!(outcome.stop_reason, StopReason::ModelFailed);
    assert_eq!(outcome.artifacts.len(), 1);
    let text = &outcome.text;
    assert!(
        text.starts_with(
            "No answer was completed.\n\n## Derived\n\nresult: 42\n\n## Fetched\n\nget_reserves_1"
        ),
        "{text}"
    );
    assert!(
        text.ends_with("## Gaps\n\n- `model_failed`: the model failed before it had answered"),
        "{text}"
    );
}

#[tokio::test]
async fn steps_that_are_used_up_are_a_gap() {
    let mut progress = progress(ChartIntent::None);
    (0..10).for_each(|_| progress.step());
    assert_eq!(progress.steps_left(), 0);
    let outcome = conclude(progress, TurnEnd::Steps).await;
    assert_eq!(outcome.steps_used, 10);
    assert_eq!(codes(&outcome), ["step_budget_exhausted"]);
}

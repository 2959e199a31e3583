//! Turns of a scripted model over real sandboxes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use cellblock_interpreter::alias::{AliasStore, Bounds};
use cellblock_interpreter::derivation::Policy;
use cellblock_interpreter::turn::{
    ChartIntent, Conclusion, Entry, Model, ModelError, Plan, Step, StopReason, ToolCall, ToolDefinition,
    ToolError, Tools, Transcript, Turn,
};
use serde_json::{Value, json};

use crate::support::{block_on, interpreter};

const PATIENCE: Duration = Duration::from_secs(30);

/// Does its steps one after the other, and remembers what it last read.
#[derive(Default)]
struct Script {
    steps: VecDeque<Step>,
    read: Vec<String>,
}

impl Script {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: steps.into_iter().collect(),
            read: Vec::new(),
        }
    }
}

impl Model for Script {
    async fn step(&mut self, transcript: &Transcript) -> Result<Step, ModelError> {
        let texts = transcript.entries.iter().filter_map(|entry| match entry {
            Entry::Result { text, .. } => Some(text.clone()),
            _ => None,
        });
        self.read = texts.collect();
        self.steps
            .pop_front()
            .ok_or_else(|| ModelError::new("the script is at its end"))
    }
}

/// A tool that answers with levels of two accounts, the second of which is opened on the third day.
struct Host;

impl Tools for Host {
    fn definitions(&self) -> Vec<ToolDefinition> {
        vec![ToolDefinition {
            name: "get_levels".to_owned(),
            description: "levels of accounts".to_owned(),
            parameters: json!({"type": "object"}),
        }]
    }

    async fn call(&mut self, _: &str, _: &Value) -> Result<Value, ToolError> {
        Ok(json!([
            {"day": "2025-01-01", "a": 10, "b": null},
            {"day": "2025-01-02", "a": 12, "b": null},
            {"day": "2025-01-03", "a": 13, "b": 100},
            {"day": "2025-01-04", "a": 11, "b": 104},
        ]))
    }
}

fn call(name: &str, arguments: Value) -> Step {
    Step::Tools(vec![ToolCall {
        id: "call".to_owned(),
        name: name.to_owned(),
        arguments,
    }])
}

fn derive(code: &str, aliases: &[&str], artifacts: &[&str]) -> Step {
    call(
        "code_interpreter",
        json!({
            "intent": "the flow",
            "code": code,
            "postProcessingContract": {
                "operation": "changes of the total",
                "reason": "an account is opened in between",
                "inputAliases": aliases,
                "expectedArtifacts": artifacts,
            },
        }),
    )
}

fn turn() -> Turn {
    Turn {
        request: "how did the levels change? draw it".to_owned(),
        plan: Plan {
            chart_intent: ChartIntent::Explicit,
        },
        ..Turn::default()
    }
}

async fn aliases(owner: &str) -> AliasStore {
    let owner = format!("turn-{}-{owner}", std::process::id());
    AliasStore::new(interpreter().await.store().clone(), owner, Bounds::default())
}

#[test]
fn a_model_fetches_derives_repairs_and_answers() {
    const CODE: &str = "change = derive_change_series(get_levels_1, time_col='day')\n\
                        fig, ax = plt.subplots(); ax.bar(change.index, change['stable_entities_change'])\n\
                        save_figure('daily flows', 'Flows')\n\
                        set_result(change['stable_entities_change'].tolist())";
    block_on(async {
        let mut aliases = aliases("whole").await;
        let mut script = Script::new([
            call("get_levels", json!({})),
            derive("set_result(1)", &["get_level_1"], &["image"]),
            derive("set_result(1)", &["get_levels_1"], &["image"]),
            derive(CODE, &["get_levels_1"], &["image"]),
            Step::Answer("the real flow is 3, 2, 2".to_owned()),
        ]);
        let derivation = interpreter()
            .await
            .derivation(aliases.clone(), Policy::default())
            .await
            .unwrap();
        let outcome = turn()
            .run(&mut script, &mut Host, derivation, &mut aliases)
            .await
            .unwrap();
        assert_eq!(
            (
                outcome.outcome,
                outcome.stop_reason,
                outcome.steps_used,
                outcome.derivations
            ),
            (Conclusion::Answer, StopReason::CompleteAnswer, 5, 3)
        );
        assert_eq!(outcome.artifacts.len(), 1);
        let [levels, unknown, unsaved, derived] = &script.read[..] else {
            panic!("{:?}", script.read);
        };
        assert!(levels.starts_with("get_levels_1"), "{levels}");
        assert!(
            unknown.contains("did you mean `get_levels_1`") && unknown.contains("4 attempts are left"),
            "{unknown}"
        );
        assert!(
            unsaved.contains("the contract expects `image`") && unsaved.contains("3 attempts are left"),
            "{unsaved}"
        );
        assert!(
            derived.contains("status: ok")
                && derived.contains("[0.0,2.0,1.0,2.0]")
                && derived.contains("finding coverage_events"),
            "{derived}"
        );
        let dataset = aliases
            .canonical_dataset(
                &["get_levels_1"],
                Some(&json!([0, 2, 1, 2])),
                &Policy::default().urls,
            )
            .await
            .unwrap();
        let stored = interpreter().await.store().get(dataset.sha256).await.unwrap();
        let stored: Value = serde_json::from_slice(&stored).unwrap();
        assert!(stored.to_string().contains("2025-01-03"), "{stored}");
        aliases.close().await.unwrap();
    });
}

#[test]
fn a_turn_that_is_cancelled_in_a_cell_gives_its_sandbox_back() {
    block_on(async {
        let mut aliases = aliases("cancelled").await;
        aliases.record("get_levels", &json!([1])).await.unwrap();
        let derivation = interpreter()
            .await
            .derivation(aliases.clone(), Policy::default())
            .await
            .unwrap();
        let sandbox = derivation.session().prepare().await.unwrap().sandbox;
        let mut script = Script::new([derive("while True: pass", &["get_levels_1"], &[])]);
        let turn = turn();
        let mut host = Host;
        let running = turn.run(&mut script, &mut host, derivation, &mut aliases);
        assert!(
            tokio::time::timeout(Duration::from_millis(500), running)
                .await
                .is_err()
        );
        let before = Instant::now();
        while interpreter().await.sandboxes_in_use().contains(&sandbox) {
            assert!(before.elapsed() < PATIENCE, "the sandbox is still there");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

//! Events about each call for dashboards: when it started, and how it ended.
//!
//! Three events with the target [`TARGET`] and the field `event`: `python_call_start` once per
//! call, then `python_call_success` or `python_call_failure`, exactly one of them, also where a
//! call is cancelled or the host panics.
//!
//! | field | in | is |
//! |---|---|---|
//! | `event` | all | the event's name |
//! | `sandbox` | all | the sandbox's id; `none` where a call ended before it had one |
//! | `start` | all | `cold` for the call that made the sandbox, `warm` for the others, `none` without one |
//! | `inputs_bytes`, `code_bytes`, `alias_count` | start | the sizes of what was bound and run, and the names bound |
//! | `stdout_chars`, `artifact_count`, `image_count`, `chart_count` | success | what came out |
//! | `duration_ms` | success, failure | milliseconds since the start |
//! | `stage` | failure | what failed: see [`Stage`] |
//! | `reached` | failure | the stage in which the call was |
//! | `message` | failure | why, on one line, at most 500 characters |

use tracing::{info, warn};

use crate::render::plain::line;
use crate::watched::{CallWatch, WatchedCall, WatchedFailure};

/// The target of the events.
pub const TARGET: &str = "cellblock::python_call";

/// Characters of a failure's message.
const MESSAGE: usize = 500;

/// Stages at which a call can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its contract was checked.
    ContractBefore,
    /// Its inputs were bound.
    Bind,
    /// Its code ran.
    Python,
    /// Its emitted outputs were compared with its contract.
    ContractAfter,
    /// Its results were kept.
    Store,
    /// Its sandbox was made, or had to answer.
    Sandbox,
    /// It was given up: its future was dropped, or the host panicked.
    Cancelled,
}

impl Stage {
    /// Its name in the events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ContractBefore => "contract_before",
            Self::Bind => "bind",
            Self::Python => "python",
            Self::ContractAfter => "contract_after",
            Self::Store => "store",
            Self::Sandbox => "sandbox",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Number of artifacts of each kind that a call emitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Artifacts {
    /// Pictures.
    pub images: u64,
    /// Structured charts.
    pub charts: u64,
}

/// A call that is under way. Dropped without an end, it tells that the call was cancelled.
#[derive(Debug)]
#[must_use = "dropping it tells that the call was cancelled"]
pub struct CallProbe(CallWatch<DerivationProbe>);

/// Derivation that was called.
#[derive(Debug)]
struct DerivationProbe {
    sandbox: String,
    start: &'static str,
}

impl CallProbe {
    /// Tells that a call starts in a sandbox, which was made for it or is warm. The id is empty
    /// where the call ends before it gets one.
    pub fn start(sandbox: &str, made: bool, inputs_bytes: u64, code_bytes: u64, alias_count: u64) -> Self {
        let (sandbox, start) = match (sandbox, made) {
            ("", _) => ("none", "none"),
            (sandbox, true) => (sandbox, "cold"),
            (sandbox, false) => (sandbox, "warm"),
        };
        info!(
            target: TARGET,
            event = "python_call_start",
            sandbox,
            start,
            inputs_bytes,
            code_bytes,
            alias_count,
        );
        let sandbox = sandbox.to_owned();
        Self(CallWatch::start(DerivationProbe { sandbox, start }, Stage::Bind))
    }

    /// Notes how far the call is, for when it is cancelled.
    pub fn reached(&mut self, stage: Stage) {
        self.0.reached(stage);
    }

    /// Tells that the call kept its contract.
    pub fn succeed(self, stdout_chars: u64, artifacts: Artifacts) {
        self.0.succeed(|call, duration_ms| {
            info!(
                target: TARGET,
                event = "python_call_success",
                sandbox = call.sandbox,
                start = call.start,
                stdout_chars,
                artifact_count = artifacts.images + artifacts.charts,
                image_count = artifacts.images,
                chart_count = artifacts.charts,
                duration_ms,
            );
        });
    }

    /// Tells that the call failed, and where.
    pub fn fail(mut self, stage: Stage, message: &str) {
        self.0.reached(stage);
        self.0.fail(message);
    }
}

impl WatchedCall for DerivationProbe {
    type Stage = Stage;

    const CANCELLED: Stage = Stage::Cancelled;

    fn failed(&self, failure: WatchedFailure<'_, Stage>) {
        let message: String = failure.message.chars().take(MESSAGE).collect();
        warn!(
            target: TARGET,
            event = "python_call_failure",
            sandbox = self.sandbox,
            start = self.start,
            stage = failure.stage.name(),
            reached = failure.reached.name(),
            duration_ms = failure.duration_ms,
            "{}",
            line(&message)
        );
    }
}

#[cfg(test)]
mod tests {
    use cellblock_testkit::LogRecords;
    use serde_json::{Value, json};

    use super::*;

    /// Events that something tells, with a duration replaced by whether it is one.
    fn told(act: impl FnOnce()) -> Vec<Value> {
        let records = LogRecords::take();
        act();
        let mut events = records.all();
        for event in &mut events {
            event.as_object_mut().unwrap().remove("timestamp");
            if let Some(duration) = event["fields"].get_mut("duration_ms") {
                *duration = json!(duration.as_f64().is_some_and(|it| it >= 0.0));
            }
        }
        events
    }

    fn start() -> CallProbe {
        CallProbe::start("box-7", true, 2_000, 31, 3)
    }

    fn started() -> Value {
        json!({
            "level": "INFO",
            "target": "cellblock::python_call",
            "fields": {
                "event": "python_call_start",
                "sandbox": "box-7",
                "start": "cold",
                "inputs_bytes": 2000,
                "code_bytes": 31,
                "alias_count": 3,
            },
        })
    }

    fn failed(stage: &str, reached: &str, message: &str) -> Value {
        json!({
            "level": "WARN",
            "target": "cellblock::python_call",
            "fields": {
                "event": "python_call_failure",
                "sandbox": "box-7",
                "start": "cold",
                "stage": stage,
                "reached": reached,
                "duration_ms": true,
                "message": message,
            },
        })
    }

    #[test]
    fn a_call_that_succeeds_tells_its_start_and_what_came_out() {
        let artifacts = Artifacts { images: 2, charts: 1 };
        let success = json!({
            "level": "INFO",
            "target": "cellblock::python_call",
            "fields": {
                "event": "python_call_success",
                "sandbox": "box-7",
                "start": "cold",
                "stdout_chars": 12,
                "artifact_count": 3,
                "image_count": 2,
                "chart_count": 1,
                "duration_ms": true,
            },
        });
        assert_eq!(told(|| start().succeed(12, artifacts)), [started(), success]);
    }

    #[test]
    fn a_call_that_fails_tells_where_and_why() {
        for stage in [
            Stage::ContractBefore,
            Stage::Bind,
            Stage::Python,
            Stage::ContractAfter,
            Stage::Store,
            Stage::Sandbox,
        ] {
            let expected = failed(stage.name(), stage.name(), "KeyError: 'x'\\n\\u{1b}[31m");
            let events = told(|| start().fail(stage, "KeyError: 'x'\n\u{1b}[31m"));
            assert_eq!(events, [started(), expected]);
        }
    }

    #[test]
    fn a_long_message_is_cut() {
        let events = told(|| start().fail(Stage::Python, &"é".repeat(501)));
        assert_eq!(events[1]["fields"]["message"], "é".repeat(500));
    }

    #[test]
    fn a_warm_call_and_one_without_a_sandbox_are_told_apart() {
        let start_of = |sandbox, made| {
            let events = told(|| CallProbe::start(sandbox, made, 0, 0, 0).succeed(0, Artifacts::default()));
            let fields = events.iter().map(|it| &it["fields"]);
            let told: Vec<_> = fields
                .map(|it| [it["sandbox"].clone(), it["start"].clone()])
                .collect();
            assert_eq!(told[0], told[1]);
            told[0].clone()
        };
        assert_eq!(start_of("a", true), ["a", "cold"]);
        assert_eq!(start_of("a", false), ["a", "warm"]);
        assert_eq!(start_of("", true), ["none", "none"]);
    }

    #[test]
    fn a_call_that_is_dropped_tells_once_that_it_was_cancelled() {
        let events = told(|| {
            let mut probe = start();
            probe.reached(Stage::Python);
        });
        assert_eq!(
            events,
            [started(), failed("cancelled", "python", "the call was cancelled")]
        );
    }

    #[test]
    fn a_call_whose_host_panics_tells_once_that_it_was_cancelled() {
        let events = told(|| {
            let panics = || {
                let _probe = start();
                panic!("on purpose");
            };
            std::panic::catch_unwind(panics).unwrap_err();
        });
        assert_eq!(
            events,
            [started(), failed("cancelled", "bind", "the host panicked")]
        );
    }

    #[tokio::test]
    async fn a_call_whose_future_is_dropped_tells_once_that_it_was_cancelled() {
        let events = told(|| {
            let mut call = Box::pin(async {
                let _probe = start();
                std::future::pending::<()>().await;
            });
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(call.as_mut().poll(&mut context).is_pending());
        });
        assert_eq!(
            events,
            [started(), failed("cancelled", "bind", "the call was cancelled")]
        );
    }
}

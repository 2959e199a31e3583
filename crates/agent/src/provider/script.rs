//! A provider whose answers are in a file, for tests and demonstrations.
//!
//! An answer can contain text, reasoning, calls, delays and failures. A request's answer is
//! selected by the user's last message (`conversations`), or else by the order of the file
//! (`answers`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::time::sleep;

use super::demo::from_user;
use super::scripted::ScriptedAnswer;
use super::{Finish, ModelEvent, ModelRequest, ModelStream, Provider, ProviderError};
use crate::wire::Item;

/// Placeholder for the result of the last call.
const RESULT: &str = "{{result}}";

/// A set of answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Answers to certain messages of users; the first match counts.
    pub conversations: Vec<ScriptedConversation>,
    /// Answers to all other requests, each used once and in this order.
    pub answers: Vec<ScriptedTurn>,
    /// Whether the answers start again after the last.
    pub repeat: bool,
    #[serde(skip)]
    next: AtomicUsize,
}

/// Answers to a certain message.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedConversation {
    /// Text in the user's last message, ignoring case.
    pub when: String,
    /// The answer to it, then the answer to the results of that answer's calls, and so on.
    pub answers: Vec<ScriptedTurn>,
}

/// One answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedTurn {
    /// Delay before it starts, in seconds.
    #[serde(deserialize_with = "seconds")]
    pub delay: Duration,
    /// Delay before each piece, in seconds.
    #[serde(deserialize_with = "seconds")]
    pub pause: Duration,
    /// Reasoning, which comes first.
    pub reasoning: Option<String>,
    /// Text. `{{result}}` in it is replaced by the result of the last call.
    pub text: Option<String>,
    /// Calls at the end.
    pub calls: Vec<ScriptedCall>,
    /// Reason for its end, if it differs from the usual one.
    pub finish: Option<ScriptedEnding>,
    /// Failure after everything else.
    pub fail: Option<ScriptedFailure>,
}

/// A call of a tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// Id; generated if missing.
    pub id: Option<String>,
    /// Name of the tool.
    pub name: String,
    /// Arguments: a mapping, or text that is sent unchanged, valid or not.
    #[serde(default)]
    pub arguments: ScriptedArguments,
}

/// Arguments of a call.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum ScriptedArguments {
    /// Sent unchanged.
    Text(String),
    /// Sent as JSON.
    Keys(BTreeMap<String, Value>),
}

impl Default for ScriptedArguments {
    fn default() -> Self {
        Self::Keys(BTreeMap::new())
    }
}

/// The reason why an answer ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedEnding {
    /// The maximum number of tokens was reached.
    Length,
    /// The provider's content filter stopped it.
    ContentFilter,
}

/// A failure of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ScriptedFailure {
    /// The connection breaks.
    Cut,
    /// The stream stops without an end.
    Silence,
    /// The provider rejects the request with this HTTP status.
    Status(u16),
    /// The provider reports an error with this message.
    Error(String),
}

impl Script {
    /// Returns the answer to a request.
    fn answer(&self, request: &ModelRequest) -> Option<&ScriptedTurn> {
        let said = request.items.iter().rposition(|item| from_user(item).is_some());
        let text = said
            .and_then(|at| from_user(&request.items[at]))
            .unwrap_or_default()
            .to_lowercase();
        let conversation = self
            .conversations
            .iter()
            .find(|conversation| text.contains(&conversation.when.to_lowercase()));
        if let Some(conversation) = conversation {
            return conversation
                .answers
                .get(rounds(&request.items[said.map_or(0, |at| at + 1)..]));
        }
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        if self.repeat {
            return self.answers.get(next.checked_rem(self.answers.len())?);
        }
        self.answers.get(next)
    }
}

/// Returns how often tools have returned results.
fn rounds(items: &[Item]) -> usize {
    let result = |item: &Item| matches!(item, Item::FunctionCallOutput(_) | Item::CodeInterpreterCall(_));
    let begins = |at: &usize| result(&items[*at]) && (*at == 0 || !result(&items[*at - 1]));
    (0..items.len()).filter(begins).count()
}

impl ScriptedTurn {
    fn steps(&self, result: &str) -> Vec<Result<ModelEvent, ProviderError>> {
        let mut answer = ScriptedAnswer::new();
        if let Some(reasoning) = &self.reasoning {
            answer = answer.reasoning(reasoning);
        }
        if let Some(text) = &self.text {
            answer = answer.text(&text.replace(RESULT, result));
        }
        for (place, call) in self.calls.iter().enumerate() {
            let id = call.id.clone().unwrap_or_else(|| format!("call_{place}"));
            let arguments = match &call.arguments {
                ScriptedArguments::Text(text) => text.clone(),
                ScriptedArguments::Keys(keys) => serde_json::json!(keys).to_string(),
            };
            answer = answer.call(&id, &call.name, &arguments);
        }
        answer = match &self.fail {
            Some(ScriptedFailure::Cut | ScriptedFailure::Silence) => answer.fails(ProviderError::Cut),
            Some(ScriptedFailure::Error(message)) => answer.fails(ProviderError::Reported {
                message: message.clone(),
                code: None,
            }),
            Some(ScriptedFailure::Status(_)) | None => answer,
        };
        let mut steps = answer.steps();
        if let (Some(ending), Some(Ok(ModelEvent::Finish(finish)))) = (self.finish, steps.last_mut()) {
            *finish = match ending {
                ScriptedEnding::Length => Finish::Length,
                ScriptedEnding::ContentFilter => Finish::ContentFilter,
            };
        }
        if self.fail == Some(ScriptedFailure::Silence) {
            steps.pop();
        }
        steps
    }

    async fn begin(self, result: String) -> Result<ModelStream, ProviderError> {
        sleep(self.delay).await;
        if let Some(ScriptedFailure::Status(status)) = self.fail {
            return Err(ProviderError::Status {
                status,
                message: "so the script wants it".to_owned(),
                retry_after: None,
            });
        }
        let pause = self.pause;
        let steps = stream::iter(self.steps(&result)).then(move |step| async move {
            if !pause.is_zero() {
                sleep(pause).await;
            }
            step
        });
        Ok(if self.fail == Some(ScriptedFailure::Silence) {
            steps.chain(stream::pending()).boxed()
        } else {
            steps.boxed()
        })
    }
}

impl Provider for Script {
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        let result = request.items.iter().rev().find_map(|item| match item {
            Item::FunctionCallOutput(output) => Some(output.output.text()),
            _ => None,
        });
        let answer = self.answer(&request).cloned();
        Box::pin(async move {
            let answer =
                answer.ok_or_else(|| ProviderError::malformed("the script has no answer to this"))?;
            answer.begin(result.unwrap_or_default()).await
        })
    }
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::tests::{events, request, said};
    use crate::wire::{FunctionCallOutput, FunctionOutput, ItemStatus, Part, Role};

    fn script(script: Value) -> Script {
        serde_json::from_value(script).unwrap()
    }

    fn text(events: &[ModelEvent]) -> String {
        let texts = events.iter().filter_map(|event| match event {
            ModelEvent::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    fn user(text: &str) -> Item {
        let text = text.to_owned();
        said(Role::User, vec![Part::InputText { text }])
    }

    fn output(text: &str) -> Item {
        Item::FunctionCallOutput(FunctionCallOutput {
            caller: None,
            id: "fco".to_owned(),
            status: ItemStatus::Completed,
            call_id: "call_0".to_owned(),
            output: FunctionOutput::Text(text.to_owned()),
        })
    }

    async fn answer(script: &Script, items: Vec<Item>) -> Vec<ModelEvent> {
        let request = ModelRequest { items, ..request() };
        let stream = script.stream(request).await.unwrap();
        stream.map(Result::unwrap).collect().await
    }

    #[tokio::test]
    async fn answers_come_in_order_and_start_again_if_they_repeat() {
        let answers = json!([{"text": "one"}, {"reasoning": "hm", "text": "two", "finish": "length"}]);
        let once = script(json!({"answers": answers}));
        let again = script(json!({"answers": answers, "repeat": true}));
        for script in [&once, &again] {
            assert_eq!(text(&events(script).await.0), "one");
            let (two, _) = events(script).await;
            assert_eq!(two[0], ModelEvent::Reasoning("hm".to_owned()));
            assert_eq!(two.last(), Some(&ModelEvent::Finish(Finish::Length)));
        }
        assert_eq!(text(&events(&again).await.0), "one");
        assert_eq!(
            events(&once).await.1.unwrap().to_string(),
            "read the provider's answer: the script has no answer to this"
        );
        assert!(events(&script(json!({"repeat": true}))).await.1.is_some());
    }

    #[tokio::test]
    async fn a_conversation_continues_with_the_results_of_its_calls() {
        let script = script(json!({"conversations": [{"when": "SUM", "answers": [
            {"calls": [{"name": "code_interpreter", "arguments": {"code": "1 + 1"}},
                {"name": "f", "arguments": "{broken", "id": "x"}]},
            {"text": "It is {{result}}."},
        ]}]}));
        for _ in 0..2 {
            let first = answer(&script, vec![user("the sum, please")]).await;
            let ids: Vec<_> = first
                .iter()
                .filter_map(|event| match event {
                    ModelEvent::CallBegin { id, .. } => Some(id.as_str()),
                    _ => None,
                })
                .collect();
            assert_eq!(ids, ["call_0", "x"]);
            assert!(first.contains(&ModelEvent::Arguments {
                call: 1,
                delta: "{broken".to_owned()
            }));
            let items = vec![
                user("before"),
                output("7"),
                user("the sum, please"),
                output("1"),
                output("2"),
            ];
            assert_eq!(text(&answer(&script, items).await), "It is 2.");
        }
    }

    #[tokio::test]
    async fn answers_fail_as_scripted() {
        let script = script(json!({"answers": [
            {"text": "half", "fail": "cut"},
            {"fail": {"status": 503}},
            {"text": "so", "fail": {"error": "no memory"}},
            {"text": "so", "fail": "silence", "delay": 0.001, "pause": 0.001},
        ]}));
        let (half, error) = events(&script).await;
        assert_eq!(half, [ModelEvent::Text("half".to_owned())]);
        assert!(matches!(error, Some(ProviderError::Cut)));
        let (_, error) = events(&script).await;
        assert!(matches!(error, Some(ProviderError::Status { status: 503, .. })));
        let (_, error) = events(&script).await;
        assert!(matches!(error, Some(ProviderError::Reported { message, .. }) if message == "no memory"));
        let mut silent = script.stream(request()).await.unwrap();
        assert_eq!(
            silent.next().await.unwrap().unwrap(),
            ModelEvent::Text("so".to_owned())
        );
        let more = tokio::time::timeout(Duration::from_millis(50), silent.next()).await;
        assert!(more.is_err(), "{more:?}");
    }
}

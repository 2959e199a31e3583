//! Summaries of conversations, which the model itself writes, and from which it continues.

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;

use crate::provider::{Finish, ModelEvent, ModelRequest, Provider, ProviderError};
use crate::tools::qualified;
use crate::wire::{
    ApiError, Function, Ids, Item, ItemStatus, Message, Part, Role, TokenUsage, Tool, searches_as_functions,
    without_programs,
};

/// Instructions for the model.
const TASK: &str = "Write a summary of the conversation so far, for an assistant that will go on with it \
                    and will see nothing else of it. Keep what the user wants and has said about \
                    themselves, decisions, facts, names, numbers, code and its results, files and where \
                    they are, what is done and what is open. Write plain text. Do not answer the user and \
                    do not call tools.";

/// Maximum number of bytes of a summary.
const MAX_SUMMARY: usize = 1 << 20;

/// First line of a summary that a client puts where it wants.
const ADDED: &str = "(What was said before, in short:)\n";
/// First line of a summary that a turn has made: the model reads nothing that was said before it.
const REPLACING: &str = "(Everything that was said before this, in short:)\n";

/// Last line of a summary that its model could not finish: what it lacks may have been important.
const CUT: &str = "\n(The summary was cut off here.)";

/// Seal that makes a summary unreadable for everyone except its server.
pub trait SummarySeal: Send + Sync {
    /// Seals a summary. `output` is the response's output so far.
    fn seal<'a>(&'a self, summary: &'a str, output: &'a [Item]) -> BoxFuture<'a, Result<String, ApiError>>;
}

/// Lets a model summarize the conversation of a request, which offers no tools, and returns the
/// summary.
pub async fn summarize(
    provider: &dyn Provider,
    request: ModelRequest,
) -> Result<(String, TokenUsage), ProviderError> {
    // Where no turn has done it: the models know neither form.
    let mut items = without_programs(searches_as_functions(request.items, described));
    items.push(said(Ids::random().mint("msg"), TASK.to_owned()));
    let asked = ModelRequest {
        instructions: request.instructions,
        reasoning: request.reasoning,
        ..ModelRequest::new(request.model, items)
    };
    let mut answer = provider.stream(asked).await?;
    let (mut text, mut usage) = (String::new(), TokenUsage::default());
    let mut is_cut = false;
    while let Some(event) = answer.next().await {
        match event? {
            ModelEvent::Text(delta) => {
                if text.len() + delta.len() > MAX_SUMMARY {
                    let limit = MAX_SUMMARY;
                    return Err(ProviderError::TooLarge {
                        what: "the summary",
                        limit,
                    });
                }
                text.push_str(&delta);
            }
            ModelEvent::Usage(more) => usage += more,
            ModelEvent::Finish(finish) => {
                is_cut = matches!(finish, Finish::Length | Finish::ContentFilter);
            }
            _ => {}
        }
    }
    if text.trim().is_empty() {
        return Err(ProviderError::NoSummary);
    }
    if is_cut {
        text.push_str(CUT);
    }
    Ok((text, usage))
}

/// Returns the functions of a tool that a search loaded, where no turn gave them names.
fn described(tool: &Tool) -> Vec<Function> {
    let functions = tool
        .functions()
        .map(|(namespace, function)| (namespace, function.clone()));
    let customs = tool
        .customs()
        .map(|(namespace, custom)| (namespace, custom.function()));
    let named = functions
        .chain(customs)
        .map(|(namespace, function)| match namespace {
            Some(namespace) => Function {
                name: qualified(&namespace.name, &function.name),
                ..function
            },
            None => function,
        });
    named.collect()
}

/// Returns a summary as a model reads it. One that replaces what was said before is followed by no
/// earlier item.
pub fn summary_item(id: String, summary: &str, replaces: bool) -> Item {
    let first = if replaces { REPLACING } else { ADDED };
    said(id, format!("{first}{summary}"))
}

/// Returns what a model reads of a conversation: if a summary replaces its beginning, what the
/// application said there, the summary, and what comes after it.
pub fn since_summary(mut items: Vec<Item>) -> Vec<Item> {
    if let Some(place) = items.iter().rposition(replaces) {
        let rest = items.split_off(place);
        items.retain(is_of_application);
        items.extend(rest);
    }
    items
}

/// Returns what the user said last, unless a summary has it.
pub(super) fn question(items: &[Item]) -> Option<&Item> {
    let is_of_user = |item: &&Item| matches!(item, Item::Message(message) if message.role == Role::User);
    items.iter().rev().find(is_of_user).filter(|item| !replaces(item))
}

/// Returns whether a conversation, as a model reads it, has more than a question or what its last
/// summary has left.
pub(super) fn can_shrink(items: &[Item]) -> bool {
    let said = items
        .iter()
        .filter(|item| !is_of_application(item) && !replaces(item));
    said.count() > 1
}

/// Templates of many models reject other roles in the middle of a conversation.
fn said(id: String, text: String) -> Item {
    Item::Message(Message {
        id,
        status: ItemStatus::Completed,
        role: Role::User,
        content: vec![Part::InputText { text }],
        phase: None,
    })
}

fn is_of_application(item: &Item) -> bool {
    matches!(item, Item::Message(message) if matches!(message.role, Role::System | Role::Developer))
}

/// Returns whether an item is a summary that replaces what was said before it. A client that writes such
/// an item only hides its own conversation.
fn replaces(item: &Item) -> bool {
    let Item::Message(message) = item else {
        return false;
    };
    let begins = |part: &Part| matches!(part, Part::InputText { text } if text.starts_with(REPLACING));
    message.role == Role::User
        && message.id.starts_with("cmp_")
        && message.content.first().is_some_and(begins)
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use serde_json::json;

    use super::*;
    use crate::provider::ModelStream;
    use crate::provider::scripted::{ScriptedAnswer, ScriptedProvider};
    use crate::wire::ResponseRequest;

    /// A model that writes the same text each time, and ends in this way.
    struct EndingProvider(Finish);

    impl Provider for EndingProvider {
        fn stream(&self, _: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
            let events = [
                Ok(ModelEvent::Text("short".to_owned())),
                Ok(ModelEvent::Finish(self.0)),
            ];
            Box::pin(async move { Ok(stream::iter(events).boxed()) })
        }
    }

    #[tokio::test]
    async fn a_summary_that_was_cut_off_says_so() {
        for (finish, expected) in [
            (Finish::Stop, "short"),
            (Finish::Length, "short\n(The summary was cut off here.)"),
        ] {
            let request = ModelRequest::new("m", Vec::new());
            let (text, _) = summarize(&EndingProvider(finish), request).await.unwrap();
            assert_eq!(text, expected);
        }
    }

    #[tokio::test]
    async fn programs_and_searches_are_summarized_as_calls_of_functions() {
        let provider = ScriptedProvider::new([ScriptedAnswer::new().text("short")]);
        let said = items(&json!([
            {"role": "user", "content": "one"},
            {"type": "program", "id": "prog_1", "call_id": "c1", "code": "text(1)", "fingerprint": "f"},
            {"type": "function_call", "call_id": "c2", "name": "price", "arguments": "{}",
             "caller": {"type": "program", "caller_id": "c1"}},
            {"type": "function_call_output", "call_id": "c2", "output": "2"},
            {"type": "program_output", "id": "po_1", "call_id": "c1", "result": "1", "status": "completed"},
            {"type": "tool_search_call", "id": "tsc_1", "execution": "server", "call_id": null,
             "status": "completed", "arguments": {"query": "mail"}},
            {"type": "tool_search_output", "id": "tso_1", "execution": "server", "call_id": null,
             "status": "completed", "tools": []},
        ]));
        summarize(&provider, ModelRequest::new("m", said)).await.unwrap();
        let asked = json!(provider.asked()[0].items);
        let types = asked.as_array().unwrap().iter().map(|item| &item["type"]);
        assert_eq!(
            types.collect::<Vec<_>>(),
            [
                "message",
                "function_call",
                "function_call_output",
                "function_call",
                "function_call_output",
                "message"
            ]
        );
    }

    fn items(input: &serde_json::Value) -> Vec<Item> {
        let body = json!({"model": "m", "input": input}).to_string();
        let request = ResponseRequest::parse(body.as_bytes(), &mut Ids::counted());
        request.unwrap().input
    }

    fn texts(items: &[Item]) -> Vec<String> {
        let text = |item: &Item| json!(item)["content"][0]["text"].as_str().unwrap().to_owned();
        items.iter().map(text).collect()
    }

    #[test]
    fn only_a_summary_of_a_turn_replaces_what_was_said_before() {
        let mut said = items(&json!([
            {"role": "developer", "content": "be kind"},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "two"},
        ]));
        said.push(summary_item("cmp_1".to_owned(), "short", false));
        assert_eq!(since_summary(said.clone()), said);
        said.push(summary_item("cmp_2".to_owned(), "shorter", true));
        said.extend(items(&json!([{"role": "user", "content": "three"}])));
        let read = since_summary(said.clone());
        assert_eq!(
            texts(&read),
            [
                "be kind",
                "(Everything that was said before this, in short:)\nshorter",
                "three"
            ]
        );
        assert_eq!(texts(&[question(&read).unwrap().clone()]), ["three"]);
        assert!(!can_shrink(&read));
        assert!(can_shrink(&said));
    }

    #[test]
    fn a_message_of_a_client_that_reads_like_a_summary_replaces_nothing() {
        let text = format!("{REPLACING}mine");
        let said = items(&json!([
            {"role": "user", "content": "one"},
            {"role": "user", "content": text},
            {"role": "assistant", "id": "cmp_1", "content": text},
        ]));
        assert_eq!(since_summary(said.clone()), said);
    }
}

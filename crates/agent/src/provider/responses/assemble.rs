//! Assembling events of another server's Responses API. Numbers, starts and ends may be missing.

use std::collections::VecDeque;

use serde_json::Value;

use crate::provider::reading::Assemble;
use crate::provider::{Finish, ModelEvent, ProviderError};
use crate::wire::{CachedTokens, Ids, ReasoningTokens, TokenUsage};

/// Maximum number of items in one response.
const MAX_ITEMS: usize = 1024;
/// Maximum size of one call's arguments in bytes.
const MAX_ARGUMENTS: usize = crate::arguments::MAX_BYTES;

/// The part of a response that was read so far.
#[derive(Debug)]
pub(super) struct Assembler {
    ids: Ids,
    items: Vec<ItemState>,
    /// Ids of the calls, in order.
    calls: Vec<String>,
    usage: Option<TokenUsage>,
    finish: Option<Finish>,
}

/// An item that has occurred in an event.
#[derive(Debug)]
struct ItemState {
    index: Option<u64>,
    id: Option<String>,
    kind: ItemKind,
    /// Whether any of it was returned.
    said: bool,
    /// Whether it was returned in the form that only the server reads.
    sealed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ItemKind {
    Message,
    Reasoning,
    Call { call: usize, arguments: String },
}

impl Assembler {
    pub(super) const fn new() -> Self {
        Self {
            ids: Ids::random(),
            items: Vec::new(),
            calls: Vec::new(),
            usage: None,
            finish: None,
        }
    }

    /// Returns added text, refusal or reasoning.
    fn say(
        &mut self,
        event: &Value,
        kind: &ItemKind,
        make: fn(String) -> ModelEvent,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ProviderError> {
        let item = self.find(event, kind);
        let item = item.map_or_else(|| self.add(event, kind.clone()), Ok)?;
        let delta = event["delta"].as_str().unwrap_or_default();
        if !delta.is_empty() {
            self.items[item].said = true;
            out.push_back(make(delta.to_owned()));
        }
        Ok(())
    }

    /// Handles a complete item: returns the parts that were not returned yet.
    fn item(&mut self, event: &Value, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        let item = &event["item"];
        match item["type"].as_str() {
            Some("message") => {
                let seen = self
                    .find(event, &ItemKind::Message)
                    .map_or_else(|| self.add(event, ItemKind::Message), Ok)?;
                let parts = item["content"].as_array().map_or(&[][..], Vec::as_slice);
                for part in parts.iter().filter(|_| !self.items[seen].said) {
                    match (part["text"].as_str(), part["refusal"].as_str()) {
                        (Some(text), _) if !text.is_empty() => {
                            out.push_back(ModelEvent::Text(text.to_owned()));
                        }
                        (_, Some(text)) if !text.is_empty() => {
                            out.push_back(ModelEvent::Refusal(text.to_owned()));
                        }
                        _ => {}
                    }
                }
                self.items[seen].said |= parts
                    .iter()
                    .any(|part| part["text"] != "" || part["refusal"].is_string());
            }
            Some("reasoning") => {
                let seen = self
                    .find(event, &ItemKind::Reasoning)
                    .map_or_else(|| self.add(event, ItemKind::Reasoning), Ok)?;
                let texts = |key: &str| item[key].as_array().map_or(&[][..], Vec::as_slice).iter();
                // The reasoning itself if there is any, else its summary.
                let parts: Vec<_> = texts("content")
                    .filter_map(|part| part["text"].as_str())
                    .collect();
                let told: Vec<_> = texts("summary")
                    .filter_map(|part| part["text"].as_str())
                    .collect();
                let text = if parts.is_empty() {
                    told.concat()
                } else {
                    parts.concat()
                };
                if !text.is_empty() && !std::mem::replace(&mut self.items[seen].said, true) {
                    out.push_back(ModelEvent::Reasoning(text));
                }
                if let Some(content) = item["encrypted_content"].as_str().filter(|text| !text.is_empty())
                    && !std::mem::replace(&mut self.items[seen].sealed, true)
                {
                    out.push_back(ModelEvent::Sealed(content.to_owned()));
                }
            }
            Some("function_call") => {
                let seen = match self.find_call(event) {
                    Some(seen) => seen,
                    None => self.begin(event, out)?,
                };
                self.complete(seen, item["arguments"].as_str().unwrap_or_default(), out)?;
            }
            // Tools that the server itself runs are ignored.
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, event: &Value, out: &mut VecDeque<ModelEvent>) -> Result<usize, ProviderError> {
        let item = &event["item"];
        let name = item["name"].as_str().filter(|name| !name.is_empty());
        let name = name
            .ok_or_else(|| ProviderError::malformed("a call of a tool has no name"))?
            .to_owned();
        let given = [&item["call_id"], &item["id"]]
            .into_iter()
            .find_map(Value::as_str);
        let given = given.filter(|id| !id.is_empty() && !self.calls.iter().any(|other| other == id));
        let id = given.map_or_else(|| self.ids.mint("call"), str::to_owned);
        let call = self.calls.len();
        let arguments = String::new();
        let seen = self.add(event, ItemKind::Call { call, arguments })?;
        self.calls.push(id.clone());
        out.push_back(ModelEvent::CallBegin { call, id, name });
        Ok(seen)
    }

    /// Adds arguments to a call.
    fn grow(
        &mut self,
        seen: usize,
        delta: &str,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ProviderError> {
        if let ItemKind::Call { call, arguments } = &mut self.items[seen].kind
            && !delta.is_empty()
        {
            if arguments.len() + delta.len() > MAX_ARGUMENTS {
                let limit = MAX_ARGUMENTS;
                return Err(ProviderError::TooLarge {
                    what: "a call's arguments",
                    limit,
                });
            }
            arguments.push_str(delta);
            let (call, delta) = (*call, delta.to_owned());
            out.push_back(ModelEvent::Arguments { call, delta });
        }
        Ok(())
    }

    /// Returns the missing part of a call's arguments. Returned ones cannot be taken back, so
    /// differences are ignored.
    fn complete(
        &mut self,
        seen: usize,
        whole: &str,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ProviderError> {
        let ItemKind::Call { arguments, .. } = &self.items[seen].kind else {
            return Ok(());
        };
        match whole.strip_prefix(arguments.as_str()) {
            Some(rest) => self.grow(seen, rest, out),
            None => Ok(()),
        }
    }

    /// Handles a whole response: returns the parts that were not returned yet, and how it ended.
    fn whole(&mut self, response: &Value, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        let items = response["output"].as_array().map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            self.item(&serde_json::json!({"output_index": index, "item": item}), out)?;
        }
        self.usage = usage(&response["usage"]).or(self.usage);
        let reason = response["incomplete_details"]["reason"].as_str();
        self.finish = Some(match (response["status"].as_str(), reason) {
            (_, Some("content_filter")) => Finish::ContentFilter,
            (Some("incomplete"), _) | (_, Some(_)) => Finish::Length,
            _ => Finish::Stop,
        });
        Ok(())
    }

    /// Returns the item of an event: by its id, or else its number, or else the last of its kind.
    fn find(&self, event: &Value, kind: &ItemKind) -> Option<usize> {
        let same = std::mem::discriminant(kind);
        let mut of_kind = (0..self.items.len())
            .rev()
            .filter(|&item| std::mem::discriminant(&self.items[item].kind) == same);
        let (id, index) = (id(event), event["output_index"].as_u64());
        if id.is_none() && index.is_none() {
            return of_kind.next();
        }
        of_kind.find(|&item| {
            let item = &self.items[item];
            // If both have an id, ids decide; some servers give every item the number 0.
            match (id, item.id.as_deref()) {
                (Some(one), Some(other)) => one == other,
                _ => index.is_some() && item.index == index,
            }
        })
    }

    fn find_call(&self, event: &Value) -> Option<usize> {
        let arguments = String::new();
        self.find(event, &ItemKind::Call { call: 0, arguments })
    }

    fn add(&mut self, event: &Value, kind: ItemKind) -> Result<usize, ProviderError> {
        if self.items.len() == MAX_ITEMS {
            return Err(ProviderError::malformed(format!(
                "it has more than {MAX_ITEMS} items"
            )));
        }
        self.items.push(ItemState {
            index: event["output_index"].as_u64(),
            id: id(event).map(str::to_owned),
            kind,
            said: false,
            sealed: false,
        });
        Ok(self.items.len() - 1)
    }
}

impl Assemble for Assembler {
    fn take(&mut self, event: &Value, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        match event["type"].as_str().unwrap_or_default() {
            "response.output_item.added" if event["item"]["type"] == "function_call" => {
                if self.find_call(event).is_none() {
                    let seen = self.begin(event, out)?;
                    self.complete(seen, event["item"]["arguments"].as_str().unwrap_or_default(), out)?;
                }
                Ok(())
            }
            "response.output_item.done" => self.item(event, out),
            "response.output_text.delta" => self.say(event, &ItemKind::Message, ModelEvent::Text, out),
            "response.refusal.delta" => self.say(event, &ItemKind::Message, ModelEvent::Refusal, out),
            "response.reasoning_text.delta"
            | "response.reasoning.delta"
            | "response.reasoning_summary_text.delta" => {
                self.say(event, &ItemKind::Reasoning, ModelEvent::Reasoning, out)
            }
            "response.function_call_arguments.delta" => match self.find_call(event) {
                Some(seen) => self.grow(seen, event["delta"].as_str().unwrap_or_default(), out),
                // The end of a call reports one that was never started.
                None => Ok(()),
            },
            "response.function_call_arguments.done" => match self.find_call(event) {
                Some(seen) => self.complete(seen, event["arguments"].as_str().unwrap_or_default(), out),
                None => Ok(()),
            },
            "response.completed" | "response.incomplete" => self.whole(&event["response"], out),
            _ => Ok(()),
        }
    }

    fn take_whole(&mut self, answer: &Value, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        if answer["output"].is_array() {
            return self.whole(answer, out);
        }
        Err(ProviderError::malformed("it is JSON, but not a response"))
    }

    fn finished(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&mut self, told: bool, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        let finish = self
            .finish
            .or(told.then_some(Finish::Stop))
            .ok_or(ProviderError::Cut)?;
        for item in &self.items {
            // Missing arguments are an empty object, not an error.
            if let ItemKind::Call { call, arguments } = &item.kind
                && arguments.trim().is_empty()
            {
                let (call, delta) = (*call, "{}".to_owned());
                out.push_back(ModelEvent::Arguments { call, delta });
            }
        }
        out.extend((0..self.calls.len()).map(|call| ModelEvent::CallEnd { call }));
        out.extend(self.usage.take().map(ModelEvent::Usage));
        let calls = finish == Finish::Stop && !self.calls.is_empty();
        out.push_back(ModelEvent::Finish(if calls { Finish::Calls } else { finish }));
        Ok(())
    }

    fn failure(event: &Value) -> Option<&Value> {
        match event["type"].as_str() {
            Some("error") => Some(event),
            Some("response.failed") => Some(&event["response"]),
            Some(_) => None,
            None => event.get("error").filter(|error| !error.is_null()).map(|_| event),
        }
    }
}

fn id(event: &Value) -> Option<&str> {
    let id = [&event["item_id"], &event["item"]["id"]]
        .into_iter()
        .find_map(Value::as_str);
    id.filter(|id| !id.is_empty())
}

fn usage(usage: &Value) -> Option<TokenUsage> {
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let input_tokens = usage["input_tokens"].as_u64()?;
    let output_tokens = count(&usage["output_tokens"]);
    let details = &usage["input_tokens_details"];
    Some(TokenUsage {
        input_tokens,
        input_tokens_details: CachedTokens {
            cached_tokens: count(&details["cached_tokens"]),
            cache_write_tokens: count(&details["cache_write_tokens"]),
        },
        output_tokens,
        output_tokens_details: ReasoningTokens {
            reasoning_tokens: count(&usage["output_tokens_details"]["reasoning_tokens"]),
        },
        total_tokens: usage["total_tokens"]
            .as_u64()
            .unwrap_or(input_tokens.saturating_add(output_tokens)),
    })
}

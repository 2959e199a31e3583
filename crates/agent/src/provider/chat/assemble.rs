//! Assembling chunks of Chat Completions: servers number calls wrongly, repeat them, or send them
//! whole.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::provider::reading::Assemble;
use crate::provider::{Finish, ModelEvent, ProviderError};
use crate::wire::{CachedTokens, Ids, ReasoningTokens, TokenUsage};

/// Maximum number of calls in one response.
const MAX_CALLS: usize = 128;
/// Maximum size of one call's arguments in bytes.
const MAX_ARGUMENTS: usize = crate::arguments::MAX_BYTES;

/// The part of a response that was read so far.
#[derive(Debug)]
pub(super) struct Assembler {
    ids: Ids,
    /// Name of the field of reasoning, for sending it back.
    heard: Arc<OnceLock<&'static str>>,
    calls: Vec<ChatCall>,
    spoke: bool,
    reasoning: String,
    usage: Option<TokenUsage>,
    finish: Option<Finish>,
}

#[derive(Debug)]
struct ChatCall {
    /// The server's number, which may be shared with other calls.
    index: Option<u64>,
    /// The server's id.
    id: Option<String>,
    arguments: String,
}

impl Assembler {
    pub(super) const fn new(heard: Arc<OnceLock<&'static str>>) -> Self {
        Self {
            ids: Ids::random(),
            heard,
            calls: Vec::new(),
            spoke: false,
            reasoning: String::new(),
            usage: None,
            finish: None,
        }
    }

    fn delta(&mut self, delta: &Value, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        // Both names are in use; if a server sends both, they have the same content.
        let told = ["reasoning", "reasoning_content"].into_iter().find_map(|field| {
            let text = delta[field].as_str().filter(|text| !text.is_empty())?;
            Some((field, text))
        });
        if let Some((field, reasoning)) = told {
            self.heard.get_or_init(|| field);
            if self.reasoning.len() + reasoning.len() <= MAX_ARGUMENTS {
                self.reasoning.push_str(reasoning);
            }
            out.push_back(ModelEvent::Reasoning(reasoning.to_owned()));
        }
        let content = content(&delta["content"]);
        if !content.is_empty() {
            self.spoke = true;
            out.push_back(ModelEvent::Text(content));
        }
        if let Some(refusal) = delta["refusal"].as_str().filter(|refusal| !refusal.is_empty()) {
            self.spoke = true;
            out.push_back(ModelEvent::Refusal(refusal.to_owned()));
        }
        let fragments = delta["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        for fragment in fragments {
            self.fragment(fragment, out)?;
        }
        Ok(())
    }

    fn fragment(&mut self, fragment: &Value, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        let id = fragment["id"].as_str().filter(|id| !id.is_empty());
        let name = fragment["function"]["name"]
            .as_str()
            .filter(|name| !name.is_empty());
        let arguments = match &fragment["function"]["arguments"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            // The server has already parsed them: an object.
            value => value.to_string(),
        };
        let index = fragment["index"].as_u64();
        let call = match self.known(index, id, name) {
            Some(call) => call,
            None => self.begin(index, id, name, out)?,
        };
        let known = &mut self.calls[call];
        if arguments.is_empty() || (arguments == known.arguments && whole(&arguments)) {
            // Either nothing, or everything once more.
            return Ok(());
        }
        if known.arguments.len() + arguments.len() > MAX_ARGUMENTS {
            let limit = MAX_ARGUMENTS;
            return Err(ProviderError::TooLarge {
                what: "a call's arguments",
                limit,
            });
        }
        known.arguments.push_str(&arguments);
        out.push_back(ModelEvent::Arguments {
            call,
            delta: arguments,
        });
        Ok(())
    }

    /// Returns the call that a fragment belongs to, if it is known. A missing number means the last
    /// call; a new id with a used number starts a new call.
    fn known(&self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        let numbered = |call: &ChatCall| index.is_none() || call.index == index;
        let place = self.calls.iter().rposition(numbered)?;
        let call = &self.calls[place];
        let other_id = id.is_some() && call.id.is_some() && id != call.id.as_deref();
        // Without ids, a name after complete arguments starts another call.
        let another = id.is_none() && name.is_some() && whole(&call.arguments);
        (!other_id && !another).then_some(place)
    }

    fn begin(
        &mut self,
        index: Option<u64>,
        id: Option<&str>,
        name: Option<&str>,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<usize, ProviderError> {
        let call = self.calls.len();
        if call == MAX_CALLS {
            return Err(ProviderError::malformed(format!(
                "it has more than {MAX_CALLS} calls"
            )));
        }
        let name = name.ok_or_else(|| ProviderError::malformed("a call of a tool has no name"))?;
        let taken = self
            .calls
            .iter()
            .any(|call| call.id.is_some() && call.id.as_deref() == id);
        self.calls.push(ChatCall {
            index,
            id: id.map(str::to_owned),
            arguments: String::new(),
        });
        out.push_back(ModelEvent::CallBegin {
            call,
            id: id
                .filter(|_| !taken)
                .map_or_else(|| self.ids.mint("call"), str::to_owned),
            name: name.to_owned(),
        });
        Ok(call)
    }
}

impl Assemble for Assembler {
    fn finished(&self) -> bool {
        self.finish.is_some()
    }

    fn take(&mut self, chunk: &Value, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        if let Some(usage) = usage(&chunk["usage"]) {
            self.usage = Some(usage);
        }
        // Some streams start without choices, and usage has none.
        let choices = chunk["choices"].as_array().map_or(&[][..], Vec::as_slice);
        let first = |choice: &&Value| choice["index"].as_u64().unwrap_or(0) == 0;
        for choice in choices.iter().filter(first) {
            let delta = choice.get("delta").or_else(|| choice.get("message"));
            self.delta(delta.unwrap_or(&Value::Null), out)?;
            if let Some(reason) = choice["finish_reason"].as_str() {
                self.finish = Some(match reason {
                    "length" => Finish::Length,
                    "content_filter" => Finish::ContentFilter,
                    _ => Finish::Stop,
                });
            }
        }
        Ok(())
    }

    fn end(&mut self, told: bool, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        let finish = self
            .finish
            .or(told.then_some(Finish::Stop))
            .ok_or(ProviderError::Cut)?;
        // Some parsers mistake the answer itself for reasoning.
        if !self.spoke && self.calls.is_empty() && finish == Finish::Stop && !self.reasoning.is_empty() {
            out.push_back(ModelEvent::Text(std::mem::take(&mut self.reasoning)));
        }
        for (call, known) in self.calls.iter().enumerate() {
            // Missing arguments are an empty object, not an error.
            if known.arguments.trim().is_empty() {
                let delta = "{}".to_owned();
                out.push_back(ModelEvent::Arguments { call, delta });
            }
        }
        out.extend((0..self.calls.len()).map(|call| ModelEvent::CallEnd { call }));
        out.extend(self.usage.take().map(ModelEvent::Usage));
        // Some servers send `stop` despite calls.
        let calls = finish == Finish::Stop && !self.calls.is_empty();
        out.push_back(ModelEvent::Finish(if calls { Finish::Calls } else { finish }));
        Ok(())
    }

    fn take_whole(&mut self, answer: &Value, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        if answer["choices"].is_array() {
            return self.take(answer, out);
        }
        Err(ProviderError::malformed("it is JSON, but not a completion"))
    }

    fn failure(event: &Value) -> Option<&Value> {
        event.get("error").filter(|error| !error.is_null()).map(|_| event)
    }
}

/// Returns whether arguments are one complete object.
fn whole(arguments: &str) -> bool {
    arguments.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(arguments).is_ok()
}

/// Returns a text, including one in parts.
fn content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn usage(usage: &Value) -> Option<TokenUsage> {
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let input_tokens = usage["prompt_tokens"].as_u64()?;
    let output_tokens = count(&usage["completion_tokens"]);
    Some(TokenUsage {
        input_tokens,
        input_tokens_details: CachedTokens {
            cached_tokens: count(&usage["prompt_tokens_details"]["cached_tokens"]),
            cache_write_tokens: 0,
        },
        output_tokens,
        output_tokens_details: ReasoningTokens {
            reasoning_tokens: count(&usage["completion_tokens_details"]["reasoning_tokens"]),
        },
        total_tokens: usage["total_tokens"]
            .as_u64()
            .unwrap_or(input_tokens.saturating_add(output_tokens)),
    })
}

//! Chat completions: the events of a response as pieces of one message.
//!
//! A completion has one message, so the model's texts between its code are joined. Code and its
//! outputs are not included. A link to a container's file is replaced by the URL of its content,
//! which is known when the message with the link is complete: from a link on, text is held back
//! until then. Pictures and files that no text names are linked at the end, unless the answer must
//! be JSON.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::content::{Annotation, Part};
use super::error::{ApiError, ErrorKind};
use super::event::EventKind;
use super::item::Item;
use super::response::{Response, ResponseStatus, TokenUsage};

/// Models' links to files of their containers.
const LINK: &str = "sandbox:";
/// Separator between two messages of the model.
const APART: &str = "\n\n";

/// A piece of a completion.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// The message starts.
    Begin,
    /// A piece of text.
    Text(String),
    /// A piece of a refusal.
    Refusal(String),
    /// A piece of reasoning.
    Reasoning(String),
    /// A call of one of the client's functions starts.
    Call {
        /// Index of the call.
        index: usize,
        /// Id of the call.
        id: String,
        /// Name of the function.
        name: String,
    },
    /// A piece of a call's arguments.
    Arguments {
        /// Index of the call.
        index: usize,
        /// JSON, split anywhere.
        delta: String,
    },
    /// References of ranges in the text to files.
    Annotations(Vec<Value>),
    /// The end.
    Finish {
        /// `stop`, `length`, `tool_calls` or `content_filter`.
        reason: &'static str,
        /// Token usage over all model calls.
        usage: TokenUsage,
    },
    /// The response failed.
    Failed(ApiError),
}

/// Returns the URL of a file's content for its container and its id.
pub type ContentUrl = Box<dyn Fn(&str, &str) -> String + Send>;

/// Converts the events of a response to pieces.
pub struct Pieces {
    address: ContentUrl,
    /// Whether the answer must be JSON.
    json: bool,
    /// Indexes of the calls by those of their items.
    calls: HashMap<usize, usize>,
    /// Text of the current part, and the number of its bytes that were sent.
    part: String,
    told: usize,
    /// JSON of a message that may not be the final answer.
    held: String,
    /// Number of characters sent before the part.
    before: usize,
    /// Whether the next text is preceded by a blank line.
    apart: bool,
    annotations: Vec<Value>,
    error: Option<ApiError>,
}

impl std::fmt::Debug for Pieces {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Pieces").finish_non_exhaustive()
    }
}

impl Pieces {
    /// Creates an empty converter.
    pub fn new(json: bool, address: ContentUrl) -> Self {
        Self {
            address,
            json,
            calls: HashMap::new(),
            part: String::new(),
            told: 0,
            held: String::new(),
            before: 0,
            apart: false,
            annotations: Vec::new(),
            error: None,
        }
    }

    /// Returns the pieces for an event.
    pub fn take(&mut self, event: EventKind) -> Vec<Piece> {
        match event {
            EventKind::Created { .. } => vec![Piece::Begin],
            EventKind::ItemAdded { output_index, item } => self.begin(output_index, *item),
            EventKind::TextDelta { delta, .. } => {
                if self.part.is_empty() && self.before > 0 {
                    self.apart = true;
                    self.before += APART.len();
                }
                self.part.push_str(&delta);
                let safe = if self.json { 0 } else { unlinked(&self.part) };
                let text = self.part.get(self.told..safe).unwrap_or_default().to_owned();
                self.told = self.told.max(safe);
                self.say(text)
            }
            EventKind::PartDone {
                part: Part::OutputText { annotations, .. },
                ..
            } => self.end_part(&annotations),
            EventKind::RefusalDelta { delta, .. } => vec![Piece::Refusal(delta)],
            EventKind::ReasoningDelta { delta, .. } | EventKind::OpenReasoningDelta { delta, .. } => {
                vec![Piece::Reasoning(delta)]
            }
            EventKind::ArgumentsDelta {
                output_index, delta, ..
            } => {
                let index = self.calls.get(&output_index).copied();
                index
                    .map(|index| Piece::Arguments { index, delta })
                    .into_iter()
                    .collect()
            }
            EventKind::Error(error) => {
                self.error = Some(error.0);
                Vec::new()
            }
            EventKind::Completed { response } | EventKind::Incomplete { response } => self.end(&response),
            EventKind::Failed { response } => vec![Piece::Failed(self.failure(&response))],
            _ => Vec::new(),
        }
    }

    fn begin(&mut self, output_index: usize, item: Item) -> Vec<Piece> {
        match item {
            Item::FunctionCall(call) => {
                let index = self.calls.len();
                self.calls.insert(output_index, index);
                vec![Piece::Call {
                    index,
                    id: call.call_id,
                    name: call.name,
                }]
            }
            // Earlier text is not the answer.
            Item::CodeInterpreterCall(_) | Item::McpCall(_) => {
                self.held.clear();
                if self.json {
                    self.annotations.clear();
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Sends text, separated from that of an earlier message.
    fn say(&mut self, text: String) -> Vec<Piece> {
        if text.is_empty() {
            return Vec::new();
        }
        if std::mem::take(&mut self.apart) {
            return vec![Piece::Text(format!("{APART}{text}"))];
        }
        vec![Piece::Text(text)]
    }

    /// Sends the rest of a part, with URLs in its links.
    fn end_part(&mut self, annotations: &[Annotation]) -> Vec<Piece> {
        let text = std::mem::take(&mut self.part);
        let told = std::mem::take(&mut self.told);
        let linked = self.linked(&text, annotations);
        if self.json {
            self.held = linked;
            return Vec::new();
        }
        self.before += linked.chars().count();
        self.say(linked.get(told..).unwrap_or_default().to_owned())
    }

    /// Returns a text with URLs in its links, followed by links to the files that it does not name.
    fn linked(&mut self, text: &str, annotations: &[Annotation]) -> String {
        let bytes: Vec<usize> = text
            .char_indices()
            .map(|(at, _)| at)
            .chain([text.len()])
            .collect();
        let mut linked = String::with_capacity(text.len());
        let mut at = 0;
        for annotation in annotations {
            let Annotation::ContainerFileCitation {
                container_id,
                file_id,
                filename,
                start_index,
                end_index,
            } = annotation
            else {
                continue;
            };
            let (Some(&from), Some(&to)) = (bytes.get(*start_index), bytes.get(*end_index)) else {
                continue;
            };
            let Some(range) = text.get(from..to).filter(|_| from >= at) else {
                continue;
            };
            if range.is_empty() && self.json {
                continue;
            }
            let url = (self.address)(container_id, file_id);
            linked.push_str(&text[at..from]);
            let mut start = linked.chars().count();
            if range.is_empty() {
                let picture = if is_picture(filename) { "!" } else { "" };
                linked.push_str(APART);
                start += APART.len();
                // Writing to a string cannot fail.
                let _ = write!(linked, "{picture}[{filename}]({url})");
            } else if range.starts_with(LINK) {
                linked.push_str(&url);
            } else {
                linked.push_str(range);
            }
            at = to;
            self.annotations.push(json!({
                "type": "url_citation",
                "url_citation": {
                    "start_index": self.before + start,
                    "end_index": self.before + linked.chars().count(),
                    "title": filename,
                    "url": url,
                },
            }));
        }
        linked.push_str(&text[at..]);
        linked
    }

    fn end(&mut self, response: &Response) -> Vec<Piece> {
        let held = std::mem::take(&mut self.held);
        let mut pieces = self.say(held);
        let annotations = std::mem::take(&mut self.annotations);
        if !annotations.is_empty() {
            pieces.push(Piece::Annotations(annotations));
        }
        let cut = response.incomplete_details.as_ref();
        let reason = match (response.status, cut.map(|cut| cut.reason.as_str())) {
            (ResponseStatus::Completed, _) if self.calls.is_empty() => "stop",
            (ResponseStatus::Completed, _) => "tool_calls",
            (_, Some("content_filter")) => "content_filter",
            // The maximum number of tokens, steps or attempts was reached.
            _ => "length",
        };
        pieces.push(Piece::Finish {
            reason,
            usage: response.usage.unwrap_or_default(),
        });
        pieces
    }

    fn failure(&mut self, response: &Response) -> ApiError {
        self.error.take().unwrap_or_else(|| {
            let failure = response.error.clone();
            let message = failure.as_ref().map(|failure| failure.message.clone());
            ApiError {
                kind: ErrorKind::ServerError,
                code: Some(failure.map_or_else(|| "server_error".to_owned(), |failure| failure.code)),
                message: message.unwrap_or_else(|| "the response failed".to_owned()),
                param: None,
            }
        })
    }
}

/// Returns the end of the text before any link, or the start of one.
fn unlinked(text: &str) -> usize {
    if let Some(at) = text.find(LINK) {
        return at;
    }
    let begun = (1..LINK.len())
        .rev()
        .find(|length| text.ends_with(&LINK[..*length]));
    text.len() - begun.unwrap_or(0)
}

fn is_picture(name: &str) -> bool {
    let extension = name
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_ascii_lowercase());
    matches!(
        extension.as_deref(),
        Some("png" | "jpg" | "jpeg" | "gif" | "webp" | "svg")
    )
}

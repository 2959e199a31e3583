//! Chat completions: the events of a response as pieces of one message.
//!
//! A completion has one message, so that what a model says between its code is joined. Code and its outputs are not told. A link to a file of a
//! container becomes the address of its content, which is known when the message that has the link is whole: from a link on, text is held until
//! then. Pictures and files that no text names are linked at the end, unless the answer has to be JSON.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::content::{Annotation, Part};
use super::error::{ApiError, ErrorKind};
use super::event::EventKind;
use super::item::Item;
use super::response::{Response, ResponseStatus, Usage};

/// How models link files of their containers.
const LINK: &str = "sandbox:";
/// What stands between two messages of the model.
const APART: &str = "\n\n";

/// A piece of a completion.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// The message begins.
    Begin,
    /// Text was added.
    Text(String),
    /// A refusal was added to.
    Refusal(String),
    /// Reasoning was added.
    Reasoning(String),
    /// A call of one of the client's functions begins.
    Call {
        /// Its place among the calls.
        index: usize,
        /// Its id.
        id: String,
        /// The function.
        name: String,
    },
    /// Arguments of a call were added.
    Arguments {
        /// Its place among the calls.
        index: usize,
        /// JSON, cut anywhere.
        delta: String,
    },
    /// Ranges of the text refer to files.
    Annotations(Vec<Value>),
    /// The end.
    Finish {
        /// `stop`, `length`, `tool_calls` or `content_filter`.
        reason: &'static str,
        /// Tokens, over all model calls.
        usage: Usage,
    },
    /// It failed.
    Failed(ApiError),
}

/// Address of a file's content by its container and its id.
pub type Address = Box<dyn Fn(&str, &str) -> String + Send>;

/// Makes pieces of the events of a response.
pub struct Pieces {
    address: Address,
    /// Whether the answer has to be JSON.
    json: bool,
    /// Places of the calls by those of their items.
    calls: HashMap<usize, usize>,
    /// Text of the part that is being written, and how much of it was told.
    part: String,
    told: usize,
    /// JSON of a message that may turn out not to be the answer.
    held: String,
    /// Characters that were told before the part.
    before: usize,
    /// Whether a blank line goes before what is told next.
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
    /// No pieces yet.
    pub fn new(json: bool, address: Address) -> Self {
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

    /// What an event comes to.
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
            // What was said before is not the answer.
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

    /// Tells text, apart from what a message before has said.
    fn say(&mut self, text: String) -> Vec<Piece> {
        if text.is_empty() {
            return Vec::new();
        }
        if std::mem::take(&mut self.apart) {
            return vec![Piece::Text(format!("{APART}{text}"))];
        }
        vec![Piece::Text(text)]
    }

    /// Tells the rest of a part, with addresses for its links.
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

    /// A text with addresses for its links, and for the files that it does not name at its end.
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
                // Writing to a string does not fail.
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
            // The tokens, the steps or the attempts were used up.
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

/// Up to where a text has no link, nor the beginning of one.
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

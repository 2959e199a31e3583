//! Parts of messages.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A part of a message, of a tool's output or of a reasoning item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text for the model.
    InputText {
        /// The text.
        text: String,
    },
    /// A picture for the model.
    InputImage {
        /// URL of the picture, often a `data:` URL.
        image_url: Option<String>,
        /// Id of an uploaded file, in place of a URL.
        file_id: Option<String>,
        /// Level of detail for the model: `auto`, `low` or `high`.
        detail: String,
    },
    /// A file for the model.
    InputFile {
        /// Name of the file.
        filename: Option<String>,
        /// Content as a `data:` URL or in base64.
        file_data: Option<String>,
        /// Id of an uploaded file, in place of the content.
        file_id: Option<String>,
        /// URL of the file, in place of the content.
        file_url: Option<String>,
    },
    /// Text of the model.
    OutputText {
        /// The text.
        text: String,
        /// References of ranges in the text.
        annotations: Vec<Annotation>,
        /// Probabilities; always present and empty, because they are never requested.
        logprobs: Vec<Value>,
    },
    /// The model's refusal.
    Refusal {
        /// Text of the refusal.
        refusal: String,
    },
    /// Full reasoning of the model.
    ReasoningText {
        /// The text.
        text: String,
    },
    /// Summary of the model's reasoning.
    SummaryText {
        /// The text.
        text: String,
    },
}

/// Returns the texts among parts, a line each.
pub(crate) fn texts(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::InputText { text } | Part::OutputText { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

impl Part {
    /// Creates text of the model without annotations.
    pub fn output_text(text: impl Into<String>) -> Self {
        Self::OutputText {
            text: text.into(),
            annotations: Vec::new(),
            logprobs: Vec::new(),
        }
    }
}

/// Reference of a range in a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Annotation {
    /// Cites a file that code made in a container.
    ContainerFileCitation {
        /// Id of the container.
        container_id: String,
        /// Id of the file.
        file_id: String,
        /// Name of the file.
        filename: String,
        /// Start of the range, in characters.
        start_index: usize,
        /// End of the range, in characters.
        end_index: usize,
    },
    /// Any other annotation, as a client sent it back.
    #[serde(untagged)]
    Other(Value),
}

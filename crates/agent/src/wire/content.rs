//! What messages are made of.

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
        /// Its address, often a `data:` URL.
        image_url: Option<String>,
        /// Or the id of an uploaded file.
        file_id: Option<String>,
        /// How closely the model looks: `auto`, `low` or `high`.
        detail: String,
    },
    /// A file for the model.
    InputFile {
        /// Its name.
        filename: Option<String>,
        /// Its content as a `data:` URL or in base64.
        file_data: Option<String>,
        /// Or the id of an uploaded file.
        file_id: Option<String>,
        /// Or where it is.
        file_url: Option<String>,
    },
    /// Text of the model.
    OutputText {
        /// The text.
        text: String,
        /// What ranges of the text refer to.
        annotations: Vec<Annotation>,
        /// Probabilities; always there, and empty since no provider is asked for them.
        logprobs: Vec<Value>,
    },
    /// The model's refusal.
    Refusal {
        /// In its words.
        refusal: String,
    },
    /// The model's reasoning as it is.
    ReasoningText {
        /// The text.
        text: String,
    },
    /// The model's reasoning in short.
    SummaryText {
        /// The text.
        text: String,
    },
}

impl Part {
    /// Text of the model without annotations.
    pub fn output_text(text: impl Into<String>) -> Self {
        Self::OutputText {
            text: text.into(),
            annotations: Vec::new(),
            logprobs: Vec::new(),
        }
    }
}

/// What a range of a text refers to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Annotation {
    /// A file that code made in a container.
    ContainerFileCitation {
        /// The container.
        container_id: String,
        /// The file.
        file_id: String,
        /// Its name.
        filename: String,
        /// Where the range begins, in characters.
        start_index: usize,
        /// Where it ends.
        end_index: usize,
    },
    /// Any other, as a client sent it back.
    #[serde(untagged)]
    Other(Value),
}

//! What answers: a model that takes one step at a time.

use std::error::Error;

use serde_json::Value;

use super::transcript::Transcript;

/// A model, behind whichever provider.
pub trait Model: Send {
    /// Takes a step: an answer, or tools whose results it wants first.
    fn step(&mut self, transcript: &Transcript) -> impl Future<Output = Result<Step, ModelError>> + Send;
}

/// What a model does in one step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It calls tools, which run one after the other.
    Tools(Vec<ToolCall>),
    /// It answers the user, which ends the turn.
    Answer(String),
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The provider's name for the call, by which its result is told apart.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, of whatever shape the model made them.
    pub arguments: Value,
}

/// Why a model took no step.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ModelError {
    /// A failure in words.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// What caused it.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

//! What a call answers: content for a model within a budget, and the same as data.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_artifact::Store;
use cellblock_interpreter::output::ArtifactRef;
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde::Serialize;
use serde_json::Value;

use crate::refusal::Refusal;
use crate::sessions::MadeArtifact;

mod execution;
mod hints;
mod shape;
mod variable;

pub(crate) use execution::told;
pub(crate) use shape::{Link, RanCell};
pub(crate) use variable::{ShownVariable, variable};

/// Pictures of one answer; more are links.
const PICTURES: usize = 10;
/// Bytes of a picture that is sent; a larger one is a link.
const PICTURE_BYTES: u64 = 5 << 20;
/// Links of one answer.
pub(crate) const LINKS: usize = 50;

/// An answer as it is put together.
#[derive(Debug, Default)]
pub(crate) struct CallAnswer {
    content: Vec<ContentBlock>,
    structured: Option<Value>,
    failed: bool,
    pictures: usize,
    links: usize,
}

impl CallAnswer {
    /// The same as data and, for those who read only text, as JSON.
    pub(crate) fn of(value: &impl Serialize) -> Self {
        let mut answer = Self::default();
        answer.structured(value);
        if let Some(value) = &answer.structured {
            let text = value.to_string();
            answer.text(text);
        }
        answer
    }

    /// Adds text, in a block of its own.
    pub(crate) fn text(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !text.trim().is_empty() {
            self.content.push(ContentBlock::text(text));
        }
    }

    /// Sets the answer as data.
    pub(crate) fn structured(&mut self, value: &impl Serialize) {
        match serde_json::to_value(value) {
            Ok(value) => self.structured = Some(value),
            Err(error) => tracing::error!(%error, "write an answer as JSON"),
        }
    }

    /// Adds a field to the answer as data.
    pub(crate) fn add(&mut self, field: &str, value: Value) {
        if let Some(Value::Object(fields)) = &mut self.structured {
            fields.insert(field.to_owned(), value);
        }
    }

    /// Marks it as one that a model has to react to.
    pub(crate) const fn fail(&mut self) {
        self.failed = true;
    }

    /// Adds a picture, while there is room for pictures.
    pub(crate) async fn picture(&mut self, store: &Store, image: &ArtifactRef) {
        if self.pictures == PICTURES || image.bytes > PICTURE_BYTES {
            return;
        }
        self.pictures += 1;
        match store.get(image.sha256).await {
            Ok(bytes) => {
                let data = STANDARD.encode(&bytes);
                self.content
                    .push(ContentBlock::image(data, image.media_type.clone()));
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "read a picture of an answer"
                );
                self.text("(a picture could not be read)");
            }
        }
    }

    /// Adds content that is neither text nor a picture of the store.
    pub(crate) fn push(&mut self, block: ContentBlock) {
        self.content.push(block);
    }

    /// Adds a link to something that can be read as a resource, while there is room for links.
    pub(crate) fn link(&mut self, link: &Link) {
        if self.links < LINKS {
            self.links += 1;
            self.content.push(ContentBlock::resource_link(link.resource()));
        }
    }
}

impl Link {
    /// As the protocol lists it.
    pub(crate) fn resource(&self) -> Resource {
        let resource =
            Resource::new(self.uri.clone(), self.name.clone()).with_mime_type(self.media_type.clone());
        match self.bytes {
            Some(bytes) => resource.with_size(bytes),
            None => resource,
        }
    }
}

impl From<&MadeArtifact> for Link {
    fn from(made: &MadeArtifact) -> Self {
        Self {
            uri: crate::uri::artifact(made.id),
            name: made.name.clone(),
            media_type: made.media_type.clone(),
            bytes: Some(made.bytes),
        }
    }
}

impl From<CallAnswer> for CallToolResult {
    fn from(answer: CallAnswer) -> Self {
        let mut result = if answer.failed {
            Self::error(answer.content)
        } else {
            Self::success(answer.content)
        };
        result.structured_content = answer.structured;
        result
    }
}

impl From<Refusal> for CallToolResult {
    fn from(refusal: Refusal) -> Self {
        Self::error(vec![ContentBlock::text(refusal.message)])
    }
}

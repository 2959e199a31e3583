//! Answer of a call: one text for a model within a budget, and the same as data.
//!
//! Many clients show a model only the first block, only text, or only the data, so each of the two
//! says everything. Images and links follow the text where the client shows them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_artifact::Store;
use cellblock_interpreter::output::ArtifactRef;
use cellblock_interpreter::text::counted;
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde::Serialize;
use serde_json::{Value, json};

use crate::display::AnswerDisplay;
use crate::refusal::Refusal;
use crate::sessions::MadeArtifact;

mod execution;
mod hints;
mod shape;
mod variable;

pub(crate) use execution::told;
pub(crate) use shape::{Link, RanCell};
pub(crate) use variable::{ShownVariable, variable};

/// Pictures of one answer.
const PICTURES: usize = 10;
/// Maximum size of a picture that is shown, in bytes.
const PICTURE_BYTES: u64 = 5 << 20;
/// Links of one answer.
pub(crate) const LINKS: usize = 50;
/// Largest integer that every client reads exactly: those in JavaScript read numbers as 64-bit floats.
const EXACT: u64 = (1 << 53) - 1;

/// An answer as it is put together.
#[derive(Debug, Default)]
pub(crate) struct CallAnswer {
    text: String,
    structured: Option<Value>,
    /// The call did nothing, or its kernel was lost.
    failed: bool,
    /// Its code did not complete.
    incomplete: bool,
    pictures: Vec<Picture>,
    links: Vec<Link>,
}

/// A picture for clients that show pictures.
#[derive(Debug)]
enum Picture {
    Stored(ArtifactRef),
    Read { bytes: Vec<u8>, media_type: String },
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

    /// Adds text, on lines of its own.
    pub(crate) fn text(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref();
        if text.trim().is_empty() {
            return;
        }
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(text);
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

    /// Marks it as an error: the call did nothing, or its kernel was lost. Some clients hide the
    /// text of an error from the model.
    pub(crate) const fn fail(&mut self) {
        self.failed = true;
    }

    /// Marks it as one of code that did not complete.
    pub(crate) const fn incomplete(&mut self) {
        self.incomplete = true;
    }

    /// Whether the call did less than was asked for.
    pub(crate) const fn fell_short(&self) -> bool {
        self.failed || self.incomplete
    }

    /// Adds a note.
    pub(crate) fn note(&mut self, note: &str) {
        self.text(format!("[note] {note}"));
        let earlier = self.structured.as_ref().and_then(|it| it["note"].as_str());
        let note = earlier.map_or_else(|| note.to_owned(), |earlier| format!("{earlier}; {note}"));
        self.add("note", note.into());
    }

    /// Adds a picture, for clients that show them.
    pub(crate) fn picture(&mut self, image: &ArtifactRef) {
        if image.bytes <= PICTURE_BYTES {
            self.pictures.push(Picture::Stored(image.clone()));
        }
    }

    /// Adds a picture that was read from a file.
    pub(crate) fn picture_of(&mut self, bytes: Vec<u8>, media_type: String) {
        if bytes.len() as u64 <= PICTURE_BYTES {
            self.pictures.push(Picture::Read { bytes, media_type });
        }
    }

    /// Adds a link to something that can be read as a resource, for clients that want them.
    pub(crate) fn link(&mut self, link: &Link) {
        self.links.push(link.clone());
    }

    /// The result as the protocol has it: the text first, because some clients show only that.
    pub(crate) async fn finish(mut self, display: AnswerDisplay, store: Option<&Store>) -> CallToolResult {
        if self.text.trim().is_empty() {
            "[no output]".clone_into(&mut self.text);
        }
        let mut content = vec![ContentBlock::text(self.text)];
        if display.images {
            for picture in self.pictures.into_iter().take(PICTURES) {
                content.extend(picture.block(store).await);
            }
        }
        if display.links {
            let links = self.links.iter().take(LINKS);
            content.extend(links.map(|link| ContentBlock::resource_link(link.resource())));
        }
        if let Some(structured) = &mut self.structured {
            keep_digits(structured);
        }
        let mut result = CallToolResult::success(content);
        result.is_error = Some(self.failed);
        result.structured_content = self.structured;
        result
    }
}

impl Picture {
    async fn block(self, store: Option<&Store>) -> Option<ContentBlock> {
        let (data, media_type) = match self {
            Self::Read { bytes, media_type } => (STANDARD.encode(bytes), media_type),
            Self::Stored(image) => match store?.get(image.sha256).await {
                Ok(bytes) => (STANDARD.encode(&bytes), image.media_type),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "read a picture of an answer");
                    return None;
                }
            },
        };
        Some(ContentBlock::image(data, media_type))
    }
}

/// Writes integers as text that some clients would round.
fn keep_digits(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let size = number.as_u64().or_else(|| Some(number.as_i64()?.unsigned_abs()));
            if size.is_some_and(|size| size > EXACT) {
                *value = number.to_string().into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(keep_digits),
        Value::Object(fields) => fields.values_mut().for_each(keep_digits),
        _ => {}
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

    /// As a line of an answer: `[file] out.csv (text/csv, 14 bytes) cellblock://…`.
    pub(crate) fn line(&self, what: &str) -> String {
        let bytes = self.bytes.map(|bytes| format!(", {}", counted(bytes, "byte")));
        let bytes = bytes.unwrap_or_default();
        format!("[{what}] {} ({}{bytes}) {}", self.name, self.media_type, self.uri)
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

impl From<Refusal> for CallAnswer {
    fn from(refusal: Refusal) -> Self {
        let mut answer = Self::default();
        answer.text(format!("Error: {}", refusal.message));
        answer.structured(&json!({"error": {"message": refusal.message}}));
        answer.fail();
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_javascript_would_round_are_text_in_the_data() {
        let mut value = json!([9_007_199_254_740_991_u64, 9_007_199_254_740_993_u64, {"n": i64::MIN}, 1e300]);
        keep_digits(&mut value);
        assert_eq!(
            value,
            json!([9_007_199_254_740_991_u64, "9007199254740993", {"n": "-9223372036854775808"}, 1e300])
        );
    }

    #[test]
    fn parts_of_a_text_begin_on_new_lines_and_keep_their_own_ends() {
        let mut answer = CallAnswer::default();
        for part in ["one\n", "", " \n", "two", "three\n"] {
            answer.text(part);
        }
        assert_eq!(answer.text, "one\ntwo\nthree\n");
    }
}

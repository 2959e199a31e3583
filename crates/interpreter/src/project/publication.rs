//! Description that code gives of a dataset that it publishes.

use cellblock_protocol::{Column, Dataframe, DataframeLibrary};
use serde::{Deserialize, Deserializer};

use super::check_name;

const TITLE_CHARS: usize = 200;
const DESCRIPTION_CHARS: usize = 4_000;
const TAGS: usize = 20;
const TAG_CHARS: usize = 50;
const NOTES: usize = 50;
const NOTE_CHARS: usize = 1_000;
/// Maximum size in bytes of what restores the frame's own form.
const FRAME_BYTES: usize = 1 << 20;

/// A data frame that is to be published; its table comes as an Arrow stream.
#[derive(Debug, Deserialize)]
pub(super) struct Publication {
    pub(super) slug: String,
    /// Missing keeps the earlier version's, here and below.
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    #[serde(deserialize_with = "one_or_many")]
    pub(super) tags: Option<Vec<String>>,
    #[serde(deserialize_with = "one_or_many")]
    pub(super) notes: Option<Vec<String>>,
    pub(super) library: DataframeLibrary,
    pub(super) rows: u64,
    pub(super) columns: Vec<Column>,
    pub(super) index: Vec<String>,
    /// JSON by which a kernel makes an equal frame of the table. The host does not read it.
    pub(super) frame: String,
    /// The variable that holds the frame.
    pub(super) variable: Option<String>,
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(Option::deserialize(deserializer)?.map(|it| match it {
        OneOrMany::One(text) => vec![text],
        OneOrMany::Many(texts) => texts,
    }))
}

impl Publication {
    /// Checks everything but the table. The reason names the argument, its value and the limit.
    pub(super) fn check(&self) -> Result<(), String> {
        check_name(&self.slug)?;
        let texts = |name: &str, texts: &[String], most: usize, chars: usize| {
            if texts.len() > most {
                let count = texts.len();
                return Err(format!("`{name}` has {count} items, the limit is {most}"));
            }
            texts.iter().try_for_each(|text| {
                let length = text.chars().count();
                if length > chars || text.chars().any(|it| it.is_control() && it != '\n') {
                    return Err(format!(
                        "an item of `{name}` has {length} characters; use at most {chars}, without \
                         control characters"
                    ));
                }
                Ok(())
            })
        };
        texts("title", self.title.as_slice(), 1, TITLE_CHARS)?;
        texts("description", self.description.as_slice(), 1, DESCRIPTION_CHARS)?;
        texts("tags", self.tags.as_deref().unwrap_or_default(), TAGS, TAG_CHARS)?;
        texts(
            "notes",
            self.notes.as_deref().unwrap_or_default(),
            NOTES,
            NOTE_CHARS,
        )?;
        let bytes = self.frame.len();
        if bytes > FRAME_BYTES {
            return Err(format!(
                "the index, the names and the categories of its columns have {bytes} bytes as JSON, the \
                 limit is {FRAME_BYTES}; convert categories with many values to strings, and shorten names"
            ));
        }
        Ok(())
    }

    /// Returns the table's description for its file.
    pub(super) fn dataframe(&self) -> Dataframe {
        Dataframe {
            name: Some(self.slug.clone()),
            library: self.library,
            rows: self.rows,
            columns: self.columns.clone(),
            index: self.index.clone(),
            truncated: false,
            head_rows: 0,
            tail_rows: 0,
            series: false,
        }
    }
}

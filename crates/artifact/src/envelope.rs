//! An artifact in a response: a picture, or a chart as its specification and rows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ArtifactId, Urls};

/// The media type of a chart's document.
pub const CHART: &str = "application/vnd.cellblock.chart+json";

/// An artifact of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "a response has at most four, which are immediately serialized"
)]
pub enum ArtifactEnvelope {
    /// A picture.
    Image(ImageArtifact),
    /// A chart as data.
    Chart(ChartArtifact),
}

/// A picture of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageArtifact {
    /// URL of the bytes.
    pub url: String,
    /// Text alternative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alt: Option<String>,
    /// Title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Deprecated: use `sha256`. The next release removes this field.
    pub content_hash: ArtifactId,
    /// The sha256 of the bytes.
    pub sha256: ArtifactId,
    /// Size in bytes.
    pub bytes: u64,
    /// Width in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Height in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// Media type.
    pub media_type: String,
}

/// A chart of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartArtifact {
    /// URL of the document with its specification and rows.
    pub url: String,
    /// Text alternative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alt: Option<String>,
    /// Title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Deprecated: use `sha256`. The next release removes this field.
    pub content_hash: ArtifactId,
    /// The sha256 of the document.
    pub sha256: ArtifactId,
    /// Size of the document in bytes.
    pub bytes: u64,
    /// Specification of the chart.
    pub spec: Value,
    /// Rows of data.
    pub data: Value,
    /// The chart as an image; absent if it could not be drawn, which `note` explains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<Picture>,
    /// Reason that the image is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The picture of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Picture {
    /// URL of the bytes.
    pub url: String,
    /// The sha256 of the bytes.
    pub sha256: ArtifactId,
    /// Size in bytes.
    pub bytes: u64,
    /// Width in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Height in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// Media type.
    pub media_type: String,
}

impl ArtifactEnvelope {
    /// Describes a picture by its URL; callers that know `alt`, `title` and the size in pixels set
    /// them.
    pub fn image(urls: &Urls, id: ArtifactId, bytes: u64, media_type: impl Into<String>) -> ImageArtifact {
        let media_type = media_type.into();
        ImageArtifact {
            url: urls.of(id, &media_type),
            alt: None,
            title: None,
            content_hash: id,
            sha256: id,
            bytes,
            width: None,
            height: None,
            media_type,
        }
    }

    /// Describes a chart by its document's URL and content.
    pub fn chart(urls: &Urls, id: ArtifactId, bytes: u64, spec: Value, data: Value) -> ChartArtifact {
        ChartArtifact {
            url: urls.of(id, CHART),
            alt: None,
            title: None,
            content_hash: id,
            sha256: id,
            bytes,
            spec,
            data,
            picture: None,
            note: None,
        }
    }

    /// Returns the visible part: the picture, or that of the chart.
    pub fn picture(&self) -> Option<Picture> {
        match self {
            Self::Image(it) => Some(Picture {
                url: it.url.clone(),
                sha256: it.sha256,
                bytes: it.bytes,
                width: it.width,
                height: it.height,
                media_type: it.media_type.clone(),
            }),
            Self::Chart(it) => it.picture.clone(),
        }
    }

    /// Returns the id of the bytes.
    pub const fn id(&self) -> ArtifactId {
        match self {
            Self::Image(image) => image.sha256,
            Self::Chart(chart) => chart.sha256,
        }
    }

    /// Returns the ids of the bytes and of the picture.
    pub fn ids(&self) -> impl Iterator<Item = ArtifactId> {
        let picture = self.picture().map(|picture| picture.sha256);
        std::iter::once(self.id()).chain(picture.filter(|id| *id != self.id()))
    }

    /// Returns the kind, as named in contracts.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Image(_) => "image",
            Self::Chart(_) => "chart",
        }
    }
}

impl From<ImageArtifact> for ArtifactEnvelope {
    fn from(image: ImageArtifact) -> Self {
        Self::Image(image)
    }
}

impl From<ChartArtifact> for ArtifactEnvelope {
    fn from(chart: ChartArtifact) -> Self {
        Self::Chart(chart)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_image_has_the_documented_keys_without_empty_ones() {
        let id = ArtifactId::of(b"png");
        let urls = Urls::below("/artifacts").expect("a path");
        let image = ImageArtifact {
            alt: Some("flows".into()),
            width: Some(3),
            ..ArtifactEnvelope::image(&urls, id, 3, "image/png")
        };
        let envelope = ArtifactEnvelope::from(image);
        let json = serde_json::to_value(&envelope).expect("an envelope is JSON");
        assert_eq!(
            json,
            json!({
                "kind": "image", "url": format!("/artifacts/{id}.png"), "alt": "flows", "contentHash": id,
                "sha256": id, "bytes": 3, "width": 3, "mediaType": "image/png",
            })
        );
        assert_eq!(
            serde_json::from_value::<ArtifactEnvelope>(json).ok(),
            Some(envelope)
        );
    }

    #[test]
    fn a_chart_carries_its_specification_and_rows() {
        let id = ArtifactId::of(b"{}");
        let chart =
            ArtifactEnvelope::chart(&Urls::default(), id, 2, json!({"type": "bar"}), json!([{"x": 1}]));
        let envelope = ArtifactEnvelope::from(chart);
        assert_eq!((envelope.kind(), envelope.id()), ("chart", id));
        assert_eq!(
            serde_json::to_value(&envelope).expect("an envelope is JSON"),
            json!({
                "kind": "chart", "url": format!("artifact:{id}"), "contentHash": id, "sha256": id, "bytes": 2,
                "spec": {"type": "bar"}, "data": [{"x": 1}],
            })
        );
    }

    #[test]
    fn the_schema_is_a_union_by_kind() {
        let schema = schemars::schema_for!(ArtifactEnvelope).to_value();
        let kinds = schema["oneOf"].as_array().expect("a union").iter();
        let kinds: Vec<_> = kinds.map(|one| &one["properties"]["kind"]["const"]).collect();
        assert_eq!(kinds, ["image", "chart"]);
    }
}

//! Decoding of what a cell answers: its result, and charts as specifications.

use std::io::Read;

use cellblock_artifact::{Kind, Origin};
use cellblock_protocol::{self as protocol, Blob};
use serde_json::{Value, json};

use super::decode::{Decoding, about, at_most_one, specification};
use super::text::name;
use super::value::{Answer, Chart};
use super::{Limits, OutputError};

const JSON: &str = "application/json";
const CHART: &str = "application/vnd.cellblock.chart+json";

impl Decoding {
    pub(super) async fn answer(
        &self,
        it: protocol::Answer,
        blobs: Vec<Blob>,
        origin: Option<Origin>,
    ) -> Result<Answer, OutputError> {
        let bytes = document("result", blobs, &self.limits)?;
        let value = serde_json::from_slice(&bytes).map_err(malformed("result"))?;
        let about = about(Kind::File, JSON, None, origin);
        Ok(Answer {
            value,
            python_type: name(it.python_type, self.limits.name_chars),
            json: self.publish(Blob::Memory(bytes), &about).await?,
        })
    }

    pub(super) async fn chart(
        &self,
        it: protocol::Chart,
        blobs: Vec<Blob>,
        origin: Option<Origin>,
    ) -> Result<Chart, OutputError> {
        specification(&it.spec, &self.limits)?;
        let bytes = document("chart", blobs, &self.limits)?;
        let rows: Vec<serde_json::Map<String, Value>> =
            serde_json::from_slice(&bytes).map_err(malformed("chart"))?;
        let (title, alt) = (self.label(it.title), self.label(it.alt));
        let count = rows.len() as u64;
        let whole = json!({ "kind": "chart", "title": title, "alt": alt, "spec": it.spec, "data": rows });
        let about = about(Kind::Figure, CHART, title.as_ref(), origin);
        let document = self
            .publish(Blob::Memory(serde_json::to_vec(&whole)?), &about)
            .await?;
        Ok(Chart {
            title,
            alt,
            spec: it.spec,
            rows: count,
            document,
        })
    }
}

fn malformed(kind: &'static str) -> impl Fn(serde_json::Error) -> OutputError {
    move |source| OutputError::Document { kind, source }
}

/// The one blob of a JSON document, within the limit.
fn document(kind: &'static str, blobs: Vec<Blob>, limits: &Limits) -> Result<Vec<u8>, OutputError> {
    let Some(blob) = at_most_one(kind, blobs, false)? else {
        return Ok(Vec::new());
    };
    let (limit, actual) = (limits.document_bytes, blob.len());
    if actual > limit {
        return Err(OutputError::Limit {
            what: "JSON document in bytes",
            limit,
            actual,
        });
    }
    let mut bytes = Vec::new();
    blob.reader().read_to_end(&mut bytes)?;
    Ok(bytes)
}

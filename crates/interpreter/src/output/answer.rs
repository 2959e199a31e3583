//! Decoding a cell's result, and charts as specifications.

use std::io::Read;

use cellblock_artifact::{CHART, Kind};
use cellblock_protocol::{self as protocol, Blob, ImageMime};
use tokio::task::spawn_blocking;

use super::decode::{OutputDecoder, about, at_most_one};
use super::text::name;
use super::unkept::UnkeptBytes;
use super::value::{Answer, Chart};
use super::{DecodingLimits, OutputError};
use crate::chart::{self, Rows};

const JSON: &str = "application/json";

impl OutputDecoder {
    pub(super) async fn answer(
        &self,
        it: protocol::Answer,
        blobs: Vec<Blob>,
        unkept: &mut Vec<UnkeptBytes>,
    ) -> Result<Answer, OutputError> {
        let bytes = document("result", blobs, &self.limits)?;
        let value = serde_json::from_slice(&bytes).map_err(malformed("result"))?;
        let about = about(Kind::Result, JSON);
        Ok(Answer {
            value,
            python_type: name(it.python_type, self.limits.name_chars),
            json: self.publish(Blob::Memory(bytes), &about, unkept).await,
        })
    }

    pub(super) async fn chart(
        &self,
        it: protocol::Chart,
        blobs: Vec<Blob>,
        unkept: &mut Vec<UnkeptBytes>,
    ) -> Result<Chart, OutputError> {
        let mut blobs = blobs.into_iter();
        let bytes = document("chart", blobs.next().into_iter().collect(), &self.limits)?;
        let picture = at_most_one("chart", blobs.collect(), true)?;
        // The kernel asked whether the chart is valid before it sent it.
        let read = spawn_blocking(move || {
            let rows = Rows::parse(&bytes)?;
            let chart = chart::CheckedChart::new(&it.spec, rows, it.title, it.alt)?;
            Ok((serde_json::to_value(&chart.spec), chart.document(), chart))
        });
        let (spec, document, chart) = read
            .await
            .map_err(|_| OutputError::Panicked)?
            .map_err(|source| OutputError::Chart { source })?;
        let described = about(Kind::Chart, CHART);
        let document = self.publish(Blob::Memory(document), &described, unkept).await;
        let (image, size) = match picture {
            Some(blob) => {
                let (blob, size) = self.checked(ImageMime::Png, blob).await?;
                let described = about(Kind::Figure, ImageMime::Png.as_str());
                (self.publish(blob, &described, unkept).await, size)
            }
            None => (None, None),
        };
        Ok(Chart {
            title: chart.title,
            alt: chart.alt,
            spec: spec?,
            rows: chart.rows.len() as u64,
            document,
            image,
            width: size.map(|size| size.width),
            height: size.map(|size| size.height),
            note: self.note(it.note),
        })
    }
}

fn malformed(kind: &'static str) -> impl Fn(serde_json::Error) -> OutputError {
    move |source| OutputError::Document { kind, source }
}

/// Returns the only blob of a JSON document, within the limit.
fn document(kind: &'static str, blobs: Vec<Blob>, limits: &DecodingLimits) -> Result<Vec<u8>, OutputError> {
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
    Ok(bytes_of(&blob)?)
}

/// Returns all bytes of a blob, in memory.
pub(crate) fn bytes_of(blob: &Blob) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    blob.reader().read_to_end(&mut bytes)?;
    Ok(bytes)
}

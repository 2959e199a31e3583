//! Outputs that a cell emitted.

use cellblock_artifact::{ArtifactEnvelope, Picture, Store, Urls};
use serde_json::Value;

use crate::contract::ArtifactKind;
use crate::error::Result;
use crate::output::{ArtifactRef, Chart, Figure, Output};

/// The emissions among the outputs of a cell.
#[derive(Debug, Default)]
pub(super) struct CellEmissions<'a> {
    /// Last value that was passed to `set_result`.
    pub(super) result: Option<&'a Value>,
    /// In the order of emission.
    pub(super) artifacts: Vec<Artifact<'a>>,
    /// Figures that were drawn and not saved.
    pub(super) unsaved: usize,
    /// Kinds of emissions that could not be stored; the note of the cell reports them.
    unkept: Vec<ArtifactKind>,
}

/// One emission with its bytes.
#[derive(Debug)]
pub(super) enum Artifact<'a> {
    /// A figure that was saved, with its words and its picture.
    Image(&'a Figure, &'a str, &'a ArtifactRef),
    /// A chart, with its document and rows.
    Chart(&'a Chart, &'a ArtifactRef, Value),
}

impl<'a> CellEmissions<'a> {
    /// Finds what was emitted, and reads the rows of charts from the store: outputs do not hold them.
    pub(super) async fn read(outputs: &'a [Output], store: &Store) -> Result<Self> {
        let mut found = Self::default();
        for output in outputs {
            match output {
                Output::Result(answer) => found.result = Some(&answer.value),
                Output::Figure(figure) => match (&figure.alt, &figure.image) {
                    (Some(alt), Some(image)) => found.artifacts.push(Artifact::Image(figure, alt, image)),
                    // Its bytes were read, and could not be stored.
                    (Some(_), None) if figure.width.is_some() => found.unkept.push(ArtifactKind::Image),
                    _ => found.unsaved += 1,
                },
                Output::Chart(chart) => match &chart.document {
                    Some(document) => {
                        let rows = rows(document, store).await?;
                        found.artifacts.push(Artifact::Chart(chart, document, rows));
                    }
                    None => found.unkept.push(ArtifactKind::Chart),
                },
                _ => {}
            }
        }
        Ok(found)
    }

    pub(super) fn kinds(&self) -> Vec<ArtifactKind> {
        let kinds = self.artifacts.iter().map(|artifact| match artifact {
            Artifact::Image(..) => ArtifactKind::Image,
            Artifact::Chart(..) => ArtifactKind::Chart,
        });
        kinds.chain(self.unkept.iter().copied()).collect()
    }

    /// Says where it can be had, in the order of emission.
    pub(super) fn envelopes(&self, urls: &Urls) -> Vec<ArtifactEnvelope> {
        let envelopes = self.artifacts.iter().map(|artifact| match artifact {
            Artifact::Image(figure, alt, image) => envelope_of_image(figure, alt, image, urls),
            Artifact::Chart(chart, document, rows) => envelope_of_chart(chart, document, rows.clone(), urls),
        });
        envelopes.collect()
    }
}

fn envelope_of_image(figure: &Figure, alt: &str, image: &ArtifactRef, urls: &Urls) -> ArtifactEnvelope {
    let mut envelope = ArtifactEnvelope::image(urls, image.sha256, image.bytes, &*image.media_type);
    envelope.alt = Some(alt.to_owned());
    envelope.title.clone_from(&figure.title);
    (envelope.width, envelope.height) = (figure.width, figure.height);
    ArtifactEnvelope::Image(envelope)
}

fn envelope_of_chart(chart: &Chart, document: &ArtifactRef, rows: Value, urls: &Urls) -> ArtifactEnvelope {
    let mut envelope =
        ArtifactEnvelope::chart(urls, document.sha256, document.bytes, chart.spec.clone(), rows);
    envelope.alt.clone_from(&chart.alt);
    envelope.title.clone_from(&chart.title);
    envelope.picture = chart.image.as_ref().map(|image| Picture {
        url: urls.of(image.sha256, &image.media_type),
        sha256: image.sha256,
        bytes: image.bytes,
        width: chart.width,
        height: chart.height,
        media_type: image.media_type.clone(),
    });
    envelope.note.clone_from(&chart.note);
    ArtifactEnvelope::Chart(envelope)
}

/// The rows of a chart, from its document.
async fn rows(document: &ArtifactRef, store: &Store) -> Result<Value> {
    let document = store.get(document.sha256).await?;
    let mut document: Value = serde_json::from_slice(&document).map_err(crate::output::OutputError::from)?;
    Ok(document.get_mut("data").map(Value::take).unwrap_or_default())
}

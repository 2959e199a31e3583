//! What a cell emitted, taken from its outputs.

use cellblock_artifact::{ArtifactEnvelope, Store, Urls};
use serde_json::Value;

use crate::contract::ArtifactKind;
use crate::error::Result;
use crate::output::{Chart, Figure, Output};

/// The emissions among the outputs of a cell.
#[derive(Debug, Default)]
pub(super) struct Emitted<'a> {
    /// What `set_result` was last given.
    pub(super) result: Option<&'a Value>,
    pub(super) figures: Vec<&'a Figure>,
    pub(super) charts: Vec<&'a Chart>,
    /// Kinds in the order of emission.
    pub(super) kinds: Vec<ArtifactKind>,
    /// Figures that were drawn and not saved.
    pub(super) unsaved: usize,
}

impl<'a> Emitted<'a> {
    pub(super) fn of(outputs: &'a [Output]) -> Self {
        let mut found = Self::default();
        for output in outputs {
            match output {
                Output::Result(answer) => found.result = Some(&answer.value),
                Output::Figure(figure) if figure.alt.is_some() && figure.image.is_some() => {
                    found.figures.push(figure);
                    found.kinds.push(ArtifactKind::Image);
                }
                Output::Figure(_) => found.unsaved += 1,
                Output::Chart(chart) => {
                    found.charts.push(chart);
                    found.kinds.push(ArtifactKind::Chart);
                }
                _ => {}
            }
        }
        found
    }
}

/// Says where what a cell emitted can be had, in the order of emission.
pub(super) async fn envelopes(
    outputs: &[Output],
    store: &Store,
    urls: &Urls,
) -> Result<Vec<ArtifactEnvelope>> {
    let mut envelopes = Vec::new();
    for output in outputs {
        match output {
            Output::Figure(figure) => envelopes.extend(image(figure, urls)),
            Output::Chart(chart) => envelopes.push(self::chart(chart, store, urls).await?),
            _ => {}
        }
    }
    Ok(envelopes)
}

fn image(figure: &Figure, urls: &Urls) -> Option<ArtifactEnvelope> {
    let (alt, image) = (figure.alt.clone()?, figure.image.as_ref()?);
    let mut envelope = ArtifactEnvelope::image(urls, image.sha256, image.bytes, &*image.media_type);
    envelope.alt = Some(alt);
    envelope.title.clone_from(&figure.title);
    (envelope.width, envelope.height) = (figure.width, figure.height);
    Some(ArtifactEnvelope::Image(envelope))
}

async fn chart(chart: &Chart, store: &Store, urls: &Urls) -> Result<ArtifactEnvelope> {
    let id = chart.document.sha256;
    let data = data(store, chart).await?;
    let mut envelope = ArtifactEnvelope::chart(urls, id, chart.document.bytes, chart.spec.clone(), data);
    envelope.alt.clone_from(&chart.alt);
    envelope.title.clone_from(&chart.title);
    Ok(ArtifactEnvelope::Chart(envelope))
}

/// The rows of a chart, from its document.
pub(super) async fn data(store: &Store, chart: &Chart) -> Result<Value> {
    let document = store.get(chart.document.sha256).await?;
    let mut document: Value = serde_json::from_slice(&document).map_err(crate::output::OutputError::from)?;
    Ok(document.get_mut("data").map(Value::take).unwrap_or_default())
}

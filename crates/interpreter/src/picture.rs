//! Pictures of charts, drawn by the image's renderer in a sandbox that holds nothing else.

use std::sync::Arc;
use std::time::Duration;

use cellblock_artifact::CHART;
use cellblock_chart::{ChartError, ChartProblem, CheckedChart, VEGA_LITE, code};
use serde_json::Value;

use crate::cell::{Cell, Rescue};
use crate::error::Result;
use crate::execution::Execution;
use crate::output::{ArtifactRef, Output};
use crate::session::{Session, SessionOptions};
use crate::shared::InterpreterState;

/// Maximum time for drawing.
const TIME: Duration = Duration::from_mins(1);
/// Position of the width and height in a PNG.
const SIZE: std::ops::Range<u64> = 16..24;

/// The format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    /// PNG.
    Png,
    /// SVG.
    Svg,
    /// A page that shows the chart in a browser without anything from elsewhere: it holds all of
    /// its JavaScript.
    Html,
}

impl PictureFormat {
    /// As the kernel names it, and as files end.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Svg => "svg",
            Self::Html => "html",
        }
    }
}

/// A picture, or why there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PictureOutcome {
    /// The picture's bytes, in the store.
    pub picture: Option<ArtifactRef>,
    /// Its width and height in pixels; only a PNG has them.
    pub size: Option<(u32, u32)>,
    /// Reason that there is no image.
    pub note: Option<String>,
}

/// Returns the Vega-Lite specification of an artifact that is a chart: of its document, or of a
/// figure that was drawn from one.
pub fn vega_lite_of(media_type: &str, bytes: &[u8]) -> std::result::Result<Value, ChartError> {
    match media_type {
        CHART => Ok(CheckedChart::of_document(bytes)?.vega_lite()),
        VEGA_LITE => serde_json::from_slice(bytes).map_err(|error| not_a_chart(error.to_string())),
        other => Err(not_a_chart(format!(
            "only charts can be drawn, and this is {other}"
        ))),
    }
}

fn not_a_chart(message: String) -> ChartError {
    let problem = ChartProblem {
        code: code::DATA_MALFORMED,
        field: "artifact".to_owned(),
        message,
        valid: Vec::new(),
    };
    ChartError {
        problems: vec![problem],
        more: 0,
    }
}

/// Draws in a session of its own, which sees no other data and is gone afterwards.
pub(crate) async fn draw(
    shared: &Arc<InterpreterState>,
    vega_lite: &Value,
    format: PictureFormat,
) -> Result<PictureOutcome> {
    let options = SessionOptions {
        prelude: Vec::new(),
        rescue: Rescue::Off,
        ..SessionOptions::default()
    };
    let session = Session::start(Arc::clone(shared), options);
    let drawn = session.execute(cell(vega_lite, format)).await;
    session.close().await?;
    let execution = drawn?;
    let Some(picture) = picture(&execution) else {
        return Ok(PictureOutcome {
            note: Some(format!("no picture: {}", reason(&execution))),
            ..PictureOutcome::default()
        });
    };
    let size = match format {
        PictureFormat::Png => size(&shared.store.get_range(picture.sha256, SIZE).await?),
        PictureFormat::Svg | PictureFormat::Html => None,
    };
    Ok(PictureOutcome {
        picture: Some(picture),
        size,
        note: None,
    })
}

/// A cell whose value is the picture.
fn cell(vega_lite: &Value, format: PictureFormat) -> Cell {
    // A text of JSON is one of Python, too.
    let spec = Value::from(vega_lite.to_string()).to_string();
    let form = format.extension();
    let code = format!(
        "__import__('cellblock_kernel.outputs.drawing', fromlist=['bundle']).bundle({spec}, '{form}')"
    );
    Cell::expression(code).with_timeout(TIME)
}

fn picture(execution: &Execution) -> Option<ArtifactRef> {
    let shown = execution.outputs.iter().find_map(|output| match output {
        Output::Rich(rich) => rich.bundle.first(),
        _ => None,
    });
    Some(shown?.artifact.clone())
}

fn reason(execution: &Execution) -> String {
    let raised = execution.outputs.iter().find_map(|output| match output {
        Output::Exception(raised) => Some(raised.message.clone()),
        _ => None,
    });
    let ended = || format!("the renderer's sandbox ended with {}", execution.outcome.name());
    raised.or_else(|| execution.note.clone()).unwrap_or_else(ended)
}

fn size(bytes: &[u8]) -> Option<(u32, u32)> {
    let side = |at| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    Some((side(0)?, side(4)?))
}

//! What code in a sandbox may ask its host for while a cell runs.

use cellblock_protocol::{Blob, CallError, ToKernel};
use cellblock_sandbox::backend::Kernel;
use cellblock_sandbox::channel::write_frame;
use serde::Deserialize;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::chart::{CheckedChart, MAX_BYTES, Rows};
use crate::error::Result;
use crate::output::bytes_of;

/// Answers a call, with an error where the host has no such method.
pub(super) async fn answer(
    kernel: &mut Kernel,
    call: u64,
    method: &str,
    params: Value,
    blobs: Vec<Blob>,
) -> Result<()> {
    let result = match method {
        "check_chart" => check_chart(params, blobs).await,
        _ => Err(CallError {
            code: "unknown_method".into(),
            message: format!(
                "the host offers no method `{}` to this session",
                method.escape_debug()
            ),
        }),
    };
    let (value, drawing, error) = match result {
        Ok(drawing) => (Value::Bool(true), Some(drawing), None),
        Err(error) => (Value::Null, None, Some(error)),
    };
    let answer = ToKernel::Answer { call, value, error };
    let blobs: Vec<&[u8]> = drawing.iter().map(Vec::as_slice).collect();
    Ok(write_frame(&mut kernel.writer, &answer, &blobs).await?)
}

/// A chart that `render_chart` is about to emit; blob 0 are its rows.
#[derive(Deserialize)]
struct CheckChart {
    spec: Value,
    title: Option<String>,
    alt: Option<String>,
}

/// Checks a chart while its code can still receive the error, and otherwise returns its Vega-Lite
/// form.
async fn check_chart(params: Value, mut blobs: Vec<Blob>) -> Result<Vec<u8>, CallError> {
    let refuse = |message: String| CallError {
        code: "chart".into(),
        message,
    };
    let chart: CheckChart =
        serde_json::from_value(params).map_err(|error| refuse(format!("the call is malformed: {error}")))?;
    let rows = blobs
        .pop()
        .ok_or_else(|| refuse("the call has no rows".to_owned()))?;
    let checked = spawn_blocking(move || {
        let rows = within(&rows)?;
        let rows = Rows::parse(&rows).map_err(|error| error.to_string())?;
        let chart = CheckedChart::new(&chart.spec, rows, chart.title, chart.alt)
            .map_err(|error| error.to_string())?;
        Ok(chart.vega_lite().to_string().into_bytes())
    });
    match checked.await {
        Ok(Ok(drawing)) => Ok(drawing),
        Ok(Err(message)) => Err(refuse(message)),
        Err(_) => Err(refuse("the chart could not be checked".to_owned())),
    }
}

fn within(rows: &Blob) -> Result<Vec<u8>, String> {
    if rows.len() > MAX_BYTES as u64 {
        return Err(format!(
            "the rows have {} bytes as JSON, the limit is {MAX_BYTES}: aggregate or sample them, or leave out columns that are not drawn",
            rows.len()
        ));
    }
    bytes_of(rows).map_err(|error| format!("the rows could not be read: {error}"))
}

//! `check_chart`: a chart is checked while its code can still receive the error.

use cellblock_protocol::{Blob, CallError};
use serde::Deserialize;
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::{HostCall, HostReply};
use crate::chart::{CheckedChart, MAX_BYTES, Rows};
use crate::output::bytes_of;

/// A chart that `render_chart` is about to emit; blob 0 are its rows.
#[derive(Deserialize)]
struct CheckChart {
    spec: Value,
    title: Option<String>,
    alt: Option<String>,
}

/// Checks a chart and returns its Vega-Lite form.
pub(super) async fn check(call: HostCall) -> Result<HostReply, CallError> {
    let HostCall {
        params, mut blobs, ..
    } = call;
    let refuse = |message: String| CallError {
        code: "chart".into(),
        message,
        details: Value::Null,
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
        Ok(Ok(drawing)) => Ok(HostReply {
            value: Value::Bool(true),
            blobs: vec![drawing.into()],
        }),
        Ok(Err(message)) => Err(refuse(message)),
        Err(_) => Err(refuse("the chart could not be checked".to_owned())),
    }
}

fn within(rows: &Blob) -> Result<Vec<u8>, String> {
    if rows.len() > MAX_BYTES as u64 {
        return Err(format!(
            "the rows have {} bytes as JSON, the limit is {MAX_BYTES}: aggregate or sample them, or leave \
             out columns that are not drawn",
            rows.len()
        ));
    }
    bytes_of(rows).map_err(|error| format!("the rows could not be read: {error}"))
}

//! Calls of a connector that answers at once, as code in a cell measures them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, FetchAnswer, FetchEffect, Redaction,
};
use cellblock_interpreter::session::SessionOptions;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::{Subject, WHO, completed};
use crate::probe::probe;
use crate::samples::Samples;

/// Columns and rows of the table: 10 MB of numbers.
const COLUMNS: u32 = 10;
const ROWS: u32 = 125_000;

/// A connector whose answers are made already.
#[derive(Debug)]
struct PreparedConnector {
    small: Value,
    table: Vec<u8>,
    redaction: Redaction,
}

impl PreparedConnector {
    fn new() -> Result<Self> {
        let columns = (0..COLUMNS).map(|column| {
            let values = (0..ROWS).map(|row| f64::from(row.wrapping_mul(2_654_435_761 + column)));
            let values: ArrayRef = Arc::new(values.collect::<Float64Array>());
            (format!("c{column}"), values)
        });
        let batch = RecordBatch::try_from_iter(columns)?;
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
        writer.write(&batch)?;
        // As JSON, each row has 50 bytes.
        let rows = (0..20).map(|row| json!({"day": "2026-01-01", "city": "Kyiv", "high": 10 + row}));
        Ok(Self {
            small: rows.collect(),
            table: writer.into_inner()?,
            redaction: Redaction::default(),
        })
    }
}

impl Connector for PreparedConnector {
    fn name(&self) -> &'static str {
        "ready"
    }

    fn description(&self) -> &'static str {
        "Answers at once."
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let cards = ["small", "table"].map(|name| Card {
            name: name.to_owned(),
            parameters: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
            effect: FetchEffect::Reads,
            ..Card::default()
        });
        async move { Ok(cards.to_vec()) }.boxed()
    }

    fn fetch(
        &self,
        function: &str,
        _: Map<String, Value>,
        _: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let answer = match function {
            "table" => FetchAnswer::Arrow(self.table.clone().into()),
            _ => FetchAnswer::Value(self.small.clone()),
        };
        async { Ok(answer) }.boxed()
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}

/// Calls functions from cells of one session.
pub(crate) struct Calls {
    pub(crate) subject: Arc<Subject>,
    /// Calls with an answer of 1 KB.
    pub(crate) small: usize,
    /// Calls with an answer of 10 MB.
    pub(crate) large: usize,
}

impl Calls {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let session = self.subject.interpreter.session(SessionOptions {
            connectors: vec![Arc::new(PreparedConnector::new()?)],
            ..SessionOptions::default()
        });
        completed(
            &session
                .execute("ready.small(n=-1), len(ready.table(n=-1))")
                .await?,
        )?;
        for (series, call, times) in [
            ("fetch_1kb", "ready.small(n=at)", self.small),
            ("fetch_cached", "ready.small(n=-1)", self.small),
            ("fetch_10mb", "ready.table(n=at)", self.large),
        ] {
            let code = format!(
                "import json, time\ntimes = []\nfor at in range({times}):\n    started = \
                 time.perf_counter()\n    got = {call}\n    times.append(time.perf_counter() - started)\n\
                 print(json.dumps(times))"
            );
            let execution = session.execute(code.as_str()).await?;
            completed(&execution)?;
            let cached = execution.fetches.iter().filter(|fetch| fetch.cached).count();
            let expected = if series == "fetch_cached" { times } else { 0 };
            ensure!(
                cached == expected.min(200),
                "{cached} of {times} calls were answered from the memo"
            );
            let taken: Vec<f64> = serde_json::from_str(&execution.stdout.text).context("read the times")?;
            let taken = taken.into_iter().map(Duration::from_secs_f64);
            samples.times(WHO, series, taken);
            // Equal tables are written again in the next turn.
            self.subject.forget(&execution).await?;
        }
        session.close().await?;
        Ok(())
    }
}

probe!(Calls, "calls of a connector");

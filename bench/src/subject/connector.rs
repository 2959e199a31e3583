//! Calls of a connector, as code in a cell measures them, and sessions that all wait for one at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, FetchAnswer, FetchEffect, Redaction,
};
use cellblock_interpreter::{Cell, Session};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, try_join_all};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{Subject, run};
use crate::memory::{Peak, ProcessTree, mebibytes};
use crate::samples::ProbeTurn;

/// Maximum time for all calls to arrive, and then to be measured and answered.
const ARRIVAL: Duration = Duration::from_mins(5);
/// Columns and rows of the table: 10 MB of numbers.
const COLUMNS: u32 = 10;
const ROWS: u32 = 125_000;

/// A connector whose answers are made already. One of its functions waits until it is opened.
#[derive(Debug)]
struct PreparedConnector {
    small: Value,
    table: Vec<u8>,
    arrived: AtomicUsize,
    open: Semaphore,
    redaction: Redaction,
}

impl PreparedConnector {
    fn new() -> Result<Arc<Self>> {
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
        Ok(Arc::new(Self {
            small: rows.collect(),
            table: writer.into_inner()?,
            arrived: AtomicUsize::new(0),
            open: Semaphore::new(0),
            redaction: Redaction::default(),
        }))
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
        let cards = ["small", "table", "wait"].map(|name| Card {
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
            "small" => FetchAnswer::Value(self.small.clone()),
            _ => {
                return async {
                    self.arrived.fetch_add(1, Ordering::Relaxed);
                    drop(self.open.acquire().await.expect("it is never closed"));
                    Ok(FetchAnswer::Value("x".repeat(1000).into()))
                }
                .boxed();
            }
        };
        async { Ok(answer) }.boxed()
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}

fn session(subject: &Subject, connector: &Arc<PreparedConnector>) -> Session {
    let connector: Arc<dyn Connector> = connector.clone();
    subject.session_with(true, |options| options.connectors.push(connector))
}

/// Calls functions from cells of one session: so many times with an answer of 1 KB, and with one of 10 MB.
pub(crate) async fn calls(subject: &Subject, turn: &ProbeTurn, (small, large): (usize, usize)) -> Result<()> {
    let session = session(subject, &PreparedConnector::new()?);
    run(&session, "ready.small(n=-1), len(ready.table(n=-1))").await?;
    for (series, call, times) in [
        ("fetch_1kb", "ready.small(n=at)", small),
        ("fetch_cached", "ready.small(n=-1)", small),
        ("fetch_10mb", "ready.table(n=at)", large),
    ] {
        let code = format!(
            "import json, time\ntimes = []\nfor at in range({times}):\n    started = \
             time.perf_counter()\n    got = {call}\n    times.append(time.perf_counter() - started)\n\
             print(json.dumps(times))"
        );
        let (execution, _) = run(&session, code.as_str()).await?;
        let cached = execution.fetches.iter().filter(|fetch| fetch.cached).count();
        let expected = if series == "fetch_cached" { times } else { 0 };
        ensure!(
            cached == expected.min(200),
            "{cached} of {times} calls were answered from the memo"
        );
        let taken: Vec<f64> = serde_json::from_str(&execution.stdout.text).context("read the times")?;
        turn.times(series, taken.into_iter().map(Duration::from_secs_f64));
        // Equal tables are written again in the next turn.
        subject.forget(&execution).await?;
    }
    Ok(session.close().await?)
}

/// Runs a cell in each of so many sessions, which waits for the same connector, and answers all of them.
pub(crate) async fn waiting_calls(subject: &Subject, turn: &ProbeTurn, count: usize) -> Result<()> {
    let work = async |sessions: &mut Vec<Session>| {
        let connector = PreparedConnector::new()?;
        for _ in 0..count {
            let session = session(subject, &connector);
            sessions.push(session.clone());
            run(&session, "1").await?;
        }
        let peak = Peak::of(std::process::id())?;
        let calls = sessions
            .iter()
            .map(|session| run(session, Cell::new("len(ready.wait())").with_timeout(ARRIVAL)));
        let answered = async {
            let started = Instant::now();
            let arrived = || connector.arrived.load(Ordering::Relaxed);
            while arrived() < count {
                let (late, arrived) = (started.elapsed() > ARRIVAL, arrived());
                ensure!(!late, "only {arrived} of {count} calls arrived");
                sleep(Duration::from_millis(5)).await;
            }
            let waiting = spawn_blocking(ProcessTree::measure).await??.sessions.private;
            let opened = Instant::now();
            connector.open.add_permits(count);
            Ok((waiting, opened))
        };
        let (_, (waiting, opened)) = futures_util::try_join!(try_join_all(calls), answered)?;
        turn.time("fetch_crowd", opened.elapsed());
        turn.add("fetch_crowd_host", peak.growth()?);
        turn.add("fetch_crowd_uss", mebibytes(waiting));
        Ok(())
    };
    subject.with_sessions(work).await
}

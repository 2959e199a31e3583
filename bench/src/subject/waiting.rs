//! Sessions that all wait for a connector at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, FetchAnswer, FetchEffect, Redaction,
};
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Cell, Session};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, try_join_all};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{Subject, WHO, completed};
use crate::memory::{Peak, ProcessTree};
use crate::probe::probe;
use crate::samples::Samples;

/// Maximum time for all calls to arrive, and then to be measured and answered.
const ARRIVAL: Duration = Duration::from_mins(5);
const MIB: f64 = 1024.0 * 1024.0;

/// A connector that answers no call before it is opened.
#[derive(Debug)]
struct Gate {
    arrived: AtomicUsize,
    open: Semaphore,
    redaction: Redaction,
}

impl Connector for Gate {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn description(&self) -> &'static str {
        "Answers when it is opened."
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let card = Card {
            name: "wait".to_owned(),
            parameters: json!({"type": "object"}),
            effect: FetchEffect::Reads,
            ..Card::default()
        };
        async move { Ok(vec![card]) }.boxed()
    }

    fn fetch(
        &self,
        _: &str,
        _: Map<String, Value>,
        _: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        async {
            self.arrived.fetch_add(1, Ordering::Relaxed);
            let passed = self.open.acquire().await;
            drop(passed.expect("the gate is never closed"));
            Ok(FetchAnswer::Value("x".repeat(1000).into()))
        }
        .boxed()
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}

/// Runs a cell in each of so many sessions, which waits for the same connector, and answers all of them.
pub(crate) struct WaitingCalls {
    pub(crate) subject: Arc<Subject>,
    pub(crate) sessions: usize,
}

impl WaitingCalls {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let gate = Arc::new(Gate {
            arrived: AtomicUsize::new(0),
            open: Semaphore::new(0),
            redaction: Redaction::default(),
        });
        let mut sessions: Vec<Session> = Vec::new();
        let measured = self.measure(&gate, &mut sessions, samples).await;
        for session in &sessions {
            session.close().await?;
        }
        measured?;
        self.subject.settle().await
    }

    async fn measure(
        &self,
        gate: &Arc<Gate>,
        sessions: &mut Vec<Session>,
        samples: &mut Samples,
    ) -> Result<()> {
        for _ in 0..self.sessions {
            let session = self.subject.interpreter.session(SessionOptions {
                connectors: vec![Arc::clone(gate) as Arc<dyn Connector>],
                ..SessionOptions::default()
            });
            sessions.push(session.clone());
            completed(&session.execute("1").await?)?;
        }
        let peak = Peak::start()?;
        let calls = sessions.iter().map(|session| async {
            completed(
                &session
                    .execute(Cell::new("len(gate.wait())").with_timeout(ARRIVAL))
                    .await?,
            )
        });
        let answered = async {
            let started = Instant::now();
            while gate.arrived.load(Ordering::Relaxed) < self.sessions {
                ensure!(
                    started.elapsed() < ARRIVAL,
                    "only {} of {} calls arrived",
                    gate.arrived.load(Ordering::Relaxed),
                    self.sessions
                );
                sleep(Duration::from_millis(5)).await;
            }
            let waiting = spawn_blocking(ProcessTree::measure).await??.sessions.private;
            let opened = Instant::now();
            gate.open.add_permits(self.sessions);
            Ok((waiting, opened))
        };
        let (_, (waiting, opened)) = futures_util::try_join!(try_join_all(calls), answered)?;
        samples.time(WHO, "fetch_crowd", opened.elapsed());
        #[expect(clippy::cast_precision_loss, reason = "bytes of memory fit a double")]
        let mebibytes = |bytes: u64| bytes as f64 / MIB;
        samples.add(WHO, "fetch_crowd_host", mebibytes(peak.growth()?));
        samples.add(WHO, "fetch_crowd_uss", mebibytes(waiting));
        Ok(())
    }
}

probe!(WaitingCalls, "calls in flight");

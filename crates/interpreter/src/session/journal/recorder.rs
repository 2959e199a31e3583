//! Completing records of runs beside the session's task, so that no answer waits for hashes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::execution::Execution;
use crate::input::InputFormat;
use crate::run_record::{ExpectedRun, RunError, RunInput, RunMade, RunRecord, RunSink};

/// Records that wait to be completed. Each has what its run displayed; a session that makes more waits.
const WAITING: usize = 16;

/// The hash and the size of an input, once they are known.
pub(in crate::session) type InputDigest = Shared<BoxFuture<'static, Option<(String, u64)>>>;

/// Returns what is computed elsewhere as a digest that can be awaited several times.
pub(in crate::session) fn digest_of(computing: JoinHandle<Option<(String, u64)>>) -> InputDigest {
    async move { computing.await.ok().flatten() }.boxed().shared()
}

/// A run that has ended, whose record lacks what takes time.
#[derive(Debug)]
pub(in crate::session) struct EndedRun {
    pub(in crate::session) record: RunRecord,
    /// The execution, or why there is none.
    pub(in crate::session) made: Result<Box<Execution>, RunError>,
    /// The inputs that were bound, in the order of their names.
    pub(in crate::session) inputs: Vec<(String, InputFormat, Option<InputDigest>)>,
    /// From the request until code began to run, if it did.
    pub(in crate::session) prepared: Option<Duration>,
    /// From the request to the end.
    pub(in crate::session) took: Duration,
    pub(in crate::session) sink: Arc<dyn RunSink>,
    /// Readers wait for the record until this is dropped.
    pub(in crate::session) expected: ExpectedRun,
}

#[derive(Debug)]
enum Step {
    Complete(Box<EndedRun>),
    Flush(oneshot::Sender<()>),
}

/// Completes the records of a session, one after the other.
#[derive(Debug, Default)]
pub(in crate::session) struct Recorder(Option<mpsc::Sender<Step>>);

impl Recorder {
    /// Takes a run.
    pub(in crate::session) async fn take(&mut self, run: EndedRun) {
        let queue = self.0.get_or_insert_with(|| {
            let (queue, steps) = mpsc::channel(WAITING);
            tokio::spawn(complete(steps));
            queue
        });
        // The task ends only after its queue.
        let _ = queue.send(Step::Complete(Box::new(run))).await;
    }

    /// Waits until all records that were taken are handed over.
    pub(in crate::session) async fn flush(&self) {
        let Some(queue) = &self.0 else { return };
        let (done, flushed) = oneshot::channel();
        if queue.send(Step::Flush(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }
}

async fn complete(mut steps: mpsc::Receiver<Step>) {
    while let Some(step) = steps.recv().await {
        match step {
            Step::Complete(run) => run.complete().await,
            // Nobody may wait any more.
            Step::Flush(done) => _ = done.send(()),
        }
    }
}

impl EndedRun {
    async fn complete(self: Box<Self>) {
        let Self {
            mut record,
            made,
            inputs,
            prepared,
            took,
            sink,
            expected,
        } = *self;
        for (name, format, digest) in inputs {
            let digest = match digest {
                Some(digest) => digest.await,
                None => None,
            };
            let (sha256, bytes) = digest.map_or((None, 0), |(sha256, bytes)| (Some(sha256), bytes));
            record.inputs.push(RunInput {
                name,
                format,
                sha256,
                bytes,
            });
        }
        RunMade {
            result: made.as_deref().map_err(Clone::clone),
            prepared,
            took,
        }
        .complete(&mut record);
        sink.record(record);
        drop(expected);
    }
}

//! Records on their way into the database: a bounded queue that no cell waits for.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use cellblock_interpreter::run_record::{ExpectedRun, RunRecord, RunSink};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

use crate::metrics;
use crate::options::RunOptions;
use crate::records::{Records, RunRow};

/// Maximum number and size of records that wait to be written; more are dropped.
const WAITING: usize = 1024;
const WAITING_BYTES: usize = 32 << 20;
/// Maximum number of records in one transaction.
const AT_ONCE: usize = 64;
/// Time for which the first of them waits for others. A transaction for each cell would take a processor from
/// the next cell.
const GATHER: Duration = Duration::from_millis(100);
/// Interval between two removals of records that are too old.
const SWEEP: Duration = Duration::from_mins(1);
/// Maximum time for which a reader waits for records that are not written yet.
const FLUSH: Duration = Duration::from_secs(5);

/// Writes records of runs.
#[derive(Clone, Debug)]
pub(crate) struct RunLog(Arc<LogState>);

#[derive(Debug)]
struct LogState {
    records: Records,
    options: RunOptions,
    /// Started by the first record.
    queue: OnceLock<mpsc::Sender<LogStep>>,
    /// Bytes that wait.
    bytes: Arc<AtomicUsize>,
    expected: Arc<ExpectedRuns>,
}

/// Runs that have ended and whose records are not taken yet.
#[derive(Debug, Default)]
struct ExpectedRuns {
    numbers: Mutex<RunNumbers>,
    fewer: Notify,
}

#[derive(Debug, Default)]
struct RunNumbers {
    last: u64,
    open: BTreeSet<u64>,
}

/// One of them.
struct ExpectedOne {
    of: Arc<ExpectedRuns>,
    number: u64,
}

impl ExpectedRuns {
    fn begin(self: &Arc<Self>) -> ExpectedOne {
        let mut numbers = self.numbers();
        numbers.last += 1;
        let number = numbers.last;
        numbers.open.insert(number);
        ExpectedOne {
            of: Arc::clone(self),
            number,
        }
    }

    /// Waits for those that there are now.
    async fn taken(&self) {
        let last = self.numbers().last;
        loop {
            let mut fewer = pin!(self.fewer.notified());
            fewer.as_mut().enable();
            if self.numbers().open.first().is_none_or(|first| *first > last) {
                return;
            }
            fewer.await;
        }
    }

    fn numbers(&self) -> MutexGuard<'_, RunNumbers> {
        self.numbers.lock()
    }
}

impl Drop for ExpectedOne {
    fn drop(&mut self) {
        self.of.numbers().open.remove(&self.number);
        self.of.fewer.notify_waiters();
    }
}

#[derive(Debug)]
enum LogStep {
    Write(Box<RunRow>),
    Flush(oneshot::Sender<()>),
}

/// Takes the records of one owner's runs.
#[derive(Debug)]
struct OwnerRuns {
    log: RunLog,
    owner: String,
}

impl RunLog {
    pub(crate) fn new(records: Records, options: RunOptions) -> Self {
        Self(Arc::new(LogState {
            records,
            options,
            queue: OnceLock::new(),
            bytes: Arc::default(),
            expected: Arc::default(),
        }))
    }

    /// Returns what takes the records of an owner's runs, if any are kept.
    pub(crate) fn sink(&self, owner: &str) -> Option<Arc<dyn RunSink>> {
        (self.0.options.keep > 0).then(|| {
            let (log, owner) = (self.clone(), owner.to_owned());
            Arc::new(OwnerRuns { log, owner }) as Arc<dyn RunSink>
        })
    }

    /// Waits until all records that were taken are written, for a few seconds.
    pub(crate) async fn flush(&self) {
        let flushed = async {
            self.0.expected.taken().await;
            let Some(queue) = self.0.queue.get() else { return };
            let (done, written) = oneshot::channel();
            if queue.send(LogStep::Flush(done)).await.is_ok() {
                let _ = written.await;
            }
        };
        if timeout(FLUSH, flushed).await.is_err() {
            tracing::warn!("records of runs are written slowly; a reader may miss the newest");
        }
    }

    fn queue(&self) -> &mpsc::Sender<LogStep> {
        self.0.queue.get_or_init(|| {
            let (sender, receiver) = mpsc::channel(WAITING);
            let writer = Writer {
                records: self.0.records.clone(),
                options: self.0.options,
                bytes: Arc::clone(&self.0.bytes),
                swept: None,
            };
            tokio::spawn(writer.run(receiver));
            sender
        })
    }

    fn take(&self, row: RunRow) {
        let bytes = &self.0.bytes;
        let size = row.record.len();
        let before = bytes.fetch_add(size, Ordering::Relaxed);
        let full = before + size > WAITING_BYTES;
        if full || self.queue().try_send(LogStep::Write(Box::new(row))).is_err() {
            bytes.fetch_sub(size, Ordering::Relaxed);
            metrics::runs_recorded("dropped", 1);
        }
    }
}

impl RunSink for OwnerRuns {
    fn expect(&self) -> ExpectedRun {
        Box::new(self.log.0.expected.begin())
    }

    fn record(&self, record: RunRecord) {
        match record.to_json() {
            Ok(json) => self.log.take(RunRow {
                owner: self.owner.clone(),
                created_ms: record.started_ms,
                session: record.session,
                id: record.id,
                record: json,
            }),
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "write the record of a run"
                );
                metrics::runs_recorded("failed", 1);
            }
        }
    }
}

struct Writer {
    records: Records,
    options: RunOptions,
    bytes: Arc<AtomicUsize>,
    /// Time of the last removal of old records.
    swept: Option<Instant>,
}

impl Writer {
    /// Writes until the log is gone.
    async fn run(mut self, mut steps: mpsc::Receiver<LogStep>) {
        loop {
            let mut taken = Vec::new();
            let received = timeout(SWEEP, steps.recv_many(&mut taken, AT_ONCE)).await;
            if received == Ok(0) {
                return;
            }
            gather(&mut steps, &mut taken).await;
            let mut rows = Vec::new();
            let mut waiting = Vec::new();
            for step in taken {
                match step {
                    LogStep::Write(row) => rows.push(*row),
                    LogStep::Flush(done) => waiting.push(done),
                }
            }
            self.write(rows).await;
            if self.swept.is_none_or(|at| at.elapsed() >= SWEEP) {
                self.swept = Some(Instant::now());
                self.sweep().await;
            }
            // Now, because a process that has waited may end at once. Nobody may wait any more.
            for done in waiting {
                let _ = done.send(());
            }
        }
    }

    async fn write(&self, rows: Vec<RunRow>) {
        let count = rows.len() as u64;
        if count == 0 {
            return;
        }
        let size: usize = rows.iter().map(|row| row.record.len()).sum();
        let written = self.records.add_runs(rows, self.options.keep).await;
        self.bytes.fetch_sub(size, Ordering::Relaxed);
        if let Err(error) = &written {
            tracing::error!(error = error as &dyn std::error::Error, "write records of runs");
        }
        metrics::runs_recorded(if written.is_ok() { "written" } else { "failed" }, count);
    }

    async fn sweep(&self) {
        if let Err(error) = self.records.forget_runs(self.options.oldest_ms()).await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "remove old records of runs"
            );
        }
    }
}

/// Waits for more steps, unless somebody waits for those that were taken.
async fn gather(steps: &mut mpsc::Receiver<LogStep>, taken: &mut Vec<LogStep>) {
    let awaited = |taken: &[LogStep]| taken.iter().any(|step| matches!(step, LogStep::Flush(_)));
    let more = async {
        while !taken.is_empty() && taken.len() < AT_ONCE && !awaited(taken) {
            let room = AT_ONCE - taken.len();
            if steps.recv_many(taken, room).await == 0 {
                return;
            }
        }
    };
    // Steps that were received are in `taken` also when the time is over.
    let _ = timeout(GATHER, more).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: usize, size: usize) -> RunRow {
        RunRow {
            id: format!("run_{id}"),
            owner: "ann".to_owned(),
            session: "s".to_owned(),
            created_ms: i64::MAX,
            record: "x".repeat(size),
        }
    }

    #[tokio::test]
    async fn a_full_queue_drops_records_and_takes_others_afterward() {
        let records = Records::in_memory().unwrap();
        let log = RunLog::new(records.clone(), RunOptions::default());
        // The writer does not run before this task waits.
        for id in 0..=WAITING {
            log.take(row(id, 1));
        }
        log.flush().await;
        let written = records.all_runs(None, 2 * WAITING).await.unwrap();
        assert_eq!(written.len(), RunOptions::default().keep);
        assert_eq!(written[0].id, format!("run_{}", WAITING - 1));
        log.take(row(9999, WAITING_BYTES + 1));
        log.take(row(5000, 1));
        log.flush().await;
        let written = records.all_runs(None, 1).await.unwrap();
        assert_eq!(written[0].id, "run_5000");
    }

    #[tokio::test]
    async fn a_reader_waits_for_the_records_of_runs_that_have_ended_and_for_no_later_ones() {
        let records = Records::in_memory().unwrap();
        let log = RunLog::new(records.clone(), RunOptions::default());
        let sink = log.sink("ann").unwrap();
        let expected = sink.expect();
        let reader = tokio::spawn({
            let log = log.clone();
            async move {
                log.flush().await;
                records.all_runs(None, 2).await.unwrap().len()
            }
        });
        tokio::task::yield_now().await;
        let _later = sink.expect();
        assert!(!reader.is_finished());
        log.take(row(1, 1));
        drop(expected);
        assert_eq!(reader.await.unwrap(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn records_that_come_one_after_the_other_are_written_together_unless_a_reader_waits() {
        let (queue, mut steps) = mpsc::channel(WAITING);
        let write = |id| LogStep::Write(Box::new(row(id, 1)));
        let gathered = tokio::spawn(async move {
            let mut taken = vec![steps.recv().await.unwrap()];
            gather(&mut steps, &mut taken).await;
            (taken.len(), steps)
        });
        let pause = GATHER / 3;
        for id in 0..3 {
            queue.send(write(id)).await.unwrap();
            tokio::time::sleep(pause).await;
        }
        let (together, mut steps) = gathered.await.unwrap();
        assert_eq!(together, 3);
        let mut taken = vec![write(4)];
        queue.send(LogStep::Flush(oneshot::channel().0)).await.unwrap();
        let began = tokio::time::Instant::now();
        gather(&mut steps, &mut taken).await;
        assert_eq!((taken.len(), began.elapsed()), (2, Duration::ZERO));
    }

    #[tokio::test]
    async fn a_record_is_written_without_a_reader_that_waits() {
        let records = Records::in_memory().unwrap();
        let log = RunLog::new(records.clone(), RunOptions::default());
        log.take(row(1, 1));
        let written = async {
            while records.all_runs(None, 1).await.unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_mins(1), written).await.unwrap();
    }

    #[tokio::test]
    async fn nothing_is_recorded_if_no_runs_are_kept() {
        let options = RunOptions {
            keep: 0,
            ..RunOptions::default()
        };
        let log = RunLog::new(Records::in_memory().unwrap(), options);
        assert!(log.sink("ann").is_none());
    }
}

//! Going back in a live session: checkpoints, rollbacks, tries, and the cell after the death of a kernel;
//! also forks and records of runs.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use cellblock_interpreter::Session;
use cellblock_interpreter::cell::Rescue;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::run_record::{RunRecord, RunSink};
use cellblock_interpreter::session::fork::ForkOptions;
use parking_lot::Mutex;

use super::{Subject, completed, run, timed};
use crate::floor;
use crate::memory::mebibytes;
use crate::programs::{ARRAY, ARRAY_BYTES, FILES, SMALL_TABLE, SUM, TABLE};
use crate::samples::ProbeTurn;

/// Time in which the kernel does what it does when nobody waits.
const PAUSE: Duration = Duration::from_millis(60);

/// Makes checkpoints of a session and goes back to them, some times. The code makes the content of the
/// session, whose name is in those of the series.
pub(crate) async fn checkpoints(
    subject: &Subject,
    turn: &ProbeTurn,
    (content, code, times): (&str, &str, usize),
) -> Result<()> {
    let limits = Limits {
        memory_bytes: 4 << 30,
        ..Limits::default()
    };
    let session = subject.session_with(false, |options| options.limits = Some(limits));
    run(&session, code).await?;
    // The first copies every file.
    session.checkpoint(None).await?;
    session.drop_checkpoint("c1").await?;
    session.checkpoint(None).await?;
    for _ in 0..times {
        run(&session, SUM).await?;
        tokio::time::sleep(PAUSE).await;
        let before = memory(&session).await?;
        let (kept, elapsed) = timed(session.checkpoint(None)).await?;
        let kept = kept.checkpoint;
        turn.time(&format!("checkpoint_{content}"), elapsed);
        if let (Some(before), Some(after), "number") = (before, memory(&session).await?, content) {
            turn.add("checkpoint_memory", after - before);
        }
        run(&session, "changed = 1").await?;
        tokio::time::sleep(PAUSE).await;
        let (_, elapsed) = timed(session.roll_back(kept.id.as_str())).await?;
        turn.time(&format!("rollback_{content}"), elapsed);
        session.drop_checkpoint(kept.id).await?;
    }
    Ok(session.close().await?)
}

/// Mebibytes that the sandbox of a session uses; none if this machine does not count them.
pub(super) async fn memory(session: &Session) -> Result<Option<f64>> {
    let usage = session.usage().await?;
    Ok(usage.and_then(|usage| usage.memory_bytes).map(mebibytes))
}

/// Runs cells plainly and as tries in turns, and lets the kernel die, with both policies of rescue.
pub(crate) async fn tries(subject: &Subject, turn: &ProbeTurn, times: usize) -> Result<()> {
    let [session, on] = [Rescue::Idle, Rescue::On]
        .map(|rescue| subject.session_with(false, |options| options.rescue = rescue));
    run(&session, SUM).await?;
    run(&on, SUM).await?;
    for _ in 0..times {
        tokio::time::sleep(PAUSE).await;
        let (_, plain) = run(&session, SUM).await?;
        tokio::time::sleep(PAUSE).await;
        let (tried, elapsed) = timed(session.try_run(SUM)).await?;
        completed(&tried.execution)?;
        turn.time("try_adds", elapsed.saturating_sub(plain));
        turn.time("try_discard", timed(session.discard_try()).await?.1);
        run(&session, SUM).await?;
        for (session, series) in [(&session, "rescue_next"), (&on, "rescue_next_on")] {
            tokio::time::sleep(PAUSE).await;
            let ended = session.execute("import os\nos._exit(1)").await?;
            ensure!(!ended.kernel_lost(), "the kernel was not rescued");
            turn.time(series, run(session, SUM).await?.1);
        }
    }
    session.close().await?;
    on.close().await?;
    Ok(())
}

/// Keeps the last record.
#[derive(Debug, Default)]
struct LastRun(Mutex<Option<RunRecord>>);

impl RunSink for LastRun {
    fn record(&self, record: RunRecord) {
        *self.0.lock() = Some(record);
    }
}

/// Runs cells in two sessions in turns, of which one records its runs.
pub(crate) async fn records(subject: &Subject, turn: &ProbeTurn, times: usize) -> Result<()> {
    let sink: Arc<dyn RunSink> = Arc::new(LastRun::default());
    let all = [("record_off", None), ("record_on", Some(sink))].map(|(series, runs)| {
        let session = subject.session_with(false, |options| options.runs = runs);
        (series, session)
    });
    for (_, session) in &all {
        run(session, TABLE).await?;
    }
    for _ in 0..times {
        for (series, session) in &all {
            turn.time(series, run(session, "table").await?.1);
        }
    }
    for (_, session) in &all {
        session.close().await?;
    }
    Ok(())
}

/// Forks sessions with different contents in turns, and copies as many bytes as the array has, some times.
pub(crate) async fn forks(subject: &Subject, turn: &ProbeTurn, times: usize) -> Result<()> {
    let mut sessions = Vec::new();
    for (content, code) in [
        ("number", "held = 1"),
        ("array", ARRAY),
        ("table", SMALL_TABLE),
        ("files", FILES),
    ] {
        // Forks take sandboxes from the pool if their session did.
        let session = subject.session(true);
        run(&session, code).await?;
        sessions.push((content, session));
    }
    for _ in 0..times {
        let mut number = Duration::ZERO;
        for (content, session) in &sessions {
            subject.settle().await?;
            let (mut forks, elapsed) = timed(session.fork(ForkOptions::new(1))).await?;
            let fork = forks.remove(0);
            let (_, first) = run(&fork, SUM).await?;
            fork.close().await?;
            turn.time(&format!("fork_{content}"), elapsed);
            turn.time(&format!("fork_{content}_first"), first);
            match *content {
                "number" => number = elapsed,
                "array" => turn.time("fork_array_beyond", elapsed.saturating_sub(number)),
                _ => continue,
            }
            turn.time("fork_first", first);
        }
        let copied = floor::memcpy(ARRAY_BYTES);
        turn.of(floor::WHO).time("memcpy_array", copied);
    }
    for (_, session) in &sessions {
        session.close().await?;
    }
    Ok(())
}

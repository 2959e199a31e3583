//! New sessions and their cells, one after the other and many at once, and cells that are stopped.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cellblock_interpreter::execution::{Event, Outcome};
use cellblock_interpreter::output::{Output, Scalar};
use cellblock_interpreter::{Cell, Input};

use super::{Subject, all_at_once, run, timed};
use crate::probe::WIDTHS;
use crate::programs::{ANNOUNCED_LOOP, DEAF, FRAME_ROWS, LOOP, SHOUT, SHOUT_BYTES, SUM};
use crate::samples::ProbeTurn;

/// The time of a cell that never ends by itself.
const DEADLINE: Duration = Duration::from_millis(50);

/// A new session until it has answered something, then its first cell.
pub(crate) async fn create(subject: &Subject, turn: &ProbeTurn, pooled: bool) -> Result<()> {
    let started = Instant::now();
    let session = subject.session(pooled);
    // The smallest question that needs the kernel.
    session.variables().await?;
    let created = started.elapsed();
    let (_, first) = run(&session, SUM).await?;
    turn.time(turn.what, created);
    turn.time("first_cell", first);
    session.close().await?;
    subject.settle().await
}

/// A new session until the result of its first cell, which shows so many values.
pub(crate) async fn first_cell(
    subject: &Subject,
    turn: &ProbeTurn,
    (pooled, code, expected): (bool, &str, usize),
) -> Result<()> {
    let started = Instant::now();
    let session = subject.session(pooled);
    let (execution, _) = run(&session, code).await?;
    let elapsed = started.elapsed();
    let shown = execution.outputs.len();
    ensure!(shown == expected, "the cell showed {shown} of {expected} values");
    turn.time(turn.what, elapsed);
    session.close().await?;
    subject.forget(&execution).await?;
    subject.settle().await
}

/// The shortest cell in a live session, so many times.
pub(crate) async fn warm(subject: &Subject, turn: &ProbeTurn, cells: usize) -> Result<()> {
    let session = subject.warm_session().await?;
    for _ in 0..cells {
        turn.time("warm", run(&session, SUM).await?.1);
    }
    Ok(session.close().await?)
}

/// Ten megabytes of text on stdout, until the execution is there.
pub(crate) async fn stdout(subject: &Subject, turn: &ProbeTurn, (): ()) -> Result<()> {
    let session = subject.warm_session().await?;
    let (execution, elapsed) = run(&session, SHOUT).await?;
    let bytes = execution.stdout.bytes;
    ensure!(bytes == SHOUT_BYTES as u64, "{bytes} of {SHOUT_BYTES} bytes came");
    turn.time("stdout", elapsed);
    Ok(session.close().await?)
}

/// Binds a Parquet file as a table of 100 MB and uses it, changes the table, and shows it whole.
pub(crate) async fn frames(subject: &Subject, turn: &ProbeTurn, file: PathBuf) -> Result<()> {
    let session = subject.warm_session().await?;
    let started = Instant::now();
    session.bind(Input::file("frame", file)).await?;
    let (execution, _) = run(&session, "len(frame)").await?;
    let elapsed = started.elapsed();
    let rows = Scalar::Integer(FRAME_ROWS.cast_signed());
    ensure!(
        matches!(&execution.outputs[..], [Output::Primitive(length)] if length.value == rows),
        "the table that came in is not the one that was given: {:?}",
        execution.outputs
    );
    turn.time("frame_in", elapsed);
    // Other bytes than those that came in, made before the clock runs.
    run(&session, "frame = frame + 1.0").await?;
    let (execution, elapsed) = run(&session, "frame").await?;
    let whole = matches!(
        &execution.outputs[..],
        [Output::Dataframe(table)] if table.complete && table.rows == FRAME_ROWS && table.table.is_some()
    );
    subject.forget(&execution).await?;
    ensure!(whole, "the table was not stored whole");
    turn.time("frame_out", elapsed);
    Ok(session.close().await?)
}

/// Makes all sessions at once; each runs one small cell and is closed.
pub(crate) async fn concurrent(subject: &Subject, turn: &ProbeTurn, sessions: usize) -> Result<()> {
    let started = Instant::now();
    let one = || {
        let subject = subject.clone();
        async move {
            let session = subject.session(true);
            run(&session, SUM).await?;
            let elapsed = started.elapsed();
            session.close().await?;
            Ok(elapsed)
        }
    };
    let (times, wall) = timed(all_at_once(sessions, "sessions", one)).await?;
    turn.time("concurrent", wall);
    turn.times("concurrent_session", times);
    subject.settle().await
}

/// Counts rounds in a second, at several numbers of rounds at a time. Each round makes its sandbox
/// itself: the pool would only move that work.
pub(crate) async fn throughput(subject: &Subject, turn: &ProbeTurn, time: Duration) -> Result<()> {
    for width in WIDTHS {
        let started = Instant::now();
        let rounds = || {
            let subject = subject.clone();
            async move {
                let mut done = 0_u32;
                while started.elapsed() < time {
                    let session = subject.session(false);
                    run(&session, SUM).await?;
                    session.close().await?;
                    done += 1;
                }
                Ok(done)
            }
        };
        let done: u32 = all_at_once(width, "tasks", rounds).await?.iter().sum();
        let rate = f64::from(done) / started.elapsed().as_secs_f64();
        turn.add(&format!("throughput_{width}"), rate);
    }
    subject.settle().await
}

/// Stops a Python loop that runs, some times in one session.
pub(crate) async fn interrupt(subject: &Subject, turn: &ProbeTurn, times: usize) -> Result<()> {
    let session = subject.warm_session().await?;
    for _ in 0..times {
        let mut running = session.start_cell(ANNOUNCED_LOOP).await?;
        let event = running.events.recv().await.context("the loop never began")?;
        ensure!(matches!(event, Event::Stdout(_)), "the loop printed nothing");
        let stopped = async {
            session.interrupt();
            running.finish().await
        };
        let (execution, elapsed) = timed(stopped).await?;
        ensure!(
            execution.outcome == Outcome::Interrupted,
            "a stopped loop ended as {}",
            execution.outcome.name()
        );
        turn.time("interrupt", elapsed);
    }
    Ok(session.close().await?)
}

/// Lets cells run into their deadline, and measures how late they end. A deaf cell listens to no
/// signal, so that its kernel must be killed.
pub(crate) async fn deadline(
    subject: &Subject,
    turn: &ProbeTurn,
    (deaf, cells): (bool, usize),
) -> Result<()> {
    let code = if deaf { DEAF } else { LOOP };
    let session = subject.session(true);
    for _ in 0..cells {
        // A kernel that was lost is replaced now, not while the clock runs.
        run(&session, SUM).await?;
        subject.settle().await?;
        let cell = Cell::new(code).with_timeout(DEADLINE);
        let (execution, elapsed) = timed(session.execute(cell)).await?;
        let as_expected = match execution.outcome {
            Outcome::Interrupted => !deaf,
            Outcome::KernelLost { .. } => deaf,
            _ => false,
        };
        let name = execution.outcome.name();
        ensure!(as_expected, "an endless cell ended as {name}");
        turn.time(turn.what, elapsed.saturating_sub(DEADLINE));
    }
    Ok(session.close().await?)
}

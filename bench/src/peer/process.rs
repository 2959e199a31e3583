//! Peers that start a process per run: plain Python, in `bwrap`, and in `runsc do`. None of them keeps
//! anything between runs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::floor;
use crate::programs::PRINT_SUM;
use crate::python::Python;
use crate::samples::ProbeTurn;

/// Namespaces and a small read-only tree by bubblewrap: no seccomp filter, no cgroups, no Landlock.
const BWRAP: &str = "bwrap --unshare-all --die-with-parent --new-session --cap-drop ALL --proc /proc \
                     --ro-bind /usr /usr --ro-bind-try /lib /lib --ro-bind-try /lib64 /lib64 --dev /dev \
                     --tmpfs /tmp";
/// A kernel of its own by gVisor; the host's files are seen through an overlay.
const RUNSC: &str = "runsc --network=none --ignore-cgroups do";

pub(crate) fn bwrap(python: &Python) -> Result<Python> {
    let mut wall: Vec<OsString> = BWRAP.split(' ').map(OsString::from).collect();
    for shown in [&python.root, &python.place] {
        wall.extend(["--ro-bind".into(), shown.into(), shown.into()]);
    }
    wall.extend(["--chdir".into(), "/tmp".into()]);
    python.behind("bwrap", wall)
}

pub(crate) fn runsc(python: &Python) -> Result<Python> {
    python.behind("runsc", RUNSC.split(' ').map(OsString::from).collect())
}

/// Runs a program that prints at least so many bytes; without code it is `true`.
pub(crate) fn run(python: &Python, turn: &ProbeTurn, (code, bytes): (Option<&str>, usize)) -> Result<()> {
    let started = Instant::now();
    python.run(code, &[], bytes)?;
    turn.time(turn.what, started.elapsed());
    Ok(())
}

/// Runs a program that uses a file and prints how long that takes, and removes the file if it was made.
/// The whole process is the peer; the call alone, in a process that has imported everything, is the floor.
pub(crate) fn time_inside(
    python: &Python,
    turn: &ProbeTurn,
    (code, file, is_made): (&str, PathBuf, bool),
) -> Result<()> {
    let started = Instant::now();
    let output = python.run(Some(code), &[&file], 1);
    let elapsed = started.elapsed();
    if is_made {
        std::fs::remove_file(file).context("remove the peer's table")?;
    }
    let printed = String::from_utf8(output?.stdout)?;
    let call: f64 = printed.trim().parse().context("read the peer's time")?;
    turn.time(turn.what, elapsed);
    turn.of(floor::WHO).add(turn.what, call);
    Ok(())
}

/// Starts so many processes at once.
pub(crate) fn concurrent(python: &Python, turn: &ProbeTurn, processes: usize) -> Result<()> {
    let started = Instant::now();
    let times = at_once(processes, || {
        python.run(Some(PRINT_SUM), &[], 2)?;
        Ok(started.elapsed())
    })?;
    turn.time("concurrent", started.elapsed());
    turn.times("concurrent_session", times);
    Ok(())
}

/// Counts rounds in a second for some time, so many at a time.
pub(crate) fn throughput(python: &Python, turn: &ProbeTurn, (width, time): (usize, Duration)) -> Result<()> {
    let started = Instant::now();
    let done = at_once(width, || {
        let mut done = 0_u32;
        while started.elapsed() < time {
            python.run(Some(PRINT_SUM), &[], 2)?;
            done += 1;
        }
        Ok(done)
    })?;
    let done: u32 = done.iter().sum();
    ensure!(done > 0, "not one round was done");
    let rate = f64::from(done) / started.elapsed().as_secs_f64();
    turn.add(&format!("throughput_{width}"), rate);
    Ok(())
}

/// Does the same in so many threads.
fn at_once<T: Send>(count: usize, work: impl Fn() -> Result<T> + Sync) -> Result<Vec<T>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(&work)).collect();
        let results = threads.into_iter().map(|thread| {
            let result = thread.join();
            result.expect("a thread that only runs processes does not panic")
        });
        results.collect()
    })
}

//! Floors of the promises, given by the kernel of this machine: the least that each promise could cost.

use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::driver::{Driver, SharedDriver};
use crate::python::Python;
use crate::samples::ProbeTurn;

mod echo;
mod namespaces;

pub(crate) use echo::Echo;
pub(crate) use namespaces::{ROLE, serve as serve_namespaces, start as start_namespaces};

/// In the names of series.
pub(crate) const WHO: &str = "floor";

const FORK_DRIVER: &str = include_str!("../../floors/fork.py");
/// The kernel package, whose template prepares the process.
const PACKAGE: &str = "crates/guest/python";
/// The template's settings: memory in large pages, so that a fork copies fewer page table entries.
const SETTINGS: [(&str, &str); 2] = [
    ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
    ("PYTHONMALLOC", "malloc"),
];

/// Starts a Python process that forks on request, and waits until it has imported all that the template has.
pub(crate) fn start_fork(python: &Python) -> Result<SharedDriver> {
    let package = Path::new(PACKAGE)
        .canonicalize()
        .context("find the kernel package; run in the workspace's root")?;
    let preload = serde_json::to_string(&python.preload)?;
    let mut command = python.command();
    command.args(["-c", FORK_DRIVER]).arg(package).arg(preload);
    Driver::start(command.envs(SETTINGS))
}

/// Copies 10 MB over a socket pair, from one thread to another, some times.
pub(crate) fn copy(turn: &ProbeTurn, times: usize) -> Result<()> {
    let sent = vec![7_u8; 10_000_000];
    let mut received = vec![0_u8; sent.len()];
    for _ in 0..times {
        let (mut from, mut to) = UnixStream::pair().context("make a socket pair")?;
        let elapsed = std::thread::scope(|threads| -> Result<_> {
            let started = Instant::now();
            let sending = threads.spawn(|| from.write_all(&sent));
            to.read_exact(&mut received).context("receive the bytes")?;
            let elapsed = started.elapsed();
            let sent = sending.join().expect("a thread that only writes does not panic");
            sent.context("send the bytes")?;
            Ok(elapsed)
        })?;
        ensure!(received.last() == Some(&7), "other bytes came");
        turn.time("copy_10mb", elapsed);
    }
    Ok(())
}

/// Copies so many bytes to memory that was not used before, as a fork has to.
pub(crate) fn memcpy(bytes: usize) -> Duration {
    let from = vec![1_u8; bytes];
    let started = Instant::now();
    let to = black_box(from.as_slice()).to_vec();
    let elapsed = started.elapsed();
    black_box(to);
    elapsed
}

//! The runtime's threads: all that it cannot do without are there before it is trusted with anything.

use std::io;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use crate::error::{Error, Result};

/// More would have nothing to do: one session is one conversation.
const MOST_WORKERS: usize = 4;
/// How long threads that have ended may take to give back what they count for.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longer than any run: the one thread for blocking work is never given back.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// Makes the runtime.
///
/// Tokio panics when it cannot start a worker, or the first thread for blocking work. So threads are tried out before, as many as it
/// needs, and the first one for blocking work is started now and kept.
pub(crate) fn runtime() -> Result<Runtime> {
    let workers = thread::available_parallelism().map_or(1, |count| count.get().min(MOST_WORKERS));
    try_out(workers + 1).map_err(Error::process("start the runtime's threads"))?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_keep_alive(FOREVER)
        .enable_all()
        .build()
        .map_err(Error::process("start the runtime"))?;
    drop(runtime.spawn_blocking(|| ()));
    Ok(runtime)
}

/// Starts so many threads at once, and ends them.
fn try_out(count: usize) -> io::Result<()> {
    let before = alive();
    let mut running = Vec::new();
    let mut failed = None;
    for _ in 0..count {
        // Each waits for the end of its channel.
        let (end, ended) = channel::<()>();
        match thread::Builder::new().spawn(move || {
            let _ = ended.recv();
        }) {
            Ok(thread) => running.push((end, thread)),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    let (ends, threads): (Vec<_>, Vec<_>) = running.into_iter().unzip();
    drop(ends);
    for thread in threads {
        let _ = thread.join();
    }
    if let Some(error) = failed {
        return Err(error);
    }
    // A thread that was joined still counts until the kernel has put it away.
    let deadline = Instant::now() + PATIENCE;
    while alive() > before && Instant::now() < deadline {
        thread::yield_now();
    }
    Ok(())
}

/// How many threads this process has.
fn alive() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_has_a_thread_for_blocking_work_from_the_start() {
        let runtime = runtime().unwrap();
        assert_eq!(runtime.block_on(runtime.spawn_blocking(|| 42)).unwrap(), 42);
    }
}

//! The runtime's threads: all that it cannot do without are there before it is trusted with anything.

use std::time::Duration;
use std::{io, panic, thread};

use rustix::io::Errno;
use tokio::runtime::{Builder, Runtime};

use crate::error::{Error, Result};

/// More would have nothing to do: one session is one conversation.
const MOST_WORKERS: usize = 4;
/// Longer than any run: the one thread for blocking work is never given back.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// Makes the runtime.
///
/// Tokio panics when it can start no thread at all, and otherwise leaves what a missing thread should do waiting for ever. So a panic is
/// an error here, the first thread for blocking work is started now and kept, and all of them are counted.
pub(crate) fn runtime() -> Result<Runtime> {
    let workers = thread::available_parallelism().map_or(1, |count| count.get().min(MOST_WORKERS));
    let before = alive();
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let built = panic::catch_unwind(|| build(workers));
    panic::set_hook(hook);
    let runtime = built.unwrap_or_else(|panic| {
        let message = panic
            .downcast::<String>()
            .map_or_else(|_| String::new(), |it| *it);
        Err(io::Error::new(io::ErrorKind::WouldBlock, message))
    });
    let runtime = runtime.map_err(Error::process("start the runtime"))?;
    if alive() < before + workers + 1 {
        runtime.shutdown_background();
        return Err(Error::process("start the runtime's threads")(Errno::AGAIN.into()));
    }
    Ok(runtime)
}

fn build(workers: usize) -> io::Result<Runtime> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_keep_alive(FOREVER)
        .enable_all()
        .build()?;
    drop(runtime.spawn_blocking(|| ()));
    Ok(runtime)
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

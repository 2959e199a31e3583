//! The runtime's threads: all that it cannot do without are there before it is trusted with anything.

use std::time::Duration;
use std::{io, panic, process, thread};

use tokio::runtime::{Builder, Runtime};

use crate::error::{self, Error, Result};

/// More would have nothing to do: one session is one conversation.
const MOST_WORKERS: usize = 4;
/// Longer than any run: the one thread for blocking work is never given back.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// Makes the runtime; with `single`, all tasks run on the calling thread.
///
/// Tokio panics when a worker, or the first thread for blocking work, cannot be started, and
/// unwinding waits for ever for workers that were. So the first thread for blocking work is started
/// now and kept, and until then the first panic ends the process with its error.
#[expect(clippy::exit, reason = "nothing is running yet")]
pub(crate) fn runtime(single: bool) -> Result<Runtime> {
    let workers = thread::available_parallelism().map_or(1, |count| count.get().min(MOST_WORKERS));
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|panic| {
        let reason = panic.payload_as_str().unwrap_or_default();
        let source = io::Error::new(io::ErrorKind::WouldBlock, reason);
        let error = Error::process("start the runtime's threads")(source);
        error::tell(&error);
        process::exit(error.exit_code() as i32);
    }));
    let mut builder = if single {
        Builder::new_current_thread()
    } else {
        Builder::new_multi_thread()
    };
    let runtime = builder
        .worker_threads(workers)
        .thread_keep_alive(FOREVER)
        .enable_all()
        .build()
        .map_err(Error::process("start the runtime"))?;
    drop(runtime.spawn_blocking(|| ()));
    panic::set_hook(hook);
    Ok(runtime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_has_a_thread_for_blocking_work_from_the_start() {
        let runtime = runtime(false).unwrap();
        assert_eq!(runtime.block_on(runtime.spawn_blocking(|| 42)).unwrap(), 42);
    }
}

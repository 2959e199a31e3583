//! Log records of a test.

use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, set_default};
use tracing_subscriber::fmt;

/// The log records of this thread from now on, of every level.
#[derive(Debug)]
pub struct LogRecords {
    lines: Lines,
    _taking: DefaultGuard,
    /// Takes nothing. As long as there is only one subscriber, `tracing` asks the thread that comes
    /// to a record first whether anybody wants it, and remembers the answer: that thread may be of
    /// another test, which has no subscriber.
    _other: Dispatch,
}

#[derive(Clone, Debug, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl LogRecords {
    /// Begins to take them in. It ends when this is dropped.
    #[must_use]
    pub fn take() -> Self {
        let other = Dispatch::new(tracing_subscriber::registry());
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = fmt()
            .json()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone());
        Self {
            lines,
            _taking: set_default(subscriber.finish()),
            _other: other,
        }
    }

    /// Returns them as they were written: one JSON object a line.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.lines.bytes()).into_owned()
    }

    /// Returns them.
    pub fn all(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        self.text().lines().map(parse).collect()
    }
}

impl Lines {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn say(word: &str) {
        tracing::info!(word, "said");
    }

    #[test]
    fn a_record_that_another_thread_has_written_first_is_taken_too() {
        let records = LogRecords::take();
        // It has no subscriber, so nobody there wants the record.
        thread::spawn(|| say("there")).join().unwrap();
        say("here");
        let all = records.all();
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0]["fields"]["word"], "here");
    }
}

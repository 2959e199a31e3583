//! The events of a background response, which clients may follow from any of them on.

use std::collections::VecDeque;
use std::sync::Arc;

use cellblock_agent::wire::StreamEvent;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

/// Maximum number of bytes of events that are kept of one response. Of more, the latest are.
const MAX_BYTES: usize = 8 << 20;

/// The events of a response, as frames. Each has its number.
#[derive(Debug)]
pub(crate) struct Log {
    kept: Mutex<LogFrames>,
    /// Counts what happened, for those who wait.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct LogFrames {
    frames: VecDeque<Arc<str>>,
    /// The number of the first.
    first: u64,
    bytes: usize,
    over: bool,
}

/// Content of a position of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogPosition {
    /// This frame.
    Frame(Arc<str>),
    /// A frame that is not kept any more; the first that is has this number.
    Gone(u64),
    /// Nothing, and nothing will come.
    End,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self {
            kept: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// The log of a response that has ended, as [`text`](Self::text) gave it.
    pub(crate) fn from_text(text: &str) -> Self {
        let log = Self::new();
        let (first, frames) = text.split_once('\n').unwrap_or_default();
        let frames = frames.split_inclusive("\n\n").map(Arc::from).collect();
        *log.kept() = LogFrames {
            frames,
            first: first.parse().unwrap_or(0),
            bytes: text.len(),
            over: true,
        };
        log
    }

    /// Everything that is kept, as text.
    pub(crate) fn text(&self) -> String {
        let kept = self.kept();
        let frames = kept.frames.iter().map(|frame| &**frame);
        format!("{}\n{}", kept.first, frames.collect::<String>())
    }

    /// Adds an event.
    pub(crate) fn push(&self, event: &StreamEvent) {
        {
            let mut kept = self.kept();
            let frame: Arc<str> = event.frame().into();
            kept.bytes += frame.len();
            kept.frames.push_back(frame);
            while kept.bytes > MAX_BYTES && kept.frames.len() > 1 {
                let dropped = kept.frames.pop_front().map_or(0, |frame| frame.len());
                kept.bytes -= dropped;
                kept.first += 1;
            }
        }
        self.changes.send_modify(|count| *count += 1);
    }

    /// Says that nothing more comes.
    pub(crate) fn end(&self) {
        self.kept().over = true;
        self.changes.send_modify(|count| *count += 1);
    }

    /// Returns the content of a number; waits for it if it is still to come.
    pub(crate) async fn at(&self, number: u64) -> LogPosition {
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(found) = self.now(number) {
                return found;
            }
            // The sender is ours, so that it is there.
            if changes.changed().await.is_err() {
                return LogPosition::End;
            }
        }
    }

    /// Waits until nothing more comes.
    pub(crate) async fn ended(&self) {
        let mut changes = self.changes.subscribe();
        while !self.kept().over && changes.changed().await.is_ok() {}
    }

    fn now(&self, number: u64) -> Option<LogPosition> {
        let kept = self.kept();
        let Some(place) = number.checked_sub(kept.first) else {
            return Some(LogPosition::Gone(kept.first));
        };
        let frame = usize::try_from(place)
            .ok()
            .and_then(|place| kept.frames.get(place));
        frame
            .map(|frame| LogPosition::Frame(Arc::clone(frame)))
            .or(kept.over.then_some(LogPosition::End))
    }

    fn kept(&self) -> MutexGuard<'_, LogFrames> {
        self.kept.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cellblock_agent::wire::{EventKind, Numbers};

    fn delta(numbers: &mut Numbers, delta: String) -> StreamEvent {
        numbers.next(EventKind::CodeDelta {
            item_id: "ci_1".to_owned(),
            output_index: 0,
            delta,
        })
    }

    fn data(at: LogPosition) -> serde_json::Value {
        let LogPosition::Frame(frame) = at else {
            panic!("no frame: {at:?}")
        };
        let data = frame
            .split_once("\ndata: ")
            .unwrap()
            .1
            .strip_suffix("\n\n")
            .unwrap();
        serde_json::from_str(data).unwrap()
    }

    #[tokio::test]
    async fn followers_receive_past_and_future_events() {
        let log = Arc::new(Log::new());
        let mut numbers = Numbers::default();
        log.push(&delta(&mut numbers, "one".to_owned()));
        let follower = Arc::clone(&log);
        let following =
            tokio::spawn(async move { [follower.at(0).await, follower.at(1).await, follower.at(2).await] });
        tokio::task::yield_now().await;
        log.push(&delta(&mut numbers, "two".to_owned()));
        log.end();
        let [one, two, end] = following.await.unwrap();
        assert_eq!(
            (data(one)["delta"].as_str(), data(two)["delta"].as_str()),
            (Some("one"), Some("two"))
        );
        assert_eq!(end, LogPosition::End);
        log.ended().await;
    }

    #[tokio::test]
    async fn a_log_is_limited_and_reports_dropped_events() {
        let log = Log::new();
        let mut numbers = Numbers::default();
        for _ in 0..5 {
            log.push(&delta(&mut numbers, "x".repeat(MAX_BYTES / 3)));
        }
        assert_eq!(log.at(0).await, LogPosition::Gone(3));
        assert_eq!(data(log.at(3).await)["sequence_number"], 3);
    }

    #[tokio::test]
    async fn a_log_is_the_same_after_it_was_text() {
        let log = Log::new();
        let mut numbers = Numbers::default();
        for text in ["one", "two\n\nlines", "three"] {
            log.push(&delta(&mut numbers, text.to_owned()));
        }
        log.end();
        let again = Log::from_text(&log.text());
        for number in 0..4 {
            assert_eq!(again.at(number).await, log.at(number).await);
        }
        assert_eq!(data(again.at(1).await)["delta"], "two\n\nlines");
    }
}

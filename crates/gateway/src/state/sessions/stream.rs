//! The events of a streamed cell, between the cell and its readers.
//!
//! ```text
//! cell ──push──> [ read, kept for a client that comes back | not read yet ] ──> reader of the request that runs the cell
//!                                                                            └─> reader of GET …/streams/{stream}
//! ```
//!
//! A stream without a name is that of one connection: the cell is given up when the connection
//! ends. One with a name waits for its client to come back. A client that does not read holds up
//! its cell for a while, and then is taken for gone.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::Event as Frame;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::lock;

/// Maximum size of the events that wait for a client; one is always taken.
const WAITING: usize = 1 << 20;
/// Maximum size of the events that a client has read and may ask for again.
const KEPT: usize = 8 << 20;
/// Maximum time for which a client may read nothing while events wait for it.
const PATIENCE: Duration = Duration::from_mins(1);
/// Time for which a cell continues without the client, which may come back.
const AWAY: Duration = Duration::from_mins(1);

/// The events of a cell.
#[derive(Debug)]
pub(crate) struct CellStream {
    /// Name by which its client finds it again.
    name: Option<String>,
    events: Mutex<Events>,
    /// Counts what happened, for those who wait.
    changes: watch::Sender<u64>,
    readers: watch::Sender<usize>,
    /// Canceled when nobody reads any more.
    gone: CancellationToken,
}

#[derive(Debug, Default)]
struct Events {
    frames: VecDeque<(Frame, usize)>,
    /// Number of the first that is kept.
    first: u64,
    /// Number of the first that nobody has read.
    unread: u64,
    /// Sizes of those before it, and of the others.
    read_bytes: usize,
    unread_bytes: usize,
    over: bool,
}

/// Content of a position of a stream.
enum StreamPosition {
    Frame(Frame),
    /// Nothing more comes, or it is not kept any more.
    End,
}

/// Somebody who reads a stream from a number on.
#[derive(Debug)]
pub(crate) struct CellReader {
    stream: Arc<CellStream>,
    next: u64,
}

impl CellStream {
    /// A stream with its first reader.
    pub(crate) fn open(name: Option<String>) -> (Arc<Self>, CellReader) {
        let stream = Arc::new(Self {
            name,
            events: Mutex::default(),
            changes: watch::Sender::new(0),
            readers: watch::Sender::new(0),
            gone: CancellationToken::new(),
        });
        let reader = stream.reader(0);
        (stream, reader)
    }

    /// Whether it has this name.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }

    /// Returns the number of the first event that is kept, if one before it is wanted.
    pub(crate) fn is_missing(&self, number: u64) -> Option<u64> {
        let first = lock(&self.events).first;
        (number < first).then_some(first)
    }

    /// Reads the stream from a number on.
    pub(crate) fn reader(self: &Arc<Self>, next: u64) -> CellReader {
        self.readers.send_modify(|count| *count += 1);
        CellReader {
            stream: Arc::clone(self),
            next,
        }
    }

    /// Adds an event of so many bytes, once there is room for it. Without a client nothing is added.
    pub(crate) async fn push(&self, frame: Frame, bytes: usize) {
        let mut changes = self.changes.subscribe();
        let room = async { while self.is_full() && changes.changed().await.is_ok() {} };
        tokio::select! {
            waited = timeout(PATIENCE, room) => if waited.is_err() {
                self.gone.cancel();
            },
            () = self.gone.cancelled() => {}
        }
        if !self.gone.is_cancelled() {
            let mut events = lock(&self.events);
            events.unread_bytes += bytes;
            events.frames.push_back((frame, bytes));
        }
        self.changed();
    }

    /// Says that nothing more comes.
    pub(crate) fn end(&self) {
        lock(&self.events).over = true;
        self.changed();
    }

    /// Completes when nobody reads it any more, and nobody is expected to.
    pub(crate) async fn abandoned(&self) {
        let patience = self.name.as_ref().map_or(Duration::ZERO, |_| AWAY);
        let mut readers = self.readers.subscribe();
        let left = async {
            // Its own sender is there as long as it is.
            while readers.wait_for(|count| *count == 0).await.is_ok() {
                let back = timeout(patience, readers.wait_for(|count| *count > 0));
                if back.await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = left => self.gone.cancel(),
            () = self.gone.cancelled() => {}
        }
    }

    fn now(&self, number: u64) -> Option<StreamPosition> {
        let mut events = lock(&self.events);
        let place = number.checked_sub(events.first);
        let Some(place) = place.and_then(|place| usize::try_from(place).ok()) else {
            return Some(StreamPosition::End);
        };
        let Some((frame, _)) = events.frames.get(place).cloned() else {
            let ended = events.over || self.gone.is_cancelled();
            return ended.then_some(StreamPosition::End);
        };
        if number >= events.unread {
            events.read_up_to(number);
            events.forget(if self.name.is_some() { KEPT } else { 0 });
            drop(events);
            self.changed();
        }
        Some(StreamPosition::Frame(frame))
    }

    fn is_full(&self) -> bool {
        lock(&self.events).unread_bytes > WAITING
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

impl Events {
    /// Counts events as read, up to this number, also those that their reader leaves out.
    fn read_up_to(&mut self, number: u64) {
        while self.unread <= number {
            let place = usize::try_from(self.unread.saturating_sub(self.first)).unwrap_or(usize::MAX);
            let bytes = self.frames.get(place).map_or(0, |(_, bytes)| *bytes);
            self.unread_bytes -= bytes;
            self.read_bytes += bytes;
            self.unread += 1;
        }
    }

    /// Forgets the oldest events that were read, until those that are left have this size.
    fn forget(&mut self, most: usize) {
        while self.read_bytes > most
            && self.first < self.unread
            && let Some((_, bytes)) = self.frames.pop_front()
        {
            self.read_bytes -= bytes;
            self.first += 1;
        }
    }
}

impl CellReader {
    /// Returns the next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let mut changes = self.stream.changes.subscribe();
        loop {
            changes.borrow_and_update();
            match self.stream.now(self.next) {
                Some(StreamPosition::Frame(frame)) => {
                    self.next += 1;
                    return Some(frame);
                }
                Some(StreamPosition::End) => return None,
                None => changes.changed().await.ok()?,
            }
        }
    }
}

impl Drop for CellReader {
    fn drop(&mut self) {
        self.stream.readers.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pushed(stream: &CellStream, count: usize, bytes: usize) {
        for _ in 0..count {
            stream.push(Frame::default().data("x"), bytes).await;
        }
    }

    async fn read(mut reader: CellReader) -> usize {
        let mut count = 0;
        while reader.next().await.is_some() {
            count += 1;
        }
        count
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_comes_back_reads_every_event_once() {
        let (stream, mut first) = CellStream::open(Some("a".to_owned()));
        pushed(&stream, 3, 10).await;
        for _ in 0..2 {
            assert!(first.next().await.is_some());
        }
        drop(first);
        pushed(&stream, 2, 10).await;
        stream.end();
        assert_eq!(read(stream.reader(2)).await, 3);
        assert_eq!(read(stream.reader(0)).await, 5, "what was read is kept");
        assert_eq!(read(stream.reader(9)).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn events_that_a_reader_leaves_out_do_not_hold_up_the_cell() {
        let (stream, reader) = CellStream::open(Some("a".to_owned()));
        drop(reader);
        pushed(&stream, 2, WAITING).await;
        assert!(stream.is_full());
        assert!(stream.reader(1).next().await.is_some());
        assert!(!stream.is_full());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_keeps_a_limited_size_and_says_what_is_missing() {
        let (stream, mut reader) = CellStream::open(Some("a".to_owned()));
        for _ in 0..5 {
            pushed(&stream, 1, KEPT / 2).await;
            assert!(reader.next().await.is_some());
        }
        assert_eq!((stream.is_missing(2), stream.is_missing(3)), (Some(3), None));
        assert_eq!(read(stream.reader(0)).await, 0);
        let (once, mut reader) = CellStream::open(None);
        pushed(&once, 1, 10).await;
        assert!(reader.next().await.is_some());
        assert_eq!(once.is_missing(0), Some(1), "nobody comes back to it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cell_is_given_up_when_its_reader_leaves_and_does_not_come_back_in_time() {
        let (once, reader) = CellStream::open(None);
        drop(reader);
        once.abandoned().await;
        let (named, reader) = CellStream::open(Some("a".to_owned()));
        drop(reader);
        let abandoned = named.abandoned();
        let mut abandoned = std::pin::pin!(abandoned);
        assert!(timeout(AWAY / 2, &mut abandoned).await.is_err());
        let back = named.reader(0);
        assert!(timeout(AWAY * 3, &mut abandoned).await.is_err());
        drop(back);
        abandoned.await;
        pushed(&named, 1, 10).await;
        assert_eq!(
            read(named.reader(0)).await,
            0,
            "nothing is added without a client"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_holds_its_cell_up_for_a_while() {
        let (stream, mut reader) = CellStream::open(None);
        pushed(&stream, 2, WAITING).await;
        let third = stream.push(Frame::default().data("x"), 1);
        let mut third = std::pin::pin!(third);
        assert!(timeout(PATIENCE / 2, &mut third).await.is_err());
        assert!(reader.next().await.is_some());
        third.await;
        assert!(!stream.gone.is_cancelled());
        pushed(&stream, 2, WAITING).await;
        assert!(stream.gone.is_cancelled());
    }
}

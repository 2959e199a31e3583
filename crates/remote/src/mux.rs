//! One connection as several byte streams and one stream of control messages.
//!
//! Each stream has a window: its sender stops when the receiver has not consumed that many bytes,
//! so that a slow reader blocks only its own stream and uses no memory. The task that reads the
//! connection never waits; a peer that sends more than permitted loses the connection.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::refusal::told;
use super::wire::{MAX_MESSAGE, PART, Wire};
use crate::error::RemoteError;
use cellblock_sandbox::Result;

/// Maximum number of unconsumed bytes of a stream.
pub(super) const WINDOW: usize = 256 * 1024;
/// Minimum size of a credit while more data waits to be read.
const GRANT: usize = WINDOW / 4;
/// Maximum number of messages that wait for the connection.
const OUTGOING: usize = 16;
/// Maximum number of control messages that wait to be handled.
const CONTROLS: usize = 64;
/// Reason that a connection is lost whose peer is gone.
pub(super) const CLOSED: &str = "the peer closed it";

/// Detection of a missing peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// Interval of messages that show one's presence.
    pub every: Duration,
    /// Time without messages after which the peer counts as gone.
    pub limit: Duration,
}

impl Default for Pulse {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(10),
            limit: Duration::from_secs(35),
        }
    }
}

/// A transport for whole messages in both directions: the binary ones of a WebSocket.
pub trait MuxTransport<E>: Stream<Item = Result<Bytes, E>> + Sink<Bytes, Error = E> + Send + 'static {}

impl<T, E> MuxTransport<E> for T where
    T: Stream<Item = Result<Bytes, E>> + Sink<Bytes, Error = E> + Send + 'static
{
}

/// A connection. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Mux {
    shared: Arc<MuxState>,
    reader: JoinHandle<()>,
}

#[derive(Debug)]
struct MuxState {
    out: mpsc::Sender<Wire>,
    streams: Mutex<HashMap<u32, Arc<Channel>>>,
    /// Reason for its end.
    lost: watch::Sender<Option<String>>,
    /// Whether the peer caused the end.
    broken: AtomicBool,
    /// Name of the peer, if it is another process of this machine.
    process: Option<String>,
}

/// One stream in both directions.
#[derive(Debug)]
struct Channel {
    inbox: Mutex<Inbox>,
    arrived: Notify,
    credits: Semaphore,
}

#[derive(Debug, Default)]
struct Inbox {
    bytes: BytesMut,
    /// Received bytes for which no credit was returned.
    held: usize,
    ended: bool,
}

/// The sending half of a stream.
#[derive(Clone, Debug)]
pub(super) struct StreamSender {
    id: u32,
    channel: Arc<Channel>,
    shared: Arc<MuxState>,
}

/// The receiving half of a stream. Dropping it closes the stream.
#[derive(Debug)]
pub(super) struct StreamReceiver {
    id: u32,
    channel: Arc<Channel>,
    shared: Arc<MuxState>,
    /// Consumed bytes since the last credit.
    owed: usize,
}

impl Mux {
    /// Starts on a transport. Returns the peer's control messages, which end with the connection.
    /// `process` is the peer's name, if it is another process of this machine.
    pub(super) fn start<T, E>(
        transport: T,
        pulse: Pulse,
        process: Option<String>,
    ) -> (Self, mpsc::Receiver<Bytes>)
    where
        T: MuxTransport<E>,
        E: std::fmt::Display + Send + 'static,
    {
        let (sink, stream) = transport.split();
        let (out, queue) = mpsc::channel(OUTGOING);
        let (controls, heard) = mpsc::channel(CONTROLS);
        let shared = Arc::new(MuxState {
            out,
            streams: Mutex::default(),
            lost: watch::channel(None).0,
            broken: AtomicBool::new(false),
            process,
        });
        tokio::spawn(write(Box::pin(sink), queue, pulse, shared.lost.clone()));
        let reader = tokio::spawn(read(Box::pin(stream), controls, pulse, Arc::clone(&shared)));
        (Self { shared, reader }, heard)
    }

    /// Opens a stream; the peer opens the same one.
    pub(super) fn open(&self, id: u32) -> (StreamSender, StreamReceiver) {
        let channel = Arc::new(Channel {
            inbox: Mutex::default(),
            arrived: Notify::new(),
            credits: Semaphore::new(WINDOW),
        });
        let mut streams = self.shared.streams();
        if self.shared.is_lost() {
            channel.cut();
        } else {
            streams.insert(id, Arc::clone(&channel));
        }
        drop(streams);
        let sending = StreamSender {
            id,
            channel: Arc::clone(&channel),
            shared: Arc::clone(&self.shared),
        };
        let receiving = StreamReceiver {
            id,
            channel,
            shared: Arc::clone(&self.shared),
            owed: 0,
        };
        (sending, receiving)
    }

    /// Sends a control message.
    pub(super) async fn tell(&self, message: &impl Serialize) -> Result<()> {
        let json = serde_json::to_vec(message)
            .map_err(|error| cellblock_sandbox::Error::protocol("host", error.to_string()))?;
        if json.len() >= MAX_MESSAGE {
            return Err(cellblock_sandbox::Error::request(format!(
                "a message to the peer has {} bytes, the limit is {MAX_MESSAGE}",
                json.len()
            )));
        }
        let sent = self.shared.out.send(Wire::Control(json.into())).await;
        sent.map_err(|_| self.lost())
    }

    /// Returns whether the connection has ended.
    pub(super) fn is_lost(&self) -> bool {
        self.shared.is_lost()
    }

    /// Completes when the connection has ended.
    pub(super) async fn ended(&self) {
        let mut lost = self.shared.lost.subscribe();
        let _ = lost.wait_for(Option::is_some).await;
    }

    /// Returns the error for a caller whose connection has ended.
    pub(super) fn lost(&self) -> cellblock_sandbox::Error {
        self.shared.lost_error()
    }

    /// Ends the connection because the peer violated the protocol.
    pub(super) fn fail(&self, reason: String) {
        self.shared.broken.store(true, Ordering::Release);
        self.shared.lose(reason);
    }

    /// Closes the connection after use.
    pub(super) fn close(&self) {
        self.shared.lose("it was closed".to_owned());
    }

    /// Returns whether the connection has ended because the peer violated the protocol.
    pub(super) fn is_broken(&self) -> bool {
        self.shared.broken.load(Ordering::Acquire)
    }
}

impl Drop for Mux {
    fn drop(&mut self) {
        self.reader.abort();
        self.shared.lose("it was closed".to_owned());
    }
}

impl MuxState {
    fn streams(&self) -> MutexGuard<'_, HashMap<u32, Arc<Channel>>> {
        self.streams.lock()
    }

    fn is_lost(&self) -> bool {
        self.lost.borrow().is_some()
    }

    fn lost_error(&self) -> cellblock_sandbox::Error {
        let reason = self.lost.borrow().clone();
        RemoteError::Lost {
            process: self.process.clone(),
            reason: reason.unwrap_or_else(|| "it was closed".to_owned()),
        }
        .into()
    }

    /// Ends every stream. The first reason stays.
    fn lose(&self, reason: String) {
        let mut streams = self.streams();
        self.lost.send_if_modified(|lost| {
            let first = lost.is_none();
            lost.get_or_insert(reason);
            first
        });
        for (_, channel) in streams.drain() {
            channel.cut();
        }
    }

    /// Handles a message of the peer; returns the problem if it is invalid.
    fn hear(&self, wire: Wire, controls: &mpsc::Sender<Bytes>) -> Result<(), String> {
        match wire {
            Wire::Beat => Ok(()),
            Wire::Control(json) => controls
                .try_send(json)
                .map_err(|_| format!("more than {CONTROLS} control messages at a time")),
            // The peer may still send on a stream that this side has closed.
            Wire::Data { stream, bytes } => match self.streams().get(&stream) {
                Some(channel) => channel.take(&bytes),
                None => Ok(()),
            },
            Wire::Credit { stream, bytes } => match self.streams().get(&stream) {
                Some(channel) => channel.grant(bytes as usize),
                None => Ok(()),
            },
            Wire::End { stream } => {
                if let Some(channel) = self.streams().get(&stream) {
                    channel.inbox().ended = true;
                    channel.arrived.notify_one();
                }
                Ok(())
            }
        }
    }
}

impl Channel {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock()
    }

    fn take(&self, bytes: &[u8]) -> Result<(), String> {
        let mut inbox = self.inbox();
        if inbox.held + bytes.len() > WINDOW {
            return Err(format!("more than the permitted {WINDOW} bytes of a stream"));
        }
        inbox.held += bytes.len();
        inbox.bytes.extend_from_slice(bytes);
        drop(inbox);
        self.arrived.notify_one();
        Ok(())
    }

    fn grant(&self, bytes: usize) -> Result<(), String> {
        if bytes > WINDOW || self.credits.available_permits() + bytes > WINDOW {
            return Err("credit for bytes that were never sent".to_owned());
        }
        self.credits.add_permits(bytes);
        Ok(())
    }

    /// Marks the connection as gone. Received data can still be read.
    fn cut(&self) {
        self.inbox().ended = true;
        self.arrived.notify_one();
        self.credits.close();
    }
}

impl StreamSender {
    /// Sends bytes as the receiver's window permits.
    pub(super) async fn send(&self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let credits = &self.channel.credits;
            let one = credits.acquire().await.map_err(|_| self.shared.lost_error())?;
            one.forget();
            let more = bytes.len().min(PART).min(credits.available_permits() + 1) - 1;
            let more = match u32::try_from(more).map(|wanted| credits.try_acquire_many(wanted)) {
                Ok(Ok(many)) => {
                    many.forget();
                    more
                }
                _ => 0,
            };
            let (part, rest) = bytes.split_at(1 + more);
            let data = Wire::Data {
                stream: self.id,
                bytes: Bytes::copy_from_slice(part),
            };
            let sent = self.shared.out.send(data).await;
            sent.map_err(|_| self.shared.lost_error())?;
            bytes = rest;
        }
        Ok(())
    }

    /// Marks the end of the stream.
    pub(super) async fn end(&self) {
        let _ = self.shared.out.send(Wire::End { stream: self.id }).await;
    }
}

impl StreamReceiver {
    /// Returns received bytes, at least one; `None` at the end. Dropping the future loses nothing.
    /// The bytes count until [`done`](Self::done).
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            {
                let mut inbox = self.channel.inbox();
                if !inbox.bytes.is_empty() {
                    let length = inbox.bytes.len().min(PART);
                    return Some(inbox.bytes.split_to(length).freeze());
                }
                if inbox.ended {
                    return None;
                }
            }
            self.channel.arrived.notified().await;
        }
    }

    /// Reports that this many bytes were consumed, so that more may be sent.
    pub(super) async fn done(&mut self, bytes: usize) {
        self.owed += bytes;
        if self.owed < GRANT {
            return;
        }
        let owed = std::mem::take(&mut self.owed);
        {
            let mut inbox = self.channel.inbox();
            inbox.held = inbox.held.saturating_sub(owed);
        }
        let credit = Wire::Credit {
            stream: self.id,
            bytes: u32::try_from(owed).unwrap_or(u32::MAX),
        };
        // `next` reports a lost connection.
        let _ = self.shared.out.send(credit).await;
    }
}

impl Drop for StreamReceiver {
    fn drop(&mut self) {
        let mut streams = self.shared.streams();
        // Its number may have been reused.
        if streams
            .get(&self.id)
            .is_some_and(|it| Arc::ptr_eq(it, &self.channel))
        {
            streams.remove(&self.id);
        }
    }
}

async fn read<E: std::fmt::Display>(
    mut stream: Pin<Box<dyn Stream<Item = Result<Bytes, E>> + Send>>,
    controls: mpsc::Sender<Bytes>,
    pulse: Pulse,
    shared: Arc<MuxState>,
) {
    let mut lost = shared.lost.subscribe();
    let reason = loop {
        let message = tokio::select! {
            message = timeout(pulse.limit, stream.next()) => message,
            // The writer has ended, and the reason is known.
            _ = lost.wait_for(Option::is_some) => break String::new(),
        };
        let heard = match message {
            // Another process of this machine may have a stream without an end; clients have none.
            Ok(Some(Ok(message))) if message.is_empty() && shared.process.is_some() => {
                break CLOSED.to_owned();
            }
            Ok(Some(Ok(message))) => Wire::decode(message).and_then(|wire| shared.hear(wire, &controls)),
            Ok(Some(Err(error))) => break told(&error.to_string()),
            Ok(None) => break CLOSED.to_owned(),
            Err(_) => break format!("no message was received for {} s", pulse.limit.as_secs_f32()),
        };
        if let Err(wrong) = heard {
            shared.broken.store(true, Ordering::Release);
            break format!("the peer broke the protocol: it sent {wrong}");
        }
    };
    shared.lose(reason);
}

async fn write<E: std::fmt::Display>(
    mut sink: Pin<Box<dyn Sink<Bytes, Error = E> + Send>>,
    mut queue: mpsc::Receiver<Wire>,
    pulse: Pulse,
    lost: watch::Sender<Option<String>>,
) {
    let mut ended = lost.subscribe();
    loop {
        let wire = tokio::select! {
            biased;
            wire = timeout(pulse.every, queue.recv()) => wire,
            // The last message and the end may both have come since the queue was empty.
            _ = ended.wait_for(Option::is_some) => Ok(queue.try_recv().ok()),
        };
        let wire = match wire {
            Ok(Some(wire)) => wire,
            Ok(None) => break,
            Err(_) => Wire::Beat,
        };
        let sent = timeout(pulse.limit, sink.send(wire.encode())).await;
        let reason = match sent {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => told(&error.to_string()),
            Err(_) => format!("nothing could be sent for {} s", pulse.limit.as_secs_f32()),
        };
        // The reader notices this and ends the streams.
        lost.send_if_modified(|lost| lost.replace(reason).is_none());
        return;
    }
    let _ = timeout(Duration::from_secs(1), sink.close()).await;
}

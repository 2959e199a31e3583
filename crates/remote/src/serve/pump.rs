//! Transports a kernel's bytes from and to its client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};
use cellblock_protocol::FromKernel;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::super::interrupts::Interrupts;
use super::super::mux::{StreamReceiver, StreamSender};
use super::super::record::{LARGEST, Record};
use super::parts::Parts;
use cellblock_sandbox::Result;
use cellblock_sandbox::backend::{Kernel, LAST_WORDS, ProcessEnd, read_in_order, read_now};
use cellblock_sandbox::channel::FrameReader;
use cellblock_sandbox::incoming::{SocketReader, SocketWriter};

/// Number of bytes that are read from a pipe at once.
const READ: usize = 32 * 1024;
/// Maximum number of reads from a pipe before the end of a cell is sent: more than a pipe can hold,
/// so that a continuous writer does not delay it.
const READS: usize = 64;

/// Maximum number of reads after a kernel's exit.
const LAST_READS: usize = 64;

/// A client's pending orders for a kernel.
#[derive(Debug, Default)]
pub(super) struct Orders {
    interrupts: Interrupts,
    kill: AtomicBool,
    raised: Notify,
}

impl Orders {
    pub(super) fn interrupt(&self) {
        self.interrupts.ask();
        self.raised.notify_one();
    }

    /// Completes when the kernel has received the interrupts that were ordered until now.
    pub(super) async fn settled(&self) {
        self.interrupts.settled().await;
    }

    pub(super) fn kill(&self) {
        self.kill.store(true, Ordering::Release);
        self.raised.notify_one();
    }
}

/// Transports a kernel's bytes. Dropping it drops the kernel.
#[derive(Debug)]
pub(super) struct Pump {
    task: Option<JoinHandle<Kernel>>,
    stop: Option<oneshot::Sender<()>>,
}

impl Pump {
    pub(super) fn start(
        kernel: Kernel,
        sending: StreamSender,
        receiving: StreamReceiver,
        orders: Arc<Orders>,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(carry(kernel, sending, receiving, orders, stopped));
        Self {
            task: Some(task),
            stop: Some(stop),
        }
    }

    /// Stops and returns the kernel; bytes in transit are lost.
    pub(super) async fn stop(mut self) -> Option<Kernel> {
        let _ = self.stop.take()?.send(());
        self.task.take()?.await.ok()
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn carry(
    mut kernel: Kernel,
    sending: StreamSender,
    mut receiving: StreamReceiver,
    orders: Arc<Orders>,
    stopped: oneshot::Receiver<()>,
) -> Kernel {
    let Kernel {
        frames,
        writer,
        stdout,
        stderr,
        end,
        hold,
        ..
    } = &mut kernel;
    let (stdout, stderr, hold) = (&*stdout, &*stderr, &*hold);
    let inwards = take_in(writer, &mut receiving);
    let signals = async {
        loop {
            orders.raised.notified().await;
            if orders.kill.swap(false, Ordering::AcqRel) {
                hold.kill();
            }
            if let Some(interrupts) = orders.interrupts.waiting() {
                hold.interrupt();
                orders.interrupts.passed(interrupts);
            }
        }
    };
    let outwards = give_out(frames, [stdout, stderr], end, &sending);
    // In this order, the kernel receives messages that were sent before an interrupt first.
    let carried = async {
        tokio::pin!(inwards, signals, outwards);
        let (mut in_open, mut out_open) = (true, true);
        loop {
            tokio::select! {
                biased;
                () = &mut inwards, if in_open => in_open = false,
                () = &mut signals => {}
                _ = &mut outwards, if out_open => out_open = false,
            }
        }
    };
    tokio::select! {
        () = carried => {}
        _ = stopped => {}
    }
    kernel
}

/// Transports the client's messages to the kernel.
async fn take_in(writer: &mut SocketWriter, receiving: &mut StreamReceiver) {
    while let Some(bytes) = receiving.next().await {
        // A kernel that has ended reads nothing; the client learns of its end.
        let _ = writer.write_all(&bytes).await;
        receiving.done(bytes.len()).await;
    }
}

/// Transports the kernel's messages and output until it has ended or the client is gone.
async fn give_out(
    frames: &mut FrameReader<SocketReader, FromKernel>,
    pipes: [&pipe::Receiver; 2],
    end: &mut watch::Receiver<Option<ProcessEnd>>,
    sending: &StreamSender,
) -> Result<()> {
    let mut speech = Speech {
        pipes,
        open: [true; 2],
        buffer: vec![0; READ],
        parts: Parts::default(),
        sending,
    };
    let mut speaks = true;
    let mut ending = end.clone();
    let ended = async move { ending.wait_for(Option::is_some).await.is_ok_and(|_| true) };
    tokio::pin!(ended);
    loop {
        tokio::select! {
            biased;
            said = frames.next_bytes(LARGEST), if speaks => speaks = speech.say(said).await?,
            _ = &mut ended => break,
            ready = pipes[0].readable(), if speech.open[0] => speech.take(ready, 0, frames).await?,
            ready = pipes[1].readable(), if speech.open[1] => speech.take(ready, 1, frames).await?,
        }
    }
    // Its end can be reported before its last frames are readable. Other processes may hold its
    // channel open, so the wait is limited.
    for _ in 0..LAST_READS {
        if !speaks {
            break;
        }
        let Ok(said) = timeout(LAST_WORDS, frames.next_bytes(LARGEST)).await else {
            break;
        };
        speaks = speech.say(said).await?;
    }
    speech.written().await?;
    let ending = end.borrow().unwrap_or(ProcessEnd::Unknown);
    sending.send(&Record::Ended(ending).encode()).await
}

/// A kernel's outgoing data in order: see [`read_in_order`]. Only the end of a cell does not wait
/// until earlier output has been read.
struct Speech<'a> {
    pipes: [&'a pipe::Receiver; 2],
    open: [bool; 2],
    buffer: Vec<u8>,
    parts: Parts,
    sending: &'a StreamSender,
}

impl Speech<'_> {
    /// Sends bytes of frames; `false` at their end.
    async fn say(&mut self, said: Result<Option<BytesMut>>) -> Result<bool> {
        let Ok(Some(bytes)) = said else {
            self.written().await?;
            let remainder = self.parts.remainder();
            if !remainder.is_empty() {
                self.sending.send(&Record::Frames(remainder).encode()).await?;
            }
            self.sending.send(&Record::Closed.encode()).await?;
            return Ok(false);
        };
        self.parts.push(bytes);
        while let Some(part) = self.parts.take(LARGEST) {
            if part.ends {
                self.written().await?;
            }
            self.sending.send(&Record::Frames(part.bytes).encode()).await?;
        }
        Ok(true)
    }

    /// Sends the current content of the pipes.
    async fn written(&mut self) -> Result<()> {
        for which in 0..2 {
            for _ in 0..READS {
                if !self.open[which] {
                    break;
                }
                match read_now(self.pipes[which], &mut self.buffer) {
                    Ok(length @ 1..) => self.sending.send(&record(which, &self.buffer[..length])).await?,
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Ok(0) | Err(_) => self.open[which] = false,
                }
            }
        }
        Ok(())
    }

    /// Reads once from a pipe that is ready.
    async fn take(
        &mut self,
        ready: std::io::Result<()>,
        which: usize,
        frames: &FrameReader<SocketReader, FromKernel>,
    ) -> Result<()> {
        match ready.and_then(|()| read_in_order(self.pipes[which], frames, &mut self.buffer)) {
            Ok(Some(length @ 1..)) => self.sending.send(&record(which, &self.buffer[..length])).await?,
            // The frame is also read as soon as the runtime has noticed it.
            Ok(None) => tokio::task::yield_now().await,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Ok(Some(0)) | Err(_) => self.open[which] = false,
        }
        Ok(())
    }
}

fn record(which: usize, bytes: &[u8]) -> Bytes {
    let bytes = Bytes::copy_from_slice(bytes);
    if which == 0 {
        Record::Stdout(bytes).encode()
    } else {
        Record::Stderr(bytes).encode()
    }
}

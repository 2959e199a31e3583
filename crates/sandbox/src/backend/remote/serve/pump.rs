//! Carries a kernel's bytes to and from its client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedWriteHalf, pipe};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::super::interrupts::Interrupts;
use super::super::mux::{Receiving, Sending};
use super::super::record::{LARGEST, Record};
use crate::backend::{Ending, Kernel, read_now};
use crate::channel::FrameReader;
use crate::error::Result;
use crate::incoming::Incoming;

/// Bytes taken from a pipe at once.
const READ: usize = 32 * 1024;
/// Reads of a pipe before a frame goes out: more than a pipe holds, so that whoever writes all the time does not keep the frame back.
const READS: usize = 64;

/// How often is looked for what a kernel said before it ended, and how long each time.
const LAST_READS: usize = 64;
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What a client wants done to a kernel, until it is done.
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

    /// Completes when the kernel has been sent the interrupts that were ordered until now.
    pub(super) async fn settled(&self) {
        self.interrupts.settled().await;
    }

    pub(super) fn kill(&self) {
        self.kill.store(true, Ordering::Release);
        self.raised.notify_one();
    }
}

/// A kernel whose bytes are carried. Dropping it gives the kernel up.
#[derive(Debug)]
pub(super) struct Pump {
    task: Option<JoinHandle<Kernel>>,
    stop: Option<oneshot::Sender<()>>,
}

impl Pump {
    pub(super) fn start(kernel: Kernel, sending: Sending, receiving: Receiving, orders: Arc<Orders>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(carry(kernel, sending, receiving, orders, stopped));
        Self {
            task: Some(task),
            stop: Some(stop),
        }
    }

    /// Gives the kernel back; bytes that are on their way are lost.
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
    sending: Sending,
    mut receiving: Receiving,
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
    // In this order: what was sent before an interrupt is with the kernel before it.
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

/// What the client says to the kernel.
async fn take_in(writer: &mut OwnedWriteHalf, receiving: &mut Receiving) {
    while let Some(bytes) = receiving.next().await {
        // A kernel that is gone reads nothing; the client hears of its end.
        let _ = writer.write_all(&bytes).await;
        receiving.done(bytes.len()).await;
    }
}

/// What the kernel says and writes, until it has ended or nobody listens.
async fn give_out(
    frames: &mut FrameReader<Incoming, cellblock_protocol::FromKernel>,
    pipes: [&pipe::Receiver; 2],
    end: &mut watch::Receiver<Option<Ending>>,
    sending: &Sending,
) -> Result<()> {
    let mut open = [true; 2];
    let mut speaks = true;
    let mut buffer = vec![0; READ];
    let mut ending = end.clone();
    let ended = async move { ending.wait_for(Option::is_some).await.is_ok_and(|_| true) };
    tokio::pin!(ended);
    loop {
        tokio::select! {
            biased;
            said = frames.next_bytes(LARGEST), if speaks => {
                for which in 0..2 {
                    written(pipes, which, &mut open, &mut buffer, sending).await?;
                }
                speaks = say(said, sending).await?;
            }
            _ = &mut ended => break,
            ready = pipes[0].readable(), if open[0] => {
                open[0] = ready.is_ok() && once(pipes, 0, &mut buffer, sending).await?;
            }
            ready = pipes[1].readable(), if open[1] => {
                open[1] = ready.is_ok() && once(pipes, 1, &mut buffer, sending).await?;
            }
        }
    }
    // Its end may be told before its last words are seen to be there. Others may hold its channel open, so they are not waited for without end.
    for _ in 0..LAST_READS {
        if !speaks {
            break;
        }
        let Ok(said) = timeout(LAST_WORDS, frames.next_bytes(LARGEST)).await else {
            break;
        };
        speaks = say(said, sending).await?;
    }
    for which in 0..2 {
        written(pipes, which, &mut open, &mut buffer, sending).await?;
    }
    let ending = end.borrow().unwrap_or(Ending::Unknown);
    sending.send(&Record::Ended(ending).encode()).await
}

/// Sends bytes of frames; `false` at their end.
async fn say(said: Result<Option<bytes::BytesMut>>, sending: &Sending) -> Result<bool> {
    let record = match said {
        Ok(Some(bytes)) => Record::Frames(bytes.freeze()),
        Ok(None) | Err(_) => Record::Closed,
    };
    sending.send(&record.encode()).await?;
    Ok(record != Record::Closed)
}

fn record(which: usize, bytes: &[u8]) -> Bytes {
    let bytes = Bytes::copy_from_slice(bytes);
    if which == 0 {
        Record::Stdout(bytes).encode()
    } else {
        Record::Stderr(bytes).encode()
    }
}

/// Sends what a pipe holds now.
async fn written(
    pipes: [&pipe::Receiver; 2],
    which: usize,
    open: &mut [bool; 2],
    buffer: &mut [u8],
    sending: &Sending,
) -> Result<()> {
    for _ in 0..READS {
        if !open[which] {
            break;
        }
        match read_now(pipes[which], buffer) {
            Ok(length @ 1..) => sending.send(&record(which, &buffer[..length])).await?,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
            Ok(0) | Err(_) => open[which] = false,
        }
    }
    Ok(())
}

/// Reads once from a pipe that is ready; `false` when nothing more will come.
async fn once(
    pipes: [&pipe::Receiver; 2],
    which: usize,
    buffer: &mut [u8],
    sending: &Sending,
) -> Result<bool> {
    match pipes[which].try_read(buffer) {
        Ok(length @ 1..) => sending
            .send(&record(which, &buffer[..length]))
            .await
            .map(|()| true),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(true),
        Ok(0) | Err(_) => Ok(false),
    }
}

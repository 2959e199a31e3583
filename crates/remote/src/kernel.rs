//! A kernel on another machine, presented like a local one: its frames come through a socket pair,
//! its output through pipes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedWriteHalf, pipe};
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::interrupts::Interrupts;
use super::link::Link;
use super::mux::{StreamReceiver, StreamSender};
use super::record::{Record, Records};
use super::wire::{PART, ToServer};
use cellblock_sandbox::Result;
use cellblock_sandbox::backend::{BoxFuture, Kernel, ProcessEnd, Signal, read_now};
use cellblock_sandbox::error::DuringIo;

/// Maximum time that an interrupt waits for earlier messages to the kernel. If the kernel cannot
/// accept more, it is interrupted immediately.
const BEFORE: Duration = Duration::from_millis(200);

/// Number of times that a frame checks whether earlier output has been read, once per turn of the
/// runtime; then with pauses.
const SETTLE_TURNS: u32 = 64;
const SETTLE_TRIES: u32 = SETTLE_TURNS + 100;
const SETTLE_PAUSE: Duration = Duration::from_millis(1);

/// Maximum time that data of a lost connection waits for its reader.
const AFTER: Duration = Duration::from_secs(1);

/// Pending signals for a remote kernel.
#[derive(Debug, Default)]
struct Signals {
    interrupts: Interrupts,
    kill: AtomicBool,
    raised: Notify,
}

impl Signal for Signals {
    fn interrupt(&self) {
        self.interrupts.ask();
        self.raised.notify_one();
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.interrupts.settled())
    }

    fn kill(&self) {
        self.kill.store(true, Ordering::Release);
        self.raised.notify_one();
    }
}

/// Returns the kernel of a stream. `pid` is its process id in the sandbox, as reported by the
/// server.
pub(super) fn kernel(
    link: &Arc<Link>,
    stream: u32,
    halves: (StreamSender, StreamReceiver),
    pid: u32,
) -> Result<Kernel> {
    let (ours, theirs) = UnixStream::pair().during("make a channel")?;
    let (stdout_in, stdout) = pipe::pipe().during("make a pipe")?;
    let (stderr_in, stderr) = pipe::pipe().during("make a pipe")?;
    let (end_sender, end) = watch::channel(None);
    let signals = Arc::new(Signals::default());
    let signal = Arc::clone(&signals) as Arc<dyn Signal>;
    let kernel = Kernel::elsewhere(ours, stdout, stderr, end, pid, signal)?;
    let (sending, receiving) = halves;
    let (read, write) = theirs.into_split();
    let bridge = Bridge {
        frames: Some(write),
        stdout: stdout_in,
        stderr: stderr_in,
        end: end_sender,
    };
    let link = Arc::clone(link);
    tokio::spawn(async move {
        let told = Mutex::new(());
        let frames_in = async {
            while read.as_ref().ready(Interest::READABLE).await.is_ok() {
                let _before = told.lock().await;
                if !pass_on(|buffer| read.try_read(buffer), &sending).await {
                    break;
                }
            }
        };
        let signals_in = async {
            loop {
                signals.raised.notified().await;
                if signals.kill.swap(false, Ordering::AcqRel) {
                    let _ = link.tell(&ToServer::Kill { kernel: stream }).await;
                }
                if let Some(interrupts) = signals.interrupts.waiting() {
                    // The cell to be interrupted may not have been sent yet.
                    let sent = timeout(BEFORE, async {
                        let _before = told.lock().await;
                        pass_on(|buffer| read_now(read.as_ref(), buffer), &sending).await
                    });
                    let _ = sent.await;
                    let _ = link.tell(&ToServer::Interrupt { kernel: stream }).await;
                    signals.interrupts.passed(interrupts);
                }
            }
        };
        let mut bridge = bridge;
        let said = async {
            tokio::select! {
                () = bridge.carry(receiving, &link) => {}
                // Received data is forwarded to its reader, but not kept forever for a missing one.
                () = async { link.ended().await; sleep(AFTER).await } => {}
            }
        };
        tokio::select! {
            () = said => {}
            // A kernel that receives no more messages may still send some.
            () = async { tokio::join!(frames_in, signals_in); } => {}
        }
    });
    Ok(kernel)
}

/// Sends the data that can be read now; `false` at its end.
async fn pass_on(read: impl Fn(&mut [u8]) -> std::io::Result<usize>, sending: &StreamSender) -> bool {
    let mut buffer = vec![0; PART];
    loop {
        match read(&mut buffer) {
            Ok(length @ 1..) => {
                if sending.send(&buffer[..length]).await.is_err() {
                    return false;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return true,
            Ok(0) | Err(_) => return false,
        }
    }
}

/// The connection's ends of a kernel's channels.
struct Bridge {
    frames: Option<OwnedWriteHalf>,
    stdout: pipe::Sender,
    stderr: pipe::Sender,
    end: watch::Sender<Option<ProcessEnd>>,
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.end.send_if_modified(|end| {
            let first = end.is_none();
            end.get_or_insert(ProcessEnd::Unknown);
            first
        });
    }
}

impl Bridge {
    /// Waits until earlier output has been read, as a local kernel does before it sends an output.
    /// The wait for a slow or missing reader is short.
    async fn settle(&self) {
        let unread = |pipe: &pipe::Sender| rustix::io::ioctl_fionread(pipe).is_ok_and(|bytes| bytes > 0);
        for tried in 0..SETTLE_TRIES {
            if !unread(&self.stdout) && !unread(&self.stderr) {
                return;
            }
            // A waiting reader needs one turn; a busy one needs time.
            if tried < SETTLE_TURNS {
                yield_now().await;
            } else {
                sleep(SETTLE_PAUSE).await;
            }
        }
    }

    /// Forwards the kernel's records in order until it has ended or the connection is lost.
    async fn carry(&mut self, mut receiving: StreamReceiver, link: &Link) {
        let mut records = Records::default();
        'connected: while let Some(bytes) = receiving.next().await {
            records.push(&bytes);
            loop {
                match records.take() {
                    Ok(None) => break,
                    Ok(Some(record)) => {
                        if !self.hand_on(record).await {
                            break 'connected;
                        }
                    }
                    Err(wrong) => {
                        link.fail(format!("the remote broke the protocol: it sent {wrong}"));
                        break 'connected;
                    }
                }
            }
            receiving.done(bytes.len()).await;
        }
    }

    /// Forwards a record; returns whether more may follow. A channel without a reader does not end
    /// this: the others are still read.
    async fn hand_on(&mut self, record: Record) -> bool {
        match record {
            Record::Frames(bytes) => {
                self.settle().await;
                if let Some(frames) = &mut self.frames
                    && frames.write_all(&bytes).await.is_err()
                {
                    self.frames = None;
                }
            }
            Record::Stdout(bytes) => drop(self.stdout.write_all(&bytes).await),
            Record::Stderr(bytes) => drop(self.stderr.write_all(&bytes).await),
            Record::Closed => self.frames = None,
            Record::Ended(ending) => {
                self.end.send_replace(Some(ending));
                return false;
            }
        }
        true
    }
}

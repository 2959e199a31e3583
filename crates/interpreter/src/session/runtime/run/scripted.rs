//! A kernel without a sandbox: a task that speaks the protocol's frames over a socket pair and
//! follows a script.

use std::sync::Arc;

use cellblock_protocol::{Frame, FromKernel, KernelOutcome, Output, Primitive, Scalar, ToKernel};
use cellblock_sandbox::backend::{BoxFuture, Kernel, ProcessEnd, Signal};
use cellblock_sandbox::channel::{FrameReader, write_frame};
use cellblock_sandbox::incoming::split;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::watch;

/// The number of the request that the kernel answers.
pub(super) const NUMBER: u64 = 7;

/// One thing that the kernel does while it runs a cell.
#[derive(Clone, Debug)]
pub(in crate::session) enum Step {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    /// An output of the cell.
    Show(i64),
    /// An output under an ID, or one that replaces it.
    Display(&'static str, i64, bool),
    /// The removal of what was shown.
    Clear(bool),
    /// An output and the end of another cell.
    Stray(i64),
    /// A call with this number to a method, with its number as the parameter.
    Call(u64, &'static str),
    /// A call with a blob of so many bytes.
    CallWithBlob(u64, &'static str, usize),
    /// The host's next message is the answer to this call: its value, or its error's code.
    Answered(u64, Result<Value, &'static str>),
}

/// End of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum KernelEnd {
    /// It reports the end of the cell.
    Done,
    /// It runs on until it is interrupted, and reports that.
    Obeys,
    /// It runs on until it is killed.
    Ignores,
    /// It closes its channel and runs on until it is killed.
    Closes,
    /// Its process exits while a child holds its channel and pipes open.
    Exits,
}

/// Number of the calls that clear, each of which is answered before the next.
const CLEARED: u64 = 1 << 40;

/// Signals that were sent to a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::session) struct SentSignals {
    pub(in crate::session) interrupts: u32,
    pub(in crate::session) kills: u32,
}

#[derive(Debug)]
struct Signals(watch::Sender<SentSignals>);

impl Signal for Signals {
    fn interrupt(&self) {
        self.0.send_modify(|sent| sent.interrupts += 1);
    }

    fn kill(&self) {
        self.0.send_modify(|sent| sent.kills += 1);
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Starts a kernel that follows the script once it has received a request, and calls `finished`
/// after the last step.
pub(super) fn start(
    steps: Vec<Step>,
    last: KernelEnd,
    finished: impl FnOnce() + Send + 'static,
) -> (Kernel, watch::Receiver<SentSignals>) {
    let (host, own) = UnixStream::pair().unwrap();
    let (stdout, out) = pipe::pipe().unwrap();
    let (stderr, err) = pipe::pipe().unwrap();
    let (end, ended) = watch::channel(None);
    let (signals, sent) = watch::channel(SentSignals::default());
    let kernel = Kernel::elsewhere(host, out, err, ended, 1, Arc::new(Signals(signals))).unwrap();
    let player = Player {
        channel: own,
        pipes: [stdout, stderr],
        end,
        sent: sent.clone(),
    };
    tokio::spawn(async move { player.play(steps, last, finished).await });
    (kernel, sent)
}

struct Player {
    channel: UnixStream,
    pipes: [pipe::Sender; 2],
    end: watch::Sender<Option<ProcessEnd>>,
    sent: watch::Receiver<SentSignals>,
}

impl Player {
    async fn play(self, steps: Vec<Step>, last: KernelEnd, finished: impl FnOnce()) {
        let Self {
            channel,
            mut pipes,
            end,
            mut sent,
        } = self;
        let (read, mut channel) = split(channel).unwrap();
        let mut requests = FrameReader::<_, ToKernel>::new(read, "host");
        requests.next().await.unwrap();
        for step in steps {
            match step {
                Step::Stdout(bytes) => pipes[0].write_all(&bytes).await.unwrap(),
                Step::Stderr(bytes) => pipes[1].write_all(&bytes).await.unwrap(),
                Step::Show(value) => write_frame(&mut channel, &shown(NUMBER, value), &[])
                    .await
                    .unwrap(),
                Step::Display(id, value, replaces) => {
                    let mut message = shown(NUMBER, value);
                    if let FromKernel::Output {
                        display_id, update, ..
                    } = &mut message
                    {
                        (*display_id, *update) = (Some(id.to_owned()), replaces);
                    }
                    write_frame(&mut channel, &message, &[]).await.unwrap();
                }
                Step::Clear(wait) => {
                    let message = FromKernel::Call {
                        call: CLEARED,
                        method: "clear".to_owned(),
                        params: json!({"wait": wait}),
                    };
                    write_frame(&mut channel, &message, &[]).await.unwrap();
                    let answer = requests.next().await.unwrap().unwrap().message;
                    assert!(
                        matches!(
                            answer,
                            ToKernel::Answer {
                                call: CLEARED,
                                error: None,
                                ..
                            }
                        ),
                        "{answer:?}"
                    );
                }
                Step::Stray(value) => {
                    let other = NUMBER - 1;
                    write_frame(&mut channel, &shown(other, value), &[])
                        .await
                        .unwrap();
                    let done = done(other, KernelOutcome::Raised);
                    write_frame(&mut channel, &done, &[]).await.unwrap();
                }
                Step::Call(call, method) => {
                    let message = FromKernel::Call {
                        call,
                        method: method.to_owned(),
                        params: call.into(),
                    };
                    write_frame(&mut channel, &message, &[]).await.unwrap();
                }
                Step::CallWithBlob(call, method, bytes) => {
                    let message = FromKernel::Call {
                        call,
                        method: method.to_owned(),
                        params: call.into(),
                    };
                    let blob = vec![0; bytes];
                    write_frame(&mut channel, &message, &[&blob]).await.unwrap();
                }
                Step::Answered(number, expected) => {
                    let frame = requests.next().await.unwrap().unwrap();
                    let (call, answer) = answered(&frame);
                    assert_eq!((call, answer), (number, expected.map_err(str::to_owned)));
                }
            }
        }
        finished();
        let outcome = match last {
            KernelEnd::Done => KernelOutcome::Completed,
            KernelEnd::Obeys => {
                sent.wait_for(|sent| sent.interrupts > 0).await.unwrap();
                KernelOutcome::Interrupted
            }
            KernelEnd::Ignores => return killed(sent, &end).await,
            KernelEnd::Closes => {
                drop((channel, requests));
                return killed(sent, &end).await;
            }
            KernelEnd::Exits => {
                end.send_replace(Some(ProcessEnd::Exited(3)));
                return std::future::pending().await;
            }
        };
        // The host may not wait for more once it has this.
        let _ = write_frame(&mut channel, &done(NUMBER, outcome), &[]).await;
    }
}

/// Returns the number of the call that a frame answers, and its value or the code of its error.
fn answered(frame: &Frame<ToKernel>) -> (u64, Result<Value, String>) {
    match &frame.message {
        ToKernel::Answer {
            call,
            error: Some(error),
            ..
        } => (*call, Err(error.code.clone())),
        ToKernel::Answer {
            call,
            value_in_blob: true,
            ..
        } => (
            *call,
            Ok(serde_json::from_reader(frame.blobs[0].reader()).unwrap()),
        ),
        ToKernel::Answer { call, value, .. } => (*call, Ok(value.clone())),
        other => panic!("{other:?}"),
    }
}

async fn killed(mut sent: watch::Receiver<SentSignals>, end: &watch::Sender<Option<ProcessEnd>>) {
    sent.wait_for(|sent| sent.kills > 0).await.unwrap();
    end.send_replace(Some(ProcessEnd::Signaled(9)));
}

fn shown(cell: u64, value: i64) -> FromKernel {
    FromKernel::Output {
        cell,
        index: 0,
        display_id: None,
        update: false,
        output: Output::Primitive(Primitive {
            name: None,
            value: Scalar::Integer(value),
            python_type: "int".to_owned(),
            truncated: false,
            note: None,
        }),
    }
}

fn done(cell: u64, outcome: KernelOutcome) -> FromKernel {
    FromKernel::Done {
        cell,
        outcome,
        duration_us: 0,
        error: None,
        variables: None,
        outputs_dropped: 0,
        rejections: Vec::new(),
        no_files: false,
        findings: Vec::new(),
        names: None,
    }
}

//! One request to a kernel, from its first byte to a known end.
//!
//! ```text
//! running ──done──────────────────────────────> finished
//!    │ deadline, interrupt, too much output
//!    ├──SIGINT──> stopping ──done─────────────> finished, variables kept
//!    │               └──grace over──SIGKILL──┐
//!    └──kernel ends by itself────────────────┴> lost
//! ```

use std::time::Duration;

use cellblock_protocol::text::counted;
use cellblock_protocol::{
    Blob, CellError, CellNames, FromKernel, KernelOutcome, Rejection, ToKernel, Variable,
};
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Kernel, LAST_WORDS, ProcessEnd, read_in_order, read_now, written};
use cellblock_sandbox::channel::write_frame;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::execution::{DisplayEvent, Event, Execution};
use crate::finding::{self, Finding};
use crate::output::{Output, OutputDecoder, OutputError};
use crate::session::interrupts::InterruptReceiver;
use crate::session::runtime::calls::{CallLimits, Calls, HostCall, HostMethods};
use crate::session::runtime::shown::ShownOutputs;
use crate::session::runtime::standby::Standby;
use crate::session::unkept::UnkeptOutput;
use crate::stream::Capture;

/// Minimum time after which a deadline that has moved is checked again.
const RECHECK: Duration = Duration::from_millis(100);
/// Bytes taken from a pipe at once.
const READ: usize = 64 * 1024;
/// Characters of the ID of a display. The kernel sends no more.
const MAX_DISPLAY_ID: usize = 200;
/// Maximum number of outputs that are remembered because they could not be kept.
const MAX_UNKEPT: usize = 1000;
/// Method of the call that removes what the cell has shown and printed.
const CLEAR: &str = "clear";
/// Maximum time in which the end of a kernel is reported after its channel has closed.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Result of a request.
#[derive(Debug)]
pub(in crate::session) struct RequestResult {
    pub(in crate::session) end: End,
    /// The reason why it is being stopped, if it is.
    pub(in crate::session) stopped: Option<Stop>,
    pub(in crate::session) outputs: Vec<Output>,
    pub(in crate::session) outputs_dropped: u32,
    /// Whether there may be files to collect.
    pub(in crate::session) files: bool,
    pub(in crate::session) stdout: Capture,
    pub(in crate::session) stderr: Capture,
    pub(in crate::session) variables: Vec<Variable>,
    pub(in crate::session) findings: Vec<Finding>,
    /// Effects on variables, if they were requested.
    pub(in crate::session) names: Option<CellNames>,
    /// Outputs that this machine could not keep.
    pub(in crate::session) unkept: Vec<UnkeptOutput>,
    /// Fate of the session's state.
    pub(in crate::session) aftermath: Aftermath,
}

/// Fate of the session's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::session) enum Aftermath {
    /// The kernel lives.
    #[default]
    Kept,
    /// Another kernel has the state from before the request.
    Rescued,
    /// It is gone; the text says why it could not be rescued, if that was tried.
    Lost(Option<String>),
}

/// End of a request.
#[derive(Debug)]
pub(in crate::session) enum End {
    /// The kernel said so.
    Done {
        outcome: KernelOutcome,
        error: Option<CellError>,
        rejections: Vec<Rejection>,
    },
    /// The kernel is gone.
    Lost(ProcessEnd),
}

/// The reason why a cell is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Stop {
    /// Its time is over.
    Deadline,
    /// Somebody asked for it.
    Asked,
    /// It wrote more than it may.
    Output,
}

/// Resources that a request may use, and receivers of its events.
#[derive(Debug)]
pub(in crate::session) struct CellTerms<'a> {
    pub(in crate::session) limits: &'a Limits,
    pub(in crate::session) timeout: Duration,
    /// Receiver of requests for its end.
    pub(in crate::session) interrupts: Option<&'a mut InterruptReceiver>,
    pub(in crate::session) events: Option<mpsc::Sender<Event>>,
    /// Caller that waits for the cell's end.
    pub(in crate::session) asker: Option<&'a mut oneshot::Sender<Result<Execution>>>,
    pub(in crate::session) decoding: &'a OutputDecoder,
    pub(in crate::session) standby: &'a mut Standby,
    /// Methods that the cell's code may call.
    pub(in crate::session) host: &'a dyn HostMethods,
    pub(in crate::session) calls: CallLimits,
}

/// Sends a message and follows the kernel until it is done or gone.
pub(in crate::session) async fn run(
    kernel: &mut Kernel,
    message: &ToKernel,
    mut terms: CellTerms<'_>,
) -> Result<RequestResult> {
    let deadline = Instant::now() + terms.timeout;
    let mut run = RequestRun {
        stdout: Capture::new(terms.limits.stream_kept_bytes),
        stderr: Capture::new(terms.limits.stream_kept_bytes),
        shown: ShownOutputs::default(),
        stopped: None,
        next: Some(deadline),
        deadline,
        waited_before: terms.host.waited(),
        buffer: Vec::new(),
        open: [true, true],
        surplus: 0,
        unkept: Vec::new(),
        calls: Calls::new(terms.host, terms.calls),
    };
    let number = number_of(message);
    let mut asker = terms.asker.take();
    // Whether every handle of the session is gone.
    let mut orphaned = false;
    let mut interrupts = terms.interrupts.take();
    let mut end = kernel.end.clone();
    // Until when a kernel that has ended is listened to.
    let mut last_words = None;
    // A kernel that does not read must not hold up its host, so the cell's time runs from here.
    match tokio::time::timeout(terms.timeout, write_frame(&mut kernel.writer, message, &[])).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) => return run.lost(kernel, &terms).await,
        Err(_) => {
            run.stopped = Some(Stop::Deadline);
            return run.lost(kernel, &terms).await;
        }
    }
    loop {
        let wake = run
            .next
            .unwrap_or_else(|| Instant::now() + Duration::from_hours(1));
        tokio::select! {
            biased;
            () = kernel.alarm.at(wake), if run.next.is_some() => run.late(kernel, &terms),
            stop = told_to_stop(interrupts.as_deref_mut()), if !orphaned && run.stopped.is_none() => {
                orphaned = !stop;
                if stop {
                    run.stop(kernel, Stop::Asked, terms.limits.grace);
                }
            }
            () = gone(asker.as_deref_mut()), if orphaned && run.stopped.is_none() => {
                run.stop(kernel, Stop::Asked, terms.limits.grace);
            }
            () = heard_out(last_words) => {
                return run.lost(kernel, &terms).await;
            }
            frame = kernel.frames.next() => match frame {
                // A kernel can be killed while it speaks.
                Ok(None) => return run.lost(kernel, &terms).await,
                Err(error) if error.is_cut() => return run.lost(kernel, &terms).await,
                Err(error) if error.is_spill() => run.lose("a large output".to_owned(), error.into()),
                Err(error) => return Err(error.into()),
                Ok(Some(frame)) => {
                    match frame.message {
                        // Frames of another request are left over from one that was given up, or forged.
                        FromKernel::Output { cell, .. } | FromKernel::Done { cell, .. } if cell != number => {}
                        FromKernel::Output { output, display_id, update, .. } => {
                            run.output(output, frame.blobs, display_id, update, &terms).await?;
                        }
                        FromKernel::Done { outcome, error, variables, outputs_dropped, rejections, no_files, findings, names, .. } => {
                            run.drain(kernel, &terms).await;
                            if !run.calls.end(&mut kernel.writer, terms.limits.grace).await {
                                return run.lost(kernel, &terms).await;
                            }
                            let end = End::Done { outcome, error, rejections };
                            let mut ran = run.finish(end, variables.unwrap_or_default(), outputs_dropped);
                            ran.files = !no_files;
                            ran.findings = finding::from_kernel(findings);
                            ran.names = names;
                            return Ok(ran);
                        }
                        // The code waits for the answer, so that all that is in the pipes was printed before.
                        FromKernel::Call { call, method, params } if method == CLEAR => {
                            run.drain(kernel, &terms).await;
                            run.clear(params["wait"] == true, &terms).await;
                            if !run.calls.confirm(call) {
                                return run.lost(kernel, &terms).await;
                            }
                        }
                        FromKernel::Call { call, method, params } => {
                            let until = run.due(&terms).into_std();
                            if !run.calls.begin(call, HostCall { method, params, blobs: frame.blobs, until }) {
                                return run.lost(kernel, &terms).await;
                            }
                        }
                        FromKernel::Standby { changes, pid, refused } => {
                            terms.standby.heard(changes, pid, refused);
                        }
                        FromKernel::Hello { .. } | FromKernel::Kept { .. } => {}
                    }
                }
            },
            (call, answer) = Calls::next(&mut run.calls.running) => run.calls.answer(call, answer),
            sent = run.calls.outbox.send(&mut kernel.writer), if !run.calls.outbox.is_empty() => run.calls.sent(&sent),
            // Processes that the kernel forked may hold its channel open after its death, so the
            // channel's end is not enough. Nor is its death: it may be told before the last that
            // the kernel said is seen to be there.
            () = ended(&mut end), if last_words.is_none() => last_words = Some(Instant::now() + LAST_WORDS),
            ready = kernel.stdout.readable(), if run.open[0] => run.take(ready, 0, kernel, &terms).await,
            ready = kernel.stderr.readable(), if run.open[1] => run.take(ready, 1, kernel, &terms).await,
        }
    }
}

/// Completes when a kernel that has ended is not listened to any more.
async fn heard_out(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Completes when somebody asks for the cell's end, or, with `false`, when nobody can.
async fn told_to_stop(interrupts: Option<&mut InterruptReceiver>) -> bool {
    match interrupts {
        Some(interrupts) => interrupts.asked().await,
        None => std::future::pending().await,
    }
}

/// Completes when nobody waits for the cell's end any more.
async fn gone(asker: Option<&mut oneshot::Sender<Result<Execution>>>) {
    match asker {
        Some(asker) => asker.closed().await,
        None => std::future::pending().await,
    }
}

/// An honest kernel shortens what is larger.
fn within(limit: u64, actual: u64) -> std::result::Result<(), OutputError> {
    if actual > limit {
        return Err(OutputError::Limit {
            what: "output in bytes",
            limit,
            actual,
        });
    }
    Ok(())
}

/// Returns the number that the kernel repeats in its answers.
const fn number_of(message: &ToKernel) -> u64 {
    match message {
        ToKernel::Execute { cell, .. }
        | ToKernel::Setup { cell, .. }
        | ToKernel::Check { cell, .. }
        | ToKernel::Get { cell, .. }
        | ToKernel::Bind { cell, .. }
        | ToKernel::Variables { cell }
        | ToKernel::Reset { cell }
        | ToKernel::Diverge { cell, .. }
        | ToKernel::Checkpoint { cell } => *cell,
        ToKernel::Restored {}
        | ToKernel::Configure { .. }
        | ToKernel::Answer { .. }
        | ToKernel::TakeOver { .. } => 0,
    }
}

async fn ended(end: &mut watch::Receiver<Option<ProcessEnd>>) {
    // A sender that is gone says as much as an end that was told.
    let _ = end.wait_for(Option::is_some).await;
}

fn pipe_of(kernel: &Kernel, which: usize) -> &pipe::Receiver {
    if which == 0 {
        &kernel.stdout
    } else {
        &kernel.stderr
    }
}

impl CellTerms<'_> {
    /// Sends an event to the cell's follower. A missing follower is not an error.
    async fn tell(&self, event: impl FnOnce() -> Event) {
        if let Some(events) = &self.events {
            let _ = events.send(event()).await;
        }
    }
}

#[derive(Debug)]
struct RequestRun<'a> {
    stdout: Capture,
    stderr: Capture,
    shown: ShownOutputs,
    stopped: Option<Stop>,
    /// Time at which something has to be done about the cell.
    next: Option<Instant>,
    /// End of its time, without the time that it waits for its client.
    deadline: Instant,
    /// Time that earlier cells have waited for their clients.
    waited_before: Duration,
    buffer: Vec<u8>,
    open: [bool; 2],
    surplus: u32,
    unkept: Vec<UnkeptOutput>,
    calls: Calls<'a>,
}

impl RequestRun<'_> {
    fn stop(&mut self, kernel: &Kernel, why: Stop, grace: Duration) {
        self.stopped = Some(why);
        self.next = Some(Instant::now() + grace);
        self.calls.cancel();
        kernel.interrupt();
    }

    /// The deadline or the grace after it is over.
    fn late(&mut self, kernel: &Kernel, terms: &CellTerms<'_>) {
        if self.stopped.is_some() {
            kernel.kill();
            self.next = None;
            return;
        }
        let (now, deadline) = (Instant::now(), self.due(terms));
        if deadline <= now {
            self.stop(kernel, Stop::Deadline, terms.limits.grace);
        } else {
            self.next = Some(deadline.max(now + RECHECK));
        }
    }

    /// Returns the end of its time. While it waits for its client, that moves on.
    fn due(&self, terms: &CellTerms<'_>) -> Instant {
        self.deadline + terms.host.waited().saturating_sub(self.waited_before)
    }

    /// Keeps an output within the limits.
    async fn output(
        &mut self,
        output: cellblock_protocol::Output,
        blobs: Vec<Blob>,
        display_id: Option<String>,
        update: bool,
        terms: &CellTerms<'_>,
    ) -> Result<()> {
        self.begin();
        let display_id = display_id.map(|id| id.chars().take(MAX_DISPLAY_ID).collect::<String>());
        let replaced = display_id.as_deref().filter(|_| update);
        let bytes = blobs.iter().map(Blob::len).sum();
        if !self.shown.take(&output, bytes, replaced, terms.limits) {
            self.surplus += 1;
            return Ok(());
        }
        within(terms.limits.output_bytes, bytes)?;
        let output = match terms.decoding.decode(output, blobs).await {
            Ok(decoded) => {
                for bytes in decoded.unkept {
                    self.lose(bytes.to_string(), bytes.error.into());
                }
                decoded.output
            }
            Err(error) if error.is_from_the_kernel() => return Err(error.into()),
            Err(error) => {
                self.lose(format!("an output ({})", counted(bytes, "byte")), error.into());
                return Ok(());
            }
        };
        match display_id {
            None => {
                terms.tell(|| Event::Output(output.clone())).await;
                self.shown.show(None, output);
            }
            Some(id) => {
                let display = || DisplayEvent {
                    id: id.clone(),
                    output: output.clone(),
                    update,
                };
                terms.tell(|| Event::Display(display())).await;
                if update {
                    self.shown.replace(id, output);
                } else {
                    self.shown.show(Some(id), output);
                }
            }
        }
        Ok(())
    }

    /// Removes what the cell has shown and printed: now, or with `wait` when something is shown or printed.
    async fn clear(&mut self, wait: bool, terms: &CellTerms<'_>) {
        terms.tell(|| Event::Clear { wait }).await;
        if self.shown.clear(wait) {
            self.forget_text();
        }
    }

    /// Something is shown or printed.
    fn begin(&mut self) {
        if self.shown.begin() {
            self.forget_text();
        }
    }

    fn forget_text(&mut self) {
        self.stdout.clear();
        self.stderr.clear();
    }

    /// Reads once from a pipe that is ready.
    async fn take(
        &mut self,
        ready: std::io::Result<()>,
        which: usize,
        kernel: &Kernel,
        terms: &CellTerms<'_>,
    ) {
        self.buffer.resize(READ, 0);
        let read =
            ready.and_then(|()| read_in_order(pipe_of(kernel, which), &kernel.frames, &mut self.buffer));
        match read {
            Ok(Some(length @ 1..)) => self.keep(length, which, kernel, terms).await,
            // The frame is read as soon as the runtime has been told of it, too.
            Ok(None) => tokio::task::yield_now().await,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Ok(Some(0)) | Err(_) => self.open[which] = false,
        }
    }

    async fn keep(&mut self, length: usize, which: usize, kernel: &Kernel, terms: &CellTerms<'_>) {
        self.begin();
        let bytes = &self.buffer[..length];
        let capture = if which == 0 {
            &mut self.stdout
        } else {
            &mut self.stderr
        };
        capture.push(bytes);
        let within = capture.current() <= terms.limits.stream_kept_bytes;
        if within {
            let event = if which == 0 { Event::Stdout } else { Event::Stderr };
            terms.tell(|| event(bytes.to_vec())).await;
        }
        if self.stopped.is_none() && self.stdout.total() + self.stderr.total() > terms.limits.stream_bytes {
            self.stop(kernel, Stop::Output, terms.limits.grace);
        }
    }

    /// Takes what is in the pipes now: all that was written before a frame which has just arrived.
    async fn drain(&mut self, kernel: &Kernel, terms: &CellTerms<'_>) {
        let written = written([&kernel.stdout, &kernel.stderr]);
        for which in (0..2).filter(|which| written[*which]) {
            self.buffer.resize(READ, 0);
            while self.open[which] {
                match read_now(pipe_of(kernel, which), &mut self.buffer) {
                    Ok(length @ 1..) => self.keep(length, which, kernel, terms).await,
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Ok(0) | Err(_) => self.open[which] = false,
                }
            }
        }
    }

    async fn lost(mut self, kernel: &mut Kernel, terms: &CellTerms<'_>) -> Result<RequestResult> {
        // A kernel that closed its channel and lives on is of no more use.
        kernel.kill();
        let ending = match tokio::time::timeout(END_LIMIT, kernel.end.wait_for(Option::is_some)).await {
            Ok(Ok(end)) => end.unwrap_or(ProcessEnd::Unknown),
            Ok(Err(_)) | Err(_) => ProcessEnd::Unknown,
        };
        self.drain(kernel, terms).await;
        Ok(self.finish(End::Lost(ending), Vec::new(), 0))
    }

    fn finish(self, end: End, variables: Vec<Variable>, dropped: u32) -> RequestResult {
        RequestResult {
            end,
            stopped: self.stopped,
            outputs: self.shown.into_outputs(),
            outputs_dropped: dropped.saturating_add(self.surplus),
            files: true,
            stdout: self.stdout,
            stderr: self.stderr,
            variables,
            findings: Vec::new(),
            names: None,
            unkept: self.unkept,
            aftermath: Aftermath::Kept,
        }
    }

    /// Notes an output that this machine cannot keep. The kernel is followed to its end all the same.
    fn lose(&mut self, what: String, error: Error) {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "could not keep an output"
        );
        if self.unkept.len() < MAX_UNKEPT {
            self.unkept.push(UnkeptOutput { what, error });
        }
    }
}

#[cfg(test)]
pub(in crate::session) mod scripted;
#[cfg(test)]
pub(in crate::session) mod tests;

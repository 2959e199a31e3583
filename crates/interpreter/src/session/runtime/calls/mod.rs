//! Calls from code in a sandbox to its host: each is a future beside the cell, so that output,
//! deadlines and interrupts go on meanwhile.
//!
//! ```text
//! kernel ──call──> waiting ──> running ──> outbox ──answer──> kernel
//!                      └─ the cell ends or is stopped: dropped, which cancels the request ─┘
//! ```

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

use cellblock_protocol::{Blob, CallError, ToKernel, json_size};
use cellblock_sandbox::backend::BoxFuture;
use cellblock_sandbox::outbox::Outbox;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tokio::io::AsyncWrite;

use crate::connector::Grants;
use crate::host_call::shown;
pub(crate) use crate::host_call::{HostCall, HostMethods, HostReply};
use crate::project::ProjectCalls;

mod chart;

/// A larger value travels as a blob, because a header has at most 4 MiB.
const VALUE_BYTES: usize = 1 << 20;

/// The methods that every session has.
#[derive(Debug)]
pub(crate) struct BuiltIn;

impl HostMethods for BuiltIn {
    fn call(&self, call: HostCall) -> BoxFuture<'static, Result<HostReply, CallError>> {
        Box::pin(async move {
            match call.method.as_str() {
                "check_chart" => chart::check(call).await,
                method => Err(refused(
                    "unknown_method",
                    format!("the host offers no method `{}` to this session", shown(method)),
                )),
            }
        })
    }
}

/// The methods of a cell that derives from tool results: its data comes from these alone.
#[derive(Debug)]
pub(crate) struct ResultsOnly;

impl HostMethods for ResultsOnly {
    fn call(&self, call: HostCall) -> BoxFuture<'static, Result<HostReply, CallError>> {
        if call.method != "fetch" && !call.method.starts_with("dataset.") {
            return BuiltIn.call(call);
        }
        let text = "code that derives from tool results cannot call connectors or use datasets; use the \
                    results that its contract names";
        Box::pin(async { Err(refused("not_granted", text.to_owned())) })
    }
}

impl HostMethods for Grants {
    fn call(&self, call: HostCall) -> BoxFuture<'static, Result<HostReply, CallError>> {
        match call.method.as_str() {
            "fetch" => self.fetch(call.params, call.until),
            _ => BuiltIn.call(call),
        }
    }

    fn waited(&self) -> Duration {
        Self::waited(self)
    }
}

/// Calls of a cell of a session in a project.
#[derive(Debug)]
pub(crate) struct InProject {
    pub(crate) grants: Grants,
    pub(crate) project: ProjectCalls,
}

impl HostMethods for InProject {
    fn call(&self, call: HostCall) -> BoxFuture<'static, Result<HostReply, CallError>> {
        if call.method.starts_with("dataset.") {
            return Box::pin(self.project.clone().call(call));
        }
        self.grants.call(call)
    }

    fn waited(&self) -> Duration {
        self.grants.waited()
    }
}

/// Limits of the calls of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallLimits {
    /// Maximum number of calls. A kernel with more unread answers is lost.
    pub(crate) calls: u32,
    /// Maximum number of calls that run at the same time; further ones wait.
    pub(crate) running: usize,
    /// Maximum number of calls that wait.
    pub(crate) waiting: usize,
    /// Maximum size of the parameters of all calls that wait, as JSON in bytes.
    pub(crate) waiting_bytes: usize,
    /// Maximum size of the blobs of all calls without an answer in bytes. They are files of the host.
    pub(crate) blob_bytes: u64,
    /// Maximum size of an answer in bytes.
    pub(crate) answer_bytes: u64,
    /// Maximum size of all answers together in bytes.
    pub(crate) total_bytes: u64,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            calls: 10_000,
            running: 32,
            waiting: 1024,
            waiting_bytes: 16 << 20,
            // As much as one frame may have.
            blob_bytes: 1 << 30,
            answer_bytes: 256 << 20,
            total_bytes: 1 << 30,
        }
    }
}

fn refused(code: &str, message: String) -> CallError {
    CallError {
        code: code.to_owned(),
        message,
        details: Value::Null,
    }
}

type CallFuture = BoxFuture<'static, (u64, Result<HostReply, CallError>)>;

/// The calls of one cell.
#[derive(Debug)]
pub(in crate::session) struct Calls<'a> {
    host: &'a dyn HostMethods,
    limits: CallLimits,
    /// Polled beside the cell; see [`Self::answer`].
    pub(in crate::session) running: FuturesUnordered<CallFuture>,
    waiting: VecDeque<(u64, HostCall, usize)>,
    waiting_bytes: usize,
    /// Numbers of the calls that have no answer yet, and the size of their blobs in bytes.
    open: Vec<(u64, u64)>,
    /// Number of calls until now.
    made: u32,
    /// Size of all answers until now in bytes.
    answered_bytes: u64,
    /// Whether the cell is being stopped.
    stopped: bool,
    /// Sent beside the cell.
    pub(in crate::session) outbox: Outbox,
}

impl<'a> Calls<'a> {
    pub(in crate::session) fn new(host: &'a dyn HostMethods, limits: CallLimits) -> Self {
        Self {
            host,
            limits,
            running: FuturesUnordered::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            open: Vec::new(),
            made: 0,
            answered_bytes: 0,
            stopped: false,
            outbox: Outbox::default(),
        }
    }

    /// Begins a call, or answers it with the reason why it is refused. Returns `false` for a kernel that
    /// calls on and on without reading the answers, which would fill the host's memory.
    #[must_use]
    pub(in crate::session) fn begin(&mut self, number: u64, call: HostCall) -> bool {
        if self.outbox.len() > self.limits.calls as usize {
            return false;
        }
        let held: u64 = self.open.iter().map(|(_, bytes)| bytes).sum();
        let bytes = call.blobs.iter().map(Blob::len).sum();
        self.open.push((number, bytes));
        let limit = self.limits.blob_bytes;
        if bytes > 0 && held.saturating_add(bytes) > limit {
            let text = format!(
                "calls to the host without an answer have {held} bytes of data, this one {bytes}, the \
                 limit is {limit}: wait for an answer before making more"
            );
            self.answer(number, Err(refused("too_many_bytes_at_once", text)));
            return true;
        }
        self.admit(number, call);
        true
    }

    /// Answers a call that the cell itself has served, which counts against no limit but that of
    /// [`begin`](Self::begin).
    #[must_use]
    pub(in crate::session) fn confirm(&mut self, number: u64) -> bool {
        let message = ToKernel::Answer {
            call: number,
            value: Value::Null,
            value_in_blob: false,
            error: None,
        };
        self.outbox.len() <= self.limits.calls as usize && self.outbox.push(&message, Vec::new()).is_ok()
    }

    fn admit(&mut self, number: u64, call: HostCall) {
        let CallLimits {
            calls,
            waiting,
            waiting_bytes,
            ..
        } = self.limits;
        self.made = self.made.saturating_add(1);
        if self.stopped {
            return self.answer(number, Err(stopped()));
        }
        if self.made > calls {
            let text = format!(
                "this cell has made {calls} calls to the host, the maximum; make fewer calls per cell"
            );
            return self.answer(number, Err(refused("too_many_calls", text)));
        }
        if self.has_room() {
            return self.start(number, call);
        }
        // A hostile cell must not fill the host's memory with what waits.
        let bytes = json_size(&call.params).unwrap_or_default();
        if self.waiting.len() >= waiting || self.waiting_bytes + bytes > waiting_bytes {
            let text = format!(
                "{} calls to the host wait for an answer, with {} bytes of parameters; the limits are \
                 {waiting} and {waiting_bytes}: wait for some of them before making more",
                self.waiting.len(),
                self.waiting_bytes
            );
            return self.answer(number, Err(refused("too_many_calls_at_once", text)));
        }
        self.waiting_bytes += bytes;
        self.waiting.push_back((number, call, bytes));
    }

    fn start(&mut self, number: u64, call: HostCall) {
        let answer = self.host.call(call);
        self.running.push(Box::pin(async move { (number, answer.await) }));
    }

    /// Queues the answer to a call, and starts the next one that waits.
    pub(in crate::session) fn answer(&mut self, number: u64, result: Result<HostReply, CallError>) {
        let Some(at) = self.open.iter().position(|(open, _)| *open == number) else {
            return;
        };
        self.open.swap_remove(at);
        let result = result.and_then(|answer| self.within(answer));
        let (message, blobs) = match result {
            Ok((value, value_in_blob, blobs)) => (
                ToKernel::Answer {
                    call: number,
                    value,
                    value_in_blob,
                    error: None,
                },
                blobs,
            ),
            Err(error) => (failed(number, error), Vec::new()),
        };
        if let Err(error) = self.outbox.push(&message, blobs) {
            let error = refused("answer", format!("the answer cannot be sent: {error}"));
            // An error of a few words is within every limit.
            let _ = self.outbox.push(&failed(number, error), Vec::new());
        }
        self.start_waiting();
    }

    /// Returns whether another call may run: answers that the kernel does not read would pile up.
    fn has_room(&self) -> bool {
        self.running.len() + self.outbox.len() < self.limits.running
    }

    fn start_waiting(&mut self) {
        while self.has_room()
            && let Some((number, call, bytes)) = self.waiting.pop_front()
        {
            self.waiting_bytes -= bytes;
            self.start(number, call);
        }
    }

    /// Checks the size of an answer and moves a large value to a blob.
    fn within(&mut self, answer: HostReply) -> Result<(Value, bool, Vec<Blob>), CallError> {
        let HostReply { value, mut blobs } = answer;
        let json = match &value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
            value => serde_json::to_vec(value).unwrap_or_default(),
        };
        let bytes = json.len() as u64 + blobs.iter().map(Blob::len).sum::<u64>();
        let limit = self.limits.answer_bytes;
        if bytes > limit {
            let text = format!("the answer has {bytes} bytes, the limit is {limit}: ask for less at once");
            return Err(refused("answer_too_large", text));
        }
        self.answered_bytes = self.answered_bytes.saturating_add(bytes);
        let limit = self.limits.total_bytes;
        if self.answered_bytes > limit {
            let text = format!(
                "the answers to this cell's calls have {} bytes together, the limit is {limit}: make the \
                 remaining calls in another cell",
                self.answered_bytes
            );
            return Err(refused("answers_too_large", text));
        }
        if json.len() > VALUE_BYTES {
            blobs.insert(0, json.into());
            return Ok((Value::Null, true, blobs));
        }
        Ok((value, false, blobs))
    }

    /// Starts further calls once all answers are sent, and gives up answers that cannot be. The
    /// kernel's end is seen elsewhere, behind its last frames.
    pub(in crate::session) fn sent(&mut self, result: &cellblock_sandbox::Result<()>) {
        if result.is_err() {
            self.outbox.clear();
        }
        self.start_waiting();
    }

    /// Cancels all calls because the cell is being stopped, and tells the threads that wait for them.
    pub(in crate::session) fn cancel(&mut self) {
        self.stopped = true;
        self.running.clear();
        self.waiting.clear();
        self.waiting_bytes = 0;
        for (number, _) in std::mem::take(&mut self.open) {
            let _ = self.outbox.push(&failed(number, stopped()), Vec::new());
        }
    }

    /// Cancels all calls because the cell has ended. Returns whether the channel is at the border of
    /// two frames again, which a kernel that does not read prevents.
    pub(in crate::session) async fn end(
        &mut self,
        to: &mut (impl AsyncWrite + Unpin),
        limit: Duration,
    ) -> bool {
        self.running.clear();
        self.waiting.clear();
        self.outbox.keep_begun();
        self.outbox.is_empty()
            || matches!(
                tokio::time::timeout(limit, self.outbox.send(to)).await,
                Ok(Ok(()))
            )
    }

    /// Waits for the next call to be answered; pending while none runs.
    pub(in crate::session) async fn next(
        running: &mut FuturesUnordered<CallFuture>,
    ) -> (u64, Result<HostReply, CallError>) {
        match running.next().await {
            Some(answered) => answered,
            None => std::future::pending().await,
        }
    }
}

fn failed(call: u64, error: CallError) -> ToKernel {
    ToKernel::Answer {
        call,
        value: Value::Null,
        value_in_blob: false,
        error: Some(error),
    }
}

fn stopped() -> CallError {
    refused(
        "canceled",
        "the call was canceled because the cell is being stopped".to_owned(),
    )
}

#[cfg(test)]
mod tests;

//! Calls of a scripted kernel: they run beside the cell, end with it, and stay within their limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use tokio::sync::Semaphore;

use super::*;
use crate::session::runtime::run::scripted::{KernelEnd, Step};
use crate::session::runtime::run::tests::{LONG, block_on, limits, play_with};
use crate::session::runtime::run::{End, RequestResult, Stop};

/// A host whose methods behave as their names say.
#[derive(Debug)]
struct Host {
    /// Permits to finish for calls of `wait`.
    finish: Arc<Semaphore>,
    started: Arc<AtomicU32>,
    dropped: Arc<AtomicU32>,
}

impl Host {
    fn new() -> Self {
        Self {
            finish: Arc::new(Semaphore::new(0)),
            started: Arc::default(),
            dropped: Arc::default(),
        }
    }
}

/// Counts the calls whose future was dropped before they ended.
struct DropCounter {
    count: Arc<AtomicU32>,
    ended: bool,
}

impl DropCounter {
    fn end(mut self) {
        self.ended = true;
    }
}

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.count.fetch_add((!self.ended).into(), Ordering::Relaxed);
    }
}

impl HostMethods for Host {
    fn call(&self, call: HostCall) -> BoxFuture<'static, Result<HostReply, CallError>> {
        self.started.fetch_add(1, Ordering::Relaxed);
        let finish = Arc::clone(&self.finish);
        let dropped = DropCounter {
            count: Arc::clone(&self.dropped),
            ended: false,
        };
        Box::pin(async move {
            let value = match call.method.as_str() {
                "echo" => call.params,
                "wait" => {
                    finish.acquire().await.unwrap().forget();
                    call.params
                }
                // Lets the first call of `wait` finish.
                "release" => {
                    finish.add_permits(1);
                    call.params
                }
                "never" => std::future::pending().await,
                "large" => json!("x".repeat(2 << 20)),
                other => panic!("{other}"),
            };
            dropped.end();
            Ok(HostReply {
                value,
                blobs: Vec::new(),
            })
        })
    }
}

fn play(host: &Host, calls: CallLimits, steps: &[Step], last: KernelEnd, timeout: Duration) -> RequestResult {
    block_on(play_with(host, calls, steps, last, &limits(), timeout)).0
}

fn completes(calls: CallLimits, steps: &[Step]) -> Host {
    let host = Host::new();
    let ran = play(&host, calls, steps, KernelEnd::Done, LONG);
    assert!(matches!(ran.end, End::Done { .. }), "{ran:?}");
    host
}

#[test]
fn a_later_call_is_answered_while_an_earlier_one_waits() {
    completes(
        CallLimits::default(),
        &[
            Step::Call(1, "wait"),
            Step::Call(2, "echo"),
            Step::Answered(2, Ok(json!(2))),
            Step::Stdout(b"output goes on".to_vec()),
            Step::Call(3, "release"),
            Step::Answered(3, Ok(json!(3))),
            Step::Answered(1, Ok(json!(1))),
        ],
    );
}

#[test]
fn a_value_over_a_mebibyte_travels_as_a_blob() {
    let steps = [
        Step::Call(1, "large"),
        Step::Answered(1, Ok(json!("x".repeat(2 << 20)))),
    ];
    completes(CallLimits::default(), &steps);
}

#[test]
fn the_end_of_the_cell_cancels_its_calls() {
    let host = completes(
        CallLimits::default(),
        &[Step::Call(1, "never"), Step::Call(2, "never")],
    );
    assert_eq!(host.dropped.load(Ordering::Relaxed), 2);
}

#[test]
fn a_deadline_cancels_the_calls_and_reports_it_to_their_threads() {
    let host = Host::new();
    let steps = [
        Step::Call(1, "never"),
        Step::Answered(1, Err("canceled")),
        // The code did not listen.
        Step::Call(2, "echo"),
        Step::Answered(2, Err("canceled")),
    ];
    let ran = play(
        &host,
        CallLimits::default(),
        &steps,
        KernelEnd::Obeys,
        // Enough for the first call to start on a slow machine.
        Duration::from_secs(1),
    );
    assert_eq!(ran.stopped, Some(Stop::Deadline));
    assert!(matches!(ran.end, End::Done { .. }), "{ran:?}");
    assert_eq!(host.dropped.load(Ordering::Relaxed), 1);
    assert_eq!(host.started.load(Ordering::Relaxed), 1);
}

#[test]
fn further_calls_wait_for_their_turn() {
    let calls = CallLimits {
        running: 1,
        ..CallLimits::default()
    };
    let steps = [
        Step::Call(1, "release"),
        Step::Call(2, "wait"),
        Step::Call(3, "echo"),
        Step::Answered(1, Ok(json!(1))),
        Step::Answered(2, Ok(json!(2))),
        Step::Answered(3, Ok(json!(3))),
    ];
    completes(calls, &steps);
}

#[test]
fn calls_beyond_a_limit_are_refused_with_its_name() {
    let none = CallLimits::default();
    let waiting = CallLimits {
        running: 1,
        waiting: 1,
        ..none
    };
    let steps = [
        Step::Call(1, "never"),
        Step::Call(2, "never"),
        Step::Call(3, "echo"),
        Step::Answered(3, Err("too_many_calls_at_once")),
    ];
    completes(waiting, &steps);
    let number = CallLimits { calls: 1, ..none };
    let steps = [
        Step::Call(1, "echo"),
        Step::Answered(1, Ok(json!(1))),
        Step::Call(2, "echo"),
        Step::Answered(2, Err("too_many_calls")),
    ];
    completes(number, &steps);
    let size = CallLimits {
        answer_bytes: 1000,
        ..none
    };
    completes(
        size,
        &[Step::Call(1, "large"), Step::Answered(1, Err("answer_too_large"))],
    );
    let total = CallLimits {
        total_bytes: 3 << 20,
        ..none
    };
    let steps = [
        Step::Call(1, "large"),
        Step::Answered(1, Ok(json!("x".repeat(2 << 20)))),
        Step::Call(2, "large"),
        Step::Answered(2, Err("answers_too_large")),
    ];
    completes(total, &steps);
}

#[test]
fn calls_whose_data_exceeds_the_limit_together_are_refused_until_one_is_answered() {
    let calls = CallLimits {
        blob_bytes: 1000,
        ..CallLimits::default()
    };
    let steps = [
        Step::CallWithBlob(1, "wait", 600),
        Step::CallWithBlob(2, "echo", 600),
        Step::Answered(2, Err("too_many_bytes_at_once")),
        Step::Call(3, "release"),
        Step::Answered(3, Ok(json!(3))),
        Step::Answered(1, Ok(json!(1))),
        Step::CallWithBlob(4, "echo", 600),
        Step::Answered(4, Ok(json!(4))),
    ];
    completes(calls, &steps);
}

#[test]
fn an_unknown_method_is_refused() {
    let steps = [
        Step::Call(1, "open_the_door"),
        Step::Answered(1, Err("unknown_method")),
    ];
    let (ran, ..) = block_on(play_with(
        &BuiltIn,
        CallLimits::default(),
        &steps,
        KernelEnd::Done,
        &limits(),
        LONG,
    ));
    assert!(matches!(ran.end, End::Done { .. }), "{ran:?}");
}

#[test]
fn a_kernel_that_calls_on_and_on_and_reads_no_answer_is_lost() {
    let calls = CallLimits {
        calls: 100,
        ..CallLimits::default()
    };
    // More than the socket's buffer holds.
    let steps: Vec<_> = (0..20_000).map(|number| Step::Call(number, "echo")).collect();
    let ran = play(&Host::new(), calls, &steps, KernelEnd::Ignores, LONG);
    assert!(matches!(ran.end, End::Lost(_)), "{ran:?}");
}

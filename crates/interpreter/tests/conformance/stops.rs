//! Cells that are stopped: by their deadline, by somebody, or by force when they do not listen.

use std::time::Duration;

use cellblock_interpreter::execution::{Event, Outcome};
use cellblock_testkit::wait::until_ok;

use crate::backend::slowness;
use crate::limited::{limited, unrescued};
use crate::support::{block_on, exception, goes_on, run, run_for, session, value};

const SECOND: Duration = Duration::from_secs(1);
/// Number of moments of a cell that are tried out.
const ROUNDS: u32 = 200;

/// Lets time pass that depends on nothing but the machine.
async fn spin(count: u32) {
    for _ in 0..count {
        for _ in 0..100 {
            std::hint::spin_loop();
        }
        tokio::task::yield_now().await;
    }
}

#[test]
fn an_endless_loop_is_interrupted_at_its_deadline_and_variables_are_kept() {
    block_on(async {
        let session = session().await;
        let ended = run_for(&session, SECOND, "kept = 1\nprint('started')\nwhile True: pass").await;
        assert_eq!(ended.outcome, Outcome::Interrupted);
        assert_eq!(
            ended.note.as_deref(),
            Some(
                "timeout: the cell ran longer than its limit of 1 s and was interrupted; variables are kept. \
                 Do less in one cell: work on a smaller part of the data"
            )
        );
        let error = exception(&ended);
        assert_eq!(
            (error.exception.as_str(), error.line),
            ("KeyboardInterrupt", Some(3))
        );
        assert_eq!(ended.stdout.text, "started\n");
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn a_regular_expression_that_backtracks_forever_is_interrupted() {
    block_on(async {
        let session = session().await;
        let code = "import re\nkept = 1\nre.match(r'(a+)+$', 'a' * 60 + 'b')";
        let ended = run_for(&session, SECOND, code).await;
        assert_eq!(ended.outcome, Outcome::Interrupted);
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn a_c_call_that_never_returns_loses_the_kernel_after_the_grace() {
    block_on(async {
        let session = unrescued(|_| {}).await;
        // Consumes an endless iterator without ever coming back to the interpreter's loop, where
        // signals are seen.
        let code =
            "import collections, itertools\nkept = 1\ncollections.deque(itertools.repeat(0), maxlen=0)";
        let ended = run_for(&session, SECOND, code).await;
        let reason = "timeout: the cell ran longer than its limit of 1 s and did not stop when \
                      interrupted, so its kernel was killed";
        assert_eq!(
            ended.outcome,
            Outcome::KernelLost {
                reason: reason.to_owned()
            }
        );
        assert_eq!(
            ended.note,
            Some(format!(
                "{reason}; all variables are gone; files in /workspace are kept. \
                 Run what defines your variables again"
            ))
        );
        assert!(!goes_on(&session, "kept").await);
    });
}

#[test]
fn a_cell_that_ignores_interrupts_loses_the_kernel_after_the_grace() {
    block_on(async {
        let session = session().await;
        let code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass";
        let ended = run_for(&session, SECOND, code).await;
        assert_eq!(ended.outcome.name(), "kernel_lost");
        assert_eq!(run(&session, "1").await.outcome, Outcome::Completed);
    });
}

#[test]
fn a_cell_that_waits_in_c_for_a_signal_is_interrupted() {
    block_on(async {
        let session = session().await;
        let code = "import ctypes\nkept = 1\nlibc = ctypes.CDLL(None)\nwhile True: libc.pause()";
        let ended = run_for(&session, SECOND, code).await;
        assert_eq!(ended.outcome, Outcome::Interrupted);
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn another_task_interrupts_a_running_cell() {
    block_on(async {
        let session = session().await;
        let mut running = session
            .start_cell("kept = 1\nprint('ready', flush=True)\nwhile True: pass")
            .await
            .unwrap();
        assert!(matches!(running.events.recv().await, Some(Event::Stdout(bytes)) if bytes == b"ready\n"));
        let other = session.clone();
        tokio::spawn(async move { other.interrupt() }).await.unwrap();
        let ended = running.finish().await.unwrap();
        assert_eq!(ended.outcome, Outcome::Interrupted);
        assert_eq!(
            ended.note.as_deref(),
            Some("the cell was interrupted; variables are kept")
        );
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn an_interrupt_without_a_running_cell_hits_no_later_one() {
    block_on(async {
        let session = session().await;
        run(&session, "kept = 1").await;
        session.interrupt();
        assert!(goes_on(&session, "kept").await);
        // Requests that the session's task answers by itself are over, too.
        session.origins().await.unwrap();
        session.checkpoints().await.unwrap();
        session.usage().await.unwrap();
        session.interrupt();
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn an_interrupt_at_any_moment_stops_an_endless_cell_and_keeps_its_kernel() {
    block_on(async {
        // A busy machine may take longer than the usual grace; a signal that was lost is not found
        // within any.
        let session = limited(|limits| limits.grace = 10 * SECOND).await;
        run(&session, "kept = 1").await;
        for round in 0..ROUNDS {
            let interrupt = async {
                spin(round * 5).await;
                session.interrupt();
            };
            let (ended, ()) = tokio::join!(run_for(&session, 60 * SECOND, "while True: pass"), interrupt);
            assert_eq!(ended.outcome, Outcome::Interrupted, "round {round}: {ended:#?}");
            let note = "the cell was interrupted; variables are kept";
            assert_eq!(ended.note.as_deref(), Some(note), "round {round}");
            assert!(goes_on(&session, "kept").await, "round {round}");
        }
    });
}

#[test]
fn an_interrupt_at_any_moment_of_a_short_cell_stops_that_one_or_none() {
    block_on(async {
        let session = limited(|limits| limits.grace = 10 * SECOND).await;
        run(&session, "kept = None").await;
        for round in 0..ROUNDS {
            let interrupt = async {
                spin(round * 5).await;
                session.interrupt();
            };
            let code = format!("print('said')\ndisplay('shown')\nkept = {round}\nkept");
            let (ended, ()) = tokio::join!(run(&session, &code), interrupt);
            let completed = ended.outcome == Outcome::Completed;
            assert!(
                completed || ended.outcome == Outcome::Interrupted,
                "round {round}: {ended:#?}"
            );
            // The next cell runs to its end, and finds what this one did unless it was stopped before.
            let kept = value(&session, &format!("kept == {round}")).await;
            assert!(kept == true || !completed, "round {round}: {kept}");
        }
    });
}

#[test]
fn an_interrupt_while_its_sandbox_is_made_stops_a_cell_before_its_code() {
    block_on(async {
        for round in 0..8 {
            let session = limited(|limits| limits.grace = 10 * SECOND).await;
            let interrupt = async {
                spin(round * 2000).await;
                session.interrupt();
            };
            let code = "before = 1\nwhile True: pass";
            let (ended, ()) = tokio::join!(run_for(&session, 60 * SECOND, code), interrupt);
            assert_eq!(ended.outcome, Outcome::Interrupted, "round {round}: {ended:#?}");
            assert_eq!(value(&session, "1 + 1").await, 2);
        }
    });
}

#[test]
fn a_cell_that_catches_the_interrupt_and_ends_by_itself_has_completed() {
    block_on(async {
        let session = limited(|limits| limits.grace = 10 * SECOND).await;
        let code = "try:\n    while True: pass\nexcept KeyboardInterrupt:\n    caught = True\n'cleaned up'";
        let ended = run_for(&session, SECOND, code).await;
        assert_eq!(ended.outcome, Outcome::Completed);
        assert!(goes_on(&session, "caught").await);
    });
}

#[test]
fn a_kernel_that_does_not_read_its_next_cell_is_lost_at_that_cells_deadline() {
    block_on(async {
        let session = session().await;
        // A child stops the kernel once the cell is over; what the host then sends is more than a
        // socket holds.
        let code = "import os, signal, time\nkernel = os.getpid()\n\
                    if os.fork() == 0:\n    time.sleep(0.3)\n    os.kill(kernel, signal.SIGSTOP)\n    \
                    open('/workspace/stopped', 'w').close()\n    os._exit(0)";
        run(&session, code).await;
        until_ok(async || session.read_file("/workspace/stopped").await).await;
        let large = format!("x = 1 # {}", "y".repeat(2 << 20));
        let ended = run_for(&session, SECOND, &large).await;
        assert_eq!(
            ended.outcome,
            Outcome::KernelLost {
                reason: "timeout: the cell ran longer than its limit of 1 s and did not stop when \
                         interrupted, so its kernel was killed"
                    .into()
            }
        );
        assert!(!goes_on(&session, "kernel").await);
    });
}

#[test]
fn a_kernel_that_asks_and_does_not_read_the_answers_is_lost() {
    block_on(async {
        let session = session().await;
        let code = "import json, os, struct\n\
                    head = json.dumps({'type': 'call', 'call': 1, 'method': 'x' * 10_000, \
                    'params': None}).encode()\n\
                    for _ in range(20_000): \
                    os.write(3, struct.pack('>II', 4 + len(head), len(head)) + head)";
        // Long enough for more calls than a cell may make; the deadline would stop it, too.
        let ended = run_for(&session, 60 * SECOND * slowness(), code).await;
        assert_eq!(ended.outcome.name(), "kernel_lost");
        assert!(!goes_on(&session, "head").await);
    });
}

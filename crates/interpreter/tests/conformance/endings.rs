//! Cells that end badly by themselves: each has its outcome, says what to do, and leaves a session
//! that goes on.

use std::time::Duration;

use cellblock_interpreter::Cell;
use cellblock_interpreter::execution::Outcome;

use crate::limited::unrescued;
use crate::support::{block_on, exception, goes_on, run, session, value};

fn lost(reason: &str) -> Outcome {
    Outcome::KernelLost {
        reason: reason.to_owned(),
    }
}

fn lost_note(reason: &str) -> String {
    format!(
        "{reason}; all variables are gone; files in /workspace are kept. Run what defines \
         your variables again"
    )
}

#[test]
fn a_syntax_error_points_at_its_line_and_nothing_of_the_cell_runs() {
    block_on(async {
        let session = session().await;
        run(&session, "kept = 1").await;
        let failed = run(&session, "print('never')\nif True\n    pass").await;
        assert_eq!(failed.outcome, Outcome::Raised);
        let error = exception(&failed);
        assert_eq!(
            (error.exception.as_str(), error.message.as_str(), error.line),
            ("SyntaxError", "expected ':'", Some(2))
        );
        assert!(
            error.traceback.contains("    if True\n           ^\n"),
            "{}",
            error.traceback
        );
        assert_eq!(failed.stdout.text, "");
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn an_exception_shows_the_users_frames_and_keeps_earlier_variables() {
    block_on(async {
        let session = session().await;
        let failed = run(&session, "kept = 1\ndef half(x):\n    return x / 0\nhalf(4)").await;
        assert_eq!(failed.outcome, Outcome::Raised);
        assert_eq!(failed.note, None);
        let error = exception(&failed);
        assert_eq!(
            (error.exception.as_str(), error.message.as_str(), error.line),
            ("ZeroDivisionError", "division by zero", Some(3))
        );
        let frames: Vec<_> = error
            .frames
            .iter()
            .map(|frame| (frame.function.as_deref(), frame.line, frame.source.as_deref()))
            .collect();
        assert_eq!(
            frames,
            [
                (Some("<module>"), Some(4), Some("half(4)")),
                (Some("half"), Some(3), Some("return x / 0"))
            ]
        );
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn outputs_before_an_exception_are_kept_in_order() {
    block_on(async {
        let session = session().await;
        let failed = run(
            &session,
            "print('one')\ndisplay(1)\ndisplay('two')\nraise ValueError('three')",
        )
        .await;
        assert_eq!(failed.outcome, Outcome::Raised);
        let shown: Vec<_> = failed
            .outputs
            .iter()
            .map(|output| serde_json::to_value(output).unwrap())
            .map(|output| {
                (
                    output["type"].clone(),
                    output["value"].clone(),
                    output["message"].clone(),
                )
            })
            .collect();
        let null = serde_json::Value::Null;
        assert_eq!(
            shown,
            [
                ("primitive".into(), 1.into(), null.clone()),
                ("primitive".into(), "two".into(), null.clone()),
                ("exception".into(), null, "three".into()),
            ]
        );
        assert_eq!(failed.stdout.text, "one\n");
    });
}

#[test]
fn sys_exit_ends_the_cell_and_not_the_kernel() {
    block_on(async {
        let session = session().await;
        let ended = run(&session, "import sys\nkept = 1\nsys.exit(3)").await;
        assert_eq!(ended.outcome, Outcome::Raised);
        let error = exception(&ended);
        assert_eq!(
            (error.exception.as_str(), error.message.as_str()),
            ("SystemExit", "the cell called sys.exit(3)")
        );
        assert!(goes_on(&session, "kept").await);
        assert_eq!(run(&session, "sys.exit()").await.outcome, Outcome::Completed);
    });
}

#[test]
fn an_exit_that_python_cannot_catch_loses_the_kernel_and_keeps_the_files() {
    block_on(async {
        let session = unrescued(|_| {}).await;
        run(
            &session,
            "kept = 1\nopen('/workspace/note.txt', 'w').write('still here')",
        )
        .await;
        let ended = run(&session, "print('last words')\nimport os\nos._exit(7)").await;
        let reason = "the cell ended its own kernel with exit code 7";
        assert_eq!(ended.outcome, lost(reason));
        assert_eq!(ended.note, Some(lost_note(reason)));
        assert!(ended.kernel_lost());
        assert!(!goes_on(&session, "kept").await);
        assert_eq!(
            value(&session, "open('/workspace/note.txt').read()").await,
            "still here"
        );
    });
}

#[test]
fn output_before_an_exit_that_python_cannot_catch_is_kept() {
    block_on(async {
        let session = session().await;
        let ended = run(
            &session,
            "display('shown')\nprint('said', flush=True)\nimport os\nos._exit(7)",
        )
        .await;
        assert_eq!(ended.outcome.name(), "kernel_lost");
        assert_eq!(ended.stdout.text, "said\n");
        assert_eq!(ended.outputs.len(), 1, "{:#?}", ended.outputs);
    });
}

#[test]
fn a_segmentation_fault_loses_the_kernel_and_is_named() {
    block_on(async {
        let session = unrescued(|_| {}).await;
        run(&session, "kept = 1").await;
        let ended = run(&session, "import ctypes\nctypes.string_at(0)").await;
        let reason = "the kernel was killed by SIGSEGV (a segmentation fault)";
        assert_eq!(ended.outcome, lost(reason));
        assert_eq!(ended.note, Some(lost_note(reason)));
        assert!(!goes_on(&session, "kept").await);
    });
}

#[test]
fn a_kernel_that_closes_its_own_channel_is_lost_and_replaced() {
    block_on(async {
        let session = unrescued(|_| {}).await;
        run(&session, "kept = 1").await;
        let ended = run(&session, "import os\nos.closerange(3, 256)").await;
        assert_eq!(ended.outcome.name(), "kernel_lost");
        assert!(!goes_on(&session, "kept").await);
    });
}

#[test]
fn a_cell_that_forges_frames_cannot_end_the_session() {
    block_on(async {
        let session = session().await;
        // Whatever descriptors there are: all get bytes that are no frame.
        let code = "import os\nfor fd in range(3, 64):\n    try:\n        os.write(fd, b'\\x7f' * \
                    64)\n    except OSError:\n        pass";
        match session.execute(code).await {
            Ok(ended) => assert_eq!(ended.outcome.name(), "kernel_lost"),
            Err(error) => assert!(
                error.to_string().starts_with("the kernel broke the protocol: "),
                "{error}"
            ),
        }
        assert_eq!(value(&session, "6 * 7").await, 42);
    });
}

#[test]
fn the_last_cell_runs_exit_handlers_and_its_files_are_collected() {
    block_on(async {
        let session = session().await;
        run(
            &session,
            "import atexit\nout = open('/workspace/out.txt', 'w')\natexit.register(out.write, 'end')\n\
             atexit.register(print, 'bye')",
        )
        .await;
        let mut last = Cell::new("None");
        last.last = true;
        let ended = session.execute(last).await.unwrap();
        assert_eq!(ended.stdout.text, "bye\n");
        let files: Vec<_> = ended
            .files
            .iter()
            .map(|file| (file.name.as_str(), file.bytes))
            .collect();
        assert_eq!(files, [("out.txt", 3)]);
    });
}

#[test]
fn an_exit_handler_that_does_not_end_does_not_hold_up_the_end_of_its_session() {
    block_on(async {
        let session = session().await;
        let hostile = "import atexit, signal\n@atexit.register\n\
                       def stay():\n    signal.signal(signal.SIGINT, signal.SIG_IGN)\n    while True: pass";
        assert_eq!(run(&session, hostile).await.outcome, Outcome::Completed);
        let closed = tokio::time::timeout(Duration::from_secs(30), session.close()).await;
        closed.expect("the session does not end").unwrap();
    });
}

//! A dry run reports what would be rejected, and leaves the session as it is.

use cellblock_interpreter::cell::Guard;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::output::Output;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Cell, Execution, Session};

use crate::support::{block_on, interpreter, run, value};

async fn check(session: &Session, code: &str) -> Execution {
    let cell = Cell {
        dry_run: true,
        ..Cell::new(code)
    };
    session.execute(cell).await.unwrap()
}

#[test]
fn code_is_checked_and_nothing_of_it_runs() {
    block_on(async {
        let options = SessionOptions {
            guard: Guard::Strict,
            ..SessionOptions::default()
        };
        let session = interpreter().await.session(options);
        let checked = check(&session, "x = 1\nprint(x)\nopen('made', 'w')\nx").await;
        assert_eq!((checked.outcome, checked.cell), (Outcome::Completed, 0));
        assert_eq!(checked.outputs, []);
        assert_eq!(checked.stdout.text, "");
        assert_eq!(
            checked.note.unwrap(),
            "the code was checked and not run; nothing was found that would be rejected"
        );
        let first = run(&session, "import os\n'x' in globals() or os.path.exists('made')").await;
        assert_eq!((first.cell, first.note), (1, None));
        assert_eq!(value(&session, "len(os.listdir())").await, 0);
    });
}

#[test]
fn errors_are_those_of_a_run() {
    block_on(async {
        let options = SessionOptions {
            guard: Guard::Strict,
            ..SessionOptions::default()
        };
        let session = interpreter().await.session(options);
        for code in ["x = (", "eval('1')\nimport ctypes", "return 1"] {
            let checked = check(&session, code).await;
            let ran = run(&session, code).await;
            assert_ne!(checked.outcome, Outcome::Completed, "{code}");
            assert_eq!(checked.outcome, ran.outcome, "{code}");
            let message = |outputs: &[Output]| match outputs {
                [Output::Exception(it)] => Some((it.exception.clone(), it.message.clone())),
                _ => None,
            };
            assert_eq!(message(&checked.outputs), message(&ran.outputs), "{code}");
        }
    });
}

//! Setup code runs before the first cell and in each kernel that replaces the first one, and a
//! failure does not end the session.

use cellblock_interpreter::Session;
use cellblock_interpreter::cell::{Guard, Rescue};
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::session::{SessionOptions, SetupSnippet};

use crate::support::{block_on, interpreter, run, value};

fn snippet(name: &str, code: &str) -> SetupSnippet {
    SetupSnippet {
        name: name.to_owned(),
        code: code.to_owned(),
        guarded: true,
    }
}

async fn session(setup: Vec<SetupSnippet>, rescue: Rescue) -> Session {
    let options = SessionOptions {
        setup,
        rescue,
        ..SessionOptions::default()
    };
    interpreter().await.session(options)
}

#[test]
fn names_of_setup_code_are_there_after_a_reset_and_a_lost_kernel() {
    block_on(async {
        for rescue in [Rescue::Off, Rescue::On] {
            let setup = vec![
                snippet("rates.py", "RATES = {'eur': 2}"),
                snippet("tax.py", "def tax(x): return x * RATES['eur']"),
            ];
            let session = session(setup, rescue).await;
            assert_eq!(value(&session, "tax(2)").await, 4);
            assert_eq!(session.variables().await.unwrap(), []);
            run(&session, "RATES['eur'] = 3; mine = 1").await;
            session.reset().await.unwrap();
            assert_eq!(value(&session, "tax(2)").await, 4);
            let killed = run(&session, "import os; os.kill(os.getpid(), 9)").await;
            assert!(matches!(killed.outcome, Outcome::KernelLost { .. }), "{killed:?}");
            let after = run(&session, "tax(2)").await;
            assert_eq!((after.outcome, after.note), (Outcome::Completed, None));
            assert_eq!(session.variables().await.unwrap(), []);
            session.close().await.unwrap();
        }
    });
}

#[test]
fn setup_code_runs_again_in_a_new_sandbox() {
    block_on(async {
        let options = SessionOptions {
            setup: vec![snippet(
                "setup.py",
                "open('/workspace/made', 'w').close(); base = 5",
            )],
            idle: std::time::Duration::from_millis(50),
            ..SessionOptions::default()
        };
        let session = interpreter().await.session(options);
        run(&session, "x = base").await;
        let note = cellblock_testkit::wait::until_ok(async || {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            let ran = run(&session, "import os; base + os.path.exists('/workspace/made')").await;
            assert_eq!(ran.outcome, Outcome::Completed);
            ran.note.ok_or("the sandbox was not idle for long enough")
        })
        .await;
        assert!(note.contains("was idle"), "{note}");
        assert_eq!(value(&session, "base").await, 5);
    });
}

#[test]
fn a_failure_is_noted_with_name_line_and_error_and_the_session_continues() {
    block_on(async {
        let setup = vec![
            snippet("first.py", "a = 1\nb = 1 / 0\nc = 3"),
            snippet("second.py", "d = ("),
            snippet("third.py", "e = 5"),
        ];
        let session = session(setup, Rescue::Idle).await;
        let first = run(&session, "a + e").await;
        assert_eq!(first.outcome, Outcome::Completed);
        assert_eq!(
            first.note.unwrap(),
            "the setup code `first.py` failed in line 2: ZeroDivisionError: division by zero; the session \
             continues without what it did not bind. the setup code `second.py` failed in line 1: \
             SyntaxError: '(' was never closed; the session continues without what it did not bind"
        );
        assert_eq!(run(&session, "a").await.note, None);
    });
}

#[test]
fn setup_code_that_ends_the_kernel_runs_once_and_one_that_hangs_is_stopped() {
    block_on(async {
        let mut limits = interpreter().await.limits().clone();
        limits.cell_timeout = std::time::Duration::from_millis(500);
        let options = SessionOptions {
            setup: vec![
                snippet("ends.py", "import os; os._exit(1)"),
                snippet("hangs.py", "x = 1\nwhile True: pass"),
            ],
            limits: Some(limits),
            ..SessionOptions::default()
        };
        let session = interpreter().await.session(options);
        let first = run(&session, "x").await;
        assert_eq!(first.outcome, Outcome::Completed, "{first:?}");
        let note = first.note.unwrap();
        assert!(
            note.contains("`ends.py` ended the kernel and will not run again in this session"),
            "{note}"
        );
        assert!(
            note.contains("`hangs.py` was stopped because it reached the timeout"),
            "{note}"
        );
        session.reset().await.unwrap();
        let note = run(&session, "x").await.note.unwrap();
        assert!(!note.contains("ends.py"), "{note}");
    });
}

#[test]
fn the_guard_checks_the_setup_code_of_clients() {
    block_on(async {
        let mut own = snippet("own.py", "def total(text): return eval(text)");
        own.guarded = false;
        let options = SessionOptions {
            guard: Guard::Strict,
            setup: vec![own, snippet("theirs.py", "x = 1\neval('1')")],
            ..SessionOptions::default()
        };
        let session = interpreter().await.session(options);
        let ran = run(&session, "total('1 + 2'), 'x' in globals()").await;
        assert_eq!(ran.outcome, Outcome::Completed, "{ran:?}");
        let note = ran.note.unwrap();
        assert!(
            note.starts_with(
                "the setup code `theirs.py` failed in line 2: the guard rejected it: eval is blocked"
            ),
            "{note}"
        );
        assert_eq!(value(&session, "total('1 + 2')").await, 3);
    });
}

//! Cells of bash and JavaScript beside those of Python.

use std::time::Duration;

use cellblock_interpreter::cell::Language;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::output::Output;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Cell, Execution, Session};
use cellblock_testkit::require;

use crate::support::{block_on, interpreter, run, session, value};

async fn run_in(session: &Session, language: Language, code: &str) -> Execution {
    let cell = Cell::new(code)
        .in_language(language)
        .with_timeout(Duration::from_secs(30));
    session.execute(cell).await.unwrap()
}

#[test]
fn each_language_keeps_its_state_and_all_share_the_files() {
    block_on(async {
        let session = session().await;
        let made = run_in(
            &session,
            Language::Bash,
            "x=1; mkdir -p deep; cd deep; echo 'a,b' > t.csv",
        )
        .await;
        assert_eq!(made.outcome, Outcome::Completed, "{made:#?}");
        assert_eq!(made.files.len(), 1, "{:?}", made.files);
        let kept = run_in(&session, Language::Bash, "echo $((x + 1)) ${PWD##*/}").await;
        assert_eq!(kept.stdout.text, "2 deep\n");
        run_in(&session, Language::Javascript, "const fs = require('fs')").await;
        let code = "fs.readFileSync('/workspace/deep/t.csv', 'utf8').trim()";
        let read = run_in(&session, Language::Javascript, code).await;
        let [Output::Primitive(shown)] = &*read.outputs else {
            panic!("{read:#?}");
        };
        assert!(format!("{:?}", shown.value).contains("a,b"), "{shown:?}");
        assert_eq!(
            value(&session, "open('/workspace/deep/t.csv').read()").await,
            "a,b\n"
        );
    });
}

#[test]
fn what_a_cell_fails_with_is_told_in_its_own_terms() {
    block_on(async {
        let session = session().await;
        let failed = run_in(&session, Language::Bash, "echo before; exit 7").await;
        assert_eq!(failed.outcome, Outcome::Raised);
        assert_eq!(failed.stdout.text, "before\n");
        let failed = run_in(&session, Language::Javascript, "\nnull.x").await;
        let Some(Output::Exception(exception)) = failed.outputs.last() else {
            panic!("{failed:#?}");
        };
        assert_eq!(
            (exception.exception.as_str(), exception.line),
            ("TypeError", Some(2))
        );
        assert!(
            !exception.traceback.contains("driver.js"),
            "{}",
            exception.traceback
        );
    });
}

#[test]
fn a_cell_of_any_language_ends_at_its_deadline_and_its_state_stays() {
    block_on(async {
        for (language, keep, spin, look) in [
            (
                Language::Bash,
                "kept=1",
                "while :; do :; done",
                "[ \"$kept\" = 1 ]",
            ),
            (
                Language::Javascript,
                "const kept = 1",
                "while (true) {}",
                "if (kept !== 1) throw new Error('lost')",
            ),
        ] {
            let session = interpreter().await.session(SessionOptions {
                limits: Some(cellblock_interpreter::limits::Limits {
                    grace: Duration::from_secs(10),
                    ..cellblock_interpreter::limits::Limits::default()
                }),
                ..SessionOptions::default()
            });
            run_in(&session, language, keep).await;
            let cell = Cell::new(spin)
                .in_language(language)
                .with_timeout(Duration::from_secs(1));
            let stopped = session.execute(cell).await.unwrap();
            assert_eq!(stopped.outcome, Outcome::Interrupted, "{stopped:#?}");
            assert_eq!(value(&session, "1 + 1").await, 2);
            let looked = run_in(&session, language, look).await;
            assert_eq!(looked.outcome, Outcome::Completed, "{looked:#?}");
        }
    });
}

#[test]
fn a_process_of_another_language_ends_with_its_session() {
    block_on(async {
        let session = session().await;
        let code = "sleep 1000 & echo $$ > /workspace/shell";
        assert_eq!(
            run_in(&session, Language::Bash, code).await.outcome,
            Outcome::Completed
        );
        let ended = run(&session, "import os; os.kill(os.getpid(), 9)").await;
        assert!(matches!(ended.outcome, Outcome::KernelLost { .. }), "{ended:#?}");
        let found = value(
            &session,
            "import os\nos.path.exists(f\"/proc/{open('/workspace/shell').read().strip()}\")",
        );
        assert_eq!(found.await, false);
    });
}

#[test]
fn what_only_python_can_be_is_refused_with_what_to_do() {
    block_on(async {
        let session = session().await;
        for cell in [
            Cell::expression("1"),
            Cell {
                dry_run: true,
                ..Cell::new("1")
            },
        ] {
            let refused = session
                .execute(cell.in_language(Language::Bash))
                .await
                .unwrap_err();
            assert!(
                refused.to_string().contains("has to be Python, not `bash`"),
                "{refused}"
            );
        }
    });
}

#[test]
fn what_an_earlier_cell_has_left_running_prints_is_no_output_of_the_next_cell() {
    block_on(async {
        let session = session().await;
        let left = "(sleep 0.3; echo late; echo late >&2) & echo now";
        let first = run_in(&session, Language::Bash, left).await;
        assert_eq!(first.stdout.text, "now\n");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let next = run_in(&session, Language::Bash, "echo next").await;
        assert_eq!((&*next.stdout.text, &*next.stderr.text), ("next\n", ""));
        let note = next.note.unwrap_or_default();
        assert!(note.starts_with("10 bytes of output left out: "), "{note}");
        let last = run_in(&session, Language::Bash, "echo last").await;
        assert_eq!((&*last.stdout.text, last.note), ("last\n", None));
    });
}

#[test]
fn processes_beyond_the_limit_that_a_shell_leaves_print_nothing_into_later_cells() {
    require!(CgroupV1);
    block_on(async {
        let session = interpreter().await.session(SessionOptions {
            limits: Some(Limits {
                processes: 48,
                ..Limits::default()
            }),
            ..SessionOptions::default()
        });
        assert_eq!(value(&session, "kept = 1\nkept").await, 1);
        // More than there may be, for a bounded time.
        let many = "(for i in $(seq 90); do (sleep 3; echo still here >&2) & done) & true";
        let ended = run_in(&session, Language::Bash, many).await;
        let mut notes = ended.note.unwrap_or_default();
        // Long enough for processes that started late, beside others.
        tokio::time::sleep(Duration::from_secs(10)).await;
        for _ in 0..3 {
            let next = run_in(&session, Language::Bash, "echo next").await;
            assert_eq!(next.stdout.text, "next\n", "{next:#?}");
            assert!(!next.stderr.text.contains("still here"), "{next:#?}");
            notes += &next.note.unwrap_or_default();
        }
        assert!(notes.contains("processes"), "{notes}");
        assert_eq!(value(&session, "kept").await, 1);
    });
}

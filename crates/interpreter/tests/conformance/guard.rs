//! The guard refuses a cell before anything of it runs, and says why.

use cellblock_interpreter::Session;
use cellblock_interpreter::cell::Guard;
use cellblock_interpreter::execution::{Outcome, Rejection};
use cellblock_interpreter::session::SessionOptions;

use crate::support::{block_on, goes_on, interpreter, run, value};

async fn guarded(guard: Guard) -> Session {
    let options = SessionOptions {
        guard,
        ..SessionOptions::default()
    };
    interpreter().await.session(options)
}

fn rejections(outcome: Outcome) -> Vec<(String, Option<u32>, String)> {
    match outcome {
        Outcome::Rejected { rejections } => rejections
            .into_iter()
            .map(|it: Rejection| (it.rule.unwrap_or_default(), it.line, it.message))
            .collect(),
        other => panic!("not rejected: {other:?}"),
    }
}

#[test]
fn standard_refuses_the_environment_and_processes_with_rule_line_and_reason() {
    block_on(async {
        let session = guarded(Guard::Standard).await;
        run(&session, "kept = 1").await;
        let refused = run(
            &session,
            "print('never')\nimport os, subprocess\nos.environ['X']\nsubprocess.run(['ls'])",
        )
        .await;
        assert_eq!(refused.stdout.text, "");
        assert_eq!(refused.outputs, []);
        assert_eq!(
            rejections(refused.outcome),
            [
                (
                    "os.environ".to_owned(),
                    Some(3),
                    "os.environ access is blocked in agent code (secrets are not in scope)".to_owned()
                ),
                (
                    "subprocess".to_owned(),
                    Some(4),
                    "subprocess.run is blocked in agent code".to_owned()
                ),
            ]
        );
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn strict_rejects_ways_around_the_language_and_permits_classes() {
    block_on(async {
        let session = guarded(Guard::Strict).await;
        let refused = run(&session, "eval('1')\nimport ctypes").await;
        let rules: Vec<_> = rejections(refused.outcome)
            .into_iter()
            .map(|it| (it.0, it.1))
            .collect();
        assert_eq!(
            rules,
            [
                ("strict.builtin".to_owned(), Some(1)),
                ("strict.import".to_owned(), Some(2)),
            ]
        );
        let libraries = "import dataclasses\n@dataclasses.dataclass\nclass D:\n    n: int = 1\n\
                         pd.DataFrame({'a': [1, 2]}).query('a > 1').eval('b = a + 1').b.sum() + D().n";
        assert_eq!(value(&session, libraries).await, 4);
        let found = run(&session, "globals()['__builtins__']['eval']('1')").await;
        assert_eq!(found.outcome, Outcome::Raised, "{found:?}");
        let code = "class A:\n    def f(self): return 1\n\
                    class B(A):\n    def f(self): return super().f() + 1\nB().f()";
        assert_eq!(value(&session, code).await, 2);
    });
}

#[test]
fn without_a_guard_the_same_code_runs() {
    block_on(async {
        let session = guarded(Guard::Off).await;
        let code = "import os, subprocess\nos.environ['HOME'] + subprocess.run(['echo', 'x'], \
                    capture_output=True).stdout.decode()";
        assert_eq!(value(&session, code).await, "/workspacex\n");
    });
}

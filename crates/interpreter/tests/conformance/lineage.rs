//! Origins of variables: across cells, scratch cells, failures, kills and resets.

use cellblock_interpreter::cell::Cell;
use cellblock_interpreter::execution::{Outcome, VariablesState};
use cellblock_interpreter::{Execution, Session};

use crate::limited::{rescuing, unrescued};
use crate::support::{block_on, run, session};

const NOTEBOOK: &str = "notebooks/analysis.py";

async fn produce(session: &Session, code: &str) -> Execution {
    session
        .execute(Cell::new(code).produced_by(NOTEBOOK))
        .await
        .unwrap()
}

/// Returns the cell that made a variable, and whether scratch work has touched it since.
async fn made(session: &Session, name: &str) -> Option<(u64, bool)> {
    let origin = session.origin(name).await.unwrap()?;
    assert_eq!(origin.producer, NOTEBOOK);
    Some((origin.cell, origin.rebound_by_scratch))
}

#[test]
fn variables_of_a_producer_have_an_origin_and_scratch_work_has_none() {
    block_on(async {
        let session = session().await;
        assert_eq!(session.origin("df").await.unwrap(), None);
        run(&session, "before = 1").await;
        let first = produce(
            &session,
            "import math\ndf = [1]\ndef f(): return df\nother = before",
        )
        .await;
        assert_eq!(first.origins.keys().collect::<Vec<_>>(), ["df", "other"]);
        assert_eq!(made(&session, "df").await, Some((2, false)));
        assert_eq!(made(&session, "before").await, None);
        let scratch = run(&session, "df.append(2)\nnew = 1").await;
        assert!(scratch.origins.is_empty());
        assert_eq!(made(&session, "df").await, Some((2, true)));
        assert_eq!(made(&session, "new").await, None);
        // Made by a function that reads what scratch work has touched.
        produce(&session, "sum = len(f())").await;
        assert_eq!(made(&session, "sum").await, Some((4, true)));
        produce(&session, "clean = 1").await;
        assert_eq!(made(&session, "clean").await, Some((5, false)));
        run(&session, "del clean").await;
        assert_eq!(made(&session, "clean").await, None);
        session.reset().await.unwrap();
        assert!(session.origins().await.unwrap().is_empty());
        session.close().await.unwrap();
    });
}

#[test]
fn a_cell_that_does_not_complete_stamps_nothing() {
    block_on(async {
        let session = session().await;
        produce(&session, "df = 1").await;
        let raised = produce(&session, "df = 2\nnew = 1\n1 / 0").await;
        assert_eq!(raised.outcome, Outcome::Raised);
        assert!(raised.origins.is_empty());
        assert_eq!(made(&session, "df").await, Some((1, true)));
        assert_eq!(made(&session, "new").await, None);
        session.close().await.unwrap();
    });
}

#[test]
fn origins_are_rescued_with_their_variables_and_lost_with_them() {
    const KILL: &str = "df = 2\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)";
    needs!(Rescue);
    block_on(async {
        let session = rescuing(|_| ()).await;
        produce(&session, "df = 1").await;
        let killed = produce(&session, KILL).await;
        assert_eq!(killed.state, VariablesState::Rescued);
        assert_eq!(made(&session, "df").await, Some((1, false)));
        session.close().await.unwrap();
        let session = unrescued(|_| ()).await;
        produce(&session, "df = 1").await;
        let killed = produce(&session, KILL).await;
        assert_eq!(killed.state, VariablesState::Lost);
        assert_eq!(made(&session, "df").await, None);
        run(&session, "df = 3").await;
        assert_eq!(made(&session, "df").await, None);
        session.close().await.unwrap();
    });
}

//! Times at which sandboxes are made and given back.

use std::time::Duration;

use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::session::SessionOptions;
use cellblock_testkit::wait::until;

use crate::support::{block_on, interpreter, run, session, value};

#[test]
fn a_sandbox_is_created_on_first_use_and_kept() {
    block_on(async {
        let session = session().await;
        let prepared = session.prepare().await.unwrap();
        assert!(prepared.made);
        assert_eq!(value(&session, "kept = 1\nkept").await, 1);
        let again = session.prepare().await.unwrap();
        assert_eq!((again.sandbox, again.made), (prepared.sandbox, false));
    });
}

#[test]
fn an_idle_sandbox_is_given_back_and_the_next_cell_says_so() {
    block_on(async {
        let session = interpreter().await.session(SessionOptions {
            idle: Duration::from_secs(1),
            ..SessionOptions::default()
        });
        let first = session.prepare().await.unwrap().sandbox;
        run(&session, "kept = 1").await;
        let interpreter = interpreter().await;
        until("it is given back", || {
            !interpreter.sandboxes_in_use().contains(&first)
        })
        .await;
        let second = session.prepare().await.unwrap();
        assert!(second.made);
        assert_ne!(second.sandbox, first);
        let ended = run(&session, "'kept' in globals()").await;
        let note = ended.note.unwrap_or_default();
        assert!(
            note.starts_with("the session was idle for 1 s, so its sandbox was ended"),
            "{note}"
        );
    });
}

#[test]
fn a_cell_outlives_its_session_while_somebody_waits_for_it() {
    block_on(async {
        let session = session().await;
        let running = session
            .start_cell("import time; time.sleep(0.3); 'done'")
            .await
            .unwrap();
        drop(session);
        let ended = running.finish().await.unwrap();
        assert_eq!(ended.outcome, Outcome::Completed);
    });
}

#[test]
fn an_abandoned_cell_ends_with_its_session() {
    block_on(async {
        let interpreter = interpreter().await;
        let session = session().await;
        let sandbox = session.prepare().await.unwrap().sandbox;
        assert!(interpreter.sandboxes_in_use().contains(&sandbox));
        let running = session
            .start_cell("import time\nwhile True: time.sleep(1)")
            .await
            .unwrap();
        drop(running);
        drop(session);
        until("the sandbox is ended", || {
            !interpreter.sandboxes_in_use().contains(&sandbox)
        })
        .await;
    });
}

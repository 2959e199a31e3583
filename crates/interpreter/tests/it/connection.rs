//! Sessions whose connection is cut, and what is on either side of it.

use cellblock_image::{DEFAULT_IMAGE, Home};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::error::Blame;
use cellblock_interpreter::execution::{Event, Outcome};
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::session::SessionOptions;
use cellblock_testkit::wait::until;

use crate::remote::{SandboxServer, client, serve};
use crate::support::{block_on, builder, run, store, value};

/// A server of its own, and a client of it without a pool.
async fn pair() -> (SandboxServer, Interpreter) {
    let interpreter = builder()
        .preload(vec!["json".to_owned()])
        .pool(0)
        .build()
        .await
        .unwrap();
    let server = serve(interpreter, Limits::default()).await;
    let client = client(&server, 0.into(), store()).await;
    (server, client)
}

#[test]
fn an_execution_says_that_its_sandbox_is_elsewhere_and_which_image_it_has() {
    block_on(async {
        let (_server, client) = pair().await;
        let session = client.session(SessionOptions::default());
        let execution = run(&session, "1").await;
        let home = Home::at(&cellblock_testkit::home().unwrap()).unwrap();
        let image = cellblock_image::ImageStore::new(home)
            .resolve(DEFAULT_IMAGE)
            .unwrap();
        assert_eq!(execution.sandbox.backend, "remote");
        assert_eq!(execution.sandbox.image, image.id().to_string());
        assert_eq!(execution.sandbox.protections, client.report());
    });
}

#[test]
fn a_cell_whose_connection_is_cut_is_an_error_that_runs_nothing_twice() {
    block_on(async {
        let (server, interpreter) = pair().await;
        let session = interpreter.session(SessionOptions {
            prelude: Vec::new(),
            ..SessionOptions::default()
        });
        run(&session, "x = 1").await;
        let taken = server.interpreter.sandboxes_taken();
        let code =
            "open('/workspace/ran', 'a').write('once')\nprint('on', flush=True)\nimport time\ntime.sleep(60)";
        let mut running = session.start_cell(code).await.unwrap();
        loop {
            match running.events.recv().await {
                Some(Event::Stdout(_)) => break,
                Some(_) => {}
                None => panic!("the cell ended"),
            }
        }
        server.sockets.cut();
        let error = running.finish().await.unwrap_err();
        assert_eq!(error.blame(), Blame::Backend, "{error}");
        assert!(
            error
                .to_string()
                .starts_with("the connection to the other side was lost: "),
            "{error}"
        );
        // Nobody asked for another sandbox, and that one is gone.
        assert_eq!(server.interpreter.sandboxes_taken(), taken);
        until("ended", || server.interpreter.sandboxes_in_use().is_empty()).await;
        let next = run(
            &session,
            "import os\nos.path.exists('/workspace/ran'), 'x' in globals()",
        )
        .await;
        assert_eq!(next.outcome, Outcome::Completed, "{next:#?}");
        assert_eq!(
            next.note.as_deref(),
            Some(
                "the sandbox was lost and replaced; all variables and files are gone. \
                 Run what defines your variables and writes your files again"
            )
        );
        assert_eq!(server.interpreter.sandboxes_taken(), taken + 1);
    });
}

#[test]
fn a_session_that_is_closed_or_dropped_ends_its_sandbox_at_the_server() {
    block_on(async {
        let (server, interpreter) = pair().await;
        let options = || SessionOptions {
            prelude: Vec::new(),
            ..SessionOptions::default()
        };
        let session = interpreter.session(options());
        assert_eq!(value(&session, "6 * 7").await, 42);
        assert_eq!(server.interpreter.sandboxes_in_use().len(), 1);
        session.close().await.unwrap();
        until("ended", || server.interpreter.sandboxes_in_use().is_empty()).await;
        let session = interpreter.session(options());
        assert_eq!(value(&session, "6 * 7").await, 42);
        drop(session);
        until("ended", || server.interpreter.sandboxes_in_use().is_empty()).await;
        let session = interpreter.session(options());
        assert_eq!(value(&session, "6 * 7").await, 42);
        drop(interpreter);
        drop(session);
        until("ended", || {
            server.interpreter.sandboxes_in_use().is_empty() && server.sockets.connections() == 0
        })
        .await;
    });
}

#[test]
fn a_server_that_is_gone_is_an_error_and_not_a_wait() {
    block_on(async {
        let (server, interpreter) = pair().await;
        drop(server);
        let session = interpreter.session(SessionOptions::default());
        let error = session.execute("1").await.unwrap_err();
        assert_eq!(error.blame(), Blame::Backend);
        assert!(
            error
                .to_string()
                .starts_with("connect to the sandboxes at `ws://127.0.0.1:"),
            "{error}"
        );
    });
}

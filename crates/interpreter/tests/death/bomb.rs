//! A fork bomb's last words do not reach the next cell.

use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::session::SessionOptions;
use cellblock_testkit::require;

use crate::world::{World, alone, answer, block_on};

/// Children that outlive the cell and write as soon as somebody reads.
const BOMB: &str = "import os, time\nwhile True:\n    if os.fork() == 0:\n        \
                    while True:\n            os.write(2, b'still here\\n')\n            time.sleep(0.01)";

#[test]
fn processes_of_a_fork_bomb_are_gone_before_the_next_cell() {
    require!(CgroupV1);
    let _alone = alone();
    block_on(async {
        let world = World::new().await;
        let session = world.interpreter.session(SessionOptions {
            prelude: Vec::new(),
            limits: Some(Limits {
                processes: 48,
                ..Limits::default()
            }),
            ..SessionOptions::default()
        });
        session.execute("kept = 42").await.unwrap();
        let ended = session.execute(BOMB).await.unwrap();
        assert!(matches!(ended.outcome, Outcome::LimitExceeded(_)), "{ended:#?}");
        for _ in 0..20 {
            let next = answer(&session).await;
            assert_eq!((next.stderr.text.as_str(), next.note), ("", None));
        }
        // All of them have ended: waiting for them does not wait.
        let started = session
            .execute(
                "import os, subprocess\ntry:\n    while True:\n        os.wait()\n\
                     except ChildProcessError:\n    pass\nsubprocess.run(['echo', 'room'], check=True)\nkept",
            )
            .await
            .unwrap();
        assert_eq!(started.outcome, Outcome::Completed, "{started:#?}");
        session.close().await.unwrap();
    });
}

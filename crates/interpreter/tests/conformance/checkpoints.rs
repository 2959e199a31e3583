//! Checkpoints: a session goes back to its variables and files of an earlier moment.

use std::time::Duration;

use cellblock_interpreter::execution::{Outcome, VariablesState};
use cellblock_interpreter::session::checkpoints::{CheckpointError, MAX_CHECKPOINTS};
use cellblock_interpreter::session::processes::ProcessOrder;
use cellblock_interpreter::{Error, Session};
use cellblock_testkit::wait::until_ok;
use tokio::time::sleep;

use crate::limited::{MIB, limited, rescuing, unrescued};
use crate::support::{block_on, run, session, value};

pub(crate) const DEFINE: &str = "\
import os, random, pathlib
random.seed(7)
def numbers():
    for n in range(1000):
        yield n
numbers = numbers()
next(numbers)
items = [1, 2]
pathlib.Path('/workspace/folder').mkdir()
os.chdir('/workspace/folder')
pathlib.Path('a.txt').write_text('one')
pathlib.Path('gone.txt').write_text('removed later')
os.chmod('gone.txt', 0o640)
os.symlink('a.txt', 'link')
pathlib.Path('/tmp/t').write_text('temporary')
pathlib.Path('lines').write_text('1\\n2\\n3\\n4\\n')
lines = open('lines')
lines.readline()
log = open('/workspace/log', 'a+')
log.write('before\\n')
log.flush()";

pub(crate) const SPOIL: &str = "\
import shutil
items.append(3)
next(numbers)
random.random()
lines.readline()
log.write('after\\n')
log.flush()
os.chdir('/tmp')
shutil.rmtree('/workspace/folder')
os.makedirs('/workspace/folder/a.txt/deep')
os.remove('/workspace/log')
pathlib.Path('/workspace/new').write_text('new')
pathlib.Path('/tmp/t').write_text('changed')
other = 1";

/// Shows the state, and changes it.
pub(crate) const STATE: &str = "\
str((os.getcwd(), items, next(numbers), random.random(), lines.readline(), log.tell(),
     pathlib.Path('a.txt').read_text(), oct(os.stat('gone.txt').st_mode), os.readlink('link'),
     sorted(os.listdir('.')), sorted(os.listdir('/workspace')),
     pathlib.Path('/workspace/log').read_text(), pathlib.Path('/tmp/t').read_text(), 'other' in globals()))";

async fn refused(session: &Session) -> String {
    match session.checkpoint(None).await {
        Err(Error::Checkpoint(CheckpointError::Refused { obstacle, .. })) => obstacle,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) async fn code_of<T: std::fmt::Debug>(
    result: impl Future<Output = cellblock_interpreter::Result<T>>,
) -> &'static str {
    match result.await {
        Err(Error::Checkpoint(error)) => error.code(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_kernel_that_dies_right_after_a_checkpoint_goes_on_from_it() {
    needs!(Checkpoints, Rescue);
    block_on(async {
        let session = session().await;
        run(&session, "x = 1").await;
        let kept = session.checkpoint(None).await.unwrap().checkpoint.id;
        for _ in 0..2 {
            // Sooner than a standby is made.
            let ended = run(
                &session,
                "x = 2\nopen('/workspace/left', 'w').close()\nimport os\nos._exit(1)",
            )
            .await;
            assert_eq!(ended.state, VariablesState::Rescued);
            assert_eq!(value(&session, "x").await, 1);
            // Files are what the code has left.
            session.read_file("/workspace/left").await.unwrap();
            session.roll_back(&kept).await.unwrap();
            assert!(session.read_file("/workspace/left").await.is_err());
            assert_eq!(value(&session, "x").await, 1);
            session.roll_back(&kept).await.unwrap();
        }
    });
}

#[test]
fn a_rollback_brings_back_variables_and_files_as_often_as_wanted() {
    needs!(Checkpoints);
    block_on(async {
        let session = session().await;
        run(&session, DEFINE).await;
        let kept = session
            .checkpoint(Some("before".into()))
            .await
            .unwrap()
            .checkpoint;
        assert_eq!((kept.id.as_str(), kept.cell, kept.parent), ("c1", 1, None));
        let expected = value(&session, STATE).await;
        for wanted in ["before", "c1", "before"] {
            run(&session, SPOIL).await;
            let back = session.roll_back(wanted).await.unwrap();
            assert_eq!(back.checkpoint.id, "c1");
            assert_eq!(value(&session, STATE).await, expected, "{wanted}");
        }
        run(&session, "log.write('more\\n')\nlog.flush()").await;
        assert_eq!(
            value(&session, "pathlib.Path('/workspace/log').read_text()").await,
            "before\nmore\n",
            "an open file is the file of its name"
        );
    });
}

#[test]
fn checkpoints_are_a_tree_and_the_oldest_makes_room() {
    needs!(Checkpoints);
    block_on(async {
        let session = session().await;
        run(&session, "x = 0").await;
        for n in 1..=MAX_CHECKPOINTS {
            run(&session, &format!("x = {n}")).await;
            let kept = session.checkpoint(None).await.unwrap();
            assert!(kept.evicted.is_none());
        }
        session.roll_back("c3").await.unwrap();
        let kept = session.checkpoint(Some("branch".into())).await.unwrap();
        assert_eq!(kept.checkpoint.parent.as_deref(), Some("c3"));
        assert_eq!(kept.evicted.unwrap().id, "c1");
        assert_eq!(code_of(session.roll_back("c1")).await, "checkpoint_not_found");
        for (id, x) in [("c8", 8), ("c2", 2), ("branch", 3)] {
            session.roll_back(id).await.unwrap();
            assert_eq!(value(&session, "x").await, x, "{id}");
        }
        assert_eq!(
            code_of(session.checkpoint(Some("branch".into()))).await,
            "checkpoint_exists"
        );
        session.drop_checkpoint("branch").await.unwrap();
        session.drop_checkpoint("c2").await.unwrap();
        let ids: Vec<_> = session
            .checkpoints()
            .await
            .unwrap()
            .into_iter()
            .map(|kept| kept.id)
            .collect();
        assert_eq!(ids, ["c3", "c4", "c5", "c6", "c7", "c8"]);
        assert_eq!(session.checkpoint(None).await.unwrap().checkpoint.id, "c10");
    });
}

#[test]
fn checkpoints_survive_the_death_of_the_kernel() {
    needs!(Checkpoints, Rescue);
    block_on(async {
        for session in [rescuing(|_| {}).await, unrescued(|_| {}).await] {
            run(&session, "x = 1\nopen('/workspace/f', 'w').write('one')").await;
            session.checkpoint(None).await.unwrap();
            run(&session, "x = 2\nopen('/workspace/f', 'w').write('two')").await;
            let ended = run(&session, "import os\nos._exit(1)").await;
            assert_ne!(ended.state, VariablesState::Kept);
            // With a kernel of its own, which has other pipes.
            run(&session, "x = 3\nprint('new')").await;
            session.checkpoint(None).await.unwrap();
            for (id, x, file) in [("c1", 1, "one"), ("c2", 3, "two"), ("c1", 1, "one")] {
                session.roll_back(id).await.unwrap();
                assert_eq!(value(&session, "x").await, x);
                assert_eq!(value(&session, "open('/workspace/f').read()").await, file);
                assert_eq!(run(&session, "print('said')").await.stdout.text, "said\n");
            }
            run(&session, "import os\nos._exit(1)").await;
            session.roll_back("c2").await.unwrap();
            assert_eq!(value(&session, "x").await, 3);
        }
    });
}

#[test]
fn a_rescue_after_a_rollback_brings_back_the_state_of_the_rollback() {
    needs!(Checkpoints, Rescue);
    block_on(async {
        let session = rescuing(|_| {}).await;
        run(&session, "x = 1").await;
        session.checkpoint(None).await.unwrap();
        run(&session, "x = 2").await;
        session.roll_back("c1").await.unwrap();
        assert_eq!(value(&session, "x").await, 1);
        let ended = run(&session, "x = 3\nimport os\nos._exit(1)").await;
        assert_eq!(ended.state, VariablesState::Rescued);
        assert_eq!(value(&session, "x").await, 1);
    });
}

#[test]
fn what_a_checkpoint_cannot_hold_is_named_and_nothing_is_kept() {
    needs!(Checkpoints);
    block_on(async {
        for (code, obstacle) in [
            (
                "import threading\nstop = threading.Event()\n\
                 threading.Thread(target=stop.wait, daemon=True).start()",
                "threads that Python started",
            ),
            (
                "import subprocess\nchild = subprocess.Popen(['sleep', '60'])",
                "child processes",
            ),
            ("import os\nends = os.pipe()", "an open pipe"),
            ("import socket\npair = socket.socketpair()", "an open socket"),
            (
                "import tempfile\nfile = tempfile.TemporaryFile()",
                "an open file that was removed",
            ),
            (
                "import numpy as np\narray = np.memmap('/workspace/m', dtype='u1', mode='w+', shape=10)",
                "a mapped file",
            ),
            ("import mmap\nmemory = mmap.mmap(-1, 4096)", "shared memory"),
            ("open('/dev/shm/x', 'w').close()", "a file in /dev/shm"),
        ] {
            let session = session().await;
            run(&session, code).await;
            assert_eq!(refused(&session).await, obstacle, "{code}");
            assert_eq!(session.checkpoints().await.unwrap(), []);
            assert_eq!(value(&session, "1 + 1").await, 2);
        }
    });
}

#[test]
fn a_session_that_has_checkpoints_looks_for_obstacles_after_each_cell() {
    needs!(Checkpoints);
    block_on(async {
        let session = session().await;
        // Long enough for a standby, whose mappings are looked at ahead, or too short for it.
        for pause in [Duration::from_millis(300), Duration::ZERO] {
            run(&session, "import mmap\nmemory = None").await;
            sleep(pause).await;
            session.checkpoint(None).await.unwrap();
            sleep(Duration::from_millis(300)).await;
            run(&session, "memory = mmap.mmap(-1, 4096)").await;
            sleep(pause).await;
            assert_eq!(refused(&session).await, "shared memory", "{pause:?}");
            sleep(Duration::from_millis(300)).await;
            run(&session, "memory.close()").await;
            sleep(pause).await;
            session.checkpoint(None).await.unwrap();
        }
    });
}

#[test]
fn a_running_process_forbids_a_checkpoint_and_ends_with_a_rollback() {
    needs!(Checkpoints);
    block_on(async {
        let session = session().await;
        run(&session, "x = 1").await;
        session.checkpoint(None).await.unwrap();
        let order = ProcessOrder {
            command: vec!["sleep".into(), "60".into()],
            ..ProcessOrder::default()
        };
        session.processes().start(order).await.unwrap();
        assert!(refused(&session).await.starts_with("a process beside its cells"));
        session.roll_back("c1").await.unwrap();
        assert_eq!(session.processes().list().len(), 0);
        session.checkpoint(None).await.unwrap();
    });
}

#[test]
fn processes_that_a_rollback_replaces_end() {
    needs!(Checkpoints);
    block_on(async {
        let session = session().await;
        run(&session, "x = 1").await;
        session.checkpoint(None).await.unwrap();
        let start = "import subprocess\nchildren = [subprocess.Popen(['sleep', '1000']) for _ in \
                     range(3)]\nlen(children)";
        assert_eq!(value(&session, start).await, 3);
        session.roll_back("c1").await.unwrap();
        // They are stopped before the session goes on, and killed once it does.
        let sleeping = "import os\nfound = []\nfor name in filter(str.isdigit, os.listdir('/proc')):\n    \
                        try:\n        \
                        found.append(open(f'/proc/{name}/cmdline').read().startswith('sleep'))\n    \
                        except OSError:\n        pass\nsum(found)";
        let gone = async || match value(&session, sleeping).await {
            number if number == 0 => Ok(()),
            number => Err(format!("{number} processes are there")),
        };
        until_ok(gone).await;
        assert_eq!(value(&session, "'children' in globals()").await, false);
    });
}

#[test]
fn files_that_cannot_be_kept_are_named() {
    needs!(Checkpoints);
    block_on(async {
        let session = limited(|limits| limits.memory_bytes = 256 * MIB).await;
        run(
            &session,
            "with open('/workspace/large', 'wb') as file:\n    file.truncate(200 << 20)",
        )
        .await;
        let error = session.checkpoint(None).await.unwrap_err();
        assert!(error.to_string().contains("`/workspace/large`"), "{error}");
        run(
            &session,
            "import os\nos.remove('/workspace/large')\nos.mkfifo('/tmp/fifo')",
        )
        .await;
        let error = session.checkpoint(None).await.unwrap_err();
        assert!(error.to_string().contains("`/tmp/fifo` is a FIFO"), "{error}");
        assert_eq!(session.checkpoints().await.unwrap(), []);
    });
}

#[test]
fn a_copy_that_user_code_has_killed_is_reported_and_the_session_goes_on() {
    needs!(Checkpoints);
    block_on(async {
        let session = session().await;
        run(&session, "x = 1").await;
        session.checkpoint(None).await.unwrap();
        let kill = "import os, signal\nx = 2\nfor name in os.listdir('/proc'):\n    if name.isdigit() and \
                    int(name) not in (1, os.getpid()):\n        try:\n            os.kill(int(name), \
                    signal.SIGKILL)\n        except OSError:\n            pass";
        let ended = run(&session, kill).await;
        assert_eq!(ended.outcome, Outcome::Completed);
        assert_eq!(code_of(session.roll_back("c1")).await, "checkpoint_ended");
        assert_eq!(value(&session, "x").await, 2);
        assert_eq!(session.checkpoints().await.unwrap(), []);
    });
}

#[test]
fn a_rollback_hands_back_no_files_and_the_next_cell_only_its_own() {
    needs!(Checkpoints);
    block_on(async {
        let session = session().await;
        run(&session, "open('/workspace/a', 'w').write('one')").await;
        session.checkpoint(None).await.unwrap();
        run(&session, "open('/workspace/a', 'w').write('two!')").await;
        session.roll_back("c1").await.unwrap();
        let next = run(&session, "open('/workspace/b', 'w').write('new')").await;
        let names: Vec<_> = next.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["b"]);
    });
}

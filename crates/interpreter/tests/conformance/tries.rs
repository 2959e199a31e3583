//! Tries: cells whose effects count only once they are kept.

use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::Error;
use cellblock_interpreter::execution::{Event, Outcome, VariablesState};
use cellblock_interpreter::run_record::{RunRecord, RunSink};
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::session::checkpoints::tries::{ChangeKind, TryChanges};
use cellblock_interpreter::session::processes::ProcessOrder;
use cellblock_interpreter::volume::{SessionVolume, VolumeManifest};
use cellblock_testkit::wait::until_ok;
use parking_lot::Mutex;

use crate::checkpoints::{DEFINE, SPOIL, STATE, code_of};
use crate::isolation::COMMANDS;
use crate::limited::rescuing;
use crate::support::{block_on, interpreter, run, session, value};
use crate::volumes::Revisions;

fn named(changes: &TryChanges) -> Vec<String> {
    let variables = changes.variables.iter().map(|it| (it.change, &it.name));
    let files = changes.files.iter().map(|it| (it.change, &it.path));
    let mut named: Vec<_> = variables
        .chain(files)
        .map(|(change, name)| {
            let change = match change {
                ChangeKind::Created => '+',
                ChangeKind::Changed => '~',
                ChangeKind::Removed => '-',
            };
            format!("{change}{name}")
        })
        .collect();
    named.sort();
    named
}

#[test]
fn an_interrupt_stops_the_cell_after_a_try_whose_caller_has_gone() {
    needs!(Checkpoints);
    block_on(async {
        let session = session().await;
        run(&session, "kept = 1").await;
        // It goes on without its caller, and is taken back at its end.
        let tried = session.try_run("import time\ntime.sleep(3)");
        let gone = tokio::time::timeout(Duration::from_secs(1), tried).await;
        gone.unwrap_err();
        let mut running = session
            .start_cell("print('ready', flush=True)\nwhile True: pass")
            .await
            .unwrap();
        assert!(matches!(running.events.recv().await, Some(Event::Stdout(bytes)) if bytes == b"ready\n"));
        session.interrupt();
        let ended = running.finish().await.unwrap();
        assert_eq!(
            ended.note.as_deref(),
            Some("the cell was interrupted; variables are kept")
        );
    });
}

#[test]
fn a_discarded_try_leaves_nothing_and_a_kept_one_everything() {
    needs!(Checkpoints);
    block_on(async {
        let session = session().await;
        run(&session, DEFINE).await;
        let before = session.checkpoint(None).await.unwrap().checkpoint;
        let expected = value(&session, STATE).await;
        session.roll_back("c1").await.unwrap();

        let tried = session.try_run(SPOIL).await.unwrap();
        assert_eq!(tried.execution.outcome, Outcome::Completed, "{tried:#?}");
        assert!(tried.undecided);
        let named = named(&tried.changes);
        for change in [
            "+other",
            "~items",
            "+/workspace/new",
            "~/tmp/t",
            "-/workspace/log",
            "~/workspace/folder/a.txt/",
            "-/workspace/folder/gone.txt",
        ] {
            assert!(named.iter().any(|it| it == change), "{change} in {named:?}");
        }
        assert_eq!(
            session.checkpoints().await.unwrap(),
            [before],
            "it is not a checkpoint"
        );
        let decided = session.discard_try().await.unwrap();
        assert_eq!((decided.cell, decided.kept), (tried.execution.cell, false));
        assert_eq!(value(&session, STATE).await, expected);
        assert_eq!(code_of(session.discard_try()).await, "try_not_found");

        session.roll_back("c1").await.unwrap();
        let tried = session.try_run("kept = 'yes'\nitems.append(9)").await.unwrap();
        assert_eq!(tried.execution.cell, 5, "numbers of cells are not used again");
        assert!(session.keep_try().await.unwrap().kept);
        assert_eq!(value(&session, "f'{kept} {items}'").await, "yes [1, 2, 9]");
        assert_eq!(code_of(session.keep_try()).await, "try_not_found");
        let kept = session.checkpoint(None).await.unwrap().checkpoint;
        assert_eq!(
            kept.parent.as_deref(),
            Some("c1"),
            "a try is no branch of its own"
        );
        assert_eq!(kept.id, "c2");
    });
}

#[test]
fn other_requests_are_refused_until_a_try_is_decided() {
    needs!(Checkpoints);
    block_on(async {
        let session = session().await;
        run(&session, "x = 1").await;
        session.checkpoint(None).await.unwrap();
        session
            .try_run("x = 2\nopen('/workspace/f', 'w').write('two')")
            .await
            .unwrap();
        let order = ProcessOrder {
            command: vec!["true".into()],
            ..ProcessOrder::default()
        };
        let codes = [
            code_of(session.execute("x")).await,
            code_of(session.try_run("x")).await,
            code_of(session.checkpoint(None)).await,
            code_of(session.roll_back("c1")).await,
            code_of(session.drop_checkpoint("c1")).await,
            code_of(session.variables()).await,
            code_of(session.get("x")).await,
            code_of(session.reset()).await,
            code_of(session.read_file("/workspace/f")).await,
            code_of(session.write_file("/workspace/f", "three")).await,
            code_of(session.list_files("/workspace", 10)).await,
            code_of(session.processes().start(order)).await,
            code_of(session.ports().list()).await,
        ];
        assert_eq!(codes, ["try_undecided"; 13]);
        let error = session.execute("x").await.unwrap_err().to_string();
        assert!(error.contains("undecided try (cell 2)"), "{error}");
        session.discard_try().await.unwrap();
        assert_eq!(value(&session, "x").await, 1);
        let files = session.list_files("/workspace", 10).await.unwrap();
        assert_eq!(files.files.len(), 0);
    });
}

#[test]
fn what_cannot_be_undone_is_refused_before_the_code_runs() {
    needs!(Checkpoints);
    block_on(async {
        let session = session().await;
        run(
            &session,
            "import threading\nstop = threading.Event()\n\
             thread = threading.Thread(target=stop.wait, daemon=True)\nthread.start()",
        )
        .await;
        let error = session.try_run("ran = True").await.unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("try a cell: the session has threads"),
            "{error}"
        );
        assert_eq!(value(&session, "'ran' in globals()").await, false);
        run(&session, "stop.set(); thread.join()").await;
        let order = ProcessOrder {
            command: vec!["sleep".into(), "60".into()],
            ..ProcessOrder::default()
        };
        session.processes().start(order).await.unwrap();
        let error = session.try_run("ran = True").await.unwrap_err();
        assert!(
            error.to_string().contains("a process beside its cells (`p1`)"),
            "{error}"
        );
        session.reset().await.unwrap();
        // What the code of the try starts ends with it.
        let tried = session
            .try_run("import subprocess\nchild = subprocess.Popen(['sleep', '60'])")
            .await
            .unwrap();
        assert_eq!(tried.execution.outcome, Outcome::Completed);
        session.discard_try().await.unwrap();
        // Nobody waits until the last of its memory is freed.
        let left = format!("{COMMANDS}commands().count('sleep')");
        let ended = async || match value(&session, &left).await {
            left if left == 0 => Ok(()),
            left => Err(format!("{left} of its processes are left")),
        };
        until_ok(ended).await;
    });
}

#[test]
fn a_try_that_fails_or_kills_its_kernel_is_discarded_like_any_other() {
    needs!(Checkpoints, Rescue);
    block_on(async {
        for code in [
            "x = 2\nopen('/workspace/f', 'w').write('two')\n1 / 0",
            "x = 2\nopen('/workspace/f', 'w').write('two')\nimport os\nos._exit(1)",
        ] {
            let session = rescuing(|_| {}).await;
            run(&session, "x = 1").await;
            let tried = session.try_run(code).await.unwrap();
            assert_ne!(tried.execution.outcome, Outcome::Completed);
            assert!(tried.undecided);
            session.discard_try().await.unwrap();
            assert_eq!(value(&session, "x").await, 1);
            assert!(session.read_file("/workspace/f").await.is_err());
            let ended = run(&session, "x = 3\nimport os\nos._exit(1)").await;
            assert_eq!(ended.state, VariablesState::Rescued);
            assert_eq!(value(&session, "x").await, 1);
        }
    });
}

#[test]
fn a_try_whose_code_ends_the_kept_state_can_still_be_kept() {
    needs!(Checkpoints);
    block_on(async {
        let session = session().await;
        run(&session, "x = 1").await;
        let kill = "import os, signal\nx = 2\nfor name in os.listdir('/proc'):\n    if name.isdigit() and \
                    int(name) not in (1, os.getpid()):\n        try:\n            os.kill(int(name), \
                    signal.SIGKILL)\n        except OSError:\n            pass";
        session.try_run(kill).await.unwrap();
        assert_eq!(code_of(session.discard_try()).await, "try_ended");
        assert_eq!(code_of(session.execute("x")).await, "try_undecided");
        session.keep_try().await.unwrap();
        assert_eq!(value(&session, "x").await, 2);
    });
}

#[test]
fn a_volume_has_the_changes_of_a_try_only_once_it_is_kept() {
    needs!(Checkpoints);
    block_on(async {
        let keeper = Arc::new(Revisions::default());
        let session = interpreter().await.session(SessionOptions {
            volume: Some(SessionVolume {
                name: "data".to_owned(),
                revision: 0,
                manifest: VolumeManifest::default(),
                keeper: Some(Arc::<Revisions>::clone(&keeper)),
                max_bytes: 1 << 20,
                max_files: 10,
                notice: None,
            }),
            ..SessionOptions::default()
        });
        let saved = || keeper.saved.lock().len();
        run(&session, "open('/workspace/volume/a', 'w').write('one')").await;
        assert_eq!(saved(), 1);
        let write = "open('/workspace/volume/a', 'w').write('two!')";
        session.try_run(write).await.unwrap();
        assert_eq!(saved(), 1);
        session.discard_try().await.unwrap();
        session.try_run(write).await.unwrap();
        session.keep_try().await.unwrap();
        let kept = saved();
        assert!(kept > 1);
        session
            .try_run("open('/workspace/volume/b', 'w').write('x')")
            .await
            .unwrap();
        session.close().await.unwrap();
        assert_eq!(saved(), kept, "an undecided try ends with its session");
        assert!(matches!(session.keep_try().await, Err(Error::Closed)));
    });
}

#[derive(Debug, Default)]
struct Runs(Mutex<Vec<RunRecord>>);

impl RunSink for Runs {
    fn record(&self, record: RunRecord) {
        self.0.lock().push(record);
    }
}

#[test]
fn records_are_in_order_and_a_discarded_try_is_nobodys_parent() {
    needs!(Checkpoints);
    block_on(async {
        let runs = Arc::new(Runs::default());
        let session = interpreter().await.session(SessionOptions {
            runs: Some(Arc::<Runs>::clone(&runs)),
            ..SessionOptions::default()
        });
        run(&session, "x = 1").await;
        session.try_run("x = 2").await.unwrap();
        session.discard_try().await.unwrap();
        session.try_run("x = 3").await.unwrap();
        session.keep_try().await.unwrap();
        run(&session, "x").await;
        session.close().await.unwrap();
        let runs = runs.0.lock();
        let parents = runs.iter().map(|run| {
            let parent = runs.iter().position(|it| Some(&it.id) == run.parent.as_ref());
            (run.cell, run.tried, parent)
        });
        let expected = [
            (1, false, None),
            (2, true, Some(0)),
            (3, true, Some(0)),
            (4, false, Some(2)),
        ];
        assert_eq!(parents.collect::<Vec<_>>(), expected);
        assert_ne!(runs[3].outputs[0].sha256, "");
    });
}

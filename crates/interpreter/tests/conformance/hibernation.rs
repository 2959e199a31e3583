//! Hibernation: a session gives back its processes, and keeps its files and, where the backend can,
//! everything else.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::session::hibernate::{HibernationSummary, OnIdle};
use cellblock_interpreter::session::processes::ProcessOrder;
use cellblock_interpreter::session::timeline::TimelineEvent;
use cellblock_testkit::wait::until;

use crate::support::{block_on, interpreter, run, session, value};

const LOST: &str = "the session was hibernated; all variables are gone";

/// Whether a hibernated session keeps its variables.
async fn suspends() -> bool {
    interpreter().await.backend().suspends()
}

/// Definitions of what a process and its interpreter have in addition to variables.
const DEFINE: &str = "\
import os, random, socket, subprocess, threading, time, numpy
random.seed(7); numpy.random.seed(7)
expected = (random.getstate(), numpy.random.random_sample)
x = bytearray(50 << 20)
os.makedirs('/workspace/folder'); os.chdir('/workspace/folder')
lines = open('lines', 'w+'); _ = lines.write('1\\n2\\n'); _ = lines.seek(2)
pair = socket.socketpair()
_ = pair[0].send(b'on its way')
child = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
met = threading.Event(); beats = []
def beat():
    while not met.wait(0.01): beats.append(1)
threading.Thread(target=beat, daemon=True).start()
before = (os.getpid(), socket.gethostname(), time.monotonic())";

const STATE: &str = "\
import math
here = (os.getpid(), socket.gethostname(), time.monotonic())
seen = len(beats); time.sleep(0.1)
str((len(x), os.getcwd(), lines.read(), pair[1].recv(99), child.communicate(b'echo')[0],
     here[:2] == before[:2], here[2] >= before[2], len(beats) > seen, random.getstate() == expected[0]))";

#[test]
fn a_hibernated_session_keeps_its_files_and_what_else_the_backend_can_keep() {
    block_on(async {
        let session = session().await;
        assert_eq!(session.hibernate().await.unwrap(), HibernationSummary::default());
        assert!(!session.is_hibernated());
        run(&session, DEFINE).await;
        run(&session, "_ = open('/workspace/a', 'w').write('kept')").await;
        let kept = suspends().await;
        let lost = session.hibernate().await.unwrap();
        assert_eq!((lost.lost_variables, lost.kept_bytes.is_some()), (!kept, kept));
        assert!(session.is_hibernated());
        // Again, which loses nothing more.
        let again = session.hibernate().await.unwrap();
        assert_eq!((again.lost_variables, again.kept_bytes), (false, lost.kept_bytes));
        assert!(session.is_hibernated());
        assert_eq!(session.usage().await.unwrap().is_none(), kept);
        assert_eq!(session.read_file("/workspace/a").await.unwrap(), b"kept");
        assert!(!session.is_hibernated());
        let next = format!("{:?}", run(&session, "'x' in globals()").await);
        assert_eq!(next.contains(LOST), !kept, "{next}");
        assert_eq!(value(&session, "'x' in globals()").await, kept);
        assert_eq!(value(&session, "open('/workspace/a').read()").await, "kept");
        let again = format!("{:?}", run(&session, "1").await);
        assert!(!again.contains("hibernated"), "{again}");
        if kept {
            assert_eq!(
                value(&session, STATE).await,
                "(52428800, '/workspace/folder', '2\\n', b'on its way', b'echo', True, True, True, True)"
            );
            let skew = "import time\ntime.time()";
            let there = value(&session, skew).await.as_f64().unwrap();
            let here = cellblock_settings::clock::now().as_secs_f64();
            assert!((there - here).abs() < 10.0, "{there} {here}");
            // A second time, from what the first one left.
            session.hibernate().await.unwrap();
            assert_eq!(value(&session, "len(x)").await, 52_428_800);
        }
        let mut turns: Vec<_> = session.events().into_iter().map(|event| event.what).collect();
        turns.dedup();
        let turn = || [TimelineEvent::Hibernated, TimelineEvent::Resumed];
        let expected: Vec<_> = (0..=i32::from(kept)).flat_map(|_| turn()).collect();
        assert_eq!(turns, expected);
    });
}

#[test]
fn a_session_that_keeps_its_files_alone_has_no_variables_on_any_backend() {
    block_on(async {
        let session = session().await;
        run(&session, "x = 1\n_ = open('/workspace/a', 'w').write('kept')").await;
        let order = ProcessOrder {
            command: vec!["sleep".into(), "600".into()],
            ..ProcessOrder::default()
        };
        session.processes().start(order).await.unwrap();
        let lost = session.hibernate_files().await.unwrap();
        assert_eq!((lost.lost_variables, lost.kept_bytes), (true, None));
        assert!(session.is_hibernated());
        assert!(session.processes().list().is_empty());
        let next = format!("{:?}", run(&session, "'x' in globals()").await);
        assert!(!next.contains("hibernated"), "{next}");
        assert_eq!(value(&session, "'x' in globals()").await, false);
        assert_eq!(value(&session, "open('/workspace/a').read()").await, "kept");
        // Also if the variables are on disk already.
        run(&session, "x = 2").await;
        session.hibernate().await.unwrap();
        session.hibernate_files().await.unwrap();
        assert_eq!(value(&session, "'x' in globals()").await, false);
        assert_eq!(value(&session, "open('/workspace/a').read()").await, "kept");
    });
}

#[test]
fn hibernation_ends_checkpoints_and_their_memory() {
    needs!(Checkpoints);
    block_on(async {
        let session = session().await;
        let processes = "len([p for p in __import__('os').listdir('/proc') if p.isdigit()])";
        let alone = value(&session, processes).await;
        run(&session, "x = 1").await;
        session.checkpoint(None).await.unwrap();
        let lost = session.hibernate().await.unwrap();
        assert_eq!((lost.lost_variables, lost.lost_checkpoints), (true, 1));
        assert!(session.checkpoints().await.unwrap().is_empty());
        assert_eq!(value(&session, processes).await, alone);
        assert_eq!(session.checkpoint(None).await.unwrap().checkpoint.id, "c2");
    });
}

#[test]
fn an_idle_session_is_hibernated_if_it_asked_for_that_and_ends_later() {
    block_on(async {
        let session = interpreter().await.session(SessionOptions {
            idle: Duration::from_millis(300),
            on_idle: OnIdle::Hibernate,
            hibernation: Duration::from_secs(3),
            ..SessionOptions::default()
        });
        run(&session, "x = 1\n_ = open('/workspace/a', 'w').write('kept')").await;
        until("it is hibernated", || session.is_hibernated()).await;
        assert_eq!(session.read_file("/workspace/a").await.unwrap(), b"kept");
        assert_eq!(value(&session, "'x' in globals()").await, suspends().await);
        until("it is hibernated again", || session.is_hibernated()).await;
        until("it is ended", || !session.is_hibernated()).await;
        let next = format!(
            "{:?}",
            run(&session, "__import__('os').listdir('/workspace')").await
        );
        let told = "the session was hibernated for 3 s, so it was ended; all variables and files are gone";
        assert!(next.contains(told), "{next}");
    });
}

/// Text in the session on disk that the test looks for.
const MARK: &str = "the mark of the session that is damaged";

/// The files of this process with the state of a session that contains the mark. Other tests write
/// states, too.
fn marked() -> Vec<PathBuf> {
    let own = format!("cellblock-{}-", std::process::id());
    let root = crate::backend::home().join(crate::backend::backend());
    let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    let named = |entry: &fs::DirEntry, start: &str| entry.file_name().to_string_lossy().starts_with(start);
    let places = entries(root).filter(|entry| named(entry, &own));
    let saved = places
        .flat_map(|place| entries(place.path()))
        .filter(|entry| named(entry, "s"));
    let files = saved.flat_map(|state| entries(state.path()));
    let found = files.map(|entry| entry.path()).filter(|path| {
        let mut grep = Command::new("grep");
        grep.args(["-qsF", MARK]).arg(path);
        grep.status().unwrap().success()
    });
    found.collect()
}

#[test]
fn a_hibernated_session_whose_state_is_damaged_says_what_is_lost() {
    block_on(async {
        let session = session().await;
        let code = format!("x = 1\n_ = open('/workspace/precious.csv', 'w').write('{MARK}')");
        run(&session, &code).await;
        session.hibernate().await.unwrap();
        let saved = marked();
        if !suspends().await {
            assert!(saved.is_empty(), "{saved:?}");
            return;
        }
        let [state] = &saved[..] else {
            panic!("not one file: {saved:?}");
        };
        let mut damaged = fs::OpenOptions::new().append(true).open(state).unwrap();
        std::io::Write::write_all(&mut damaged, b"x").unwrap();
        let next = run(&session, "'x' in globals()").await;
        let notes = format!("{next:?}");
        let told = "its state on disk cannot be restored; all variables are gone, and all files are gone, \
                    which are `/workspace/precious.csv`";
        assert!(notes.contains(told), "{notes}");
        assert_eq!(value(&session, "'x' in globals()").await, false);
        assert!(!state.parent().unwrap().exists());
        // And one that is closed leaves nothing.
        run(&session, &code).await;
        session.hibernate().await.unwrap();
        assert_eq!(marked().len(), 1);
        session.close().await.unwrap();
        assert!(marked().is_empty());
    });
}

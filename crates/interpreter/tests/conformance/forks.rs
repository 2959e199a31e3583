//! Forks: independent sessions that begin with the variables and files of another one.

use cellblock_interpreter::session::SetupSnippet;
use cellblock_interpreter::session::fork::{ForkError, ForkOptions, MAX_FORKS};
use cellblock_interpreter::session::processes::ProcessOrder;
use cellblock_interpreter::session::timeline::TimelineEvent;
use cellblock_interpreter::{Error, Session};
use cellblock_testkit::require;

use crate::backend::{backend, is_machine};
use crate::limited::{MIB, limited};
use crate::support::{block_on, interpreter, run, session, value};

const DEFINE: &str = "\
import os, random, pathlib, signal, subprocess, asyncio
import numpy, pandas
random.seed(7); numpy.random.seed(7)
def numbers():
    for n in range(1000):
        yield n
numbers = numbers()
next(numbers)
class Point:
    def __init__(self, x): self.x = x
point = Point([1, 2])
same = point.x
double = lambda x: 2 * x
array = numpy.arange(3_000_000)
frame = pandas.DataFrame({'a': range(1000), 'b': [str(n) for n in range(1000)]})
objects = [{'n': n, 's': 'x' * (n % 50)} for n in range(20_000)]
pathlib.Path('/workspace/folder').mkdir()
os.chdir('/workspace/folder')
pathlib.Path('a.txt').write_text('one')
os.chmod('a.txt', 0o640)
os.link('a.txt', 'hard')
os.symlink('a.txt', 'link')
pathlib.Path('/workspace/large').write_bytes(os.urandom(5_000_000))
large = pathlib.Path('/workspace/large').read_bytes()
pathlib.Path('/tmp/t').write_text('temporary')
pathlib.Path('lines').write_text('1\\n2\\n3\\n4\\n')
lines = open('lines')
lines.readline()
log = open('/workspace/log', 'a+')
log.write('before\\n')
log.flush()
os.umask(0o077)
heard = []
signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
await asyncio.sleep(0)";

/// Shows the state, and changes it.
const STATE: &str = "\
os.kill(os.getpid(), signal.SIGUSR1)
await asyncio.sleep(0)
point.x.append(3)
str((os.getcwd(), next(numbers), same, point.x is same, double(4), int(array.sum()),
     frame.describe().to_string(), len(objects), sum(len(o['s']) for o in objects),
     lines.readline(), log.tell(), pathlib.Path('a.txt').read_text(), oct(os.stat('a.txt').st_mode),
     os.stat('a.txt').st_nlink, os.readlink('link'), sorted(os.listdir('.')),
     sorted(os.listdir('/workspace')), pathlib.Path('/workspace/log').read_text(),
     pathlib.Path('/workspace/large').read_bytes() == large, pathlib.Path('/tmp/t').read_text(),
     heard, oct(os.umask(0o077)), (array @ array).item(),
     subprocess.check_output(['echo', '42']).decode(), _ if '_' in globals() else None))";

async fn forked(session: &Session, count: usize) -> Vec<Session> {
    let forks = session.fork(ForkOptions::new(count)).await.unwrap();
    let last = session.events().pop().unwrap();
    assert!(
        matches!(&last.what, TimelineEvent::Forked { sessions } if sessions.len() == count),
        "{last:?}"
    );
    for fork in &forks {
        let first = &fork.events()[0];
        assert!(
            matches!(first.what, TimelineEvent::ForkedFrom { .. }),
            "{first:?}"
        );
    }
    forks
}

async fn refused(session: &Session) -> String {
    match session.fork(ForkOptions::new(1)).await {
        Err(Error::Fork(ForkError::Refused { obstacle, .. })) => obstacle,
        Err(other) => panic!("not refused: {other:?}"),
        Ok(_) => "nothing".to_owned(),
    }
}

#[test]
fn forks_begin_with_variables_open_files_and_the_rest_of_the_state() {
    needs!(Forks);
    block_on(async {
        let session = session().await;
        run(&session, DEFINE).await;
        let forks = forked(&session, 2).await;
        let expected = value(&session, STATE).await;
        for fork in &forks {
            assert_eq!(value(fork, STATE).await, expected);
        }
        // And a fork of a fork, which has run cells of its own.
        let grandchild = forked(&forks[0], 1).await.remove(0);
        assert_eq!(value(&grandchild, STATE).await, value(&forks[0], STATE).await);
    });
}

#[test]
fn sessions_that_were_forked_do_not_see_each_other() {
    needs!(Forks);
    block_on(async {
        let session = session().await;
        run(
            &session,
            "import os, subprocess\nitems = [1]\nlog = open('/workspace/log', 'w+')\n\
             _ = log.write('one')\nlog.flush()",
        )
        .await;
        let forks = forked(&session, 2).await;
        for (number, each) in [&session, &forks[0], &forks[1]].into_iter().enumerate() {
            let change = format!(
                "items.append({number})\nprior = log.tell()\n_ = log.write('{number}')\nlog.flush()\n\
                 open('/workspace/own-{number}', 'w').close()\nopen('/tmp/own', 'w').close()"
            );
            run(each, &change).await;
        }
        for (number, each) in [&session, &forks[0], &forks[1]].into_iter().enumerate() {
            let state = "str((items, prior, open('/workspace/log').read(), \
                         sorted(os.listdir('/workspace')), os.getpid() in map(int, filter(str.isdigit, \
                         os.listdir('/proc'))), len([p for p in os.listdir('/proc') if p.isdigit()]) < 8))";
            assert_eq!(
                value(each, state).await,
                format!("([1, {number}], 3, 'one{number}', ['log', 'own-{number}'], True, True)")
            );
        }
        // A kernel that dies takes no other with it.
        run(&forks[0], "os._exit(1)").await;
        session.close().await.unwrap();
        assert_eq!(value(&forks[1], "str(items)").await, "[1, 2]");
        assert_eq!(
            value(&forks[1], "subprocess.check_output(['echo', 'x']).decode()").await,
            "x\n"
        );
    });
}

#[test]
fn random_generators_are_seeded_anew_unless_they_are_to_go_on() {
    needs!(Forks);
    block_on(async {
        let session = session().await;
        run(
            &session,
            "import random, numpy, uuid, secrets, tempfile\nrandom.seed(1); numpy.random.seed(1)",
        )
        .await;
        let next = "str((random.random(), numpy.random.random()))";
        let names = "str((tempfile.mktemp(), secrets.token_hex(), uuid.uuid4().hex))";
        let mut options = ForkOptions::new(2);
        let fresh = session.fork(options.clone()).await.unwrap();
        options.reseed = false;
        let same = session.fork(options).await.unwrap();
        let own = value(&session, next).await;
        assert_eq!(
            (value(&same[0], next).await, value(&same[1], next).await),
            (own.clone(), own.clone())
        );
        let mut seen = vec![own];
        for each in &fresh {
            let drawn = value(each, next).await;
            assert!(!seen.contains(&drawn), "{drawn}");
            seen.push(drawn);
        }
        assert_ne!(value(&same[0], names).await, value(&same[1], names).await);
    });
}

/// Makes generators in all kinds of places.
const GENERATORS: &str = "\
import random, numpy
held = {'a': [random.Random(1)]}
class Model:
    def __init__(self): self.rng = numpy.random.default_rng(42)
model = Model()
old = numpy.random.RandomState(3)
old.standard_normal()
def draw(generator=numpy.random.Generator(numpy.random.Philox(5))):
    return generator.random()";

/// Draws of each of them.
const DRAWS: [&str; 5] = [
    "held['a'][0].random()",
    "model.rng.random()",
    "old.standard_normal()",
    "draw()",
    "model.rng.spawn(1)[0].random()",
];

#[test]
fn generators_that_code_has_made_are_seeded_anew_unless_they_are_to_go_on() {
    needs!(Forks);
    block_on(async {
        let session = session().await;
        run(&session, GENERATORS).await;
        let fresh = forked(&session, 2).await;
        let same = ForkOptions {
            reseed: false,
            ..ForkOptions::new(1)
        };
        let same = session.fork(same).await.unwrap().remove(0);
        for draw in DRAWS {
            let own = value(&session, draw).await;
            assert_eq!(value(&same, draw).await, own, "{draw}");
            let (one, two) = (value(&fresh[0], draw).await, value(&fresh[1], draw).await);
            assert!(
                one != own && two != own && one != two,
                "{draw}: {own} {one} {two}"
            );
        }
    });
}

#[test]
fn a_fork_prepares_later_kernels_with_the_code_that_it_was_given() {
    needs!(Forks);
    block_on(async {
        let session = session().await;
        run(&session, "x = 1").await;
        let setup = SetupSnippet {
            name: "<setup>".to_owned(),
            code: "prepared = 2".to_owned(),
            guarded: false,
        };
        let options = ForkOptions {
            setup: Some(vec![setup]),
            ..ForkOptions::new(1)
        };
        let fork = session.fork(options).await.unwrap().remove(0);
        assert_eq!(value(&fork, "'prepared' in globals()").await, false);
        for each in [&session, &fork] {
            each.hibernate_files().await.unwrap();
        }
        assert_eq!(value(&fork, "prepared").await, 2);
        assert_eq!(value(&session, "'prepared' in globals()").await, false);
    });
}

#[test]
fn what_cannot_be_moved_is_refused_by_its_name_and_changes_nothing() {
    needs!(Forks);
    block_on(async {
        // Where the whole machine is copied, all of this can be moved, at once.
        let suspends = interpreter().await.backend().suspends();
        let all = session().await;
        for (code, obstacle) in [
            (
                "import threading, time\nheld = threading.Thread(target=time.sleep, args=(600,), \
                 daemon=True)\nheld.start()",
                "threads that Python started",
            ),
            (
                "import subprocess\nheld = subprocess.Popen(['sleep', '600'])",
                "child processes",
            ),
            ("import socket\nheld = socket.socketpair()", "an open socket"),
            ("import os\nheld = os.pipe()", "an open pipe"),
            ("import mmap\nheld = mmap.mmap(-1, 4096)", "shared memory"),
            (
                "import mmap, pathlib\n_ = pathlib.Path('/workspace/m').write_bytes(bytes(4096))\n\
                 file = open('/workspace/m')\nheld = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)",
                "a mapped file",
            ),
            (
                "import fcntl\nheld = open('/workspace/l', 'w')\nfcntl.flock(held, fcntl.LOCK_EX)",
                "a locked file",
            ),
            (
                "import signal\nheld = signal.setitimer(signal.ITIMER_REAL, 600)",
                "a timer",
            ),
            (
                "import ctypes\nheld = ctypes.c_void_p()\n\
                 assert ctypes.CDLL(None).timer_create(1, None, ctypes.byref(held)) == 0",
                "a timer",
            ),
        ] {
            if suspends {
                run(
                    &all,
                    &format!("{code}\nkept = [*globals().get('kept', ()), held]"),
                )
                .await;
                continue;
            }
            let session = session().await;
            run(&session, code).await;
            assert_eq!(refused(&session).await, obstacle);
            assert_eq!(value(&session, "'held' in globals()").await, true, "{obstacle}");
        }
        if suspends {
            let fork = forked(&all, 1).await.remove(0);
            let moved = "str((len(kept), kept[0].is_alive(), kept[1].poll(), len(kept[2]), kept[4][:2]))";
            assert_eq!(value(&fork, moved).await, "(9, True, None, 2, b'\\x00\\x00')");
        }
        let session = session().await;
        let order = ProcessOrder {
            command: vec!["sleep".into(), "600".into()],
            ..ProcessOrder::default()
        };
        session.processes().start(order).await.unwrap();
        assert!(refused(&session).await.starts_with("a process beside its cells"));
    });
}

/// Rules of Landlock that keep the kernel from making directories, on top of the sandbox's own.
const RULES: &str = "\
import ctypes, os
libc = ctypes.CDLL(None)
handled = ctypes.c_uint64(1 << 7)
rules = libc.syscall(444, ctypes.byref(handled), 8, 0)
assert rules >= 0 and libc.syscall(446, rules, 0) == 0
os.close(rules)
held = True";

#[test]
fn rules_that_code_has_put_on_its_kernel_are_not_lost_in_a_fork() {
    needs!(Forks);
    if is_machine() {
        // Its own kernel has no Landlock.
        cellblock_testkit::lacking(&backend(), "landlock", module_path!());
        return;
    }
    require!(Landlock);
    block_on(async {
        let session = session().await;
        run(&session, RULES).await;
        let made = "try:\n    os.mkdir('/workspace/d')\nexcept PermissionError:\n    held = 'kept'\nheld";
        for _ in 0..2 {
            assert_eq!(refused(&session).await, "Landlock rules of its own");
        }
        assert_eq!(value(&session, made).await, "kept");
    });
}

#[test]
fn pages_that_the_template_rewrote_between_two_forks_are_complete() {
    needs!(Forks);
    block_on(async {
        let session = session().await;
        run(
            &session,
            "import gc, sys, pandas\nitems = [str(n) for n in range(50_000)]",
        )
        .await;
        // Each of these kernels makes the template write to its memory, after this session's kernel
        // was forked from it.
        for _ in 0..3 {
            let other = crate::support::session().await;
            run(&other, "1").await;
            other.close().await.unwrap();
        }
        // And so does the collector, which writes to every object, also to those of the template.
        run(
            &session,
            "del items[::2]\ngc.unfreeze()\n_ = gc.collect()\ngc.freeze()",
        )
        .await;
        // Builds with debug assertions compare all memory after each move.
        let digest = "repr((hash(tuple(items)), pandas.DataFrame({'x': [1]}).describe().to_string()))";
        let fork = forked(&session, 1).await.remove(0);
        assert_eq!(value(&fork, digest).await, value(&session, digest).await);
        // A fork of the fork, whose kernel is of the same template but was forked later.
        let grandchild = forked(&fork, 1).await.remove(0);
        assert_eq!(value(&grandchild, digest).await, value(&session, digest).await);
    });
}

#[test]
fn a_fork_makes_all_sessions_or_none() {
    needs!(Forks);
    block_on(async {
        let session = session().await;
        run(&session, "x = 1").await;
        for count in [0, MAX_FORKS + 1] {
            let error = session.fork(ForkOptions::new(count)).await.unwrap_err();
            assert!(matches!(error, Error::Fork(ForkError::Count { .. })), "{error}");
        }
        assert_eq!(value(&session, "x").await, 1);
    });
}

#[test]
fn a_fork_has_limits_of_its_own() {
    needs!(Forks);
    block_on(async {
        let session = limited(|limits| limits.memory_bytes = 512 * MIB).await;
        run(&session, "block = bytearray(200 << 20)").await;
        let forks = forked(&session, 2).await;
        for each in &forks {
            assert_eq!(value(each, "len(block) >> 20").await, 200);
        }
        let ended = run(&forks[0], "more = bytearray(1 << 30)").await;
        assert_ne!(
            ended.outcome,
            cellblock_interpreter::execution::Outcome::Completed
        );
        for each in [&session, &forks[1]] {
            assert_eq!(value(each, "len(bytearray(100 << 20)) >> 20").await, 100);
        }
    });
}

#[test]
fn a_session_with_checkpoints_is_forked_as_it_is_now() {
    needs!(Forks, Checkpoints);
    block_on(async {
        let session = session().await;
        run(&session, "items = list(range(100_000))").await;
        session.checkpoint(Some("before".into())).await.unwrap();
        run(
            &session,
            "items[::7] = [-1] * len(items[::7])\nimport gc; gc.collect()",
        )
        .await;
        session.checkpoint(None).await.unwrap();
        let fork = forked(&session, 1).await.remove(0);
        let hash = "import hashlib\nhashlib.sha256(repr(items).encode()).hexdigest()";
        assert_eq!(value(&fork, hash).await, value(&session, hash).await);
        assert!(fork.checkpoints().await.unwrap().is_empty());
        run(&fork, "items = 'changed'").await;
        fork.checkpoint(None).await.unwrap();
        session.roll_back("before").await.unwrap();
        assert_eq!(value(&session, "items == list(range(100_000))").await, true);
        assert_eq!(value(&fork, "items").await, "changed");
    });
}

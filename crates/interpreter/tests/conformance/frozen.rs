//! Frozen templates: kernels of a template that was mapped from a file are like those of one that imported.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::PathBuf;

use cellblock_interpreter::builder::{FrozenState, InterpreterBuilder};
use cellblock_interpreter::output::Output;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Interpreter, Session};
use cellblock_testkit::require;
use serde_json::json;
use tempfile::TempDir;

use crate::backend::backend;
use crate::support::{block_on, exception, goes_on, interpreter, run, store, value};

const CHART: &str = "import pandas as pd, matplotlib.pyplot as plt\n\
                     frame = pd.DataFrame({'x': range(9), 'y': [n * n for n in range(9)]})\n\
                     frame.plot(x='x', y='y', title='squares')\nplt.show()\nframe.describe()";
/// Values that differ between kernels, whatever template they come from.
const DRAWN: &str = "import os, random, secrets, tempfile, uuid\nimport numpy as np\n\
                     drawn = [os.urandom(8).hex(), random.random(), np.random.rand(), \
                     np.random.default_rng().random(), secrets.token_hex(8), uuid.uuid4(), \
                     tempfile.mktemp()]\n' '.join(map(str, drawn))";
/// Facts of the process from the C library, Python and Linux, which must agree, its program, and
/// whether a path of the host or of a frozen template is in its memory map.
const PROCESS: &str = "import ctypes, os, threading, time\nmaps = open('/proc/self/maps').read()\n\
                       libc = ctypes.CDLL(None)\nclock = time.clock_gettime(time.CLOCK_BOOTTIME)\n\
                       uptime = float(open('/proc/uptime').read().split()[0])\n\
                       own = int(os.readlink('/proc/self'))\n\
                       known = [os.getpid() == own, threading.get_native_id() == own, libc.gettid() == own, \
                       threading.main_thread().native_id == own, abs(clock - uptime) < 60, \
                       os.readlink('/proc/self/exe').startswith('/opt/python/bin/python'), \
                       open('/proc/self/cmdline').read().startswith('/opt/python/bin/python'), \
                       HOME not in maps, '/opt/frozen/' in maps]\n\
                       ' '.join(str(at) for at, holds in enumerate(known) if not holds)";

/// A home with the images of the tests, and frozen templates of its own.
struct FrozenHome {
    folder: TempDir,
}

impl FrozenHome {
    async fn new() -> Self {
        // The image is there from here on.
        interpreter().await;
        let folder = tempfile::tempdir().unwrap();
        for part in ["bytecode", "images", "layers", "refs"] {
            let shared = cellblock_testkit::home().unwrap().join(part);
            symlink(shared, folder.path().join(part)).unwrap();
        }
        Self { folder }
    }

    fn builder(&self) -> InterpreterBuilder {
        Interpreter::builder()
            .home(self.folder.path())
            .store(store())
            .single_session()
    }

    /// Starts anew, as another program would.
    async fn start(&self) -> Interpreter {
        self.builder().build().await.unwrap()
    }

    /// Returns the only file with this ending.
    fn file(&self, ending: &str) -> PathBuf {
        let images = fs::read_dir(self.folder.path().join("frozen")).unwrap();
        let files = images.flat_map(|image| fs::read_dir(image.unwrap().path()).unwrap());
        let mut files = files
            .map(|it| it.unwrap().path())
            .filter(|it| it.extension().is_some_and(|it| it == ending));
        let file = files.next().unwrap();
        assert_eq!(files.next(), None);
        file
    }
}

fn session(interpreter: &Interpreter) -> Session {
    interpreter.session(SessionOptions {
        pooled: false,
        ..SessionOptions::default()
    })
}

/// Returns whether a kernel comes from a file.
async fn is_thawed(interpreter: &Interpreter) -> bool {
    let session = session(interpreter);
    let mapped = value(&session, "'/opt/frozen/' in open('/proc/self/maps').read()").await;
    session.close().await.unwrap();
    mapped == json!(true)
}

/// Counts the children of this process that have ended and were not waited for.
fn zombies() -> usize {
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| {
            let (_, fields) = stat.rsplit_once(") ").unwrap_or_default();
            let mut fields = fields.split(' ');
            fields.next() == Some("Z") && fields.next() == Some(own.as_str())
        })
        .count()
}

fn lacks_templates() -> bool {
    let lacks = !matches!(&*backend(), "process");
    if lacks {
        cellblock_testkit::lacking(&backend(), "frozen templates", module_path!());
    }
    lacks
}

#[test]
fn eight_thaws_of_one_template_draw_different_numbers_and_know_their_process() {
    require!(UserNamespaces);
    if lacks_templates() || !cfg!(target_arch = "x86_64") {
        return;
    }
    block_on(async {
        let home = FrozenHome::new().await;
        assert_eq!(home.builder().frozen().await.unwrap(), FrozenState::Missing);
        assert_eq!(home.builder().freeze().await.unwrap(), FrozenState::Ready);
        let mut drawn = HashSet::new();
        for _ in 0..8 {
            let interpreter = home.start().await;
            let session = session(&interpreter);
            let all = value(&session, DRAWN).await;
            for one in all.as_str().unwrap().split(' ') {
                assert!(drawn.insert(one.to_owned()), "{one}");
            }
            let code = PROCESS.replace("HOME", &format!("{:?}", home.folder.path()));
            assert_eq!(value(&session, &code).await, "", "numbers of what does not hold");
            session.close().await.unwrap();
        }
    });
}

#[test]
fn a_chart_of_a_thawed_template_equals_that_of_one_that_imported() {
    require!(UserNamespaces);
    if lacks_templates() || !cfg!(target_arch = "x86_64") {
        return;
    }
    block_on(async {
        let home = FrozenHome::new().await;
        let imported = home.start().await;
        // The start has begun to freeze in the background, and does not wait for that.
        assert!(!is_thawed(&imported).await);
        let one = run(&session(&imported), CHART).await;
        cellblock_testkit::wait::until_ok(async || match home.builder().frozen().await.unwrap() {
            FrozenState::Ready => Ok(()),
            state => Err(format!("{state:?}")),
        })
        .await;
        cellblock_testkit::wait::until("the launcher that froze is reaped", || zombies() == 0).await;
        let thawed = home.start().await;
        assert!(is_thawed(&thawed).await);
        let session = session(&thawed);
        let other = run(&session, CHART).await;
        let pictures = [one, other].map(|execution| {
            let [Output::Figure(figure), Output::Dataframe(table)] = &execution.outputs[..] else {
                panic!("a chart and a table: {execution:#?}");
            };
            let image = figure.image.as_ref().unwrap().sha256;
            (
                json!([figure.axes, figure.series, table.columns, table.rows]),
                image,
            )
        });
        assert_eq!(pictures[0], pictures[1]);
        // Memory grows and shrinks, threads and children work, errors are errors.
        let grown = "import threading, subprocess\nlen(bytearray(1 << 27))\n\
                     shown = []\nthread = threading.Thread(target=lambda: shown.append(1))\nthread.start()\n\
                     thread.join()\nsubprocess.run(['true'], check=True)\n\
                     len([[] for _ in range(1_000_000)]) + len(shown)";
        assert_eq!(value(&session, grown).await, 1_000_001);
        assert_eq!(
            exception(&run(&session, "1 / 0").await).exception,
            "ZeroDivisionError"
        );
        assert!(goes_on(&session, "frame").await);
        session.close().await.unwrap();
    });
}

#[test]
fn a_frozen_template_that_was_changed_or_cut_is_not_used_and_is_made_again() {
    require!(UserNamespaces);
    if lacks_templates() || !cfg!(target_arch = "x86_64") {
        return;
    }
    block_on(async {
        let home = FrozenHome::new().await;
        assert_eq!(home.builder().freeze().await.unwrap(), FrozenState::Ready);
        let damages: [fn(&FrozenHome); 4] = [
            |home| {
                let file = OpenOptions::new().write(true).open(home.file("memory")).unwrap();
                file.write_all_at(b"x", 4096).unwrap();
            },
            |home| {
                File::options()
                    .write(true)
                    .open(home.file("memory"))
                    .unwrap()
                    .set_len(1)
                    .unwrap();
            },
            |home| {
                let mut file = OpenOptions::new().append(true).open(home.file("json")).unwrap();
                file.write_all(b" ").unwrap();
            },
            |home| fs::remove_file(home.file("memory")).unwrap(),
        ];
        for damage in damages {
            damage(&home);
            let state = home.builder().frozen().await.unwrap();
            assert!(matches!(state, FrozenState::Damaged(_)), "{state:?}");
            assert_eq!(home.builder().freeze().await.unwrap(), FrozenState::Ready);
        }
        assert!(is_thawed(&home.start().await).await);
    });
}

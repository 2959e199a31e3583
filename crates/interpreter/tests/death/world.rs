//! An interpreter of a test's own, and what must be true of it whatever died.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use cellblock_artifact::Store;
use cellblock_image::{DEFAULT_IMAGE, Home, OpenImage, Sink};
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Execution, Interpreter, Session};
use cellblock_testkit::wait::until;
use cellblock_testkit::{Count, LeakOwner};
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
/// Lock of the tests, which run one after the other because what they count belongs to this process.
static ALONE: Mutex<()> = Mutex::new(());
/// The kernel frees namespaces and cgroups in the background, on a machine that does other things too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock()
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// The default image of the home that all tests share, built if it is not there.
pub(crate) async fn image() -> OpenImage {
    let home = Home::at(&cellblock_testkit::home().unwrap()).unwrap();
    let store = cellblock_image::ImageStore::new(home);
    store.open(DEFAULT_IMAGE, Sink::silent()).await.unwrap()
}

/// An interpreter whose template imports next to nothing, so that it is warm at once.
pub(crate) async fn interpreter(image: OpenImage, artifacts: &Path) -> Interpreter {
    let interpreter = Interpreter::builder()
        .image(image)
        .pool(0)
        .preload(vec!["json".to_owned()])
        .store(Store::local(artifacts).unwrap())
        .build()
        .await
        .unwrap();
    interpreter.warmed().await.unwrap();
    interpreter
}

/// An interpreter with what there is of everything while it rests.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) interpreter: Interpreter,
    pub(crate) owner: LeakOwner,
    pub(crate) rest: Count,
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // What the test before has dropped ends in the background.
        until("no process is left", || {
            LeakOwner::this_process().count().processes == 0
        })
        .await;
        let interpreter = interpreter(image().await, &folder.path().join("artifacts")).await;
        let mut world = Self {
            interpreter,
            owner: LeakOwner::this_process(),
            rest: Count::default(),
            folder,
        };
        // The first round opens what stays open: the spare room, the runtime's own files.
        for _ in 0..2 {
            let session = world.session();
            assert_eq!(answer(&session).await.note, None);
            session.close().await.unwrap();
        }
        world.rest = world.settled().await;
        world
    }

    /// A session without a prelude, which would import libraries, and with time for a cell to be
    /// killed in its grace.
    pub(crate) fn session(&self) -> Session {
        self.interpreter.session(SessionOptions {
            prelude: Vec::new(),
            limits: Some(Limits {
                grace: Duration::from_secs(20),
                ..Limits::default()
            }),
            ..SessionOptions::default()
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The count once it has not changed for a while.
    async fn settled(&mut self) -> Count {
        let mut before = self.owner.count();
        let mut same = 0;
        while same < 6 {
            tokio::time::sleep(Duration::from_millis(30)).await;
            let now = self.owner.count();
            same = if now == before { same + 1 } else { 0 };
            before = now;
        }
        before
    }

    /// The counts are what they were.
    pub(crate) fn is_at_rest(&mut self, what: &str) {
        // The runtime has threads of its own: they work on while this one looks.
        let (owner, rest) = (&mut self.owner, &self.rest);
        if let Err(left) = owner.until(rest, PATIENCE) {
            panic!("{what}: {left}");
        }
    }
}

/// A cell that must work.
pub(crate) async fn answer(session: &Session) -> Execution {
    let execution = session.execute("6 * 7").await.unwrap();
    assert_eq!(execution.outcome, Outcome::Completed, "{execution:#?}");
    let shown = serde_json::to_value(&execution.outputs).unwrap();
    assert_eq!(shown[0]["value"], 42, "{execution:#?}");
    execution
}

/// Whether a cell still finds the variable `kept`.
pub(crate) async fn has_kept(session: &Session) -> bool {
    let execution = session.execute("'kept' in globals()").await.unwrap();
    let shown = serde_json::to_value(&execution.outputs).unwrap();
    shown[0]["value"].as_bool().unwrap()
}

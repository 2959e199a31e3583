//! The interpreter that the tests of this binary share, and short ways to call tools.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use cellblock_artifact::Store;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::workbench::{Profile, Workbench, WorkbenchOptions};
use cellblock_interpreter::{Interpreter, Session};
use cellblock_sandbox::jail::protection::{Demand, Demands, Protection};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// The interpreter's tasks live here, so it must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static INTERPRETER: OnceCell<Interpreter> = OnceCell::const_new();

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

pub(crate) async fn interpreter() -> &'static Interpreter {
    INTERPRETER.get_or_init(start).await
}

async fn start() -> Interpreter {
    let interpreter = start_with(Demands::default(), None).await;
    interpreter.warmed().await.unwrap();
    interpreter
}

/// An interpreter whose sandboxes have no second wall, and whose kernels import nothing beforehand.
pub(crate) async fn without_landlock() -> Interpreter {
    let mut demands = Demands::default();
    for protection in [Protection::Landlock, Protection::LandlockScopes] {
        demands.0.insert(protection, Demand::Disabled);
    }
    start_with(demands, Some(Vec::new())).await
}

async fn start_with(demands: Demands, preload: Option<Vec<String>>) -> Interpreter {
    // The default image of the home that all tests share, built if it is not there.
    Interpreter::builder()
        .home(cellblock_testkit::home().unwrap())
        .preload(preload)
        .demands(demands)
        .store(Store::local(artifacts()).unwrap())
        .build()
        .await
        .unwrap()
}

/// Returns the directory of artifacts. The second run, as an ordinary user, may not write below the target
/// directory.
fn artifacts() -> PathBuf {
    std::env::var_os("CELLBLOCK_TEST_STORE").map_or_else(
        || PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("workbench"),
        PathBuf::from,
    )
}

/// A workbench over a session, with a folder of the host for its files.
pub(crate) struct Bench {
    pub(crate) session: Session,
    pub(crate) tools: Workbench,
    folder: tempfile::TempDir,
}

pub(crate) async fn bench() -> Bench {
    limited(|_| {}).await
}

/// One whose limits differ from the default ones.
pub(crate) async fn limited(change: impl FnOnce(&mut Limits)) -> Bench {
    let mut limits = Limits::default();
    change(&mut limits);
    let options = SessionOptions {
        limits: Some(limits),
        ..SessionOptions::default()
    };
    let session = interpreter().await.session(options);
    let folder = tempfile::tempdir().unwrap();
    let options = WorkbenchOptions {
        output_dir: Some(folder.path().join("session")),
        profile: Profile::Default,
        ..WorkbenchOptions::default()
    };
    Bench {
        tools: Workbench::new(session.clone(), options),
        session,
        folder,
    }
}

impl Bench {
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Value {
        self.tools.call(tool, args).await.unwrap()
    }

    pub(crate) async fn exec<const N: usize>(&self, command: [&str; N]) -> Value {
        self.call("sandbox_exec", json!({"command": command.to_vec()}))
            .await
    }

    /// Runs a line of shell.
    pub(crate) async fn sh(&self, line: &str) -> Value {
        self.exec(["sh", "-c", line]).await
    }

    /// Runs a command that must succeed and write nothing to stderr; answers its stdout.
    pub(crate) async fn stdout<const N: usize>(&self, command: [&str; N]) -> String {
        let ended = self.exec(command).await;
        assert_eq!(
            (&ended["exit_code"], &ended["stderr"]),
            (&json!(0), &json!("")),
            "{ended:#}"
        );
        ended["stdout"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn write(&self, path: &str, content: &str) -> Value {
        self.call(
            "sandbox_write_file",
            json!({"file_path": path, "content": content}),
        )
        .await
    }

    /// Writes a file, which must succeed.
    pub(crate) async fn put(&self, path: &str, content: &str) {
        let written = self.write(path, content).await;
        assert_eq!(written["success"], json!(true), "{written:#}");
    }

    pub(crate) async fn edit(&self, path: &str, old: &str, new: &str) -> Value {
        let args = json!({"file_path": path, "old_string": old, "new_string": new});
        self.call("sandbox_edit_file", args).await
    }

    /// Returns the content of a file in the host's folder.
    pub(crate) fn handed_over(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.output_dir().join(name)).unwrap()
    }

    pub(crate) fn output_dir(&self) -> PathBuf {
        self.folder().join("session")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// The code of an answer's hint.
pub(crate) fn hint(answer: &Value) -> &str {
    answer["hint"]["code"].as_str().unwrap()
}

/// Processes of this machine with this argument. A command sees none that another has left: each
/// has a Landlock domain of its own.
pub(crate) fn running(argument: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| {
            line.split(|byte| *byte == 0)
                .any(|part| part == argument.as_bytes())
        })
        .count()
}

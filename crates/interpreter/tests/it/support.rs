//! The interpreter that the tests of this binary share, and short ways to ask it for things.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use cellblock_artifact::Store;
use cellblock_interpreter::builder::InterpreterBuilder;
use cellblock_interpreter::cell::Rescue;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::output::{Dataframe, Exception, Figure, Output};
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Cell, Execution, Interpreter, Session};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// The interpreter's tasks live here, so it must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static INTERPRETER: OnceCell<Interpreter> = OnceCell::const_new();

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

pub(crate) async fn interpreter() -> &'static Interpreter {
    INTERPRETER.get_or_init(start).await
}

/// What these tests start an interpreter with.
pub(crate) fn builder() -> InterpreterBuilder {
    Interpreter::builder()
        .home(cellblock_testkit::home().unwrap())
        .store(store())
}

async fn start() -> Interpreter {
    let interpreter = crate::place::interpreter(builder()).await;
    interpreter.warmed().await.unwrap();
    assert_eq!(interpreter.failed_modules(), [""; 0]);
    interpreter
}

/// Binaries that run at the same time have a store each.
pub(crate) fn store() -> Store {
    let name = concat!("artifacts-", env!("CARGO_CRATE_NAME"));
    Store::local(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)).unwrap()
}

pub(crate) async fn session() -> Session {
    interpreter().await.session(SessionOptions::default())
}

/// A session whose variables are lost with its kernel.
pub(crate) async fn unrescued(change: impl FnOnce(&mut Limits)) -> Session {
    with(Rescue::Off, change).await
}

/// A session with a standby before every cell.
pub(crate) async fn rescuing(change: impl FnOnce(&mut Limits)) -> Session {
    with(Rescue::On, change).await
}

async fn with(rescue: Rescue, change: impl FnOnce(&mut Limits)) -> Session {
    let mut limits = Limits::default();
    change(&mut limits);
    let options = SessionOptions {
        limits: Some(limits),
        rescue,
        ..SessionOptions::default()
    };
    interpreter().await.session(options)
}

/// A session whose limits differ from the default ones.
pub(crate) async fn limited(change: impl FnOnce(&mut Limits)) -> Session {
    let mut limits = Limits::default();
    change(&mut limits);
    let options = SessionOptions {
        limits: Some(limits),
        ..SessionOptions::default()
    };
    interpreter().await.session(options)
}

pub(crate) async fn run(session: &Session, code: &str) -> Execution {
    session.execute(code).await.unwrap()
}

pub(crate) async fn run_for(session: &Session, limit: Duration, code: &str) -> Execution {
    session
        .execute(Cell::new(code).with_timeout(limit))
        .await
        .unwrap()
}

/// Runs a cell that must complete and show one scalar, which is given.
pub(crate) async fn value(session: &Session, code: &str) -> Value {
    scalar(&run(session, code).await)
}

pub(crate) fn scalar(execution: &Execution) -> Value {
    assert_eq!(execution.outcome, Outcome::Completed, "{execution:#?}");
    match &execution.outputs[..] {
        [Output::Primitive(shown)] => json!(shown.value),
        other => panic!("not one scalar: {other:#?}"),
    }
}

/// The next cell works, and tells whether variables of the cells before are there.
pub(crate) async fn goes_on(session: &Session, kept: &str) -> bool {
    assert_eq!(value(session, "6 * 7").await, 42);
    value(session, &format!("{kept:?} in globals()")).await == json!(true)
}

pub(crate) fn exception(execution: &Execution) -> &Exception {
    match execution.outputs.last() {
        Some(Output::Exception(exception)) => exception,
        other => panic!("the last output is not an exception: {other:#?}"),
    }
}

pub(crate) fn table(output: &Output) -> &Dataframe {
    match output {
        Output::Dataframe(table) => table,
        other => panic!("not a table: {other:#?}"),
    }
}

pub(crate) fn figure(output: &Output) -> &Figure {
    match output {
        Output::Figure(figure) => figure,
        other => panic!("not a figure: {other:#?}"),
    }
}

pub(crate) async fn content(sha256: &str) -> Vec<u8> {
    let id = sha256.parse().unwrap();
    interpreter().await.store().get(id).await.unwrap().to_vec()
}

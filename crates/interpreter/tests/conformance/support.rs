//! The interpreter that the tests of this binary share, and short ways to ask it for things.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use cellblock_artifact::Store;
use cellblock_interpreter::builder::InterpreterBuilder;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::output::{Dataframe, Exception, Output};
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Cell, Execution, Interpreter, Session};
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

/// Returns the builder with which these tests start an interpreter.
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

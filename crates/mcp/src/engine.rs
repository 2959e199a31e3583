//! The interpreter behind a server: there already, or started when it is first needed.

use std::error::Error;
use std::fmt;

use cellblock_interpreter::Interpreter;
use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::refusal::Refusal;

/// Reason that an interpreter could not be started.
pub type StartError = Box<dyn Error + Send + Sync>;

type InterpreterStart = Box<dyn Fn() -> BoxFuture<'static, Result<Interpreter, StartError>> + Send + Sync>;

/// The interpreter that sessions are made by. Clients expect an answer to their first request at
/// once, an image may take minutes to build: so it may come later than the server.
pub struct LazyInterpreter {
    interpreter: OnceCell<Interpreter>,
    start: Option<InterpreterStart>,
}

impl LazyInterpreter {
    /// An interpreter that runs.
    pub fn ready(interpreter: Interpreter) -> Self {
        Self {
            interpreter: OnceCell::new_with(Some(interpreter)),
            start: None,
        }
    }

    /// An interpreter that is started by the first who needs it. A start that failed is tried again
    /// by the next.
    pub fn starting<F>(start: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Interpreter, StartError>> + Send + 'static,
    {
        Self {
            interpreter: OnceCell::new(),
            start: Some(Box::new(move || Box::pin(start()))),
        }
    }

    /// Starts it now, if it does not run, and completes when it does.
    pub async fn start(&self) -> Result<(), StartError> {
        self.running().await.map(drop)
    }

    /// The interpreter, for a tool. Why there is none is for the operator's log: it may name the
    /// host's paths.
    pub(crate) async fn get(&self) -> Result<&Interpreter, Refusal> {
        self.running().await.map_err(|error| {
            tracing::error!(error = &*error as &dyn Error, "could not start the interpreter");
            Refusal::new(
                "no sandbox can be made on this machine at present: Cellblock's own log says why. Tell \
                 the user to run `cellblock doctor` there",
            )
        })
    }

    /// The interpreter, if it runs.
    pub(crate) fn now(&self) -> Option<&Interpreter> {
        self.interpreter.get()
    }

    async fn running(&self) -> Result<&Interpreter, StartError> {
        let Some(start) = &self.start else {
            return self
                .interpreter
                .get()
                .ok_or_else(|| "there is no interpreter".into());
        };
        self.interpreter.get_or_try_init(start).await
    }
}

impl fmt::Debug for LazyInterpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyInterpreter")
            .field("interpreter", &self.interpreter)
            .finish_non_exhaustive()
    }
}

//! Engine that runs code: sandboxes, here or at another Cellblock, or a server that keeps nothing.

use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::wire::{ApiError, ErrorKind};
use cellblock_artifact::Store;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::builder::BackendKind;

use crate::execute_server::ExecuteServer;

/// Engine that runs code.
#[derive(Clone, Debug)]
pub enum Engine {
    /// Sandboxes: everything works.
    Interpreter(Arc<Interpreter>),
    /// A server that runs code and keeps nothing: no containers, no sessions, no `/execute` of our own.
    Execute(RemoteEngine),
}

/// A server that runs code and keeps nothing, and what is kept on this side.
#[derive(Clone, Debug)]
pub struct RemoteEngine {
    /// Server that runs the code.
    pub server: ExecuteServer,
    /// Timeout of code.
    pub timeout: Duration,
    /// Store of uploaded files, and of those that code leaves.
    pub store: Store,
}

impl Engine {
    /// The sandboxes, where there are any.
    pub fn interpreter(&self) -> Result<&Arc<Interpreter>, ApiError> {
        match self {
            Self::Interpreter(interpreter) => Ok(interpreter),
            Self::Execute(_) => Err(keeps_nothing()),
        }
    }

    /// Returns an error if code would run behind a weaker wall than this one.
    pub(crate) fn satisfies(&self, minimum: Option<BackendKind>) -> Result<(), ApiError> {
        let Some(minimum) = minimum else { return Ok(()) };
        let name = match self {
            Self::Interpreter(interpreter) => interpreter.backend().name(),
            Self::Execute(_) => "execute",
        };
        // What another machine says of its wall is not checked.
        let kind: BackendKind = name.parse().unwrap_or_default();
        if kind >= minimum {
            return Ok(());
        }
        Err(ApiError {
            kind: ErrorKind::InvalidRequestError,
            code: Some("backend_too_weak".to_owned()),
            message: format!(
                "sandboxes of this server have the backend `{name}`, which is weaker than the minimum \
                 `{minimum}`; use a server with `backend: {minimum}`"
            ),
            param: Some("minimum_backend".to_owned()),
        })
    }

    /// Returns the store of files.
    pub(crate) fn store(&self) -> &Store {
        match self {
            Self::Interpreter(interpreter) => interpreter.store(),
            Self::Execute(elsewhere) => &elsewhere.store,
        }
    }
}

impl From<Interpreter> for Engine {
    fn from(interpreter: Interpreter) -> Self {
        Self::Interpreter(Arc::new(interpreter))
    }
}

impl From<Arc<Interpreter>> for Engine {
    fn from(interpreter: Arc<Interpreter>) -> Self {
        Self::Interpreter(interpreter)
    }
}

impl From<RemoteEngine> for Engine {
    fn from(elsewhere: RemoteEngine) -> Self {
        Self::Execute(elsewhere)
    }
}

/// Returns the error for a client that requests something to be stored.
pub(crate) fn keeps_nothing() -> ApiError {
    ApiError {
        kind: ErrorKind::InvalidRequestError,
        code: Some("nothing_kept".to_owned()),
        message: "code runs at a server that keeps nothing: there are no containers and no sessions; use \
                  `/v1/responses` and the tool `code_interpreter` with `\"container\": \
                  {\"type\": \"auto\"}`"
            .to_owned(),
        param: None,
    }
}

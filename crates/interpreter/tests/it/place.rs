//! Where the sandboxes of these tests are: on this machine.

use cellblock_interpreter::{Config, Interpreter};

/// What executions call the backend.
pub(crate) const BACKEND: &str = "process";

pub(crate) async fn interpreter(config: Config) -> Interpreter {
    Interpreter::start(config).await.unwrap()
}

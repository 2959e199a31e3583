//! Where the sandboxes of these tests are: in gVisor.

use cellblock_interpreter::Interpreter;
use cellblock_interpreter::builder::InterpreterBuilder;
use cellblock_interpreter::limits::Limits;
use cellblock_sandbox::backend::BackendKind;

/// What executions call the backend.
pub(crate) const BACKEND: &str = "gvisor";

pub(crate) async fn interpreter(builder: InterpreterBuilder) -> Interpreter {
    builder
        .backend(BackendKind::Gvisor)
        .launcher(cellblock_testkit::binary().unwrap())
        .limits(Limits::default())
        .build()
        .await
        .unwrap()
}

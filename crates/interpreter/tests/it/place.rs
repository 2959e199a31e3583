//! Location of the sandboxes of these tests: on this machine.

use cellblock_interpreter::Interpreter;
use cellblock_interpreter::builder::InterpreterBuilder;

pub(crate) async fn interpreter(builder: InterpreterBuilder) -> Interpreter {
    builder.build().await.unwrap()
}

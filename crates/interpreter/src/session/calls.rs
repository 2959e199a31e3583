//! What code in a sandbox may ask its host for while a cell runs.

use cellblock_protocol::{CallError, ToKernel};
use cellblock_sandbox::backend::Kernel;
use cellblock_sandbox::channel::write_frame;
use serde_json::Value;

use crate::error::Result;

/// Answers a call, with an error where the host has no such method.
pub(super) async fn answer(kernel: &mut Kernel, call: u64, method: &str, params: Value) -> Result<()> {
    let result = match method {
        _ => Err(CallError {
            code: "unknown_method".into(),
            message: format!(
                "the host offers no method `{}` to this session",
                method.escape_debug()
            ),
        }),
    };
    let (value, error) = match result {
        Ok(value) => (value, None),
        Err(error) => (Value::Null, Some(error)),
    };
    let answer = ToKernel::Answer { call, value, error };
    Ok(write_frame(&mut kernel.writer, &answer, &[]).await?)
}

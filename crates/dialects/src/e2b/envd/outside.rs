//! Files outside of the session's folders, as far as the user of the sandbox may read and write them.
//!
//! A program in the sandbox does so, so that its rights and links are those of commands. It reads and
//! writes a file at once, so that the size is limited.

use std::fs::File;

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use super::super::error::{Answer, Problem};
use super::super::paths::HOME;
use super::super::sandbox::HeldSandbox;
use crate::files::{operate, perform};

/// Maximum size of a file. The program limits what it reads in the same way.
const MAX_BYTES: u64 = 10 << 20;

pub(super) async fn read(held: &HeldSandbox, path: &str) -> Answer<Vec<u8>> {
    let (_, content): (IgnoredAny, _) =
        perform(&held.session, "/", "content.read_bytes", &json!({ "path": path })).await?;
    Ok(content)
}

pub(super) async fn write(held: &HeldSandbox, path: &str, content: File) -> Answer<()> {
    let failed = |error: std::io::Error| Problem::internal("read an upload", &error);
    let size = content.metadata().map_err(failed)?.len();
    if size > MAX_BYTES {
        return Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "path '{path}': the file has {size} bytes, the limit outside of {HOME} and /tmp is \
                 {MAX_BYTES}; write it there, and move it with a command"
            ),
        ));
    }
    let mut bytes = Vec::new();
    let mut content = tokio::fs::File::from_std(content);
    content.read_to_end(&mut bytes).await.map_err(failed)?;
    let written = json!({"path": path, "content": {"base64": STANDARD.encode(bytes)}});
    let _: IgnoredAny = operate(&held.session, "/", "content.write", &written).await?;
    Ok(())
}

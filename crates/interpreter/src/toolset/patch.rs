//! Patches of the files in a container, for models that change code.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::diff::{FilePatch, read_patch};
use super::workbench::{PatchArgs, Workbench, WorkbenchOptions, patch_definition};
use super::{ToolDefinition, ToolResult, Toolset, ToolsetKind, Watch};
use crate::error::Result;
use crate::session::Session;

/// The name of the tool.
pub const PATCH: &str = "patch";
/// The folder of a container's files, and its name for users.
const WORKSPACE: &str = "/workspace/";
const SHOWN: &str = "/mnt/data/";

/// The toolset. No configuration names it: requests of the Responses API do.
pub const KIND: ToolsetKind = ToolsetKind {
    name: PATCH,
    summary: "Apply patches to files",
    about: "How to change files with patches",
    prelude: &[],
    on_results: false,
    definitions: |_| definitions(),
    prompt: |_| String::new(),
    open: |_, session, _| Box::pin(async { Ok(Arc::new(Patches { session }) as Arc<dyn Toolset>) }),
};

/// Patches of one session's files.
#[derive(Debug)]
struct Patches {
    session: Session,
}

impl Toolset for Patches {
    fn definitions(&self) -> Vec<ToolDefinition> {
        definitions()
    }

    fn call<'a>(
        &'a self,
        _tool: &'a str,
        arguments: Value,
        _watch: Watch<'a>,
    ) -> BoxFuture<'a, Result<ToolResult>> {
        Box::pin(async move {
            let files = match read(&arguments) {
                Ok(files) => files,
                Err(error) => return Ok(ToolResult::Json(json!({"success": false, "error": error}))),
            };
            drop(arguments);
            let workbench = Workbench::new(self.session.clone(), WorkbenchOptions::default());
            Ok(ToolResult::Json(match workbench.change_files(files).await? {
                Ok(result) => json!(result),
                Err(refusal) => json!(refusal),
            }))
        })
    }

    fn prompt(&self) -> String {
        String::new()
    }
}

/// Reads a patch whose files are all below the workspace; the error is for the model.
fn read(arguments: &Value) -> std::result::Result<Vec<FilePatch>, String> {
    let args = PatchArgs::parse(arguments)?;
    let mut files = read_patch(&args.patch).map_err(|mistake| mistake.words("patch"))?;
    for file in &mut files {
        let relative = file
            .path
            .strip_prefix(SHOWN)
            .or_else(|| file.path.strip_prefix(WORKSPACE));
        if let Some(relative) = relative {
            file.path = relative.to_owned();
        }
        if file.path.starts_with('/') {
            let path: String = file.path.chars().take(80).collect();
            return Err(format!(
                "the path `{path}` is not below the workspace; send one that is relative to `{SHOWN}`"
            ));
        }
    }
    Ok(files)
}

fn definitions() -> Vec<ToolDefinition> {
    let places = "in /mnt/data; paths are relative to it. They are not the files of the user's own workspace";
    vec![patch_definition(PATCH, places)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_workspace() {
        let path = |path: &str| {
            let patch = format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch");
            read(&json!({"patch": patch})).map(|files| files[0].path.clone())
        };
        for named in ["a/b", "/mnt/data/a/b", "/workspace/a/b"] {
            assert_eq!(path(named).as_deref(), Ok("a/b"), "{named}");
        }
        for outside in ["/etc/passwd", "/tmp/a", "/workspace//etc/passwd"] {
            assert!(
                path(outside).unwrap_err().contains("not below the workspace"),
                "{outside}"
            );
        }
    }

    #[test]
    fn a_patch_that_cannot_be_read_is_explained() {
        for (arguments, words) in [
            (json!({}), "`patch` is missing"),
            (
                json!({"patch": "x"}),
                "a patch begins with the line `*** Begin Patch`",
            ),
            (json!({"patch": "x", "file": 1}), "there is no argument \"file\""),
        ] {
            assert!(read(&arguments).unwrap_err().contains(words), "{arguments}");
        }
    }
}

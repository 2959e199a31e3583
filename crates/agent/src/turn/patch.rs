//! Patches that the model writes for the client's files. Their syntax is checked before the client gets
//! them: one that nobody could apply goes back to the model. Nothing is applied here.

use cellblock_interpreter::toolset::diff::{read_added, read_sections};
use serde_json::{Value, json};

use crate::wire::{CallKind, Function, PatchOperation};

/// Returns the tool as models know it.
pub(super) fn function() -> Function {
    let parameters = json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
            "path": {"type": "string", "description": "The file, relative to the root of the workspace."},
            "diff": {
                "type": "string",
                "description": "With `create_file`: every line of the file after a `+`. With `update_file`: \
                                one or more sections, each an optional head `@@ LINE`, where LINE is a line \
                                of the file above the change such as `@@ def main():`, and then a few \
                                unchanged lines after a space, removed lines after `-` and added lines \
                                after `+`. There are no line numbers.",
            },
        },
        "required": ["type", "path"],
        "additionalProperties": false,
    });
    Function {
        name: CallKind::Patch.function().to_owned(),
        description: Some(
            "Creates, changes or deletes one file of the user's workspace. Call it once for each file; the \
             result says whether the patch could be applied."
                .to_owned(),
        ),
        parameters: parameters.as_object().cloned(),
        strict: None,
        output_schema: None,
        allowed_callers: None,
        defer_loading: false,
    }
}

/// Reads the arguments of a call; the error is for the model.
pub(super) fn operation(arguments: &str) -> Result<PatchOperation, String> {
    let read = || {
        let mut read: Value = serde_json::from_str(arguments)
            .map_err(|error| format!("the arguments are not JSON: {error}"))?;
        // Some models know the form of the item.
        if let Some(operation) = read.get_mut("operation").filter(|it| it.is_object()) {
            read = operation.take();
        }
        // The item has no such field, so that clients would change the file and leave it where it is.
        if read.get("move_to").is_some_and(|to| !to.is_null()) {
            let problem = "files cannot be moved; create the file at its new path and delete the old one";
            return Err(problem.to_owned());
        }
        let operation: PatchOperation = serde_json::from_value(read).map_err(|error| error.to_string())?;
        check(&operation)?;
        Ok::<_, String>(operation)
    };
    read().map_err(|problem| format!("The patch was not applied: {problem}."))
}

fn check(operation: &PatchOperation) -> Result<(), String> {
    let path = operation.path();
    if path.is_empty() || path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return Err(format!(
            "the path `{path}` is not below the workspace; send one that is relative to its root"
        ));
    }
    let read = match operation {
        PatchOperation::CreateFile { diff, .. } => read_added(diff).map(drop),
        PatchOperation::UpdateFile { diff, .. } => read_sections(diff).map(drop),
        PatchOperation::DeleteFile { .. } => Ok(()),
    };
    read.map_err(|mistake| mistake.words("diff"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(diff: &str) -> Result<PatchOperation, String> {
        operation(&json!({"type": "update_file", "path": "src/a.py", "diff": diff}).to_string())
    }

    #[test]
    fn patches_that_clients_apply_are_read() {
        for diff in [
            "@@ def total(xs):\n-    return 0\n+    return sum(xs)\n",
            " a\n-b\n+c",
            "@@ class A\n@@ def f\n x\n\n-y\n",
            "@@\n-a\n@@\n+b\n*** End of File\n@@ x\n-y",
            "+++ is an added line\n--- is a removed one",
        ] {
            assert!(update(diff).is_ok(), "{diff:?}");
        }
        let created = json!({"type": "create_file", "path": "a", "diff": "+x\n+\n+y"}).to_string();
        assert!(operation(&created).is_ok());
        let nested = json!({"operation": {"type": "delete_file", "path": "a"}}).to_string();
        let path = "a".to_owned();
        assert_eq!(operation(&nested), Ok(PatchOperation::DeleteFile { path }));
    }

    #[test]
    fn a_patch_that_nobody_can_apply_is_explained() {
        for (diff, problem) in [
            ("", "`diff` is empty"),
            ("return 0", "line 1 of `diff` is `return 0`"),
            ("@@ -1,2 +1,3 @@\n-a", "no line numbers"),
            ("*** Begin Patch\n*** Update File: a", "without the frame"),
            ("@@ f\n", "the last section has no lines"),
            (" a\n*** End of File\n-b", "the next section begins with `@@`"),
            ("*** End of File", "has no lines"),
        ] {
            let error = update(diff).unwrap_err();
            assert!(error.contains(problem), "{diff:?}: {error}");
        }
        for path in ["/etc/passwd", "../a", "a/../../b", ""] {
            let error = operation(&json!({"type": "delete_file", "path": path}).to_string()).unwrap_err();
            assert!(error.contains("not below the workspace"), "{path}: {error}");
        }
        let plain = operation(&json!({"type": "create_file", "path": "a", "diff": "x"}).to_string());
        assert!(plain.unwrap_err().contains("begins with `+`"));
        let moved = json!({"type": "update_file", "path": "a", "diff": "-x", "move_to": "b"}).to_string();
        assert!(operation(&moved).unwrap_err().contains("cannot be moved"));
        assert!(operation("{").unwrap_err().contains("not JSON"));
        assert!(operation("{\"type\": \"move\"}").unwrap_err().contains("move"));
    }
}

//! The tools as a model's host offers them.

use std::time::Duration;

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::args::{DEFAULT_TIMEOUT, EditArgs, ExecArgs, MAX_TIMEOUT, PatchArgs, WriteArgs};
use super::reply::{EditResult, ExecResult, PatchResult, WorkbenchRefusal, WriteResult};
use crate::toolset::{ToolDefinition, ToolEffect, input_schema, output_schema};

/// The name of the tool that runs commands.
pub const EXEC: &str = "sandbox_exec";
/// The name of the tool that writes files.
pub const WRITE: &str = "sandbox_write_file";
/// The name of the tool that edits files.
pub const EDIT: &str = "sandbox_edit_file";
/// The name of the tool that applies patches.
pub const PATCH: &str = "sandbox_apply_patch";
/// All of them.
pub(super) const NAMES: [&str; 4] = [EXEC, WRITE, EDIT, PATCH];
/// Form of a patch, for models.
const PATCH_FORM: &str = "The patch has this form:\n\n\
    *** Begin Patch\n\
    *** Add File: notes.txt\n\
    +every line of the new file after a plus sign\n\
    *** Update File: src/main.py\n\
    @@ def main():\n\
     \x20    unchanged line\n\
    -    line to remove\n\
    +    line to add\n\
    *** Delete File: old.txt\n\
    *** End Patch\n\n\
    Each section of an update begins with `@@`, alone or with a line of the file above the change, and has \
    a few unchanged lines after a space so that its place is clear. Sections are in the order of the file. \
    There are no line numbers. `*** End of File` after a section means that the file ends there. New files \
    end with a line break.";

/// The tools of a workbench whose commands have `longest` at most.
pub(super) fn definitions(longest: Duration) -> Vec<ToolDefinition> {
    vec![
        ToolDefinition::new(
            EXEC,
            "Run a command",
            "Runs a command in the session's isolated sandbox and returns its exit code, stdout and \
             stderr. The sandbox has Python and the usual Unix commands, no network, and keeps its files \
             from call to call. Datasets are in /tmp/data/ (read-only). New and changed files in \
             /tmp/output/ are handed over after the command.",
            of_commands(longest),
            ToolEffect::Changes,
        )
        .returns(answer::<ExecResult>()),
        ToolDefinition::new(
            WRITE,
            "Write a file",
            "Creates or overwrites a file in the session's sandbox, below /tmp/ or /workspace/. Folders \
             are made as needed. At most 5242880 bytes; `encoding: \"base64\"` for files that \
             are not text.",
            input_schema::<WriteArgs>(),
            ToolEffect::Settles,
        )
        .returns(answer::<WriteResult>()),
        ToolDefinition::new(
            EDIT,
            "Edit a file",
            "Replaces one exact piece of text in a file of the session's sandbox. `old_string` must be in \
             the file exactly once: include as much of its surroundings as that takes.",
            input_schema::<EditArgs>(),
            ToolEffect::Changes,
        )
        .returns(answer::<EditResult>())
        .resumes(),
        patch_definition(
            PATCH,
            "below /tmp/ or /workspace/; relative paths are below /workspace/",
        ),
    ]
}

/// Returns the tool that applies patches of files in these places.
pub(in crate::toolset) fn patch_definition(name: &str, places: &str) -> ToolDefinition {
    let description = format!(
        "Creates, changes and deletes files of the session's sandbox, {places}. All files of a patch are \
         changed in one step, or none of them. {PATCH_FORM}"
    );
    ToolDefinition::new(
        name,
        "Apply a patch",
        &description,
        input_schema::<PatchArgs>(),
        ToolEffect::Changes,
    )
    .returns(answer::<PatchResult>())
}

fn of_commands(longest: Duration) -> Value {
    let mut schema = input_schema::<ExecArgs>();
    let timeout = &mut schema["properties"]["timeout"];
    if longest != MAX_TIMEOUT {
        timeout["maximum"] = json!(longest.as_secs_f64());
        let default = longest.min(Duration::from_secs(DEFAULT_TIMEOUT));
        timeout["default"] = json!(default.as_secs_f64());
    }
    schema
}

fn answer<T: JsonSchema>() -> Value {
    let mut alternatives = [output_schema::<T>(), output_schema::<WorkbenchRefusal>()];
    for alternative in &mut alternatives {
        if let Some(fields) = alternative.as_object_mut() {
            fields.remove("$schema");
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "anyOf": alternatives,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_require_the_needed_fields() {
        let required: Vec<_> = definitions(MAX_TIMEOUT)
            .iter()
            .map(|tool| (tool.name.clone(), tool.input_schema["required"].clone()))
            .collect();
        assert_eq!(
            required,
            [
                (EXEC.to_owned(), json!(["command"])),
                (WRITE.to_owned(), json!(["file_path", "content"])),
                (EDIT.to_owned(), json!(["file_path", "old_string", "new_string"])),
                (PATCH.to_owned(), json!(["patch"])),
            ]
        );
        for tool in definitions(MAX_TIMEOUT) {
            assert_eq!(
                tool.input_schema["additionalProperties"],
                json!(false),
                "{}",
                tool.name
            );
            assert_eq!(tool.input_schema["type"], json!("object"), "{}", tool.name);
            let output = json!(tool.output_schema).to_string();
            assert!(!output.contains("$ref"), "{}", tool.name);
        }
    }

    #[test]
    fn optional_fields_of_a_result_are_not_required() {
        let required = json!(definitions(MAX_TIMEOUT)[0].output_schema)["anyOf"][0]["required"].clone();
        let required: Vec<String> = serde_json::from_value(required).unwrap();
        assert!(required.contains(&"exit_code".to_owned()));
        for optional in ["note", "skipped_files"] {
            assert!(!required.contains(&optional.to_owned()), "{optional}");
        }
    }

    #[test]
    fn the_timeout_says_its_bounds_and_its_default() {
        let timeout = |longest| definitions(longest)[0].input_schema["properties"]["timeout"].clone();
        assert_eq!(timeout(MAX_TIMEOUT)["default"], json!(60.0));
        assert_eq!(timeout(MAX_TIMEOUT)["maximum"], json!(300));
        // Fractions of a second are accepted.
        assert_eq!(timeout(MAX_TIMEOUT)["exclusiveMinimum"], json!(0));
        assert_eq!(timeout(MAX_TIMEOUT)["minimum"], Value::Null);
        let longer = timeout(Duration::from_mins(10));
        assert_eq!(
            (&longer["default"], &longer["maximum"]),
            (&json!(60.0), &json!(600.0))
        );
        let shorter = timeout(Duration::from_secs(20));
        assert_eq!(
            (&shorter["default"], &shorter["maximum"]),
            (&json!(20.0), &json!(20.0))
        );
    }
}

//! Arguments of the tool `shell`.

use cellblock_settings::json::{COUNT, FieldReader};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{MAX_COMMAND, MAX_COMMANDS};

/// Arguments of the tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellArguments {
    /// The commands.
    pub commands: Vec<String>,
    /// Maximum time of each command in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Maximum number of characters of each command's output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_length: Option<u64>,
}

impl ShellArguments {
    /// Reads arguments; the error is for the model.
    pub fn parse(arguments: &Value) -> std::result::Result<Self, String> {
        let mistake = |problem: String| format!("{problem}; send `commands` as an array of strings");
        let fields: FieldReader<'_, String> = FieldReader::of(arguments, "").map_err(mistake)?;
        let read = Self {
            commands: fields.texts("commands").map_err(mistake)?,
            timeout_ms: fields.read("timeout_ms", COUNT, Value::as_u64)?,
            max_output_length: fields.read("max_output_length", COUNT, Value::as_u64)?,
        };
        let count = read.commands.len();
        if count == 0 || read.commands.iter().any(|command| command.trim().is_empty()) {
            return Err("`commands` has an empty command, or none; send at least one command".to_owned());
        }
        if count > MAX_COMMANDS {
            return Err(format!(
                "`commands` has {count} commands; at most {MAX_COMMANDS} are allowed in one call"
            ));
        }
        let fits = |command: &String| command.len() <= MAX_COMMAND && !command.contains('\0');
        if !read.commands.iter().all(fits) {
            return Err(format!(
                "a command has more than {MAX_COMMAND} bytes, or a NUL character; write a script to a file \
                 and run it"
            ));
        }
        if read.timeout_ms == Some(0) {
            return Err("`timeout_ms` is 0; it must be at least 1".to_owned());
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_that_cannot_be_run_are_explained() {
        let parse = |arguments: &Value| ShellArguments::parse(arguments).unwrap_err();
        for (arguments, problem) in [
            (json!({}), "commands"),
            (json!({"commands": "ls"}), "array of strings"),
            (json!({"commands": []}), "at least one command"),
            (json!({"commands": ["ls", " "]}), "empty command"),
            (json!({"commands": vec!["ls"; MAX_COMMANDS + 1]}), "at most 64"),
            (
                json!({"commands": ["x".repeat(MAX_COMMAND + 1)]}),
                "write a script",
            ),
            (json!({"commands": ["a\0b"]}), "NUL"),
            (json!({"commands": ["ls"], "timeout_ms": 0}), "`timeout_ms` is 0"),
            (
                json!({"commands": ["ls"], "timeout_ms": -1}),
                "`timeout_ms` must be an integer that is 0 or greater",
            ),
        ] {
            let error = parse(&arguments);
            assert!(error.contains(problem), "{arguments}: {error}");
        }
    }
}

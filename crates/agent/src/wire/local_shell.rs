//! `local_shell`, the older form of commands on the client's computer: one command for each call.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::call_kind::CallKind;
use super::item::{FunctionCall, FunctionCallOutput, FunctionOutput, ItemStatus};
use super::tool::Function;

/// A command that runs on the client's computer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalShellCall {
    /// `lsh_…`.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// Id that its output refers to.
    pub call_id: String,
    /// The command.
    pub action: LocalShellAction,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalShellAction {
    /// Always `exec`.
    #[serde(default = "exec")]
    pub r#type: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Maximum time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// User that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Its working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
}

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalShellCallOutput {
    /// `lsho_…`, or the id of the call.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// Id of the call.
    pub call_id: String,
    /// The result, often as JSON.
    pub output: String,
}

fn exec() -> String {
    "exec".to_owned()
}

impl LocalShellAction {
    /// Reads the arguments of a call; the error is for the model.
    pub fn parse(arguments: &str) -> Result<Self, String> {
        let read: Result<Self, _> = serde_json::from_str(arguments);
        match read {
            Ok(action) if action.command.is_empty() => {
                Err("The command was not run: `command` is empty.".to_owned())
            }
            Ok(action) => Ok(Self {
                r#type: exec(),
                ..action
            }),
            Err(error) => Err(format!(
                "The command was not run: {error}; send `command` as a list of strings."
            )),
        }
    }

    /// Returns the tool as models know it.
    pub fn function() -> Function {
        let parameters = json!({
            "type": "object",
            "properties": {
                "command": {"type": "array", "items": {"type": "string"}, "minItems": 1,
                    "description": "Program and arguments, such as [\"bash\", \"-c\", \"ls | wc -l\"]."},
                "env": {"type": "object", "additionalProperties": {"type": "string"}},
                "timeout_ms": {"type": "integer", "minimum": 1},
                "working_directory": {"type": "string"},
            },
            "required": ["command"],
            "additionalProperties": false,
        });
        Function {
            name: CallKind::LocalShell.function().to_owned(),
            description: Some("Runs a command on the user's computer and returns its output.".to_owned()),
            parameters: parameters.as_object().cloned(),
            strict: None,
            output_schema: None,
            allowed_callers: None,
            defer_loading: false,
        }
    }
}

impl LocalShellCall {
    /// Returns it as the model knows it.
    pub(super) fn into_function(self) -> FunctionCall {
        let mut arguments = json!(self.action);
        if let Value::Object(fields) = &mut arguments {
            fields.remove("type");
        }
        FunctionCall {
            id: self.id,
            status: self.status,
            call_id: self.call_id,
            name: CallKind::LocalShell.function().to_owned(),
            namespace: None,
            arguments: arguments.to_string(),
            caller: None,
        }
    }
}

impl LocalShellCallOutput {
    /// Returns it as the model knows it.
    pub(super) fn into_function(self) -> FunctionCallOutput {
        FunctionCallOutput {
            caller: None,
            // Clients put the id of the call there.
            id: format!("{}_{}", CallKind::LocalShell.output_prefix(), self.call_id),
            status: ItemStatus::Completed,
            call_id: self.call_id,
            output: FunctionOutput::Text(self.output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_and_known_to_the_model_without_its_type() {
        let action = LocalShellAction::parse("{\"command\": [\"ls\"], \"timeout_ms\": 5}").unwrap();
        let told = json!({"type": "exec", "command": ["ls"], "env": {}, "timeout_ms": 5});
        assert_eq!(json!(action), told);
        let call = LocalShellCall {
            id: "lsh_1".to_owned(),
            status: ItemStatus::Completed,
            call_id: "c1".to_owned(),
            action,
        };
        let arguments: Value = serde_json::from_str(&call.into_function().arguments).unwrap();
        assert_eq!(arguments, json!({"command": ["ls"], "env": {}, "timeout_ms": 5}));
        for wrong in ["{\"command\": []}", "{\"command\": \"ls\"}", "{"] {
            assert!(LocalShellAction::parse(wrong).is_err(), "{wrong}");
        }
    }
}

//! Tools of the client that take one text: the tool, its calls and their outputs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::item::{FunctionCall, FunctionCallOutput, FunctionOutput, ItemStatus};
use super::tool::{AllowedCaller, Function};

/// Name of the one parameter by which models know the text.
pub const CUSTOM_INPUT: &str = "input";

/// A tool of the client that takes one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomTool {
    /// 1 to 64 of `a-z A-Z 0-9 _ -`.
    pub name: String,
    /// Description of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Format of the text.
    #[serde(default)]
    pub format: CustomFormat,
    /// Callers that may call it; null means the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_callers: Option<Vec<AllowedCaller>>,
    /// Whether it is offered only after a search has found it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub defer_loading: bool,
}

/// Format of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CustomFormat {
    /// Any text.
    #[default]
    Text,
    /// Text of a grammar.
    Grammar {
        /// Syntax of the grammar.
        syntax: GrammarSyntax,
        /// The grammar.
        definition: String,
    },
}

/// Syntax of a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrammarSyntax {
    /// A grammar of Lark.
    Lark,
    /// A regular expression.
    Regex,
}

impl CustomTool {
    /// Returns it as a function, whose description has the grammar: nobody enforces it on the model.
    pub fn function(&self) -> Function {
        let about = match &self.format {
            CustomFormat::Text => None,
            CustomFormat::Grammar { syntax, definition } => {
                let syntax = match syntax {
                    GrammarSyntax::Lark => "this Lark grammar",
                    GrammarSyntax::Regex => "this regular expression as a whole",
                };
                Some(format!("`{CUSTOM_INPUT}` must match {syntax}:\n\n{definition}"))
            }
        };
        let description: Vec<_> = self.description.clone().into_iter().chain(about).collect();
        let parameters = json!({
            "type": "object",
            "properties": {CUSTOM_INPUT: {"type": "string", "description": "The whole input of the tool."}},
            "required": [CUSTOM_INPUT],
            "additionalProperties": false,
        });
        Function {
            name: self.name.clone(),
            description: (!description.is_empty()).then(|| description.join("\n\n")),
            parameters: parameters.as_object().cloned(),
            strict: None,
            output_schema: None,
            allowed_callers: None,
            defer_loading: self.defer_loading,
        }
    }
}

/// A call of a tool that takes one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomCall {
    /// `ctc_…`.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// Id that its output refers to.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
    /// Namespace of the tool; omitted if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The text.
    pub input: String,
}

/// The result of a tool that takes one text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CustomCallOutput {
    /// `ctco_…`.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// Id of the call.
    pub call_id: String,
    /// The result.
    pub output: FunctionOutput,
}

impl CustomCall {
    /// Returns it as the model knows it.
    pub(super) fn into_function(self) -> FunctionCall {
        FunctionCall {
            id: self.id,
            status: self.status,
            call_id: self.call_id,
            name: self.name,
            namespace: self.namespace,
            arguments: json!({CUSTOM_INPUT: self.input}).to_string(),
            caller: None,
        }
    }
}

impl CustomCallOutput {
    /// Returns it as the model knows it.
    pub(super) fn into_function(self) -> FunctionCallOutput {
        FunctionCallOutput {
            caller: None,
            id: self.id,
            status: self.status,
            call_id: self.call_id,
            output: self.output,
        }
    }
}

/// Returns the text in the arguments of a call. Models that write the text alone mean it.
pub(crate) fn custom_input(arguments: &str) -> String {
    let fields: Option<Map<String, Value>> = serde_json::from_str(arguments).ok();
    let input = fields.as_ref().and_then(|fields| {
        let only = fields.values().next().filter(|_| fields.len() == 1);
        fields.get(CUSTOM_INPUT).or(only)?.as_str()
    });
    input.unwrap_or(arguments).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_call_is_found_however_a_model_writes_it() {
        for (arguments, input) in [
            ("{\"input\": \"a\\nb\"}", "a\nb"),
            ("{\"patch\": \"a\"}", "a"),
            ("{\"input\": \"a\", \"note\": \"b\"}", "a"),
            ("*** Begin Patch", "*** Begin Patch"),
            ("{\"x\": 1, \"y\": 2}", "{\"x\": 1, \"y\": 2}"),
        ] {
            assert_eq!(custom_input(arguments), input, "{arguments}");
        }
    }

    #[test]
    fn a_grammar_is_part_of_the_description() {
        let tool: CustomTool = serde_json::from_value(json!({
            "name": "plan", "description": "Plans.",
            "format": {"type": "grammar", "syntax": "regex", "definition": "[a-z]+"},
        }))
        .unwrap();
        assert_eq!(
            tool.function().description.unwrap(),
            "Plans.\n\n`input` must match this regular expression as a whole:\n\n[a-z]+"
        );
        let plain: CustomTool = serde_json::from_value(json!({"name": "plan"})).unwrap();
        assert_eq!(plain.function().description, None);
        assert_eq!(json!(plain), json!({"name": "plan", "format": {"type": "text"}}));
    }
}

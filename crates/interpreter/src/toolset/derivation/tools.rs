//! The toolset's two tools as a model provider wants them: a name, a description, a JSON Schema.

use serde_json::{Value, json};

use super::derived::Envelope;
use crate::contract::ArtifactKind;
use crate::toolset::{ToolDefinition, ToolEffect, output_schema};

/// Runs Python on fetched data.
pub const CODE_INTERPRETER: &str = "code_interpreter";
/// Draws a structured chart from one alias, without Python.
pub const RENDER_CHART: &str = "render_chart";

/// Returns the definition of the tool that runs code, which may have to name at least one input.
pub fn code_interpreter(require_inputs: bool) -> ToolDefinition {
    let mut required = vec!["code", "postProcessingContract"];
    let mut inputs = json!({
        "type": "object",
        "description": "Optional local names for aliases, such as {\"prices\": \"get_price_history_1\"}. \
                        Every alias is bound under its own name as well.",
        "additionalProperties": {"type": "string"},
    });
    if require_inputs {
        required.push("inputs");
        inputs["minProperties"] = json!(1);
        inputs["description"] = json!(
            "Local names for the aliases that the code reads, at least one, such as \
             {\"prices\": \"get_price_history_1\"}."
        );
    }
    ToolDefinition::new(
        CODE_INTERPRETER,
        "Derive with code",
        "Runs Python in a sandbox without network to derive metrics, tables or charts from the results of \
         earlier tool calls. It cannot fetch anything. Variables and files stay for later calls of the \
         same turn. End with set_result(value).",
        json!({
            "type": "object",
            "properties": {
                "intent": {"type": "string", "description": "What this call is for, in one sentence."},
                "code": {"type": "string", "description": "The Python code."},
                "inputs": inputs,
                "postProcessingContract": contract(),
            },
            "required": required,
            "additionalProperties": false,
        }),
        ToolEffect::Changes,
    )
    .returns(output_schema::<Envelope>())
    .resumes()
}

fn contract() -> Value {
    let kinds = ArtifactKind::ALL.map(ArtifactKind::name);
    json!({
        "type": "object",
        "description": "What the code will do; checked before it runs and after it ended.",
        "properties": {
            "operation": {"type": "string", "minLength": 1, "description": "What is computed."},
            "reason": {"type": "string", "minLength": 1, "description": "Why it takes code to compute it."},
            "inputAliases": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "uniqueItems": true,
                "description": "The aliases of the tool results that the code derives from.",
            },
            "expectedArtifacts": {
                "type": "array",
                "items": {"type": "string", "enum": kinds},
                "uniqueItems": true,
                "description": "The kinds of artifacts that the code emits; [] when it only computes.",
            },
        },
        "required": ["operation", "reason", "inputAliases", "expectedArtifacts"],
    })
}

/// The definition of the chart tool outside Python.
pub fn render_chart() -> ToolDefinition {
    ToolDefinition::new(
        RENDER_CHART,
        "Draw a chart",
        "Draws a structured chart directly from the rows of one tool result, without Python. For anything \
         that has to be computed, merged or reshaped first, call code_interpreter.",
        json!({
            "type": "object",
            "properties": {
                "alias": {"type": "string",
                    "description": "The alias of the tool result that holds the rows."},
                "path": {
                    "type": "string",
                    "description": "Where the rows are in it, such as data.rows; needed only where \
                                    several lists are candidates.",
                },
                "spec": chart(),
                "title": {"type": "string", "description": "The chart's title."},
                "alt": {"type": "string",
                    "description": "What the chart shows, for readers who cannot see it."},
            },
            "required": ["alias", "spec"],
            "additionalProperties": false,
        }),
        ToolEffect::Adds,
    )
    .returns(output_schema::<Envelope>())
    .resumes()
}

/// The outline of a chart's specification; each key is checked when the chart is made.
fn chart() -> Value {
    let axis = json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["time", "category", "number"]},
            "label": {"type": "string"},
            "format": {"type": "string", "enum": ["number", "percent", "currency", "compact"]},
            "valueScale": {"type": "string", "enum": ["fraction", "percent_points"]},
        },
    });
    let series = json!({
        "type": "object",
        "properties": {
            "key": {"type": "string"},
            "label": {"type": "string"},
            "type": {"type": "string"},
            "errorKey": {"type": "string"},
            "yAxis": {"type": "string", "enum": ["left", "right"]},
            "satisfies": {"type": "string",
                "description": "The one of expectedMeasures that the series shows."},
        },
        "required": ["key"],
    });
    let side = json!({"type": "string", "enum": ["left", "right"]});
    let place = json!({"type": ["string", "number"]});
    let color = json!({"type": "string", "description": "#rgb, #rrggbb, #rrggbbaa or a CSS color name."});
    let line = json!({
        "type": "object",
        "description": "A line across the chart at one value: give x or y.",
        "properties": {
            "x": place.clone(),
            "y": {"type": "number"},
            "label": {"type": "string"},
            "color": color.clone(),
            "yAxis": side.clone(),
        },
    });
    let area = json!({
        "type": "object",
        "description": "A span of the chart: give x1 and x2, or y1 and y2, or all.",
        "properties": {
            "x1": place.clone(),
            "x2": place,
            "y1": {"type": "number"},
            "y2": {"type": "number"},
            "label": {"type": "string"},
            "color": color,
            "yAxis": side,
        },
    });
    let kinds = [
        "line",
        "bar",
        "area",
        "scatter",
        "composed",
        "histogram",
        "heatmap",
        "candlestick",
    ];
    json!({
        "type": "object",
        "description": "The chart. Keys name columns of the rows.",
        "properties": {
            "type": {"type": "string", "enum": kinds},
            "xKey": {"type": "string"},
            "yKey": {"type": "string", "description": "The rows of a heatmap."},
            "valueKey": {"type": "string", "description": "The colour of a heatmap."},
            "series": {"type": "array", "items": series},
            "expectedMeasures": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The measures that the chart has to show; a series names in satisfies \
                                which one it is.",
            },
            "xAxis": axis.clone(),
            "yAxis": axis.clone(),
            "yAxisRight": axis,
            "legend": {"type": "boolean"},
            "stacked": {"type": "boolean"},
            "brush": {"type": "boolean"},
            "referenceLines": {"type": "array", "items": line},
            "referenceAreas": {"type": "array", "items": area},
            "ohlc": {
                "type": "object",
                "description": "The columns of a candlestick chart.",
                "properties": {
                    "openKey": {"type": "string"},
                    "highKey": {"type": "string"},
                    "lowKey": {"type": "string"},
                    "closeKey": {"type": "string"},
                },
                "required": ["openKey", "highKey", "lowKey", "closeKey"],
            },
        },
        "required": ["type"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_are_as_agreed() {
        #[derive(serde::Serialize)]
        struct ToolOffer {
            name: String,
            description: String,
            parameters: serde_json::Map<String, Value>,
        }
        let definitions = [code_interpreter(false), render_chart()].map(|it| ToolOffer {
            name: it.name,
            description: it.description,
            parameters: it.input_schema,
        });
        insta::with_settings!({sort_maps => true}, {
            insta::assert_json_snapshot!(definitions);
        });
    }

    #[test]
    fn inputs_are_required_where_the_policy_says_so() {
        let strict = code_interpreter(true).input_schema;
        assert_eq!(
            strict["required"],
            json!(["code", "postProcessingContract", "inputs"])
        );
        assert_eq!(strict["properties"]["inputs"]["minProperties"], 1);
        let usual = code_interpreter(false).input_schema;
        assert_eq!(usual["required"], json!(["code", "postProcessingContract"]));
        assert_eq!(usual["properties"]["inputs"]["minProperties"], Value::Null);
    }

    #[test]
    fn a_call_that_meets_the_schema_is_read() {
        let definition = code_interpreter(false);
        let arguments = json!({
            "intent": "i",
            "code": "set_result(1)",
            "inputs": {},
            "postProcessingContract": {
                "operation": "o", "reason": "r", "inputAliases": ["a_1"], "expectedArtifacts": ["image"]
            },
        });
        let names = definition.input_schema["properties"].as_object().unwrap().keys();
        assert!(names.eq(arguments.as_object().unwrap().keys()));
        let call = crate::contract::DerivationCall::read(&arguments).unwrap();
        let known = crate::contract::KnownAliases::new(["a_1"]);
        let call = crate::contract::ContractCall {
            contract: &call.contract,
            inputs: &call.inputs,
        };
        crate::contract::check_before(&call, &known, &crate::contract::ContractPolicy::default()).unwrap();
    }
}

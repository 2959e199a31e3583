//! A toolset as somebody else would add it: this file, and its line where toolsets are listed.

use std::sync::Arc;

use cellblock_interpreter::Result;
use cellblock_interpreter::toolset::*;
use serde_json::{Value, json};

#[derive(Debug)]
struct Greeter;

pub(crate) const KIND: ToolsetKind = ToolsetKind {
    name: "greeter",
    summary: "Greets",
    about: "How to greet",
    prelude: &[],
    on_results: false,
    definitions: |_| Greeter.definitions(),
    prompt: |_| Greeter.prompt(),
    open: |_, _, _| Box::pin(async { Ok(Arc::new(Greeter) as Arc<dyn Toolset>) }),
};

impl Toolset for Greeter {
    fn definitions(&self) -> Vec<ToolDefinition> {
        let takes = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        vec![ToolDefinition::new(
            "greet",
            "Greet",
            "Greets.",
            takes,
            ToolEffect::Reads,
        )]
    }

    fn call<'a>(&'a self, _: &'a str, given: Value, _: Watch<'a>) -> BoxFuture<'a, Result<ToolResult>> {
        let greeting = format!("Hello {}", given["name"].as_str().unwrap_or("stranger"));
        Box::pin(async move { Ok(ToolResult::Json(json!({"greeting": greeting}))) })
    }

    fn prompt(&self) -> String {
        "Greet everybody with `greet`.".to_owned()
    }
}

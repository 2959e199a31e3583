//! The client's functions, under names that every model can call: only OpenAI's own models know
//! namespaces.

use std::collections::HashSet;

use cellblock_interpreter::connector::{Card, FetchEffect};
use serde_json::{Value, json};

use crate::tools::{free, qualified};
use crate::wire::{CustomFormat, CustomTool, Function, Item, Namespace, Tool, ToolName};

/// The client's functions, in their order.
#[derive(Debug, Default)]
pub(super) struct Functions(Vec<ClientFunction>);

/// A function of the client.
#[derive(Debug)]
pub(super) struct ClientFunction {
    /// The model's name for it.
    pub(super) known_as: String,
    /// The client's name for it.
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    /// The function, as offered to a model.
    pub(super) function: Function,
    /// Whether the model may call it.
    direct: bool,
    /// Whether the model may call it only after it was loaded.
    deferred: bool,
    /// Description of it for code, if code may call it.
    card: Option<Card>,
    /// Format of its text, if it takes one.
    pub(super) custom: Option<CustomFormat>,
}

/// A function of the client that code may call.
#[derive(Clone, Debug)]
pub(super) struct CodeFunction {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    /// Description of it for code.
    pub(super) card: Card,
}

impl Functions {
    /// Returns the functions among these tools. One without a namespace always keeps its name. Functions that
    /// only searches of earlier turns know come last.
    pub(super) fn of(tools: &[Tool], earlier: &[Tool]) -> Self {
        let outside = tools.iter().chain(earlier);
        let outside = outside.filter(|tool| matches!(tool, Tool::Function(_) | Tool::Custom(_)));
        let mut taken: HashSet<String> = outside.map(|tool| tool.name().to_owned()).collect();
        let mut functions = Self::default();
        functions.add(tools, &mut taken);
        let count = functions.0.len();
        functions.add(earlier, &mut taken);
        let searches = tools.iter().any(|tool| matches!(tool, Tool::ToolSearch(_)));
        for (place, named) in functions.0.iter_mut().enumerate() {
            named.deferred = place >= count || named.deferred && searches;
        }
        functions
    }

    /// Adds the functions of tools, except those that are there.
    fn add(&mut self, tools: &[Tool], taken: &mut HashSet<String>) {
        for (namespace, function) in tools.iter().flat_map(Tool::functions) {
            if !self.has(namespace, &function.name) {
                self.0.push(ClientFunction::new(namespace, function, taken));
            }
        }
        for (namespace, custom) in tools.iter().flat_map(Tool::customs) {
            if !self.has(namespace, &custom.name) {
                self.0.push(ClientFunction::of_text(namespace, custom, taken));
            }
        }
    }

    fn has(&self, namespace: Option<&Namespace>, name: &str) -> bool {
        self.named(namespace.map(|it| it.name.as_str()), name).is_some()
    }

    /// Returns the functions that the model may call only after they were loaded.
    pub(super) fn deferred(&self) -> impl Iterator<Item = &ClientFunction> {
        self.0.iter().filter(|named| named.direct && named.deferred)
    }

    /// Returns the client's function with this model name, if the model may call it.
    pub(super) fn find(&self, known_as: &str) -> Option<&ClientFunction> {
        self.0
            .iter()
            .find(|named| named.known_as == known_as && named.direct)
    }

    /// Returns the functions that code may call.
    pub(super) fn of_code(&self) -> Vec<CodeFunction> {
        let of_code = self.0.iter().filter_map(|named| {
            Some(CodeFunction {
                name: named.name.clone(),
                namespace: named.namespace.clone(),
                card: named.card.clone()?,
            })
        });
        of_code.collect()
    }

    /// Returns all names that the model knows.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|named| named.known_as.as_str())
    }

    /// Returns the functions of a tool, as offered to a model that need not load them.
    pub(super) fn offered(&self, tool: &Tool) -> Vec<Function> {
        let own = self.own(tool).filter(|named| !named.deferred);
        own.map(|named| named.function.clone()).collect()
    }

    /// Returns the functions of a tool that the model may call.
    pub(super) fn own<'a>(&'a self, tool: &'a Tool) -> impl Iterator<Item = &'a ClientFunction> {
        let functions = tool
            .functions()
            .map(|(namespace, function)| (namespace, &function.name));
        let customs = tool
            .customs()
            .map(|(namespace, custom)| (namespace, &custom.name));
        let own = functions.chain(customs);
        let own = own.filter_map(|(namespace, name)| self.named(namespace.map(|it| it.name.as_str()), name));
        own.filter(|named| named.direct)
    }

    /// Returns a function under its model name.
    pub(super) fn known_as(&self, namespace: Option<&str>, name: &str) -> ToolName {
        ToolName::Function {
            name: self.name(namespace, name),
            namespace: None,
        }
    }

    /// Converts calls in a conversation to the model's names.
    pub(super) fn rename(&self, items: &mut [Item]) {
        for item in items {
            if let Item::FunctionCall(call) = item
                && let Some(namespace) = call.namespace.take()
            {
                call.name = self.name(Some(&namespace), &call.name);
            }
        }
    }

    /// Returns the model's name of a function; for one that is no longer offered, the name that it
    /// most likely had.
    fn name(&self, namespace: Option<&str>, name: &str) -> String {
        match (self.named(namespace, name), namespace) {
            (Some(named), _) => named.known_as.clone(),
            (None, Some(namespace)) => qualified(namespace, name),
            (None, None) => name.to_owned(),
        }
    }

    fn named(&self, namespace: Option<&str>, name: &str) -> Option<&ClientFunction> {
        let is = |named: &&ClientFunction| named.namespace.as_deref() == namespace && named.name == name;
        self.0.iter().find(is)
    }
}

impl ClientFunction {
    /// Takes a tool whose one parameter is a text.
    fn of_text(namespace: Option<&Namespace>, custom: &CustomTool, taken: &mut HashSet<String>) -> Self {
        Self {
            custom: Some(custom.format.clone()),
            ..Self::new(namespace, &custom.function(), taken)
        }
    }

    fn new(namespace: Option<&Namespace>, function: &Function, taken: &mut HashSet<String>) -> Self {
        let mut known = Function {
            output_schema: None,
            allowed_callers: None,
            defer_loading: false,
            ..function.clone()
        };
        if let Some(namespace) = namespace {
            known.name = free(qualified(&namespace.name, &function.name), taken);
            taken.insert(known.name.clone());
            let about = format!("(`{}`: {})", namespace.name, namespace.description);
            known.description = Some(match &function.description {
                Some(description) => format!("{description}\n\n{about}"),
                None => about,
            });
        }
        Self {
            known_as: known.name.clone(),
            name: function.name.clone(),
            namespace: namespace.map(|namespace| namespace.name.clone()),
            direct: function.is_direct(),
            deferred: function.defer_loading,
            card: function.is_programmatic().then(|| Card {
                name: known.name.clone(),
                description: known.description.clone().unwrap_or_default(),
                parameters: known.parameters.clone().map_or_else(|| json!({}), Value::Object),
                effect: FetchEffect::Writes,
                returns: function.output_schema.clone().map(Value::Object),
                ..Card::default()
            }),
            function: known,
            custom: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn functions(tools: &serde_json::Value) -> (Vec<Tool>, Functions) {
        let tools: Vec<Tool> = serde_json::from_value(tools.clone()).unwrap();
        let functions = Functions::of(&tools, &[]);
        (tools, functions)
    }

    fn namespace(name: &str, functions: &[&str]) -> serde_json::Value {
        let function = |name: &&str| json!({"type": "function", "name": name, "description": "d"});
        let functions: Vec<_> = functions.iter().map(function).collect();
        json!({"type": "namespace", "name": name, "description": "about it", "tools": functions})
    }

    #[test]
    fn names_are_short_and_unique() {
        let long = "n".repeat(64);
        let (_, functions) = functions(&json!([
            namespace("a", &["f", "b__c"]),
            namespace("a__b", &["c"]),
            namespace(&long, &["one", "two"]),
            {"type": "function", "name": "a__f"},
        ]));
        let names: Vec<_> = functions.names().collect();
        let numbered = format!("{}_2", "n".repeat(62));
        assert_eq!(
            names,
            ["a__f_2", "a__b__c", "a__b__c_2", &long, &numbered, "a__f"]
        );
        let own = |known_as| {
            let found = functions.find(known_as).unwrap();
            (found.namespace.as_deref(), found.name.as_str())
        };
        assert_eq!(own("a__f"), (None, "a__f"));
        assert_eq!(own("a__f_2"), (Some("a"), "f"));
        assert_eq!(own("a__b__c_2"), (Some("a__b"), "c"));
        assert_eq!(own(&numbered), (Some(long.as_str()), "two"));
        assert!(functions.find("f").is_none());
    }

    #[test]
    fn a_model_receives_the_description_of_a_namespace() {
        let (tools, functions) =
            functions(&json!([namespace("a", &["f"]), {"type": "function", "name": "g"}]));
        let offered: Vec<_> = tools.iter().flat_map(|tool| functions.offered(tool)).collect();
        assert_eq!(
            json!(offered),
            json!([
                {"name": "a__f", "description": "d\n\n(`a`: about it)", "parameters": null, "strict": null},
                {"name": "g", "description": null, "parameters": null, "strict": null},
            ])
        );
    }

    #[test]
    fn a_call_of_a_function_that_is_gone_has_its_namespace_in_its_name() {
        let call = |namespace: &str, name: &str| {
            json!({"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "c", "name": name,
                   "namespace": namespace, "arguments": "{}"})
        };
        let (_, functions) =
            functions(&json!([namespace("a", &["f"]), {"type": "function", "name": "a__f"}]));
        let mut items: Vec<Item> = serde_json::from_value(json!([call("a", "f"), call("b", "f")])).unwrap();
        functions.rename(&mut items);
        let names: Vec<_> = json!(items)
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (item["name"].clone(), item.get("namespace").cloned()))
            .collect();
        assert_eq!(names, [(json!("a__f_2"), None), (json!("b__f"), None)]);
    }
}

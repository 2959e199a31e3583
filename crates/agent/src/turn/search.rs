//! Searches of deferred tools: the model is offered those that it has found from then on.
//!
//! ```text
//! tool_search {query} ──> rank ──> tool_search_call, tool_search_output ──> offered in the next step
//! ```

use std::fmt::Write as _;

use cellblock_interpreter::text::counted;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::builder::ResponseBuilder;
use super::functions::ClientFunction;
use super::step::{Call, CallPurpose};
use crate::tools::{SearchDocument, ServerTool, rank};
use crate::wire::{
    AllowedTools, CallKind, Function, ItemStatus, McpTool, Namespace, SearchCall, SearchExecution,
    SearchOutput, Secrets, Tool,
};

/// Number of tools that a search loads if the model does not say, and the maximum.
const USUAL: usize = 8;
const MAX_FOUND: usize = 20;
/// Maximum number of entries in the description of the search, and of characters of each.
const LISTED: usize = 100;
const ABOUT: usize = 200;

/// Arguments of a search that is served here.
#[derive(Debug, Deserialize)]
struct SearchArguments {
    query: String,
    limit: Option<u64>,
}

impl ResponseBuilder<'_> {
    /// Returns the search as models know it, if there is something to find.
    pub(super) fn search_function(&self) -> Option<Function> {
        let search = self.deferral.search.as_ref()?;
        let parameters = match (search.execution, &search.parameters) {
            (SearchExecution::Client, Some(parameters)) => Some(parameters.clone()),
            _ => json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Words for what the tool does, or its name."},
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_FOUND,
                        "description": format!("Maximum number of tools; {USUAL} by default."),
                    },
                },
                "required": ["query"],
                "additionalProperties": false,
            })
            .as_object()
            .cloned(),
        };
        let mut description = search.description.clone().unwrap_or_default();
        if search.execution == SearchExecution::Server {
            let list = self.list()?;
            let before = if description.is_empty() { "" } else { "\n\n" };
            // Writing to a string cannot fail.
            let _ = write!(
                description,
                "{before}Finds tools that are not loaded, and loads them: they can be called in the next \
                 step. Search before you say that something cannot be done. These tools can be found:{list}"
            );
        } else if description.is_empty() {
            description.push_str("Finds tools that are not loaded, and loads them.");
        }
        Some(Function {
            name: CallKind::Search.function().to_owned(),
            description: Some(description),
            parameters,
            strict: None,
            output_schema: None,
            allowed_callers: None,
            defer_loading: false,
        })
    }

    /// Returns a list of what can be found: namespaces and servers as a whole. `None` if it is empty.
    fn list(&self) -> Option<String> {
        let mut entries: Vec<(String, String, usize)> = Vec::new();
        let mut add =
            |name: &str, about: &str, whole: bool| match entries.iter_mut().find(|entry| entry.0 == name) {
                Some(entry) if whole => entry.2 += 1,
                _ => entries.push((name.to_owned(), about.to_owned(), usize::from(whole))),
            };
        for named in self.functions.deferred() {
            match &named.namespace {
                Some(namespace) => add(namespace, self.about(namespace), true),
                None => add(
                    &named.name,
                    named.function.description.as_deref().unwrap_or_default(),
                    false,
                ),
            }
        }
        for bound in self.catalog.deferred() {
            add(&bound.label, bound.about.as_deref().unwrap_or_default(), true);
        }
        let mut list = String::new();
        for (name, about, tools) in entries.iter().take(LISTED) {
            let about: String = about.split_whitespace().collect::<Vec<_>>().join(" ");
            let about: String = about.chars().take(ABOUT).collect();
            let count = if *tools > 0 {
                format!(" ({})", counted(*tools, "tool"))
            } else {
                String::new()
            };
            let about = if about.is_empty() {
                about
            } else {
                format!(": {about}")
            };
            // Writing to a string cannot fail.
            let _ = write!(list, "\n- `{name}`{count}{about}");
        }
        if entries.len() > LISTED {
            let _ = write!(list, "\n- and {} more", entries.len() - LISTED);
        }
        (!entries.is_empty()).then_some(list)
    }

    /// Returns the tools of the request and of earlier searches.
    fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.draft.response().tools.iter().chain(&self.deferral.earlier)
    }

    /// Returns the description of a namespace.
    fn about(&self, name: &str) -> &str {
        let mut namespaces = self.tools().filter_map(|tool| match tool {
            Tool::Namespace(namespace) if namespace.name == name => Some(namespace.description.as_str()),
            _ => None,
        });
        namespaces.next().unwrap_or_default()
    }

    /// Serves a search: writes its items, and offers what it has found.
    pub(super) fn search(&mut self, call: &Call) -> Result<CallPurpose, String> {
        let arguments = arguments(&call.arguments)?;
        let read: SearchArguments = serde_json::from_value(arguments.clone().into()).map_err(|_| {
            "The tools were not searched: `query` must be a string with words for what the tool does, and \
             `limit` an integer."
                .to_owned()
        })?;
        let limit = read
            .limit
            .map_or(USUAL, |limit| usize::try_from(limit).unwrap_or(MAX_FOUND));
        let names = self.rank(&read.query, limit.clamp(1, MAX_FOUND));
        let call = SearchCall {
            id: self.ids.mint(CallKind::Search.call_prefix()),
            status: ItemStatus::Completed,
            execution: SearchExecution::Server,
            call_id: None,
            arguments: arguments.into(),
        };
        let output = SearchOutput {
            id: self.ids.mint(CallKind::Search.output_prefix()),
            status: ItemStatus::Completed,
            execution: SearchExecution::Server,
            call_id: None,
            tools: self.definitions(&names),
        };
        self.deferral.load(names);
        self.draft.whole_search_call(call.clone());
        self.draft.whole_search_output(output.clone());
        Ok(CallPurpose::Searched(Box::new((call, output))))
    }

    /// Returns the model's names of the tools that a search finds, the best first.
    fn rank(&self, query: &str, limit: usize) -> Vec<String> {
        let mut names = Vec::new();
        let mut documents = Vec::new();
        for named in self.functions.deferred() {
            names.push(&named.known_as);
            documents.push(self.document(named));
        }
        for bound in self.catalog.deferred() {
            let mut document = SearchDocument::default();
            document.name(&bound.name);
            document.name(&bound.label);
            document.text(&bound.tool.description);
            document.text(bound.about.as_deref().unwrap_or_default());
            add_parameters(&mut document, Some(&bound.tool.input_schema));
            names.push(&bound.name);
            documents.push(document);
        }
        let found = rank(query, &documents).into_iter().take(limit);
        found
            .filter_map(|place| names.get(place).map(|name| (*name).clone()))
            .collect()
    }

    fn document(&self, named: &ClientFunction) -> SearchDocument {
        let mut document = SearchDocument::default();
        document.name(&named.known_as);
        document.name(&named.name);
        if let Some(namespace) = &named.namespace {
            document.name(namespace);
            document.text(self.about(namespace));
        }
        document.text(named.function.description.as_deref().unwrap_or_default());
        add_parameters(&mut document, named.function.parameters.as_ref());
        document
    }

    /// Returns tools as the client has defined them, by their model names: members of a namespace in it, and
    /// tools of a server as those that are allowed.
    fn definitions(&self, names: &[String]) -> Vec<Tool> {
        let mut found: Vec<Tool> = Vec::new();
        for name in names {
            let own = self.functions.find(name);
            let tool = match own {
                Some(own) => self.tools().find_map(|tool| definition(tool, own)),
                None => self.catalog.find(name).and_then(|bound| self.server_tool(bound)),
            };
            let Some(tool) = tool else { continue };
            let same = |other: &&mut Tool| {
                std::mem::discriminant(*other) == std::mem::discriminant(&tool) && other.name() == tool.name()
            };
            match (found.iter_mut().find(same), tool) {
                (Some(Tool::Namespace(there)), Tool::Namespace(more)) => there.tools.extend(more.tools),
                (Some(Tool::Mcp(there)), Tool::Mcp(more)) => add_allowed(there, more.allowed_tools),
                (_, tool) => found.push(tool),
            }
        }
        found
    }

    fn server_tool(&self, bound: &ServerTool) -> Option<Tool> {
        let mut servers = self.tools().filter_map(|tool| match tool {
            Tool::Mcp(tool) if tool.server_label == bound.label => Some(tool),
            _ => None,
        });
        Some(Tool::Mcp(McpTool {
            allowed_tools: Some(AllowedTools::Names(vec![bound.tool.name.clone()])),
            headers: Secrets::default(),
            ..servers.next()?.clone()
        }))
    }
}

/// Reads the arguments of a call; the error is for the model.
pub(super) fn arguments(arguments: &str) -> Result<Map<String, Value>, String> {
    let wrong = |problem: String| format!("The tools were not searched: {problem}.");
    match serde_json::from_str(arguments) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(wrong("the arguments must be a JSON object".to_owned())),
        Err(error) => Err(wrong(format!("the arguments are not JSON: {error}"))),
    }
}

/// Returns the part of a tool that is this function.
fn definition(tool: &Tool, named: &ClientFunction) -> Option<Tool> {
    match (tool, &named.namespace) {
        (Tool::Function(_) | Tool::Custom(_), None) if tool.name() == named.name => Some(tool.clone()),
        (Tool::Namespace(namespace), Some(name)) if namespace.name == *name => {
            let member = namespace
                .tools
                .iter()
                .find(|member| member.name() == named.name)?;
            Some(Tool::Namespace(Namespace {
                name: namespace.name.clone(),
                description: namespace.description.clone(),
                tools: vec![member.clone()],
            }))
        }
        _ => None,
    }
}

fn add_allowed(tool: &mut McpTool, more: Option<AllowedTools>) {
    if let (Some(AllowedTools::Names(names)), Some(AllowedTools::Names(more))) =
        (&mut tool.allowed_tools, more)
    {
        names.extend(more);
    }
}

fn add_parameters(document: &mut SearchDocument, schema: Option<&Map<String, Value>>) {
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    for (name, property) in properties.into_iter().flatten() {
        document.text(name);
        let about = property.get("description").and_then(Value::as_str);
        document.text(about.unwrap_or_default());
    }
}

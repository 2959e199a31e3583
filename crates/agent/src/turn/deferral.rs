//! Deferred tools of a turn: the model does not see them until a search has loaded them.

use super::builder::ResponseBuilder;
use crate::tools::ServerTool;
use crate::wire::{
    AllowedTools, CallKind, Function, Item, MAX_DEFERRED, McpTool, SearchTool, Tool, ToolChoice, ToolName,
};

/// The deferred tools of a turn.
#[derive(Debug, Default)]
pub(super) struct DeferredTools {
    /// The search, if the request has one.
    pub(super) search: Option<SearchTool>,
    /// Tools that searches of earlier turns loaded, in their order.
    earlier: Vec<Tool>,
    /// The model's names of loaded tools; the last were loaded last.
    loaded: Vec<String>,
}

impl DeferredTools {
    /// Returns the deferred tools of a request. Tools of earlier searches count only if it can search.
    pub(super) fn of(tools: &[Tool], conversation: &[Item]) -> Self {
        let search = tools.iter().find_map(|tool| match tool {
            Tool::ToolSearch(search) => Some(search.clone()),
            _ => None,
        });
        let mut earlier = Vec::new();
        // Models know tools by name, so that a function like a hosted tool would be offered as a second one.
        let fixed: Vec<_> = tools.iter().filter_map(Tool::fixed_name).collect();
        let is_fixed =
            |tool: &Tool| matches!(tool, Tool::Function(_) | Tool::Custom(_)) && fixed.contains(&tool.name());
        if search.is_some() {
            let outputs = conversation.iter().rev().filter_map(|item| match item {
                Item::ToolSearchOutput(output) => Some(&output.tools),
                _ => None,
            });
            // The last ones, if there are too many.
            let mut room = MAX_DEFERRED;
            let tools = outputs.flat_map(|tools| tools.iter().rev());
            for tool in tools.filter(|tool| !is_fixed(tool)) {
                let Some(left) = room.checked_sub(tool.offered_as()) else {
                    break;
                };
                room = left;
                earlier.push(tool.clone());
            }
            earlier.reverse();
        }
        Self {
            search,
            earlier,
            loaded: Vec::new(),
        }
    }

    /// Returns the tools that searches of earlier turns loaded.
    pub(super) fn earlier(&self) -> &[Tool] {
        &self.earlier
    }

    /// Offers tools from now on, each once.
    pub(super) fn load(&mut self, names: Vec<String>) {
        for name in names {
            self.loaded.retain(|loaded| *loaded != name);
            self.loaded.push(name);
        }
    }
}

impl ResponseBuilder<'_> {
    /// Loads the tools that earlier turns have found, and the one that the model has to call.
    pub(super) fn load_earlier(&mut self) {
        let earlier = self.deferral.earlier.iter();
        let mut names: Vec<String> = earlier.flat_map(|tool| self.names(tool)).collect();
        if let ToolChoice::Tool(chosen) = &self.draft.response().tool_choice {
            match chosen {
                ToolName::Function { name, namespace } | ToolName::Custom { name, namespace } => {
                    if let ToolName::Function { name, .. } =
                        self.functions.known_as(namespace.as_deref(), name)
                    {
                        names.extend(Some(name).filter(|name| self.is_deferred(name)));
                    }
                }
                ToolName::Mcp { server_label, name } => {
                    let known = self.catalog.names(server_label, name.as_deref());
                    names.extend(known.filter(|name| self.is_deferred(name)).map(str::to_owned));
                }
                ToolName::CodeInterpreter
                | ToolName::Shell
                | ToolName::ApplyPatch
                | ToolName::ProgrammaticToolCalling => {}
            }
        }
        self.deferral.load(names);
    }

    /// Returns the model's names of a tool's deferred functions.
    fn names(&self, tool: &Tool) -> Vec<String> {
        if let Tool::Mcp(tool) = tool {
            let of_server =
                |bound: &&ServerTool| bound.label == tool.server_label && allows(tool, &bound.tool.name);
            let found = self.catalog.deferred().filter(of_server);
            return found.map(|bound| bound.name.clone()).collect();
        }
        let own = self.functions.own(tool).map(|named| named.known_as.clone());
        own.filter(|name| self.is_deferred(name)).collect()
    }

    fn is_deferred(&self, name: &str) -> bool {
        self.functions.deferred().any(|named| named.known_as == name)
            || self.catalog.deferred().any(|bound| bound.name == name)
    }

    /// Returns whether the model has to find this tool before it can call it.
    pub(super) fn is_hidden(&self, name: &str) -> bool {
        self.is_deferred(name) && !self.deferral.loaded.iter().any(|loaded| loaded == name)
    }

    /// Returns the functions of a tool that a search loaded, as the model knows them.
    pub(super) fn found(&self, tool: &Tool) -> Vec<Function> {
        let functions = self.functions.own(tool).map(|named| named.function.clone());
        let names = if matches!(tool, Tool::Mcp(_)) {
            self.names(tool)
        } else {
            Vec::new()
        };
        let bound = names.iter().filter_map(|name| self.catalog.find(name));
        functions.chain(bound.map(ServerTool::function)).collect()
    }

    /// Returns the loaded tools that fit, the last ones if not all do.
    pub(super) fn loaded(&self, room: usize) -> Vec<Function> {
        let loaded = &self.deferral.loaded;
        let last = loaded.iter().skip(loaded.len().saturating_sub(room));
        let function = |name: &String| {
            let of_client = self.functions.find(name).map(|named| named.function.clone());
            of_client.or_else(|| self.catalog.find(name).map(ServerTool::function))
        };
        last.filter_map(function).collect()
    }

    /// Adds the search to the names that a model may call, if it needs it to call one of them.
    pub(super) fn with_search(&self, mut names: Vec<ToolName>) -> Vec<ToolName> {
        let hidden =
            |name: &ToolName| matches!(name, ToolName::Function { name, .. } if self.is_hidden(name));
        if names.iter().any(hidden) {
            names.push(ToolName::Function {
                name: CallKind::Search.function().to_owned(),
                namespace: None,
            });
        }
        names
    }
}

/// Returns the message for a call of a tool that is not loaded.
pub(super) fn not_loaded(name: &str) -> String {
    let search = CallKind::Search.function();
    format!(
        "`{name}` was not called: it is not loaded. Find it with `{search}`, and call it in the next step."
    )
}

fn allows(tool: &McpTool, name: &str) -> bool {
    match &tool.allowed_tools {
        Some(AllowedTools::Names(names)) => names.iter().any(|allowed| allowed == name),
        Some(AllowedTools::Filter { tool_names, .. }) => tool_names
            .as_ref()
            .is_none_or(|names| names.iter().any(|allowed| allowed == name)),
        None => true,
    }
}

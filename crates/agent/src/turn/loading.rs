//! Deferred tools that a response offers once a search has loaded them.

use super::builder::ResponseBuilder;
use crate::tools::ServerTool;
use crate::wire::{AllowedTools, CallKind, Function, McpTool, Tool, ToolChoice, ToolName};

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

fn allows(tool: &McpTool, name: &str) -> bool {
    match &tool.allowed_tools {
        Some(AllowedTools::Names(names)) => names.iter().any(|allowed| allowed == name),
        Some(AllowedTools::Filter { tool_names, .. }) => tool_names
            .as_ref()
            .is_none_or(|names| names.iter().any(|allowed| allowed == name)),
        None => true,
    }
}

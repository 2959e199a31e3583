//! The servers of one request.

use std::sync::Arc;

use cellblock_interpreter::toolset::ToolDefinition;

use super::Tools;
use crate::wire::{AllowedTools, ApiError, McpTool, Request, Tool};
use crate::{ToolServer, ToolServerAddress};

/// A server whose tools one turn may call.
#[derive(Clone, Debug)]
pub struct Source {
    /// The client's name for it.
    pub label: String,
    /// The server.
    pub server: Arc<dyn ToolServer>,
    /// The client's description of it.
    pub description: Option<String>,
    /// Selection of its tools.
    pub allowed: Option<AllowedTools>,
    /// Whether the request names it, so that the client receives its list of tools.
    pub named: bool,
    /// Whether the request names it by its address, rather than by the label of a configured
    /// server.
    pub requested: bool,
}

impl Source {
    /// Returns whether the request permits the model to call this tool.
    pub(crate) fn allows(&self, tool: &ToolDefinition) -> bool {
        let (names, read_only) = match &self.allowed {
            None => return true,
            Some(AllowedTools::Names(names)) => (Some(names), None),
            Some(AllowedTools::Filter {
                tool_names,
                read_only,
            }) => (tool_names.as_ref(), *read_only),
        };
        let alleged = tool
            .annotations
            .as_ref()
            .and_then(|hints| hints.get("readOnlyHint")?.as_bool())
            .unwrap_or(false);
        names.is_none_or(|names| names.contains(&tool.name))
            && read_only.is_none_or(|wanted| wanted == alleged)
    }
}

/// Returns the servers whose tools a request's turn may call: those that it names, and with
/// `code_interpreter` those that the operator always offers. Does not contact them.
pub fn sources(tools: &Tools, request: &Request) -> Result<Vec<Source>, ApiError> {
    let mut sources = Vec::new();
    for (place, tool) in request.tools.iter().enumerate() {
        if let Tool::Mcp(tool) = tool {
            sources.push(named(tools, tool, place)?);
        }
    }
    let interpreter = |tool: &Tool| matches!(tool, Tool::CodeInterpreter { .. });
    if request.tools.iter().any(interpreter) {
        for configured in tools.configured.iter().filter(|configured| configured.always) {
            let label = configured.server.label();
            if sources.iter().any(|source: &Source| source.label == label) {
                continue;
            }
            sources.push(Source {
                label: label.to_owned(),
                server: Arc::clone(&configured.server),
                description: None,
                allowed: None,
                named: false,
                requested: false,
            });
        }
    }
    Ok(sources)
}

fn named(tools: &Tools, tool: &McpTool, place: usize) -> Result<Source, ApiError> {
    let server = match &tool.server_url {
        None => configured(tools, tool, place)?,
        Some(url) => addressed(tools, tool, url, place)?,
    };
    Ok(Source {
        label: tool.server_label.clone(),
        server,
        description: tool.server_description.clone(),
        allowed: tool.allowed_tools.clone(),
        named: true,
        requested: tool.server_url.is_some(),
    })
}

/// Returns a configured server. Its credentials are the operator's, so a request cannot send its
/// own.
fn configured(tools: &Tools, tool: &McpTool, place: usize) -> Result<Arc<dyn ToolServer>, ApiError> {
    let label = &tool.server_label;
    if !tool.headers.0.is_empty() {
        let message = format!(
            "`tools[{place}].headers` is for a server at a `server_url`; leave it out for `{label}`, which this gateway knows by its label"
        );
        return Err(ApiError::invalid(
            format!("tools[{place}].headers"),
            "invalid_value",
            message,
        ));
    }
    let found = tools
        .configured
        .iter()
        .find(|configured| configured.server.label() == label);
    found
        .map(|configured| Arc::clone(&configured.server))
        .ok_or_else(|| {
            let known: Vec<_> = tools
                .configured
                .iter()
                .map(|configured| format!("`{}`", configured.server.label()))
                .collect();
            let known = if known.is_empty() {
                "none is configured here".to_owned()
            } else {
                format!("there are {}", known.join(", "))
            };
            let message = format!("there is no server labelled `{label}` ({known}); send its `server_url`");
            ApiError::invalid(format!("tools[{place}].server_label"), "unknown_server", message)
        })
}

fn addressed(
    tools: &Tools,
    tool: &McpTool,
    url: &str,
    place: usize,
) -> Result<Arc<dyn ToolServer>, ApiError> {
    let refused = |message: String| {
        Err(ApiError::invalid(
            format!("tools[{place}].server_url"),
            "server_not_allowed",
            message,
        ))
    };
    let Some(named) = &tools.named else {
        return refused(
            "servers that a request names are not allowed here; the operator can allow addresses of some"
                .to_owned(),
        );
    };
    let address = ToolServerAddress {
        label: tool.server_label.clone(),
        url: url.to_owned(),
        headers: tool.headers.0.clone(),
    };
    named
        .at(address)
        .or_else(|error| refused(format!("`tools[{place}].server_url`: {error}")))
}

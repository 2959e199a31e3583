//! The servers of one request.

use std::sync::Arc;

use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::toolset::{ToolDefinition, ToolsetKind, ToolsetTerms};

use super::Tools;
use crate::wire::{AllowedTools, ApiError, ApprovalRule, McpTool, ResponseRequest, Tool};
use crate::{OfferedTools, ToolServer, ToolServerAddress, ToolServerError, ToolServers};

/// Label of the tools that this server offers of its own accord.
pub const OWN: &str = "cellblock";

/// A server or a toolset whose tools one turn may call.
#[derive(Clone, Debug)]
pub struct Source {
    /// The client's name for it.
    pub label: String,
    /// Callee that serves their calls.
    pub callee: Callee,
    /// The client's description of it.
    pub description: Option<String>,
    /// Selection of its tools.
    pub allowed: Option<AllowedTools>,
    /// Whether the request names it, so that the client receives its list of tools.
    pub named: bool,
    /// Whether the request names it by its address, rather than by the label of a configured
    /// server.
    pub requested: bool,
    /// Calls of its tools that need approval.
    pub approval: ApprovalRule,
    /// Whether the model has to search for its tools before it can call them.
    pub deferred: bool,
}

/// The server or the toolset that serves calls of a tool.
#[derive(Clone, Debug)]
pub enum Callee {
    /// A server. Its results are data that code can derive from.
    Server(Arc<dyn ToolServer>),
    /// A toolset, over the session of the turn's code.
    Toolset(Box<OfferedToolset>),
}

/// A toolset that requests may name as they name servers.
#[derive(Clone, Debug)]
pub struct OfferedToolset {
    /// The toolset.
    pub kind: ToolsetKind,
    /// Its terms.
    pub terms: ToolsetTerms,
}

impl Callee {
    pub(super) async fn tools(&self) -> Result<Arc<OfferedTools>, ToolServerError> {
        match self {
            Self::Server(server) => server.tools().await,
            Self::Toolset(toolset) => Ok(Arc::new(OfferedTools {
                tools: (toolset.kind.definitions)(&toolset.terms),
                left_out: Vec::new(),
            })),
        }
    }
}

impl Source {
    /// Returns the section of a system prompt that explains its tools.
    pub(crate) fn prompt(&self) -> Option<String> {
        match &self.callee {
            Callee::Server(_) => None,
            Callee::Toolset(toolset) => {
                Some((toolset.kind.prompt)(&toolset.terms)).filter(|prompt| !prompt.is_empty())
            }
        }
    }

    /// Returns a toolset that this server offers although the request does not name it.
    pub fn own(toolset: OfferedToolset) -> Self {
        Self::unnamed(OWN, Callee::Toolset(Box::new(toolset)))
    }

    fn unnamed(label: &str, callee: Callee) -> Self {
        Self {
            label: label.to_owned(),
            callee,
            description: None,
            allowed: None,
            named: false,
            requested: false,
            approval: ApprovalRule::NEVER,
            deferred: false,
        }
    }

    /// Returns whether this server offers it although the request does not name it.
    pub(crate) const fn is_own(&self) -> bool {
        !self.named && !self.fetches()
    }

    /// Returns whether its results are data that code can derive from.
    pub const fn fetches(&self) -> bool {
        matches!(self.callee, Callee::Server(_))
    }

    /// Returns whether the request permits the model to call this tool.
    pub(crate) fn allows(&self, tool: &ToolDefinition) -> bool {
        self.allowed
            .as_ref()
            .is_none_or(|allowed| allowed.allows(&tool.name, reads(tool)))
    }

    /// Returns whether calls of this tool need approval.
    pub(super) fn asks(&self, tool: &ToolDefinition) -> bool {
        self.approval.asks(&tool.name, reads(tool))
    }
}

/// Returns whether a tool only reads, as its server claims.
fn reads(tool: &ToolDefinition) -> bool {
    let hints = tool.annotations.as_ref();
    let alleged = hints.and_then(|hints| hints.get("readOnlyHint")?.as_bool());
    alleged.unwrap_or(false)
}

/// Returns the servers and toolsets whose tools a request's turn may call: those that it names, and
/// with `code_interpreter` those servers that the operator always offers. Does not contact them.
pub fn sources(
    tools: &Tools,
    toolsets: &[OfferedToolset],
    request: &ResponseRequest,
) -> Result<Vec<Source>, ApiError> {
    let mut sources = Vec::new();
    let searches = request
        .tools
        .iter()
        .any(|tool| matches!(tool, Tool::ToolSearch(_)));
    for (place, tool) in request.tools.iter().enumerate() {
        // Code calls the others.
        if let Tool::Mcp(tool) = tool
            && tool.is_direct()
        {
            sources.push(Source {
                deferred: tool.defer_loading && searches,
                ..named(tools, toolsets, tool, place)?
            });
        }
    }
    if request.tools.iter().any(Tool::is_interpreter) {
        for configured in tools.configured.iter().filter(|configured| configured.always) {
            let label = configured.server.label();
            let only_code = |tool: &Tool| match tool {
                Tool::Mcp(tool) => tool.server_label == label && !tool.is_direct(),
                _ => false,
            };
            if sources.iter().any(|source: &Source| source.label == label)
                || request.tools.iter().any(only_code)
            {
                continue;
            }
            let server = Callee::Server(Arc::clone(&configured.server));
            sources.push(Source::unnamed(label, server));
        }
    }
    Ok(sources)
}

fn named(
    tools: &Tools,
    toolsets: &[OfferedToolset],
    tool: &McpTool,
    place: usize,
) -> Result<Source, ApiError> {
    let callee = match &tool.server_url {
        None => configured(tools, toolsets, tool, place)?,
        Some(url) => Callee::Server(addressed(tools, tool, url, place, |servers, address| {
            servers.at(address)
        })?),
    };
    Ok(Source {
        label: tool.server_label.clone(),
        callee,
        description: tool.server_description.clone(),
        allowed: tool.allowed_tools.clone(),
        named: true,
        requested: tool.server_url.is_some(),
        approval: tool.require_approval.clone(),
        deferred: false,
    })
}

/// Returns a configured server, or a toolset. Credentials of a server are the operator's, so a
/// request cannot send its own.
fn configured(
    tools: &Tools,
    toolsets: &[OfferedToolset],
    tool: &McpTool,
    place: usize,
) -> Result<Callee, ApiError> {
    let label = &tool.server_label;
    if !tool.headers.0.is_empty() {
        let message = format!(
            "`tools[{place}].headers` is for a server at a `server_url`; leave it out for `{label}`, \
             which this gateway knows by its label"
        );
        return Err(ApiError::invalid(
            format!("tools[{place}].headers"),
            "invalid_value",
            message,
        ));
    }
    let servers = || tools.configured.iter().map(|configured| &configured.server);
    let server = servers().find(|server| server.label() == label);
    let toolset = toolsets.iter().find(|toolset| toolset.kind.name == label);
    let toolset = toolset.map(|toolset| Callee::Toolset(Box::new(toolset.clone())));
    server
        .map(|server| Callee::Server(Arc::clone(server)))
        .or(toolset)
        .ok_or_else(|| {
            let toolsets = toolsets.iter().map(|toolset| toolset.kind.name);
            let known = servers().map(|server| server.label()).chain(toolsets);
            let known: Vec<_> = known.map(|label| format!("`{label}`")).collect();
            let known = if known.is_empty() {
                "none is configured here".to_owned()
            } else {
                format!("there are {}", known.join(", "))
            };
            let message = format!("there is no server labelled `{label}` ({known}); send its `server_url`");
            ApiError::invalid(format!("tools[{place}].server_label"), "unknown_server", message)
        })
}

/// Returns the server that a request names by its address, for code.
pub fn connector(
    tools: &Tools,
    tool: &McpTool,
    url: &str,
    place: usize,
) -> Result<Arc<dyn Connector>, ApiError> {
    addressed(tools, tool, url, place, |servers, address| {
        servers.connector(address)
    })
}

fn addressed<T>(
    tools: &Tools,
    tool: &McpTool,
    url: &str,
    place: usize,
    find: impl FnOnce(&dyn ToolServers, ToolServerAddress) -> Result<T, ToolServerError>,
) -> Result<T, ApiError> {
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
    find(&**named, address).or_else(|error| refused(format!("`tools[{place}].server_url`: {error}")))
}

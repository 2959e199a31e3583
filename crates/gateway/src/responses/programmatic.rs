//! Tools of a request that code calls: functions of the client, and servers.

use std::sync::Arc;
use std::time::Instant;

use cellblock_agent::tools;
use cellblock_agent::turn::CLIENT_FUNCTIONS;
use cellblock_agent::wire::{AllowedTools, ApiError, ApprovalRule, McpTool, ResponseRequest, Tool};
use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, FetchAnswer, FetchEffect, MemoPolicy, Redaction, check_name,
};
use cellblock_interpreter::toolset::BoxFuture;
use serde_json::{Map, Value};

use crate::state::Gateway;

/// Checks that code can call the tools that the request lets code call. Returns the servers that
/// the request lends to its code: those that it names by their address, and those of the operator
/// of which it selects functions or requires approval. The operator's servers are there anyway.
pub(super) async fn lent(
    gateway: &Gateway,
    owner: &str,
    request: &ResponseRequest,
) -> Result<Vec<Arc<dyn Connector>>, ApiError> {
    let tools: Vec<_> = request
        .tools
        .iter()
        .enumerate()
        .filter(|(_, tool)| by_code(tool))
        .collect();
    if tools.is_empty() {
        return Ok(Vec::new());
    }
    let callable = gateway.connectors(owner).await?;
    let own = |name: &str| callable.iter().find(|it| it.name() == name);
    let functions = tools.iter().any(|(_, tool)| !matches!(tool, Tool::Mcp(_)));
    let mut lent: Vec<Arc<dyn Connector>> = Vec::new();
    for (place, tool) in tools {
        let invalid = |problem: String| {
            let path = format!("tools[{place}].allowed_callers");
            let message = format!("`{path}`: {problem}");
            ApiError::invalid(path, "invalid_value", message)
        };
        let programs = request.tools.iter().any(Tool::is_programs) && !matches!(tool, Tool::Mcp(_));
        if !programs && !request.tools.iter().any(Tool::is_interpreter) {
            return Err(invalid(
                "the request has no `code_interpreter` that could call it".to_owned(),
            ));
        }
        if gateway.interpreter().is_err() {
            return Err(invalid(
                "code runs at another server here, and cannot call tools".to_owned(),
            ));
        }
        let Tool::Mcp(tool) = tool else {
            if own(CLIENT_FUNCTIONS).is_some() {
                return Err(invalid(format!(
                    "the operator has a server `{CLIENT_FUNCTIONS}`, which is what code calls the \
                     client's functions; rename the server"
                )));
            }
            continue;
        };
        let label = &tool.server_label;
        let connector = match (&tool.server_url, own(label)) {
            (Some(url), own) => {
                named(tool, own.is_some(), functions).map_err(invalid)?;
                tools::connector(&gateway.options.tools, tool, url, place)?
            }
            (None, Some(_)) if !tool.headers.0.is_empty() => {
                return Err(invalid(format!(
                    "`headers` is for a server at a `server_url`; leave it out for `{label}`, which this \
                     gateway knows by its label"
                )));
            }
            (None, Some(_)) if tool.allowed_tools.is_none() && !tool.require_approval.can_ask() => continue,
            (None, Some(own)) => Arc::clone(own),
            (None, None) => {
                return Err(invalid(format!(
                    "code cannot call the server `{label}`; its operator has to set `offer: code` or \
                     `both`, or send its `server_url`"
                )));
            }
        };
        lent.push(Arc::new(ConnectorSelection {
            connector,
            description: tool.server_description.clone(),
            allowed: tool.allowed_tools.clone(),
            approval: tool.require_approval.clone(),
        }));
    }
    Ok(lent)
}

fn by_code(tool: &Tool) -> bool {
    match tool {
        Tool::Mcp(tool) => tool.is_programmatic(),
        tool => tool.functions().any(|(_, function)| function.is_programmatic()),
    }
}

/// Checks the label of a server that a request names by its address: code has it as a name.
fn named(tool: &McpTool, own: bool, functions: bool) -> Result<(), String> {
    let label = &tool.server_label;
    if own {
        return Err(format!(
            "the operator has a server `{label}` for code, too; choose another `server_label`"
        ));
    }
    if functions && label == CLIENT_FUNCTIONS {
        return Err(format!(
            "`{label}` is what code calls the client's functions; choose another `server_label`"
        ));
    }
    check_name(label).map_err(|problem| format!("the `server_label` `{label}` {problem}"))
}

/// A connector as a request describes it, with the functions that the request selects. A session
/// rejects calls of others as it does those of functions that do not exist.
#[derive(Debug)]
struct ConnectorSelection {
    connector: Arc<dyn Connector>,
    description: Option<String>,
    allowed: Option<AllowedTools>,
    /// Functions whose calls need approval.
    approval: ApprovalRule,
}

impl Connector for ConnectorSelection {
    fn name(&self) -> &str {
        self.connector.name()
    }

    fn description(&self) -> &str {
        self.description
            .as_deref()
            .unwrap_or_else(|| self.connector.description())
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        Box::pin(async {
            let mut cards = self.connector.cards().await?;
            if let Some(allowed) = &self.allowed {
                cards.retain(|card| allowed.allows(&card.name, card.effect == FetchEffect::Reads));
            }
            Ok(cards)
        })
    }

    fn fetch(
        &self,
        function: &str,
        arguments: Map<String, Value>,
        until: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        self.connector.fetch(function, arguments, until)
    }

    fn redaction(&self) -> &Redaction {
        self.connector.redaction()
    }

    fn memo(&self) -> MemoPolicy {
        self.connector.memo()
    }

    fn waits_for_client(&self) -> bool {
        self.connector.waits_for_client()
    }

    fn needs_approval(&self, card: &Card) -> bool {
        let reads = card.effect == FetchEffect::Reads;
        self.approval.asks(&card.name, reads) || self.connector.needs_approval(card)
    }
}

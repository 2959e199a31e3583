//! A server's tools as functions that code in a sandbox calls.

use std::sync::Arc;
use std::time::Instant;

use cellblock_agent::{ToolReply, ToolServer as _};
use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, ConnectorErrorKind, FetchAnswer, FetchEffect, Redaction,
};
use cellblock_interpreter::toolset::ToolDefinition;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::failure::Failure;
use super::server::ForeignServer;
use super::words::told;

/// JSON-RPC's code for invalid parameters.
const INVALID_PARAMS: i32 = -32602;

/// A server of the Model Context Protocol as a connector.
///
/// Equal calls are answered once only if the server declares that the tool changes nothing (`readOnlyHint`).
#[derive(Debug)]
pub struct ServerConnector {
    server: Arc<ForeignServer>,
    redaction: Redaction,
    name: String,
    description: String,
    /// The tools that are functions, if not all.
    tools: Option<Vec<String>>,
}

impl ServerConnector {
    /// Offers a server's tools to code, without the secrets that the server gets and may repeat.
    pub fn new(server: Arc<ForeignServer>, redaction: Redaction) -> Self {
        Self {
            name: server.label().to_owned(),
            description: "Tools of an MCP server.".to_owned(),
            tools: None,
            server,
            redaction,
        }
    }

    /// Returns the same under another name, with some of the tools, and with a description unless
    /// it is empty.
    #[must_use]
    pub fn selected(self, name: &str, description: &str, tools: Option<Vec<String>>) -> Self {
        let description = if description.is_empty() {
            self.description
        } else {
            description.to_owned()
        };
        Self {
            name: name.to_owned(),
            description,
            tools,
            ..self
        }
    }

    fn has(&self, tool: &str) -> bool {
        let tools = self.tools.as_ref();
        tools.is_none_or(|tools| tools.iter().any(|selected| selected == tool))
    }
}

impl Connector for ServerConnector {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        async {
            let offered = self.server.offered().await;
            let offered = offered.map_err(|failure| error(failure, self.server.label()))?;
            let selected = offered.tools.iter().filter(|tool| self.has(&tool.name));
            Ok(selected.map(card).collect())
        }
        .boxed()
    }

    fn fetch(
        &self,
        function: &str,
        arguments: Map<String, Value>,
        _: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let function = function.to_owned();
        async move {
            if !self.has(&function) {
                let text = format!("{}: there is no function `{function}`", self.name);
                return Err(ConnectorError::new(ConnectorErrorKind::InvalidParameter, text));
            }
            match self.server.called_and_reported(&function, arguments).await {
                Ok(ToolReply::Result(value)) => Ok(value.into()),
                Ok(ToolReply::Failed(text)) => {
                    let error = ConnectorError::new(ConnectorErrorKind::Provider { status: None }, text);
                    Err(error.of_call(&self.name, &function))
                }
                Err(failure) => Err(error(failure, self.server.label())),
            }
        }
        .boxed()
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        async {
            let found = self.cards().await?;
            let selected = self.tools.iter().flatten();
            let mut missing = selected.filter(|tool| found.iter().all(|card| card.name != **tool));
            missing.next().map_or(Ok(()), |tool| {
                let (name, server) = (&self.name, self.server.label());
                let text = format!(
                    "{name}: the server `{server}` offers no tool `{}`; check `tools`, and \
                     `allowed_tools` of the server",
                    told(tool, 128)
                );
                Err(ConnectorError::new(ConnectorErrorKind::InvalidParameter, text))
            })
        }
        .boxed()
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}

fn card(tool: &ToolDefinition) -> Card {
    let hints = tool.annotations.as_ref();
    let reads = hints.and_then(|hints| hints.get("readOnlyHint")?.as_bool());
    Card {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: Value::Object(tool.input_schema.clone()),
        returns: tool.output_schema.clone().map(Value::Object),
        effect: if reads == Some(true) {
            FetchEffect::Reads
        } else {
            FetchEffect::Writes
        },
        ..Card::default()
    }
}

fn error(failure: Failure, label: &str) -> ConnectorError {
    let kind = kind(&failure);
    ConnectorError::new(kind, failure.of(label).to_string())
}

fn kind(failure: &Failure) -> ConnectorErrorKind {
    match failure {
        Failure::Status { status, retry_after } => ConnectorErrorKind::of_status(*status, *retry_after),
        Failure::Silent { .. } => ConnectorErrorKind::Timeout,
        Failure::Malformed { .. } | Failure::TooMany { .. } | Failure::TooDeep { .. } => {
            ConnectorErrorKind::Parse
        }
        Failure::Refused { code, .. } if *code == INVALID_PARAMS => ConnectorErrorKind::InvalidParameter,
        Failure::Waiting { last, .. } => kind(last),
        Failure::NotStarted(_)
        | Failure::Unreachable(_)
        | Failure::Ended { .. }
        | Failure::TooLarge { .. }
        | Failure::Asking { .. }
        | Failure::Deaf { .. }
        | Failure::Refused { .. }
        | Failure::Unsupported { .. } => ConnectorErrorKind::Provider { status: None },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn only_tools_that_declare_to_change_nothing_are_answered_once() {
        for (annotations, effect) in [
            (None, FetchEffect::Writes),
            (Some(json!({"readOnlyHint": false})), FetchEffect::Writes),
            (Some(json!({"readOnlyHint": "true"})), FetchEffect::Writes),
            (Some(json!({"idempotentHint": true})), FetchEffect::Writes),
            (Some(json!({"readOnlyHint": true})), FetchEffect::Reads),
        ] {
            let tool = ToolDefinition {
                name: "get".to_owned(),
                annotations,
                ..ToolDefinition::default()
            };
            assert_eq!(card(&tool).effect, effect, "{tool:?}");
        }
    }

    #[test]
    fn each_failure_has_a_kind_that_code_can_catch() {
        let provider = ConnectorErrorKind::Provider { status: None };
        let status = Failure::status;
        let retry_after = Some(Duration::from_secs(7));
        let refused = |code| Failure::Refused {
            code,
            message: String::new(),
        };
        let silent = Failure::Silent {
            what: String::new(),
            time: Duration::ZERO,
            limit: "timeout",
            repair: "",
        };
        let waiting = Failure::Waiting {
            last: Box::new(status(402)),
            since: Duration::ZERO,
            left: Duration::ZERO,
        };
        for (failure, expected) in [
            (status(401), ConnectorErrorKind::Unauthorized),
            (status(403), ConnectorErrorKind::Unauthorized),
            (status(429), ConnectorErrorKind::RateLimit { retry_after: None }),
            (
                Failure::Status {
                    status: 429,
                    retry_after,
                },
                ConnectorErrorKind::RateLimit { retry_after },
            ),
            (status(503), ConnectorErrorKind::Provider { status: Some(503) }),
            (waiting, ConnectorErrorKind::PaymentRequired),
            (silent, ConnectorErrorKind::Timeout),
            (Failure::malformed("x"), ConnectorErrorKind::Parse),
            (refused(INVALID_PARAMS), ConnectorErrorKind::InvalidParameter),
            (refused(-32603), provider),
            (Failure::Unreachable(None), provider),
        ] {
            assert_eq!(kind(&failure), expected, "{failure:?}");
        }
    }
}

//! Calls of the client's functions by code: the code waits while the client answers.
//!
//! ```text
//! code ──> ClientFunctions ──CodeCall──> turn ──function_call──> client
//!   ^                                                               │
//!   └──────────── next turn <──────── function_call_output ─────────┘
//! ```

use std::sync::Arc;
use std::time::Instant;

use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, ConnectorErrorKind, FetchAnswer, Redaction,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::functions::{CodeFunction, Functions};
use crate::wire::Tool;

/// The name that the client's functions have in code.
pub const CLIENT_FUNCTIONS: &str = "tools";

/// A call that code made, and that the client answers.
#[derive(Debug)]
pub(super) struct CodeCall {
    /// Id of the item of the code.
    pub(super) caller: String,
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) arguments: String,
    pub(super) answer: oneshot::Sender<String>,
}

/// The functions of the client, for the code of one call.
#[derive(Debug)]
pub(super) struct ClientFunctions {
    pub(super) functions: Arc<[CodeFunction]>,
    /// Id of the item of the code.
    pub(super) caller: String,
    pub(super) calls: mpsc::Sender<CodeCall>,
    pub(super) redaction: Redaction,
}

/// Returns the client's functions among these tools that code may call, for the model's prompt.
pub fn client_functions(tools: &[Tool]) -> Option<Arc<dyn Connector>> {
    let functions = Functions::of(tools, &[]).of_code();
    let (calls, _) = mpsc::channel(1);
    (!functions.is_empty()).then(|| Arc::new(ClientFunctions::new(functions.into(), "", &calls)) as Arc<_>)
}

impl ClientFunctions {
    pub(super) fn new(functions: Arc<[CodeFunction]>, caller: &str, calls: &mpsc::Sender<CodeCall>) -> Self {
        Self {
            functions,
            caller: caller.to_owned(),
            calls: calls.clone(),
            redaction: Redaction::default(),
        }
    }
}

impl Connector for ClientFunctions {
    fn name(&self) -> &str {
        CLIENT_FUNCTIONS
    }

    fn description(&self) -> &'static str {
        "Functions of the user's application."
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let cards = self.functions.iter().map(|function| function.card.clone());
        let cards = cards.collect();
        async { Ok(cards) }.boxed()
    }

    fn fetch(
        &self,
        function: &str,
        arguments: Map<String, Value>,
        _until: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let known = self.functions.iter().find(|known| known.card.name == function);
        let (answer, answered) = oneshot::channel();
        let call = known.map(|known| CodeCall {
            caller: self.caller.clone(),
            name: known.name.clone(),
            namespace: known.namespace.clone(),
            arguments: Value::Object(arguments).to_string(),
            answer,
        });
        let function = function.to_owned();
        async move {
            if let Some(call) = call {
                // A call that nobody takes is answered by nobody, which is noticed below.
                let _ = self.calls.send(call).await;
            }
            let Ok(text) = answered.await else {
                let text =
                    format!("{CLIENT_FUNCTIONS}.{function}: the user's application did not answer in time");
                return Err(ConnectorError::new(ConnectorErrorKind::Timeout, text));
            };
            let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
            Ok(FetchAnswer::Value(value))
        }
        .boxed()
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }

    fn waits_for_client(&self) -> bool {
        true
    }
}

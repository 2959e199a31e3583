//! A server's messages before they are interpreted: limited, sorted, and kept from the library if
//! they are large.
//!
//! Results and lists of tools are kept as the received text for their waiting callers; the library
//! only learns that they have arrived. So they are stored once, and one broken tool does not break
//! a list.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, NumberOrString, RequestId, ServerJsonRpcMessage, ServerResult,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::failure::Failure;
use super::message::{MessageShape, WireEnvelope};
use super::words;

/// Maximum size in bytes of a message other than a tool's result or a list of tools.
const SMALL: usize = 1 << 20;

/// Allowance in bytes for the message around a result.
const AROUND: u64 = 4096;

/// Maximum number of the server's unanswered requests.
const MOST_ASKED: usize = 32;

/// The state shared by a server's transport and the waiting callers.
#[derive(Debug)]
pub(super) struct Wire {
    limit: u64,
    state: Mutex<WireState>,
    tools_changed: AtomicBool,
}

#[derive(Debug, Default)]
struct WireState {
    awaited: HashMap<RequestId, ResponseSlot>,
    /// Requests that were canceled before they were sent.
    forgotten: HashSet<RequestId>,
    /// The last request for the newest revision, which may be answered after the library has gone
    /// on with the previous one.
    probe: Option<RequestId>,
    /// Whether the library has gone on.
    initializes: bool,
    /// Number of the server's unanswered requests.
    asked: usize,
    /// The reason why no more messages arrive.
    ended: Option<Failure>,
}

#[derive(Debug)]
struct ResponseSlot {
    listing: bool,
    sent: bool,
    answer: Option<Result<Box<RawValue>, Failure>>,
}

impl Wire {
    /// Creates an empty state with a maximum message size in bytes.
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit,
            state: Mutex::default(),
            tools_changed: AtomicBool::new(false),
        }
    }

    /// Returns the maximum size of a message, including the part around its result.
    pub(super) const fn most(&self) -> u64 {
        self.limit.saturating_add(AROUND)
    }

    /// Returns the error for a larger message, with its announced size, if any.
    pub(super) const fn too_large(&self, actual: Option<u64>) -> Failure {
        Failure::TooLarge {
            limit: self.limit,
            actual,
        }
    }

    /// Returns whether the server has reported changed tools since the last call.
    pub(super) fn tools_changed(&self) -> bool {
        self.tools_changed.swap(false, Ordering::AcqRel)
    }

    /// Records a message that is about to be sent.
    pub(super) fn sending(&self, message: &ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let mut state = self.state();
                let listing = match request.request {
                    ClientRequest::ListToolsRequest(_) => true,
                    ClientRequest::CallToolRequest(_) => false,
                    ClientRequest::DiscoverRequest(_) => {
                        state.probe = Some(request.id.clone());
                        return;
                    }
                    ClientRequest::InitializeRequest(_) => {
                        state.initializes = true;
                        return;
                    }
                    _ => return,
                };
                if !state.forgotten.remove(&request.id) {
                    let awaited = ResponseSlot {
                        listing,
                        sent: false,
                        answer: None,
                    };
                    state.awaited.insert(request.id.clone(), awaited);
                }
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {
                let mut state = self.state();
                state.asked = state.asked.saturating_sub(1);
            }
            ClientJsonRpcMessage::Notification(_) => {}
        }
    }

    /// Records that a request has been sent, so that the server may have acted on it.
    pub(super) fn sent(&self, id: &RequestId) {
        if let Some(awaited) = self.state().awaited.get_mut(id) {
            awaited.sent = true;
        }
    }

    /// Forgets a request whose caller no longer waits.
    pub(super) fn forget(&self, id: &RequestId) {
        let mut state = self.state();
        if state.awaited.remove(id).is_none() {
            state.forgotten.insert(id.clone());
        }
    }

    /// Takes the response of a request, and whether the request had been sent.
    pub(super) fn take(&self, id: &RequestId) -> (Option<Result<Box<RawValue>, Failure>>, bool) {
        match self.state().awaited.remove(id) {
            Some(awaited) => (awaited.answer, awaited.sent),
            None => (None, false),
        }
    }

    /// Fails a request; returns the replacement response for the library, if a caller waits.
    pub(super) fn fail(&self, id: &RequestId, failure: &Failure) -> Option<ServerJsonRpcMessage> {
        self.state().awaited.get_mut(id)?.answer = Some(Err(failure.clone()));
        Some(there(id.clone()))
    }

    /// Records that no more messages arrive. The first reason counts.
    pub(super) fn end(&self, failure: Failure) {
        self.state().ended.get_or_insert(failure);
    }

    /// Returns the reason why no more messages arrive.
    pub(super) fn ended(&self) -> Option<Failure> {
        self.state().ended.clone()
    }

    /// Reads a message; returns the part that the library needs.
    pub(super) fn read(&self, text: &str) -> Result<Option<ServerJsonRpcMessage>, Failure> {
        let envelope = WireEnvelope::read(text)?;
        match envelope.shape()? {
            MessageShape::Notification(method) => {
                if method == "notifications/tools/list_changed" {
                    self.tools_changed.store(true, Ordering::Release);
                }
                // No other messages are requested. A server's descriptions of itself do not reach a
                // model.
                tracing::trace!(method = words::told(method, 100), "notification of a tool server");
                Ok(None)
            }
            MessageShape::Request { id, method } => self.asked(&id, method).map(Some),
            // The library would take it for a wrong answer to what it asked next.
            MessageShape::Result { id, .. } | MessageShape::Error { id: Some(id) } if self.is_late(&id) => {
                Ok(None)
            }
            MessageShape::Result { id, result } => self.result(id, result, text).map(Some),
            MessageShape::Error { id } => {
                let mut message = small(text)?;
                // The context names the request, if there is one.
                if let (None, ServerJsonRpcMessage::Error(error)) = (id, &mut message) {
                    error.id = self.only_awaited();
                }
                Ok(Some(message))
            }
        }
    }

    /// Whether a response comes after its request was given up.
    fn is_late(&self, id: &RequestId) -> bool {
        let state = self.state();
        state.initializes && state.probe.as_ref() == Some(id)
    }

    /// Handles a request of the server. Its parameters stay here: every request is rejected.
    fn asked(&self, id: &RequestId, method: &str) -> Result<ServerJsonRpcMessage, Failure> {
        let mut state = self.state();
        state.asked += 1;
        if state.asked > MOST_ASKED {
            return Err(Failure::Asking { limit: MOST_ASKED });
        }
        drop(state);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": words::told(method, 100)});
        serde_json::from_value(message)
            .map_err(|error| Failure::unread("a request that cannot be read", error))
    }

    fn result(&self, id: RequestId, result: &RawValue, text: &str) -> Result<ServerJsonRpcMessage, Failure> {
        let mut state = self.state();
        // Some servers return numbers as text.
        let id = match &id {
            NumberOrString::String(text) if !state.awaited.contains_key(&id) => {
                text.parse().map_or(id, NumberOrString::Number)
            }
            NumberOrString::String(_) | NumberOrString::Number(_) => id,
        };
        let Some(awaited) = state.awaited.get_mut(&id) else {
            drop(state);
            return small(text);
        };
        let headers = awaited.listing && result.get().contains("x-mcp-header");
        awaited.answer = Some(Ok(result.to_owned()));
        drop(state);
        if headers && let Some(message) = with_headers(&id, result) {
            return Ok(message);
        }
        Ok(there(id))
    }

    fn only_awaited(&self) -> Option<RequestId> {
        let state = self.state();
        let mut awaited = state.awaited.keys();
        awaited.next().filter(|_| awaited.next().is_none()).cloned()
    }

    fn state(&self) -> parking_lot::MutexGuard<'_, WireState> {
        self.state.lock()
    }
}

/// Returns the library's replacement for a response that is kept here.
fn there(id: RequestId) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::response(ServerResult::empty(()), id)
}

/// Parses a message that the library reads itself.
fn small(text: &str) -> Result<ServerJsonRpcMessage, Failure> {
    if text.len() > SMALL {
        return Err(Failure::TooLarge {
            limit: SMALL as u64,
            actual: Some(text.len() as u64),
        });
    }
    serde_json::from_str(text).map_err(|error| Failure::unread("an unreadable response", error))
}

/// Returns the tools of a list that need some arguments as headers, which the library sends.
fn with_headers(id: &RequestId, result: &RawValue) -> Option<ServerJsonRpcMessage> {
    if result.get().len() > SMALL {
        return None;
    }
    let list: Value = serde_json::from_str(result.get()).ok()?;
    let tools: Vec<_> = list["tools"]
        .as_array()?
        .iter()
        .filter(|tool| tool["inputSchema"].is_object())
        .collect();
    let tools: Vec<_> = tools
        .into_iter()
        .map(|tool| json!({"name": tool["name"], "inputSchema": tool["inputSchema"]}))
        .collect();
    let message = json!({"jsonrpc": "2.0", "id": id, "result": {"tools": tools}});
    serde_json::from_value(message).ok()
}

#[cfg(test)]
mod tests {
    use rmcp::model::{
        CallToolRequest, CallToolRequestParams, DiscoverRequest, DiscoverRequestParams, InitializeRequest,
        InitializeRequestParams, ListToolsRequest,
    };

    use super::*;

    fn call(id: i64) -> ClientJsonRpcMessage {
        let request = CallToolRequest::new(CallToolRequestParams::new("t"));
        ClientJsonRpcMessage::request(ClientRequest::CallToolRequest(request), RequestId::Number(id))
    }

    fn told(message: &ServerJsonRpcMessage) -> Value {
        serde_json::to_value(message).unwrap()
    }

    #[test]
    fn a_result_is_kept_as_text_and_announced_to_the_library() {
        let wire = Wire::new(1 << 20);
        wire.sending(&call(7));
        for id in ["7", "\"7\""] {
            let message = wire
                .read(&format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content": [ 1.0 ]}}}}"#
                ))
                .unwrap();
            assert_eq!(
                told(&message.unwrap()),
                json!({"jsonrpc": "2.0", "id": 7, "result": {}})
            );
        }
        wire.sent(&RequestId::Number(7));
        let (answer, sent) = wire.take(&RequestId::Number(7));
        assert_eq!(answer.unwrap().unwrap().get(), r#"{"content": [ 1.0 ]}"#);
        assert!(sent);
        assert!(wire.take(&RequestId::Number(7)).0.is_none());
    }

    #[test]
    fn responses_without_a_waiting_caller_are_dropped() {
        let wire = Wire::new(1 << 20);
        let id = RequestId::Number(7);
        wire.sending(&call(7));
        wire.forget(&id);
        assert!(wire.fail(&id, &Failure::malformed("late")).is_none());
        // It was canceled while it waited to be sent.
        wire.forget(&RequestId::Number(8));
        wire.sending(&call(8));
        wire.read(r#"{"jsonrpc":"2.0","id":8,"result":{}}"#).unwrap();
        assert!(wire.take(&RequestId::Number(8)).0.is_none());
    }

    #[test]
    fn a_late_response_does_not_disturb_the_handshake_that_goes_on() {
        let wire = Wire::new(1 << 20);
        let discover = DiscoverRequest::new(DiscoverRequestParams {});
        let initialize = InitializeRequest::new(InitializeRequestParams::default());
        let answers = [
            r#"{"jsonrpc":"2.0","id":0,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"Method not found"}}"#,
        ];
        let send = |request, id| wire.sending(&ClientJsonRpcMessage::request(request, RequestId::Number(id)));
        send(ClientRequest::DiscoverRequest(discover), 0);
        for answer in answers {
            assert!(wire.read(answer).unwrap().is_some(), "{answer}");
        }
        send(ClientRequest::InitializeRequest(initialize), 1);
        for answer in answers {
            assert!(wire.read(answer).unwrap().is_none(), "{answer}");
        }
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert!(wire.read(answer).unwrap().is_some());
    }

    #[test]
    fn requests_of_a_server_lose_their_parameters_and_are_few() {
        let wire = Wire::new(1 << 20);
        let asks = r#"{"jsonrpc":"2.0","id":"a","method":"sampling/createMessage","params":{"messages":[]}}"#;
        let message = wire.read(asks).unwrap().unwrap();
        assert_eq!(
            told(&message),
            json!({"jsonrpc": "2.0", "id": "a", "method": "sampling/createMessage", "params": null})
        );
        for _ in 1..MOST_ASKED {
            wire.read(asks).unwrap();
        }
        assert!(matches!(wire.read(asks), Err(Failure::Asking { limit: 32 })));
    }

    #[test]
    fn only_notifications_of_changed_tools_are_handled() {
        let wire = Wire::new(1 << 20);
        assert!(
            wire.read(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#)
                .unwrap()
                .is_none()
        );
        assert!(!wire.tools_changed());
        assert!(
            wire.read(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)
                .unwrap()
                .is_none()
        );
        assert!(wire.tools_changed());
        assert!(!wire.tools_changed());
    }

    #[test]
    fn the_library_learns_which_arguments_become_headers() {
        let wire = Wire::new(1 << 20);
        let list = ClientRequest::ListToolsRequest(ListToolsRequest::default());
        wire.sending(&ClientJsonRpcMessage::request(list, RequestId::Number(1)));
        let schema =
            json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
        let tools = json!([{"name": "a", "inputSchema": schema, "description": "long"},
            {"name": "b", "inputSchema": 5}]);
        let list = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string();
        let message = told(&wire.read(&list).unwrap().unwrap());
        assert_eq!(
            message["result"]["tools"],
            json!([{"name": "a", "inputSchema": schema}])
        );
    }

    #[test]
    fn invalid_messages_are_errors() {
        let wire = Wire::new(1 << 20);
        for text in [
            "",
            "{",
            "[]",
            "5",
            "{}",
            r#"{"id":{}, "result":{}}"#,
            r#"{"id":1,"result":5"#,
        ] {
            assert!(
                matches!(wire.read(text), Err(Failure::Malformed { .. })),
                "{text}"
            );
        }
        let large = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":"{}"}}}}"#,
            "a".repeat(SMALL)
        );
        assert!(matches!(wire.read(&large), Err(Failure::TooLarge { .. })));
    }
}

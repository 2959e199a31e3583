//! Questions to the person behind a client, while a call waits for the answer.
//!
//! ```text
//! call ──ask──> connection: elicitation/create ──> the client, which answers
//!          └──> requests:   input_required, with a state ──> the client makes the call again, with the state
//! ```
//!
//! The first way is that of the revisions before 2026-07-28, on a connection; the second that of the
//! revision itself. Requests over HTTP of earlier revisions cannot be answered by a client.

use std::collections::HashMap;
use std::time::Duration;

use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::mint;
use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::{
    BooleanSchema, ClientResult, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequiredResult, InputResponses, ProtocolVersion, Request, ServerRequest,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::tasks::TaskCall;

/// Maximum time that a call waits for an answer.
const PATIENCE: Duration = Duration::from_mins(10);
/// Maximum number of calls of an owner that wait for an answer.
const MAX_WAITING: usize = 32;
/// Name of the question among those of a call, and of its fields.
const QUESTION: &str = "approval";
const APPROVE: &str = "approve";
const REASON: &str = "reason";
/// Maximum number of characters of a reason.
const MAX_REASON: usize = 4000;

/// A person's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalDecision {
    Approved,
    /// Denied, perhaps with a reason.
    Denied(Option<String>),
    /// There was no answer.
    Unanswered,
}

/// The way to ask the person behind a client.
#[derive(Debug)]
pub(crate) enum ClientAsker {
    /// The client cannot be asked.
    Nobody,
    /// A request on the client's connection.
    Connection(Peer<RoleServer>),
    /// An answer that requires the client to make the call again. While the call has this, it does
    /// not become a task.
    Answer(mpsc::Sender<ClientQuestion>),
}

/// A question that a call waits with.
#[derive(Debug)]
pub(crate) struct ClientQuestion {
    text: String,
    answer: oneshot::Sender<ApprovalDecision>,
}

impl ClientAsker {
    /// Returns the way that the client of a request offers, with the questions that the request has
    /// to answer with. `connected` says that the client is at the other end of a connection.
    pub(crate) fn of(
        context: &RequestContext<RoleServer>,
        connected: bool,
    ) -> (Self, mpsc::Receiver<ClientQuestion>) {
        let (sender, questions) = mpsc::channel(1);
        let elicitation = context
            .client_capabilities()
            .and_then(|capabilities| capabilities.elicitation);
        // Without a mode, it is the form.
        let has_forms = elicitation.is_some_and(|it| it.form.is_some() || it.url.is_none());
        let version = context.protocol_version();
        let answers = version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let asker = match (has_forms, answers, connected) {
            (true, true, _) => Self::Answer(sender),
            (true, false, true) => Self::Connection(context.peer.clone()),
            (true, false, false) | (false, ..) => Self::Nobody,
        };
        (asker, questions)
    }

    /// Returns whether the person can be asked.
    pub(crate) const fn can_ask(&self) -> bool {
        !matches!(self, Self::Nobody)
    }

    /// Asks for approval, and waits for the answer.
    pub(crate) async fn ask(&self, text: String) -> ApprovalDecision {
        let answered = async {
            match self {
                Self::Nobody => ApprovalDecision::Unanswered,
                Self::Connection(peer) => on_connection(peer, text).await,
                Self::Answer(questions) => {
                    let (answer, answered) = oneshot::channel();
                    if questions.send(ClientQuestion { text, answer }).await.is_err() {
                        return ApprovalDecision::Unanswered;
                    }
                    answered.await.unwrap_or(ApprovalDecision::Unanswered)
                }
            }
        };
        timeout(PATIENCE, answered)
            .await
            .unwrap_or(ApprovalDecision::Unanswered)
    }
}

async fn on_connection(peer: &Peer<RoleServer>, text: String) -> ApprovalDecision {
    let Some(params) = params(text) else {
        return ApprovalDecision::Unanswered;
    };
    match peer
        .send_request(ServerRequest::ElicitRequest(Request::new(params)))
        .await
    {
        Ok(ClientResult::ElicitResult(result)) => decision(result),
        Ok(_) => ApprovalDecision::Unanswered,
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a client did not answer a question"
            );
            ApprovalDecision::Unanswered
        }
    }
}

/// Returns the question as a form. Approval is a field, because a client may accept forms by itself.
fn params(message: String) -> Option<ElicitRequestParams> {
    let approve = |field: BooleanSchema| field.title("Approve these calls");
    let form = ElicitationSchema::builder()
        .required_bool_with(APPROVE, approve)
        .optional_string(REASON)
        .build();
    let requested_schema = form
        .inspect_err(|error| tracing::error!(error, "make a form"))
        .ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    })
}

fn decision(result: ElicitResult) -> ApprovalDecision {
    let content = result.content.unwrap_or_default();
    let reason = content[REASON].as_str().map(str::trim);
    let reason = reason
        .filter(|reason| !reason.is_empty())
        .map(|reason| reason.chars().take(MAX_REASON).collect());
    match result.action {
        ElicitationAction::Accept if content[APPROVE] == true => ApprovalDecision::Approved,
        ElicitationAction::Cancel => ApprovalDecision::Unanswered,
        _ => ApprovalDecision::Denied(reason),
    }
}

/// A call that waits for an answer in another request.
#[derive(Debug)]
struct WaitingCall {
    owner: Owner,
    working: TaskCall,
    questions: mpsc::Receiver<ClientQuestion>,
    answer: oneshot::Sender<ApprovalDecision>,
}

/// Calls that wait, by the states that their clients send back.
#[derive(Debug, Default)]
pub(crate) struct WaitingCalls(Mutex<HashMap<String, WaitingCall>>);

impl WaitingCalls {
    /// Keeps a call until its question is answered, and returns what the client gets. If too many
    /// wait, returns the call, which goes on without an answer.
    pub(crate) fn keep(
        &self,
        owner: &Owner,
        working: TaskCall,
        questions: mpsc::Receiver<ClientQuestion>,
        question: ClientQuestion,
    ) -> Result<InputRequiredResult, (TaskCall, mpsc::Receiver<ClientQuestion>)> {
        let ClientQuestion { text, answer } = question;
        let mut waiting = self.0.lock();
        waiting.retain(|_, call| !call.working.answer.is_finished());
        let of_owner = waiting.values().filter(|call| call.owner == *owner).count();
        let Some(params) = params(text).filter(|_| of_owner < MAX_WAITING) else {
            return Err((working, questions));
        };
        let state = mint("call_");
        let call = WaitingCall {
            owner: owner.clone(),
            working,
            questions,
            answer,
        };
        waiting.insert(state.clone(), call);
        let question = InputRequest::Elicitation(Request::new(params));
        let asked = [(QUESTION.to_owned(), question)].into();
        Ok(InputRequiredResult::new(Some(asked), Some(state)))
    }

    /// Answers the question of the call with this state, and returns the call.
    pub(crate) fn answered(
        &self,
        owner: &Owner,
        state: &str,
        answers: Option<InputResponses>,
    ) -> Result<(TaskCall, mpsc::Receiver<ClientQuestion>), ErrorData> {
        let invalid = |text: &str| ErrorData::invalid_params(text.to_owned(), None);
        let answer = answers.and_then(|mut answers| answers.remove(QUESTION));
        let answer = answer.map(serde_json::from_value::<ElicitResult>);
        let Some(Ok(result)) = answer else {
            return Err(invalid(
                "`inputResponses.approval` must be the result of `elicitation/create`",
            ));
        };
        let mut waiting = self.0.lock();
        // A state of another owner is as good as unknown, and its call waits on.
        let known = waiting.get(state).is_some_and(|call| call.owner == *owner);
        let Some(call) = known.then(|| waiting.remove(state)).flatten() else {
            return Err(invalid(
                "no call waits with this `requestState`; make the call again without it",
            ));
        };
        // The call may have given up meanwhile.
        let _ = call.answer.send(decision(result));
        Ok((call.working, call.questions))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test]
    async fn an_answer_of_another_owner_leaves_the_call_waiting() {
        let (owner, other) = (Owner::new("owner"), Owner::new("other"));
        let stop = CancellationToken::new();
        let working = TaskCall {
            answer: tokio::spawn(std::future::pending()),
            stop: stop.clone(),
            guard: stop.clone().drop_guard(),
        };
        let (_, questions) = mpsc::channel(1);
        let (answer, mut answered) = oneshot::channel();
        let text = "Approve?".to_owned();
        let waiting = WaitingCalls::default();
        let asked = waiting.keep(&owner, working, questions, ClientQuestion { text, answer });
        let state = asked.unwrap().request_state.unwrap();
        let accept = || -> Option<InputResponses> {
            let result = json!({"action": "accept", "content": {"approve": true}});
            Some([(QUESTION.to_owned(), result)].into())
        };
        assert!(waiting.answered(&other, &state, accept()).is_err());
        assert!(!stop.is_cancelled(), "the call goes on");
        assert!(answered.try_recv().is_err(), "there is no decision yet");
        assert!(waiting.answered(&owner, &state, accept()).is_ok());
        assert_eq!(answered.try_recv(), Ok(ApprovalDecision::Approved));
    }

    #[test]
    fn only_a_form_that_says_so_approves() {
        let decided = |action, content| {
            let result = ElicitResult::new(action).with_content(content);
            decision(result)
        };
        let accept = || ElicitationAction::Accept;
        assert_eq!(
            decided(accept(), json!({"approve": true})),
            ApprovalDecision::Approved
        );
        assert_eq!(decided(accept(), json!({})), ApprovalDecision::Denied(None));
        assert_eq!(
            decided(accept(), json!({"approve": "true"})),
            ApprovalDecision::Denied(None)
        );
        assert_eq!(
            decided(accept(), json!({"approve": false, "reason": " too dear "})),
            ApprovalDecision::Denied(Some("too dear".to_owned()))
        );
        assert_eq!(
            decided(ElicitationAction::Decline, json!({"approve": true})),
            ApprovalDecision::Denied(None)
        );
        assert_eq!(
            decided(ElicitationAction::Cancel, json!({"approve": true})),
            ApprovalDecision::Unanswered
        );
    }
}

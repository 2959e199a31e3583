//! Runs a turn: sends its events to the listeners, and writes its outcome to the records before
//! anybody sees the end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::turn::{Evidence, SuspendedCode, Turn};
use cellblock_agent::wire::{
    ApiError, Dialect, Draft, ErrorKind, EventKind, Failure, IncompleteReason, Item, Numbers, Response,
    ResponseRequest, ResponseStatus, StreamError, StreamEvent, TokenUsage,
};
use futures_util::FutureExt as _;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::container;
use super::keep;
use super::research;
use crate::now;
use crate::records::ItemRow;
use crate::records::whereabouts::ConversationKey;
use crate::state::Gateway;
use crate::state::responses::{Log, WaitingTurn, suspended};

/// Events that wait for a client; when they are so many, the model waits too.
pub(super) const WAITING: usize = 16;

/// Maximum number of bytes that a model and its commands may write in one response. Without an end, they
/// would fill the memory.
const MAX_SAID: usize = 16 << 20;

/// A request that can be answered.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) gateway: Gateway,
    pub(super) owner: String,
    pub(super) request: ResponseRequest,
    /// Its response before anything came of it.
    pub(super) response: Response,
    /// Everything that the model reads.
    pub(super) conversation: Vec<Item>,
    /// Index of the first item of this turn's own part.
    pub(super) own: usize,
    /// The stored response whose conversation stands before that.
    pub(super) previous: Option<String>,
    /// Its input as its conversation is to have it, if it has one.
    pub(super) asked: Vec<ItemRow>,
    /// The container that was used last.
    pub(super) container: Option<String>,
    /// The key by which the conversation's container is found.
    pub(super) key: Option<ConversationKey>,
    /// Results of its tools, if it has any.
    pub(super) evidence: Option<Evidence>,
    pub(super) turn: Turn,
    pub(super) dialect: Dialect,
    /// Whether the model is asked at all; else the response is empty, and can be gone on from.
    pub(super) generate: bool,
}

/// Receiver of a turn's events.
#[derive(Debug)]
pub(super) enum EventReceiver {
    /// A client. When it is gone, the turn ends.
    Client(mpsc::Sender<StreamEvent>),
    /// The log of a response that goes on without a client.
    Log(Arc<Log>),
}

/// Result of a turn.
#[derive(Debug)]
pub(super) struct TurnResult {
    pub(super) response: Response,
    pub(super) conversation: Vec<Item>,
    pub(super) container: Option<String>,
    /// Results of its tools, and the stored form of them.
    pub(super) evidence: Option<Evidence>,
    pub(super) remembered: Option<String>,
}

impl TurnResult {
    /// Returns the state of the turn while its code waits for the client.
    fn waiting(&self, owner: String, request: &ResponseRequest, code: &SuspendedCode) -> WaitingTurn {
        WaitingTurn {
            owner,
            response: self.response.id.clone(),
            conversation: request.conversation.clone(),
            calls: code.waits_for(),
            unanswered: code.unanswered(),
            items: self.conversation.clone(),
            stored: self.response.store,
            container: self.container.clone(),
            evidence: self.evidence.clone(),
        }
    }
}

/// Tells the events of one turn.
struct Relay {
    ear: EventReceiver,
    dialect: Dialect,
    numbers: Numbers,
    patience: Duration,
    /// Whether its beginning was announced.
    announced: bool,
    /// Items that are whole, for a response that breaks off without one.
    done: Vec<Item>,
    /// Bytes that the model has said.
    said: usize,
}

/// Reason that nobody receives the events any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeaveReason {
    /// The client canceled it.
    Cancelled,
    /// The client is gone.
    Gone,
    /// The client does not read.
    Stalled,
    /// The model says more than it may.
    Endless,
}

impl Job {
    /// Plays it to its end. It ends early when it is cancelled, or its client is gone.
    pub(super) async fn play(self, ear: EventReceiver, cancel: CancellationToken) -> TurnResult {
        let Self {
            gateway,
            owner,
            request,
            response: base,
            mut conversation,
            own,
            previous,
            asked,
            container,
            key,
            evidence,
            turn,
            dialect,
            generate,
        } = self;
        let mut relay = Relay {
            ear,
            dialect,
            numbers: Numbers::default(),
            patience: gateway.options.responses.stall_timeout,
            announced: false,
            done: Vec::new(),
            said: 0,
        };
        let _place = if base.background {
            relay.announce(&base).await;
            tokio::select! {
                place = Arc::clone(&gateway.responses.places).acquire_owned() => {
                    keep::running(&gateway, &base).await;
                    place.ok()
                }
                // The turn below sees it too, and ends before it began.
                () = cancel.cancelled() => None,
            }
        } else {
            None
        };
        let (sender, events) = mpsc::channel(WAITING);
        let work = async {
            if generate {
                turn.converse(&request, base.clone(), &mut conversation, sender)
                    .await
            } else {
                warm_up(base.clone(), &sender).await
            }
        };
        let (ended, (last, left)) = tokio::join!(
            AssertUnwindSafe(work).catch_unwind(),
            relay.follow(events, &cancel)
        );
        let mut error = None;
        let mut response = ended.unwrap_or_else(|_| {
            tracing::error!(response = base.id, "a turn panicked");
            let (response, why) = relay.broken(base);
            error = Some(why);
            response
        });
        cut_short(&mut response, left.filter(|_| last.is_none()));
        dialect.settle(&mut response.output);
        // What is cut short has nobody who could answer.
        let whole = left.is_none() && response.status == ResponseStatus::Completed;
        let suspended = turn.suspended().filter(|_| whole);
        let own = match &suspended {
            Some(_) => own,
            None => keep::mend(&mut conversation, own),
        };
        let used = keep::container(&response);
        if let (Some(key), Some(used)) = (key, &used) {
            container::bind(&gateway, key, used.clone()).await;
        }
        let container = used.or(container);
        let remembered = match &evidence {
            Some(evidence) => research::keep(&gateway, &owner, evidence, &response).await,
            None => None,
        };
        let mut played = TurnResult {
            response,
            conversation,
            container,
            evidence,
            remembered,
        };
        let mut last = relay.end(&played.response, error).await;
        let events = |last: &StreamEvent| relay.ear.log().map(|log| log.text() + &last.frame());
        if let Some(code) = suspended {
            // Before the client can see the end in the records, and answers.
            suspended::add(&gateway, played.waiting(owner.clone(), &request, &code), code);
        }
        let conversation = request.conversation.as_deref();
        let left = conversation.and_then(|conversation| keep::left(conversation, asked, &played));
        let kept = keep::ended(&gateway, &owner, previous, own, &played, events(&last), left).await;
        if let Err(unkept) = kept {
            drop(gateway.responses.suspended.take(&owner, &played.response.id));
            unkept.fail(&mut played.response);
            let response = Box::new(played.response.clone());
            last.kind = EventKind::Failed { response };
            unkept.keep(&gateway, &played.response, events(&last)).await;
        }
        relay.deliver(last).await;
        played
    }
}

/// Marks a response that ended before its turn did, if it did.
fn cut_short(response: &mut Response, left: Option<LeaveReason>) {
    if left.is_none() || response.status == ResponseStatus::Failed {
        return;
    }
    tracing::debug!(response = response.id, ?left, "a response was cancelled");
    if left == Some(LeaveReason::Endless) {
        let reason = "max_output_bytes".to_owned();
        response.incomplete_details = Some(IncompleteReason { reason });
    } else {
        response.status = ResponseStatus::Cancelled;
        response.incomplete_details = None;
    }
}

/// A response that is empty and whole.
async fn warm_up(response: Response, events: &mpsc::Sender<StreamEvent>) -> Response {
    let mut draft = Draft::begin(response);
    let begun = draft.take();
    let (response, last) = draft.complete(TokenUsage::default(), now());
    for event in begun.into_iter().chain(last) {
        if events.send(event).await.is_err() {
            break;
        }
    }
    response
}

impl Relay {
    /// Says that the response waits.
    async fn announce(&mut self, base: &Response) {
        let mut response = Box::new(base.clone());
        response.status = ResponseStatus::Queued;
        self.announced = true;
        let created = EventKind::Created {
            response: response.clone(),
        };
        for kind in [created, EventKind::Queued { response }] {
            let event = self.numbers.next(kind);
            self.deliver(event).await;
        }
    }

    /// Sends all events except the last, which is returned: a client that sees the end can rely on
    /// the records.
    async fn follow(
        &mut self,
        mut events: mpsc::Receiver<StreamEvent>,
        cancel: &CancellationToken,
    ) -> (Option<StreamEvent>, Option<LeaveReason>) {
        loop {
            let event = tokio::select! {
                biased;
                () = cancel.cancelled() => return (None, Some(LeaveReason::Cancelled)),
                () = self.ear.gone() => return (None, Some(LeaveReason::Gone)),
                event = events.recv() => event,
            };
            let Some(event) = event else {
                return (None, None);
            };
            if event.kind.last().is_some() {
                return (Some(event), None);
            }
            if self.announced && matches!(event.kind, EventKind::Created { .. }) {
                continue;
            }
            if let EventKind::ItemDone { item, .. } = &event.kind {
                self.done.push((**item).clone());
            }
            self.said += event.kind.said();
            if self.said > MAX_SAID {
                return (None, Some(LeaveReason::Endless));
            }
            for kind in self.dialect.tell(event.kind) {
                let event = self.numbers.next(kind);
                let told = tokio::select! {
                    told = self.deliver(event) => told,
                    () = cancel.cancelled() => Some(LeaveReason::Cancelled),
                };
                if told.is_some() {
                    return (None, told);
                }
            }
        }
    }

    /// Gives an event to who listens, and waits for one that is slow, though not for ever.
    async fn deliver(&self, event: StreamEvent) -> Option<LeaveReason> {
        match &self.ear {
            EventReceiver::Log(log) => {
                log.push(&event);
                None
            }
            EventReceiver::Client(client) => match client.send_timeout(event, self.patience).await {
                Ok(()) => None,
                Err(mpsc::error::SendTimeoutError::Closed(_)) => Some(LeaveReason::Gone),
                Err(mpsc::error::SendTimeoutError::Timeout(_)) => Some(LeaveReason::Stalled),
            },
        }
    }

    /// The event that tells the end, after that of an error.
    async fn end(&mut self, response: &Response, error: Option<ApiError>) -> StreamEvent {
        if let Some(error) = error {
            let event = self.numbers.next(EventKind::Error(StreamError(error)));
            self.deliver(event).await;
        }
        let response = Box::new(response.clone());
        self.numbers.next(match response.status {
            ResponseStatus::Completed => EventKind::Completed { response },
            ResponseStatus::Failed => EventKind::Failed { response },
            _ => EventKind::Incomplete { response },
        })
    }

    /// The response of a turn that panicked.
    fn broken(&mut self, mut response: Response) -> (Response, ApiError) {
        let error = ApiError {
            kind: ErrorKind::ServerError,
            code: Some("server_error".to_owned()),
            message: "the gateway made a mistake while it wrote this response; its log has more".to_owned(),
            param: None,
        };
        response.status = ResponseStatus::Failed;
        response.error = Some(Failure {
            code: "server_error".to_owned(),
            message: error.message.clone(),
        });
        response.output = std::mem::take(&mut self.done);
        (response, error)
    }
}

impl EventReceiver {
    /// Waits until nobody listens.
    async fn gone(&self) {
        match self {
            Self::Client(client) => client.closed().await,
            Self::Log(_) => std::future::pending().await,
        }
    }

    /// Returns the log of the events, before the last of them.
    fn log(&self) -> Option<&Log> {
        match self {
            Self::Client(_) => None,
            Self::Log(log) => Some(log),
        }
    }
}

/// A status as it is written.
pub(super) fn word(status: ResponseStatus) -> String {
    json!(status).as_str().unwrap_or_default().to_owned()
}

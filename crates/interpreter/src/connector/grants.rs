//! The connectors of a session: which there are, and the calls of its code.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_artifact::{ArtifactId, Store};
use cellblock_protocol::text::counted;
use cellblock_protocol::{CallError, FetchEffect, json_size};
use cellblock_sandbox::backend::BoxFuture;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::answer::StoredAnswer;
use super::approval::{WriteDecision, WriteMode};
use super::counted::CountedFetch;
use super::granted::SessionConnector;
use super::large::AnswerBudget;
use super::log::{FetchLog, FetchRecord, OpenRecord};
use super::memo::{CallKey, Memo, MemoPolicy};
use super::parameters::Parameters;
use super::schema::DeclaredSchema;
use super::store::TableStorage;
use super::waits::WaitClock;
use super::{Bundle, Card, Connector, ConnectorError, ConnectorErrorKind, FetchAllowance, FetchAnswer};
use crate::host_call::{HostReply, shown};
use crate::output::DecodingLimits;

/// Maximum number of requests of a session at the same time; further ones wait.
const RUNNING: usize = 8;
/// Maximum size in bytes of the descriptions and schemas that a kernel is given; a message has 4 MiB.
const CARD_BYTES: usize = 2 << 20;

/// Common terms of all calls of a session: by default, any amount is fetched and nothing is kept.
#[derive(Debug, Default)]
pub struct GrantTerms {
    /// Store of tables; without it they are not kept.
    pub(crate) store: Option<Store>,
    /// Allowance of fetches; without it any amount.
    pub(crate) allowance: Option<Arc<dyn FetchAllowance>>,
    /// Answers that all sessions of an owner share.
    pub(crate) shared: Arc<Memo>,
    /// The session's id in the log.
    pub(crate) session: Option<String>,
}

/// Methods that the host offers to the code of a session with connectors. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Grants(Arc<GrantsInner>);

#[derive(Debug)]
struct GrantsInner {
    /// Connectors that code can call. A connector that is lent hides the session's own with its name.
    granted: Vec<Arc<SessionConnector>>,
    /// The session's own connectors.
    own: Vec<Arc<SessionConnector>>,
    /// Number of times that connectors were lent.
    lendings: u64,
    memo: Arc<Memo>,
    log: Arc<FetchLog>,
    running: Arc<Semaphore>,
    /// Bytes of large answers that it may have in memory.
    budget: Arc<AnswerBudget>,
    waits: WaitClock,
    terms: Arc<GrantTerms>,
    limits: DecodingLimits,
    /// Treatment of calls that change something.
    writes: WriteMode,
}

/// Parameters of the method `fetch`.
#[derive(Deserialize)]
struct FetchCall {
    connector: String,
    function: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    /// Whether code wants to know what the record will say.
    #[serde(default)]
    envelope: bool,
}

impl Grants {
    pub(crate) fn new(connectors: &[Arc<dyn Connector>], terms: GrantTerms) -> Self {
        let own: Vec<_> = connectors.iter().map(|it| SessionConnector::new(it, 0)).collect();
        Self(Arc::new(GrantsInner {
            granted: own.clone(),
            own,
            lendings: 0,
            memo: Arc::default(),
            log: Arc::default(),
            running: Arc::new(Semaphore::new(RUNNING)),
            budget: AnswerBudget::of_session(),
            waits: WaitClock::default(),
            terms: Arc::new(terms),
            limits: DecodingLimits::default(),
            writes: WriteMode::default(),
        }))
    }

    /// Returns the same with these connectors lent in addition, in the place of those that were
    /// lent before, and of its own with the same names.
    pub(crate) fn lending(&self, connectors: &[Arc<dyn Connector>]) -> Self {
        let inner = &self.0;
        let lendings = inner.lendings + 1;
        let hidden = |own: &SessionConnector| connectors.iter().any(|it| it.name() == own.connector.name());
        let own = inner.own.iter().filter(|own| !hidden(own)).cloned();
        let lent = connectors.iter().map(|it| SessionConnector::new(it, lendings));
        Self(Arc::new(GrantsInner {
            granted: own.chain(lent).collect(),
            lendings,
            ..inner.shared()
        }))
    }

    /// Returns what a cell may call, with this treatment of calls that change something.
    pub(crate) fn of_cell(&self, writes: WriteMode) -> Self {
        Self(Arc::new(GrantsInner {
            writes,
            ..self.0.shared()
        }))
    }

    /// Returns whether a function needs approval. One of a connector that does not answer cannot be
    /// called, either.
    pub(crate) async fn need_approval(&self) -> bool {
        for granted in &self.0.granted {
            let functions = granted.functions().await.map_or(&[][..], Vec::as_slice);
            let asks =
                |card: &Card| card.effect == FetchEffect::Writes && granted.connector.needs_approval(card);
            if functions.iter().any(|offered| asks(&offered.card)) {
                return true;
            }
        }
        false
    }

    /// Returns what a kernel binds of the connectors that others did not have: those that are lent,
    /// and its own that are not hidden any more.
    pub(crate) async fn since(&self, before: &Self) -> Vec<Bundle> {
        let had = |it: &Arc<SessionConnector>| before.0.granted.iter().any(|other| Arc::ptr_eq(it, other));
        let new = self.0.granted.iter().filter(|it| !had(it));
        join_all(new.map(|granted| granted.bundle())).await
    }

    /// Returns how long calls have waited for the session's client.
    pub(crate) fn waited(&self) -> Duration {
        self.0.waits.total()
    }

    /// Returns what a kernel binds. All connectors are asked at the same time; one that does not
    /// answer has no functions yet.
    pub(crate) async fn bundles(&self) -> Vec<Bundle> {
        let mut bundles = join_all(self.0.granted.iter().map(|granted| granted.bundle())).await;
        let mut room = CARD_BYTES;
        for bundle in &mut bundles {
            let before = bundle.functions.len();
            bundle.functions.retain(|card| {
                let bytes = json_size(card).unwrap_or(usize::MAX);
                let fits = bytes <= room;
                room -= if fits { bytes } else { 0 };
                fits
            });
            let left_out = before - bundle.functions.len();
            if left_out > 0 {
                let text = format!(
                    "{} left out, because the descriptions exceed {CARD_BYTES} bytes",
                    counted(left_out, "function")
                );
                tracing::warn!(connector = bundle.name, "{text}");
                bundle.unavailable = Some(text);
            }
        }
        bundles
    }

    /// Takes what the code has fetched since the last time, and the number of calls that were not recorded.
    pub(crate) async fn take_records(&self) -> (Vec<FetchRecord>, u32) {
        self.0.log.take().await
    }

    /// Returns what the code has fetched in this cell so far: the calls, and their tables that are stored.
    pub(crate) fn references(&self) -> (BTreeSet<String>, BTreeSet<ArtifactId>) {
        self.0.log.references()
    }

    /// Forgets the answers of earlier calls.
    pub(crate) fn forget(&self) {
        self.0.memo.clear();
    }

    /// Answers a call of the method `fetch`. Dropping the future cancels it.
    pub(crate) fn fetch(
        &self,
        params: Value,
        until: Instant,
    ) -> BoxFuture<'static, Result<HostReply, CallError>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let fetch: FetchCall = serde_json::from_value(params).map_err(|error| CallError {
                code: "invalid_call".to_owned(),
                message: format!("the call is malformed: {error}"),
                details: Value::Null,
            })?;
            let FetchCall {
                connector, function, ..
            } = &fetch;
            let counted = CountedFetch::begin(&inner.terms, connector, function);
            let mut record = inner.log.begin(connector, function, &fetch.arguments, counted);
            match inner.answer(fetch, &mut record, until).await {
                Ok((answer, cached, arguments)) => {
                    record.end(Ok((&answer, cached)));
                    let mut value = json!({
                        "cached": cached,
                        "fetched_at": answer.fetched_at,
                        "form": answer.form.name(),
                    });
                    if let (Some(arguments), Value::Object(fields)) = (arguments, &mut value) {
                        fields.insert("arguments".to_owned(), arguments.into());
                        fields.extend(answer.envelope().await);
                    }
                    let blob = answer.copy().map_err(|error| CallError {
                        code: "answer".to_owned(),
                        message: format!("the answer cannot be sent: {}", error.kind()),
                        details: Value::Null,
                    })?;
                    Ok(HostReply {
                        value,
                        blobs: vec![blob],
                    })
                }
                Err(error) => {
                    record.end(Err(&error));
                    Err(error.to_call_error())
                }
            }
        })
    }
}

impl GrantsInner {
    /// Returns the same, with everything that it has until now.
    fn shared(&self) -> Self {
        Self {
            granted: self.granted.clone(),
            own: self.own.clone(),
            lendings: self.lendings,
            memo: Arc::clone(&self.memo),
            log: Arc::clone(&self.log),
            running: Arc::clone(&self.running),
            budget: Arc::clone(&self.budget),
            waits: self.waits.clone(),
            terms: Arc::clone(&self.terms),
            limits: self.limits,
            writes: self.writes.clone(),
        }
    }

    /// Returns the answer, whether it is that of another call, and the arguments with defaults for
    /// an envelope.
    async fn answer(
        self: &Arc<Self>,
        fetch: FetchCall,
        record: &mut OpenRecord,
        until: Instant,
    ) -> Result<(Arc<StoredAnswer>, bool, Option<Map<String, Value>>), ConnectorError> {
        let at = self
            .granted
            .iter()
            .position(|granted| granted.connector.name() == fetch.connector)
            .ok_or_else(|| self.not_granted(&fetch.connector))?;
        let granted = &self.granted[at];
        let lent = granted.lending > 0;
        record.counted.granted(&*granted.connector, lent);
        let functions = granted.functions().await?;
        let of = functions
            .iter()
            .position(|offered| offered.card.function == fetch.function)
            .ok_or_else(|| granted.unknown(&fetch.function, functions))?;
        let offered = &functions[of];
        record.counted.found();
        if matches!(self.writes, WriteMode::Trying) && offered.card.effect == FetchEffect::Writes {
            return Err(written_in_try(&fetch.connector, &offered.card.function));
        }
        let parameters = offered.parameters.get_or_init(|| Parameters::new(&offered.card));
        let named = |error: ConnectorError| error.of_call(&fetch.connector, &offered.card.function);
        let bound = parameters.bind(fetch.arguments).map_err(named)?;
        record.bound(&bound.arguments);
        let arguments = fetch.envelope.then(|| bound.arguments.clone());
        let decided = self
            .writes
            .decide(&*granted.connector, &offered.card, &bound.arguments)?;
        if decided == WriteDecision::StandIn {
            record.rehearsed();
            let redaction = granted.connector.redaction();
            let (answer, _) =
                StoredAnswer::new(FetchAnswer::Value(Value::Null), None, redaction, &self.limits)?;
            return Ok((Arc::new(answer), false, arguments));
        }
        let call = Arc::clone(self)
            .ask(at, of, bound.arguments, until)
            .map(move |answer| answer.map(Arc::new));
        let (answer, cached) = match offered.card.effect {
            FetchEffect::Writes => (call.await?, false),
            FetchEffect::Reads => match granted.connector.memo() {
                MemoPolicy::Off => (call.await?, false),
                policy => {
                    let (memo, owner) = self.memo_of(policy, lent);
                    let key = CallKey::new(owner, &granted.identity(), &fetch.function, &bound.canonical);
                    memo.get(key, policy.lifetime(), || call.boxed()).await?
                }
            },
        };
        Ok((answer, cached, arguments))
    }

    /// Returns where answers are kept, and whose they are there. Those of connectors that a request
    /// named are its session's.
    fn memo_of(&self, policy: MemoPolicy, lent: bool) -> (&Memo, &str) {
        match (policy, &self.terms.allowance) {
            (MemoPolicy::Shared(_), Some(allowance)) if !lent => (&self.terms.shared, allowance.owner()),
            _ => (&self.memo, ""),
        }
    }

    /// Makes a request.
    async fn ask(
        self: Arc<Self>,
        at: usize,
        of: usize,
        arguments: Map<String, Value>,
        until: Instant,
    ) -> Result<StoredAnswer, ConnectorError> {
        let SessionConnector {
            connector, functions, ..
        } = &*self.granted[at];
        let Some(offered) = functions.get().and_then(|functions| functions.get(of)) else {
            return Err(ConnectorError::invalid("there is no such function"));
        };
        let Ok(running) = Arc::clone(&self.running).acquire_owned().await else {
            return Err(ConnectorError::invalid("the session is closed"));
        };
        let name = connector.name();
        let allowance = self.terms.allowance.as_ref();
        let allowance = allowance.filter(|_| !connector.waits_for_client());
        if let Some(allowance) = allowance {
            let asked = allowance.begin().await;
            asked.map_err(|error| error.of_call(name, &offered.card.function))?;
        }
        let redaction = connector.redaction();
        let waiting = connector.waits_for_client().then(|| self.waits.begin());
        let fetching = connector.fetch(&offered.card.name, arguments, until);
        let fetched = Arc::clone(&self.budget).scope(fetching).await;
        drop(waiting);
        let fetched = fetched.map_err(|error| error.redacted(redaction))?;
        let (fetched, place) = Arc::clone(&self.budget).scope(fetched.placed()).await;
        let returns = offered.returns.get_or_init(|| {
            let schema = offered.card.returns.as_ref();
            schema.and_then(DeclaredSchema::new).map(Arc::new)
        });
        let (returns, reader) = (returns.clone(), Arc::clone(connector));
        let limits = self.limits;
        // Large answers take a while.
        let read = spawn_blocking(move || {
            let answer = StoredAnswer::new(fetched, returns.as_deref(), reader.redaction(), &limits);
            // Held until then, also if nobody waits any more.
            (answer, place)
        });
        let (read, place) = read.await.unwrap_or_else(|_| {
            let kind = ConnectorErrorKind::Provider { status: None };
            let failed = ConnectorError::new(kind, "the host could not read the answer");
            (Err(failed), None)
        });
        let (mut answer, table) = read.map_err(|error| error.of_call(name, &offered.card.function))?;
        if let Some(allowance) = allowance {
            allowance.fetched(answer.bytes.len());
        }
        if let (Some(table), Some(store)) = (table, &self.terms.store) {
            answer.storing = Some(TableStorage::start(
                table,
                store.clone(),
                limits,
                (running, place),
            ));
        }
        Ok(answer)
    }

    fn not_granted(&self, name: &str) -> ConnectorError {
        let known: Vec<_> = self
            .granted
            .iter()
            .map(|granted| format!("`{}`", granted.connector.name()))
            .collect();
        let known = if known.is_empty() {
            "it has none".to_owned()
        } else {
            format!("it has {}", known.join(", "))
        };
        let text = format!("this session has no connector `{}`; {known}", shown(name));
        ConnectorError::new(ConnectorErrorKind::NotGranted, text)
    }
}

fn written_in_try(connector: &str, function: &str) -> ConnectorError {
    let text = format!(
        "`{connector}.{function}` changes something outside the sandbox, which a try cannot undo: leave \
         the call out, keep the try, and make the call in the next cell"
    );
    ConnectorError::new(ConnectorErrorKind::NotGranted, text)
}

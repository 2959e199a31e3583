//! Running recorded cells again in a fresh sandbox, and comparing what they make.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_sandbox::Limits;
use cellblock_sandbox::limits::NetworkPolicy;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::cell::{Cell, Guard};
use crate::error::Result;
use crate::handle::mint;
use crate::input::Input;
use crate::interpreter::Interpreter;
use crate::run_record::{RunDifference, RunInput, RunRecord, RunSink, differences, sha256};
use crate::session::{Session, SessionOptions, SetupSnippet};
use crate::skill::{SessionSkill, SkillBundle};

/// Result of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayResult {
    /// The run made the same again.
    Equal,
    /// It made something else.
    Differs,
    /// It cannot be replayed.
    Impossible,
}

/// Result of a replay.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReplayReport {
    /// ID of the run that was replayed.
    pub run: String,
    /// Result for this run: `equal`, `differs` or `impossible`.
    pub result: ReplayResult,
    /// Reasons that it cannot be replayed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Differences between the run and its record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<RunDifference>,
    /// Duration of its cells.
    #[serde(skip)]
    pub took: Duration,
    /// Every run of the session that was replayed, from its first in the sandbox to this one.
    pub runs: Vec<ReplayedRun>,
}

/// A run that was replayed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReplayedRun {
    /// ID of the recorded run.
    pub run: String,
    /// ID of the run that replayed it.
    pub replay: String,
    /// Result: `equal` or `differs`.
    pub result: ReplayResult,
    /// Differences between the run and its record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<RunDifference>,
}

/// Terms that the host gives to a replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayTerms {
    /// Setup code of the operator, whose code records do not repeat.
    pub snippets: Vec<SetupSnippet>,
    /// Maximum timeout of a cell.
    pub max_timeout: Option<Duration>,
    /// Widest network policy that is allowed.
    pub max_network: NetworkPolicy,
    /// Lowest level of the check before code runs that is allowed.
    pub min_guard: Guard,
    /// Takes the records of the replay's own runs.
    pub sink: Option<Arc<dyn RunSink>>,
}

impl ReplayReport {
    /// The report of a run that cannot be replayed.
    pub fn impossible(run: &str, reasons: Vec<String>) -> Self {
        Self {
            run: run.to_owned(),
            result: ReplayResult::Impossible,
            reasons,
            differences: Vec::new(),
            took: Duration::ZERO,
            runs: Vec::new(),
        }
    }
}

/// A replay of a run and of those before it in its sandbox.
#[derive(Debug)]
pub struct Replay<'a> {
    interpreter: &'a Interpreter,
    chain: &'a [RunRecord],
    target: &'a RunRecord,
    terms: ReplayTerms,
}

impl<'a> Replay<'a> {
    /// Plans the replay of the last of these runs. The first is the first of its sandbox, and each
    /// is the parent of the next. Answers what stands against it as `Err`.
    pub async fn plan(
        interpreter: &'a Interpreter,
        chain: &'a [RunRecord],
        terms: ReplayTerms,
    ) -> std::result::Result<Self, Vec<String>> {
        let Some(target) = chain.last() else {
            return Err(vec!["the run is not recorded".to_owned()]);
        };
        let replay = Self {
            interpreter,
            chain,
            target,
            terms,
        };
        let reasons = replay.obstacles().await;
        if reasons.is_empty() {
            Ok(replay)
        } else {
            Err(reasons)
        }
    }

    /// Runs the cells in a session of its own, which is closed at the end.
    pub async fn run(&self) -> Result<ReplayReport> {
        let taken = Arc::new(ReplaySink::new(self.terms.sink.clone()));
        let session = self.session(Arc::clone(&taken)).await?;
        let began = Instant::now();
        let replayed = self.run_in(&session, &taken).await;
        let took = began.elapsed();
        let closed = session.close_now().await;
        let runs = replayed?;
        closed?;
        let last = runs.last();
        Ok(ReplayReport {
            run: self.target.id.clone(),
            result: last.map_or(ReplayResult::Impossible, |last| last.result),
            reasons: Vec::new(),
            differences: last.map(|last| last.differences.clone()).unwrap_or_default(),
            took,
            runs,
        })
    }

    async fn run_in(&self, session: &Session, taken: &ReplaySink) -> Result<Vec<ReplayedRun>> {
        let mut bound = Vec::new();
        let mut runs = Vec::new();
        for record in self.chain {
            if record.after_reset {
                session.reset().await?;
            }
            for input in &record.inputs {
                if bound.contains(input) {
                    continue;
                }
                if let Some(id) = input.sha256.as_ref().and_then(|it| it.parse().ok()) {
                    let file = self.interpreter.store().verified_file(id).await?;
                    session
                        .bind(Input::from_file(&input.name, input.format, file))
                        .await?;
                    bound.retain(|other: &RunInput| other.name != input.name);
                    bound.push(input.clone());
                }
            }
            taken.expect(&record.id);
            let failed = session.execute(self.cell(record)).await.err();
            session.recorded().await?;
            let Some(replayed) = taken.last() else {
                return Err(failed.unwrap_or(crate::error::Error::Closed));
            };
            let differences = differences(record, &replayed);
            runs.push(ReplayedRun {
                run: record.id.clone(),
                replay: replayed.id,
                result: if differences.is_empty() {
                    ReplayResult::Equal
                } else {
                    ReplayResult::Differs
                },
                differences,
            });
        }
        Ok(runs)
    }

    async fn session(&self, taken: Arc<ReplaySink>) -> Result<Session> {
        let setup = &self.target.setup;
        let snippets = setup.snippets.iter().filter_map(|snippet| {
            let code = match &snippet.code {
                Some(code) => code.clone(),
                None => self.operators(&snippet.sha256)?.code.clone(),
            };
            Some(SetupSnippet {
                name: snippet.name.clone(),
                code,
                guarded: snippet.code.is_some(),
            })
        });
        let limits = self.limits().filter(|limits| limits != self.interpreter.limits());
        let mut skills = Vec::new();
        for skill in &setup.skills {
            let bundle = Arc::new(SkillBundle::open(self.interpreter.store(), skill.sha256).await?);
            skills.push(SessionSkill {
                name: skill.name.clone(),
                description: bundle.metadata.description.clone(),
                id: skill.id.clone(),
                version: skill.version.clone(),
                version_id: None,
                bundle,
            });
        }
        Ok(self.interpreter.session(SessionOptions {
            prelude: setup.prelude.clone(),
            guard: setup.guard,
            rescue: setup.rescue,
            setup: snippets.collect(),
            limits,
            id: Some(mint("replay_")),
            skills,
            runs: Some(taken),
            ..SessionOptions::default()
        }))
    }

    fn cell(&self, record: &RunRecord) -> Cell {
        let call = &record.call;
        let timeout = Duration::from_millis(call.timeout_ms);
        Cell {
            name: Some(call.name.clone()),
            line: call.line,
            language: call.language,
            argv: call.argv.clone(),
            mode: call.mode,
            echo: call.echo,
            store: call.store,
            timeout: Some(self.terms.max_timeout.map_or(timeout, |most| timeout.min(most))),
            requirements: call.requirements.clone(),
            collect_files: call.collect_files,
            last: call.last,
            ..Cell::new(record.code.clone().unwrap_or_default())
        }
    }

    /// The limits of the recorded sandbox.
    fn limits(&self) -> Option<Limits> {
        serde_json::from_value(Value::Object(self.target.limits.clone())).ok()
    }

    fn operators(&self, hash: &str) -> Option<&SetupSnippet> {
        let mut snippets = self.terms.snippets.iter();
        snippets.find(|snippet| sha256(snippet.code.as_bytes()) == hash)
    }

    async fn obstacles(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let image = self.interpreter.image();
        if self.target.image.digest != image.digest {
            reasons.push(format!(
                "it ran in the image `{}` ({}), and sandboxes here start from `{}` ({})",
                self.target.image.name, self.target.image.digest, image.name, image.digest
            ));
        }
        match self.limits() {
            None => reasons.push("its limits are not those of this version".to_owned()),
            Some(limits) => {
                let most = Limits {
                    network: self.terms.max_network,
                    ..self.interpreter.limits().clone()
                };
                if let Some(above) = limits.above(&most) {
                    reasons.push(format!("its limits are not allowed here: {above}"));
                }
            }
        }
        // A derivation has none of its own, and cannot be replayed for its results of tools.
        if self.target.setup.guard < self.terms.min_guard {
            reasons.push("its code was checked less than is required here now".to_owned());
        }
        for snippet in &self.target.setup.snippets {
            if snippet.code.is_none() && self.operators(&snippet.sha256).is_none() {
                reasons.push(format!(
                    "the operator's setup code `{}` has changed since",
                    snippet.name
                ));
            }
        }
        for skill in &self.target.setup.skills {
            if !self
                .interpreter
                .store()
                .exists(skill.sha256)
                .await
                .unwrap_or(false)
            {
                reasons.push(format!(
                    "its skill `{}` is no longer in the artifact store",
                    skill.name
                ));
            }
        }
        for record in self.chain {
            let about = |reason: String| {
                if record.id == self.target.id {
                    reason
                } else {
                    format!("the run {} before it: {reason}", record.id)
                }
            };
            if record.code.is_none() {
                reasons.push(about("its code is too long to be recorded".to_owned()));
            }
            if record.outcome == "error" {
                reasons.push(about(
                    "its sandbox failed, so it made nothing to compare".to_owned(),
                ));
            }
            if let Some(fetch) = record.fetches.first() {
                reasons.push(about(format!(
                    "it called the connector `{}`, whose answers may have changed",
                    fetch.connector
                )));
            }
            for dependency in &record.depends_on {
                reasons.push(about(format!("it could use {}", dependency.describe())));
            }
            for input in &record.inputs {
                if !self.has(input).await {
                    reasons.push(about(format!(
                        "its input `{}` is no longer in the artifact store",
                        input.name
                    )));
                }
            }
        }
        reasons.dedup();
        reasons
    }

    async fn has(&self, input: &RunInput) -> bool {
        let id = input.sha256.as_ref().and_then(|it| it.parse().ok());
        let Some(id) = id else { return false };
        self.interpreter.store().exists(id).await.unwrap_or(false)
    }
}

/// Takes the records of a replay, and passes them on.
#[derive(Debug)]
struct ReplaySink {
    sink: Option<Arc<dyn RunSink>>,
    state: Mutex<(String, Option<RunRecord>)>,
}

impl ReplaySink {
    fn new(sink: Option<Arc<dyn RunSink>>) -> Self {
        let state = Mutex::default();
        Self { sink, state }
    }

    /// Says which run is replayed next.
    fn expect(&self, run: &str) {
        *self.state.lock() = (run.to_owned(), None);
    }

    fn last(&self) -> Option<RunRecord> {
        let mut state = self.state.lock();
        state.1.take()
    }
}

impl RunSink for ReplaySink {
    fn record(&self, mut record: RunRecord) {
        let mut state = self.state.lock();
        record.replay_of = Some(state.0.clone());
        if let Some(sink) = &self.sink {
            sink.record(record.clone());
        }
        state.1 = Some(record);
    }
}

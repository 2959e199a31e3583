//! One call after the other, in one session.

use std::sync::Arc;

use cellblock_artifact::ArtifactEnvelope;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

use super::coverage;
use super::derived::{BoundInput, DerivationResult};
use super::emitted::CellEmissions;
use super::policy::{DerivationPolicy, LowCoverage};
use super::probe::{Artifacts, CallProbe, Stage};
use crate::alias::{AliasError, AliasStore};
use crate::binding::Binding;
use crate::cell::Cell;
use crate::contract::{
    ArtifactKind, Attempts, Contract, ContractCall, DerivationCall, KnownAliases, check_after, check_before,
};
use crate::error::{Error, Result};
use crate::execution::{Event, Execution, Outcome};
use crate::finding::Finding;
use crate::output::why_unkept;
use crate::rejection::Rejection;
use crate::session::Session;
use crate::shared::InterpreterState;

/// The tool that a cell's own result is recorded as.
const TOOL: &str = "code_interpreter";

/// Derives from tool results, under contracts. Its sandbox is made at the first call and ended when
/// it is dropped.
#[derive(Debug)]
pub struct Derivation {
    shared: Arc<InterpreterState>,
    session: Session,
    aliases: AliasStore,
    policy: DerivationPolicy,
    attempts: Arc<Mutex<Attempts>>,
}

/// Results that an interface has recorded, and the terms on which calls derive from them.
#[derive(Clone, Debug)]
pub struct LentResults {
    /// The results.
    pub aliases: AliasStore,
    /// The rules.
    pub policy: DerivationPolicy,
    /// Number of calls that may still fail, which others may share.
    pub attempts: Arc<Mutex<Attempts>>,
}

impl LentResults {
    /// Lets calls fail as often as the rules say.
    pub fn new(aliases: AliasStore, policy: DerivationPolicy) -> Self {
        Self {
            aliases,
            attempts: Arc::new(Mutex::new(Attempts::new(policy.max_attempts))),
            policy,
        }
    }
}

impl Derivation {
    /// In a session that is there already and has the prelude `derivation`; of its attempts, which
    /// others may share, some may be used up.
    pub(super) fn within(shared: Arc<InterpreterState>, session: Session, results: LentResults) -> Self {
        Self {
            shared,
            session,
            aliases: results.aliases,
            policy: results.policy,
            attempts: results.attempts,
        }
    }

    /// The tool results that calls derive from.
    pub fn aliases(&self) -> &AliasStore {
        &self.aliases
    }

    /// The session that calls run in.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The rules.
    pub fn policy(&self) -> &DerivationPolicy {
        &self.policy
    }

    /// Number of calls that may still fail.
    pub fn attempts(&self) -> Attempts {
        *self.counted()
    }

    fn counted(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock()
    }

    /// Lets calls fail as often as at first: there is a new result to derive from, or the session was reset.
    pub fn renew_attempts(&self) {
        self.counted().renew();
    }

    /// Runs one call. What the model did wrong is `Ok`: see [`DerivationResult::outcome`].
    pub async fn derive(&self, call: &DerivationCall) -> Result<DerivationResult> {
        self.derive_watched(call, None).await
    }

    /// The same, with its output as it comes.
    pub async fn derive_watched(
        &self,
        call: &DerivationCall,
        events: Option<mpsc::Sender<Event>>,
    ) -> Result<DerivationResult> {
        match self.allowed(call) {
            Ok(contract) => self.run(call, &contract, events).await,
            Err(rejections) => {
                let derived = self.refuse(&call.intent, rejections);
                let probe = CallProbe::start("", false, 0, call.code.len() as u64, 0);
                probe.fail(Stage::ContractBefore, &message(&derived));
                Ok(derived)
            }
        }
    }

    /// Counts a call that could not be read as a failed attempt.
    pub fn refuse(&self, intent: &str, rejections: Vec<Rejection>) -> DerivationResult {
        self.counted().fail();
        self.derived(intent, Outcome::Rejected { rejections })
    }

    /// Ends the sandbox, if there is one, and completes when it is gone.
    pub async fn close(self) -> Result<()> {
        self.session.close().await
    }

    fn allowed(&self, call: &DerivationCall) -> Result<Contract, Vec<Rejection>> {
        if let Some(refusal) = self.attempts().refusal() {
            return Err(vec![refusal]);
        }
        let terms = ContractCall {
            contract: &call.contract,
            inputs: &call.inputs,
        };
        check_before(
            &terms,
            &KnownAliases::new(self.aliases.aliases()),
            &self.policy.contract,
        )
    }

    async fn run(
        &self,
        call: &DerivationCall,
        contract: &Contract,
        events: Option<mpsc::Sender<Event>>,
    ) -> Result<DerivationResult> {
        let binding = Arc::new(Binding::new(&self.aliases, &call.inputs)?);
        let start = |sandbox: &str, made| {
            let (code, aliases) = (call.code.len() as u64, self.aliases.aliases().len() as u64);
            CallProbe::start(sandbox, made, binding.bytes(), code, aliases)
        };
        let prepared = match self.session.prepare().await {
            Ok(prepared) => prepared,
            Err(error) => {
                start("", false).fail(Stage::Sandbox, &error.to_string());
                return Err(error);
            }
        };
        let mut probe = start(&prepared.sandbox, prepared.made);
        let python = Cell::new(&*call.code)
            .with_timeout(self.policy.cell_timeout)
            .with_requirements(&self.policy.requirements);
        probe.reached(Stage::Python);
        let ran = self
            .session
            .execute_bound(python, Some(Arc::clone(&binding)), events)
            .await;
        let execution = match ran {
            Ok(execution) => execution,
            Err(error) => {
                let stage = match &error {
                    Error::Alias(_) | Error::Input { .. } => Stage::Bind,
                    _ => Stage::Sandbox,
                };
                probe.fail(stage, &error.to_string());
                return Err(error);
            }
        };
        let finished = self.finish(call, contract, execution, &binding).await;
        match &finished {
            Ok(derived) => tell(probe, derived),
            Err(error) => probe.fail(Stage::Store, &error.to_string()),
        }
        finished
    }

    /// Compares what the cell emitted with what it had declared, and keeps what it answered.
    async fn finish(
        &self,
        call: &DerivationCall,
        contract: &Contract,
        mut execution: Execution,
        binding: &Binding,
    ) -> Result<DerivationResult> {
        let mut derived = self.derived(&call.intent, execution.outcome.clone());
        derived.findings = std::mem::take(&mut execution.findings);
        derived.inputs = self.bound(call, contract, binding)?;
        if derived.ok() {
            let emitted = CellEmissions::read(&execution.outputs, &self.shared.store).await?;
            self.judge(contract, &emitted, &mut derived);
            if derived.ok() {
                self.accept(&emitted, &mut derived).await;
            }
        }
        execution.outcome = derived.outcome.clone();
        self.count(&mut derived);
        derived.execution = Some(execution);
        Ok(derived)
    }

    /// Rejects a cell that completed and is not what it had declared, or not what the policy asks for.
    fn judge(&self, contract: &Contract, emitted: &CellEmissions<'_>, derived: &mut DerivationResult) {
        let low = coverage::findings(emitted, &self.policy);
        let most = self.policy.contract.max_artifacts;
        let mut rejections = check_after(contract, &emitted.kinds(), emitted.unsaved, most);
        if self.policy.low_coverage == LowCoverage::Reject {
            rejections.extend(low.iter().map(coverage::rejection));
        }
        derived.findings.extend(low);
        if !rejections.is_empty() {
            derived.outcome = Outcome::Rejected { rejections };
        } else if emitted.unsaved > 0 {
            derived.findings.push(not_saved(emitted.unsaved));
        }
    }

    /// Takes over what was emitted, and records the result as one that later calls can derive from.
    async fn accept(&self, emitted: &CellEmissions<'_>, derived: &mut DerivationResult) {
        derived.artifacts = emitted.envelopes(&self.policy.urls);
        let Some(result) = emitted.result else {
            return;
        };
        derived.result = Some(result.clone());
        match self.aliases.record(TOOL, result).await {
            Ok(entry) => derived.output_alias = Some(entry.alias.clone()),
            // The call has its result; only later calls cannot derive from it.
            Err(error) => derived.findings.push(not_recorded(&error)),
        }
    }

    /// Returns the inputs that the call derives from.
    fn bound(
        &self,
        call: &DerivationCall,
        contract: &Contract,
        binding: &Binding,
    ) -> Result<Vec<BoundInput>> {
        let declared = binding.names().iter().filter(|(name, alias)| {
            call.inputs.contains_key(name) || contract.input_aliases.contains(alias) && name == alias
        });
        declared
            .map(|(name, alias)| {
                let entry = self.aliases.entry(alias)?;
                Ok(BoundInput {
                    name: name.clone(),
                    alias: alias.clone(),
                    bytes: entry.bytes,
                    rows: entry.rows(),
                    sha256: entry.sha256,
                })
            })
            .collect()
    }

    fn derived(&self, intent: &str, outcome: Outcome) -> DerivationResult {
        DerivationResult {
            intent: intent.to_owned(),
            outcome,
            execution: None,
            result: None,
            artifacts: Vec::new(),
            findings: Vec::new(),
            inputs: Vec::new(),
            output_alias: None,
            attempts_left: self.attempts().left(),
        }
    }

    pub(super) const fn shared(&self) -> &Arc<InterpreterState> {
        &self.shared
    }

    /// Counts a call by how it ended.
    pub(super) fn count(&self, derived: &mut DerivationResult) {
        let mut attempts = self.counted();
        if derived.ok() {
            attempts.renew();
        } else {
            attempts.fail();
        }
        derived.attempts_left = attempts.left();
    }

    pub(super) fn answer(&self, outcome: Outcome, artifacts: Vec<ArtifactEnvelope>) -> DerivationResult {
        DerivationResult {
            artifacts,
            ..self.derived("", outcome)
        }
    }
}

fn not_recorded(error: &AliasError) -> Finding {
    // What is not the caller's to repair may name the host's paths.
    let error = if error.code().is_some() {
        error.to_string()
    } else {
        tracing::warn!(
            error = error as &dyn std::error::Error,
            "could not record a result"
        );
        why_unkept(error).to_owned()
    };
    Finding {
        code: "result_not_recorded".to_owned(),
        message: format!("the result has no alias, so that later calls cannot derive from it: {error}"),
        series: None,
        details: serde_json::Value::Null,
    }
}

/// A figure that nobody declared can still be one that the model means to show.
fn not_saved(figures: usize) -> Finding {
    let drawn = if figures == 1 {
        "1 figure was drawn and not saved, so it is".to_owned()
    } else {
        format!("{figures} figures were drawn and not saved, so they are")
    };
    Finding {
        code: "figure_not_saved".to_owned(),
        message: format!(
            "{drawn} not among the artifacts: call save_figure(alt), and declare `image` in \
             `expectedArtifacts`, if the answer needs it"
        ),
        series: None,
        details: serde_json::json!({"count": figures}),
    }
}

fn message(derived: &DerivationResult) -> String {
    derived.error().map(|error| error.message).unwrap_or_default()
}

/// Tells the probe how a call ended.
fn tell(probe: CallProbe, derived: &DerivationResult) {
    let stdout = derived
        .execution
        .as_ref()
        .map(|it| it.stdout.text.chars().count());
    match &derived.outcome {
        Outcome::Completed => {
            let of = |kind: ArtifactKind| {
                let same = derived.artifacts.iter().filter(|it| it.kind() == kind.name());
                same.count() as u64
            };
            probe.succeed(
                stdout.unwrap_or_default() as u64,
                Artifacts {
                    images: of(ArtifactKind::Image),
                    charts: of(ArtifactKind::Chart),
                },
            );
        }
        outcome => {
            let stage = match outcome {
                Outcome::Rejected { rejections } if rejections.iter().any(|it| it.code != "guard") => {
                    Stage::ContractAfter
                }
                _ => Stage::Python,
            };
            probe.fail(stage, &message(derived));
        }
    }
}

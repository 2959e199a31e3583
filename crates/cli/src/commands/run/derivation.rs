//! `cellblock run --toolset derivation`: one call, under its contract.

use std::collections::BTreeMap;

use cellblock_interpreter::Interpreter;
use cellblock_interpreter::alias::{AliasStore, Bounds};
use cellblock_interpreter::derivation::{Derivation, DerivationPolicy, DerivationResult};
use cellblock_interpreter::execution::{Event, UnsentOutputs};
use cellblock_interpreter::report::DerivationReport;
use tokio::sync::mpsc;

use super::{RunEnd, RunState, inputs};
use crate::args::RunArgs;
use crate::error::{Error, Result};
use crate::render::json;
use crate::render::outcome;
use crate::sanitize;

/// Events that may wait to be shown.
const EVENTS: usize = 256;

impl RunState {
    /// Runs the only cell as a call.
    pub(super) async fn derive(&mut self, args: &RunArgs, interpreter: &Interpreter) -> Result<RunEnd> {
        let [named] = &self.cells[..] else {
            return Err(Error::Refused(format!(
                "a call of the derivation toolset is one cell, {} were given; give one FILE without `# \
                 %%` lines, or one --code",
                self.cells.len()
            )));
        };
        let owner = format!("cellblock-run-{}", std::process::id());
        let aliases = AliasStore::new(interpreter.store().clone(), owner, Bounds::default());
        args.toolset.record(&aliases).await?;
        let call = args.toolset.call(&named.cell.code)?;
        let policy = DerivationPolicy {
            requirements: args.requirements.clone(),
            ..args.toolset.policy(args.timeout)
        };
        let derivation = interpreter.derivation(aliases.clone(), policy).await?;
        for input in inputs(args) {
            self.cancel.unless(derivation.session().bind(input)).await?;
        }
        let ended = match call {
            Ok(call) => self.follow(&derivation, &call, interpreter, args.json).await,
            Err(rejections) => {
                let derived = derivation.refuse("", rejections);
                self.conclude(derived, interpreter, Vec::new(), args.json).await
            }
        };
        if let Err(error) = self.cancel.unless(derivation.close()).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "could not end the sandbox in order"
            );
        }
        if let Err(error) = aliases.close().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "could not give up recorded results"
            );
        }
        ended
    }

    async fn follow(
        &mut self,
        derivation: &Derivation,
        call: &cellblock_interpreter::contract::DerivationCall,
        interpreter: &Interpreter,
        json: bool,
    ) -> Result<RunEnd> {
        let (sender, events) = mpsc::channel::<Event>(EVENTS);
        let session = derivation.session().clone();
        let mut saved = Vec::new();
        let running = Box::pin(derivation.derive_watched(call, Some(sender)));
        let store = interpreter.store();
        let mut unsent = UnsentOutputs::default();
        let watching = self.watch(&session, events, running, &mut unsent, store, &mut saved);
        let derived = watching.await??;
        for output in derived.execution.iter().flat_map(|it| unsent.rest(&it.outputs)) {
            self.show_output(output, store, &mut saved).await?;
        }
        self.conclude(derived, interpreter, saved, json).await
    }

    async fn conclude(
        &mut self,
        derived: DerivationResult,
        interpreter: &Interpreter,
        mut saved: Vec<std::path::PathBuf>,
        json: bool,
    ) -> Result<RunEnd> {
        let envelope = derived.envelope();
        for finding in &derived.findings {
            self.tell(&outcome::note(&sanitize::line(&finding.message)));
        }
        match &derived.execution {
            Some(execution) => {
                self.finish_cell(execution, interpreter.store(), &mut saved)
                    .await?;
            }
            None => self.tell(&outcome::rejected(derived.rejections())),
        }
        let execution = derived.execution.filter(|_| json);
        Ok(RunEnd {
            outcome: derived.outcome,
            given: 1,
            not_run: 0,
            origins: BTreeMap::new(),
            call: json.then(|| DerivationReport {
                envelope,
                execution: execution.map(|it| json::cell(it, interpreter.store(), saved)),
            }),
        })
    }
}

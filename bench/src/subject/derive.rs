//! Derivations: tool results in, changes of a population out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use cellblock_interpreter::alias::{AliasStore, Bounds};
use cellblock_interpreter::contract::DerivationCall;
use cellblock_interpreter::derivation::{Derivation, DerivationPolicy};
use serde_json::{Value, json};

use super::{Subject, WHO};
use crate::probe::{Probe, SampleFuture};
use crate::programs::{CHANGE, ROWS_SIZE, rows};
use crate::samples::Samples;

/// The longest that a derivation of a benchmark may take.
const LIMIT: Duration = Duration::from_mins(5);

/// Binds JSON rows, and uses them.
pub(crate) struct BindInput {
    pub(crate) subject: Arc<Subject>,
    pub(crate) megabytes: usize,
}

/// Computes changes of a population of 1,000 entities over 10,000 periods, and the same naively.
pub(crate) struct ChangeSeries {
    pub(crate) subject: Arc<Subject>,
}

/// A derivation from one tool result, `rows_1`.
async fn derivation(subject: &Subject, document: Vec<u8>) -> Result<Derivation> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let owner = format!("bench-{}-{number}", std::process::id());
    let aliases = AliasStore::new(subject.interpreter.store().clone(), owner, Bounds::default());
    aliases.record_json("rows", document).await?;
    let policy = DerivationPolicy {
        cell_timeout: LIMIT,
        ..DerivationPolicy::default()
    };
    let derivation = subject.interpreter.derivation(aliases, policy).await?;
    // Not a part of what is measured.
    derivation.session().prepare().await?;
    Ok(derivation)
}

async fn result(derivation: &Derivation, code: &str) -> Result<Value> {
    let call = DerivationCall {
        code: code.to_owned(),
        contract: json!({
            "operation": "measure",
            "reason": "a benchmark",
            "inputAliases": ["rows_1"],
            "expectedArtifacts": [],
        }),
        ..DerivationCall::default()
    };
    let derived = derivation.derive(&call).await?;
    ensure!(derived.ok(), "the call failed: {:?}", derived.error());
    derived.result.context("the call has no result")
}

async fn end(derivation: Derivation) -> Result<()> {
    let aliases = derivation.aliases().clone();
    derivation.close().await?;
    aliases.close().await?;
    Ok(())
}

impl BindInput {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let count = self.megabytes * 1_000_000 / ROWS_SIZE;
        let derivation = derivation(&self.subject, rows(count)).await?;
        self.subject.settle().await?;
        let started = Instant::now();
        let found = result(&derivation, "set_result([len(rows_1), rows_1[-1]['number']])").await?;
        let elapsed = started.elapsed();
        ensure!(
            found == json!([count, count - 1]),
            "the rows that came in are not those that were recorded: {found}"
        );
        samples.time(WHO, &format!("bind_{}", self.megabytes), elapsed);
        end(derivation).await
    }
}

impl Probe for BindInput {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "bind"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

impl ChangeSeries {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let derivation = derivation(&self.subject, rows(1)).await?;
        let found = result(&derivation, CHANGE).await?;
        let time = |key: &str| found[key].as_f64().with_context(|| format!("no time of {key}"));
        samples.add(WHO, "change_series", time("helper")?);
        samples.add("python", "change_series", time("naive")?);
        end(derivation).await
    }
}

impl Probe for ChangeSeries {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "change series"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

//! Derivations: tool results in, changes of a population out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use cellblock_interpreter::alias::{AliasStore, Bounds};
use cellblock_interpreter::contract::DerivationCall;
use cellblock_interpreter::derivation::{Derivation, DerivationPolicy};
use serde_json::{Value, json};

use super::{Subject, timed};
use crate::programs::{CHANGE, ROWS_SIZE, rows};
use crate::samples::ProbeTurn;

/// The longest that a derivation of a benchmark may take.
const LIMIT: Duration = Duration::from_mins(5);

/// Binds so many megabytes of JSON rows, and uses them.
pub(crate) async fn bind(subject: &Subject, turn: &ProbeTurn, megabytes: usize) -> Result<()> {
    let count = megabytes * 1_000_000 / ROWS_SIZE;
    let derivation = derivation(subject, rows(count)).await?;
    subject.settle().await?;
    let code = "set_result([len(rows_1), rows_1[-1]['number']])";
    let (found, elapsed) = timed(result(&derivation, code)).await?;
    ensure!(
        found == json!([count, count - 1]),
        "the rows that came in are not those that were recorded: {found}"
    );
    turn.time(turn.what, elapsed);
    end(derivation).await
}

/// Computes changes of a population of 1,000 entities over 10,000 periods, and the same naively.
pub(crate) async fn change_series(subject: &Subject, turn: &ProbeTurn, (): ()) -> Result<()> {
    let derivation = derivation(subject, rows(1)).await?;
    let found = result(&derivation, CHANGE).await?;
    let time = |key: &str| found[key].as_f64().with_context(|| format!("no time of {key}"));
    turn.add("change_series", time("helper")?);
    turn.of("python").add("change_series", time("naive")?);
    end(derivation).await
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

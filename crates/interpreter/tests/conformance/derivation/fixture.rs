//! Derivations from two recorded tool results, and calls of them.

use std::sync::atomic::{AtomicU64, Ordering};

use cellblock_interpreter::alias::{AliasStore, Bounds};
use cellblock_interpreter::contract::DerivationCall;
use cellblock_interpreter::derivation::{Derivation, DerivationPolicy, DerivationResult};
use serde_json::{Value, json};

use crate::backend::slowness;
use crate::support::interpreter;

/// Every store of aliases has an owner of its own.
static OWNERS: AtomicU64 = AtomicU64::new(0);

pub(super) async fn aliases() -> AliasStore {
    let number = OWNERS.fetch_add(1, Ordering::Relaxed);
    let owner = format!("it-{}-{number}", std::process::id());
    AliasStore::new(interpreter().await.store().clone(), owner, Bounds::default())
}

pub(super) fn prices() -> Value {
    let rows: Vec<_> = (1..=28)
        .map(|day| {
            json!({"day": format!("2025-02-{day:02}"), "price": f64::from(day) * 1.5,
            "volume": 10 + day})
        })
        .collect();
    json!(rows)
}

/// A derivation with `get_prices_1` and `get_name_1`.
pub(super) async fn derivation(mut policy: DerivationPolicy) -> Derivation {
    policy.cell_timeout *= slowness();
    let aliases = aliases().await;
    aliases.record("get_prices", &prices()).await.unwrap();
    aliases
        .record(
            "get_name",
            &json!({"name": "é", "big": 12_345_678_901_234_567_890_u64}),
        )
        .await
        .unwrap();
    interpreter().await.derivation(aliases, policy).await.unwrap()
}

pub(super) fn call(code: &str, expected: &[&str]) -> DerivationCall {
    DerivationCall {
        intent: "a test".to_owned(),
        code: code.to_owned(),
        contract: json!({
            "operation": "derive",
            "reason": "it takes code",
            "inputAliases": ["get_prices_1"],
            "expectedArtifacts": expected,
        }),
        ..DerivationCall::default()
    }
}

pub(super) async fn derive(derivation: &Derivation, code: &str, expected: &[&str]) -> DerivationResult {
    derivation.derive(&call(code, expected)).await.unwrap()
}

/// The result of a call that must be fine.
pub(super) async fn result(derivation: &Derivation, code: &str) -> Value {
    let derived = derive(derivation, code, &[]).await;
    assert!(derived.ok(), "{:?}", derived.error());
    derived.result.unwrap()
}

pub(super) fn codes(derived: &DerivationResult) -> Vec<&str> {
    derived.rejections().iter().map(|it| it.code.as_str()).collect()
}

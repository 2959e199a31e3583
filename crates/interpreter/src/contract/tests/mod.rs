//! Every mistake that a call can make, with what a model is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{
    ArtifactKind, Attempts, CODES, Contract, ContractCall, ContractPolicy, ContractStage, DerivationCall,
    KnownAliases, check_after, check_before,
};
use crate::rejection::Rejection;

mod after;
mod attempts;
mod before;
mod call;
mod names;
mod random;

fn known() -> KnownAliases {
    KnownAliases::new(["get_price_history_1", "get_price_history_2", "get_reserves_1"])
}

fn whole() -> Value {
    json!({
        "operation": "sum per day",
        "reason": "the tool answers per exchange",
        "inputAliases": ["get_reserves_1"],
        "expectedArtifacts": ["image"],
    })
}

/// A whole contract with one field replaced.
fn with(field: &str, value: Value) -> Value {
    let mut contract = whole();
    contract[field] = value;
    contract
}

fn without(field: &str) -> Value {
    let mut contract = whole();
    contract.as_object_mut().unwrap().remove(field);
    contract
}

fn declaring(kinds: &[ArtifactKind]) -> Contract {
    Contract {
        operation: "o".into(),
        reason: "r".into(),
        input_aliases: vec!["get_reserves_1".into()],
        expected_artifacts: kinds.into(),
    }
}

fn inputs(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(local, alias): &(&str, &str)| ((*local).to_owned(), (*alias).to_owned());
    entries.iter().map(own).collect()
}

/// Returns the problems of a contract other than inputs.
fn wrong(contract: &Value, entries: &[(&str, &str)]) -> Vec<Rejection> {
    wrong_with(contract, entries, &known(), false)
}

fn wrong_with(
    contract: &Value,
    entries: &[(&str, &str)],
    known: &KnownAliases,
    require_inputs: bool,
) -> Vec<Rejection> {
    let inputs = inputs(entries);
    let call = ContractCall {
        contract,
        inputs: &inputs,
    };
    let policy = ContractPolicy {
        require_inputs,
        ..ContractPolicy::default()
    };
    check_before(&call, known, &policy).err().unwrap_or_default()
}

fn codes(rejections: &[Rejection]) -> Vec<(&str, &str)> {
    rejections
        .iter()
        .map(|it| (it.code.as_str(), it.field.as_deref().unwrap_or_default()))
        .collect()
}

/// One or more examples of every code.
fn examples() -> Vec<Rejection> {
    use ArtifactKind::{Chart, Image};
    let odd = KnownAliases::new(["sum", "my-file", "get_reserves_1"]);
    let mut attempts = Attempts::default();
    (0..5).for_each(|_| attempts.fail());
    let before = [
        wrong(&Value::Null, &[]),
        wrong(&json!("plot it"), &[]),
        wrong(&without("operation"), &[]),
        wrong(
            &json!({"operation": "o", "reason": "r", "input_aliases": [], "expectedArtifacts": []}),
            &[],
        ),
        wrong(&with("reason", json!(" \n")), &[]),
        wrong(&with("reason", json!("a".repeat(2001))), &[]),
        wrong(&with("inputAliases", json!([])), &[]),
        wrong_with(
            &with("inputAliases", json!([])),
            &[],
            &KnownAliases::default(),
            false,
        ),
        wrong_with(&whole(), &[], &KnownAliases::default(), false),
        wrong(&with("inputAliases", json!("get_reserves_1")), &[]),
        wrong(&with("inputAliases", json!([1])), &[]),
        wrong(&with("inputAliases", json!(["get_price_histroy_2"])), &[]),
        wrong(
            &with("inputAliases", json!(["get_reserves_1", "get_reserves_1"])),
            &[],
        ),
        wrong_with(&with("inputAliases", json!(["sum", "my-file"])), &[], &odd, false),
        wrong(&with("expectedArtifacts", json!(["png"])), &[]),
        wrong(&with("expectedArtifacts", json!(["chart", "chart"])), &[]),
        wrong_with(&whole(), &[], &known(), true),
        wrong(&whole(), &[("1 price", "get_reserves_1")]),
        wrong(
            &whole(),
            &[("class", "get_reserves_1"), ("sum", "get_reserves_1")],
        ),
        wrong(
            &whole(),
            &[("save_figure", "get_reserves_1"), ("pd", "get_reserves_1")],
        ),
        wrong(&whole(), &[("get_price_history_1", "get_reserves_1")]),
        wrong(&whole(), &[("prices", "prices_1")]),
        vec![attempts.refusal().unwrap()],
    ];
    let after = [
        check_after(&declaring(&[Image]), &[], 2, 4),
        check_after(&declaring(&[Image, Chart]), &[Chart], 0, 4),
        check_after(&declaring(&[]), &[Image], 0, 4),
        check_after(&declaring(&[Image]), &[Image, Chart], 0, 4),
        check_after(&declaring(&[Image]), &[Chart], 1, 4),
        check_after(&declaring(&[Chart]), &[Image], 0, 4),
        check_after(&declaring(&[Image]), &[Image; 5], 0, 4),
    ];
    before.into_iter().chain(after).flatten().collect()
}

#[test]
fn what_a_model_is_told() {
    let mut told = String::new();
    for rejection in examples() {
        let field = rejection.field.as_deref().unwrap_or("-");
        writeln!(told, "{} [{field}]\n  {}", rejection.code, rejection.message).unwrap();
        if !rejection.valid.is_empty() {
            writeln!(told, "  valid: {}", rejection.valid.join(", ")).unwrap();
        }
    }
    insta::assert_snapshot!(told);
}

#[test]
fn every_code_can_be_reached_and_no_other_is() {
    let reached: BTreeSet<_> = examples().into_iter().map(|it| it.code).collect();
    let listed: BTreeSet<_> = CODES.iter().map(|code| code.name.to_owned()).collect();
    assert_eq!(reached, listed);
    assert_eq!(listed.len(), CODES.len(), "no code is listed twice");
}

#[test]
fn the_reference_lists_every_code_with_its_meaning_and_no_other() {
    let page = include_str!("../../../../../docs/reference/contract.md");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
    for code in CODES {
        let row = format!("| `{}` | {} | {} |", code.name, code.stage.name(), code.means);
        assert!(rows.contains(&row.as_str()), "{row}");
    }
    let stages =
        [ContractStage::Before, ContractStage::After].map(|stage| format!("` | {} | ", stage.name()));
    let documented = rows
        .iter()
        .filter(|row| stages.iter().any(|stage| row.contains(stage)));
    assert_eq!(documented.count(), CODES.len());
}

#[test]
fn a_message_is_a_fragment_that_ends_without_a_full_stop() {
    for rejection in examples() {
        let message = rejection.message;
        assert!(!message.ends_with('.') && !message.contains("  "), "{message}");
        assert!(!message.starts_with(char::is_uppercase), "{message}");
    }
}

//! Contracts and inputs before Python starts.

use super::*;

#[test]
fn a_whole_contract_is_read() {
    let inputs = inputs(&[("reserves", "get_reserves_1")]);
    let contract = with("expectedArtifacts", json!(["chart", "image"]));
    let call = ContractCall {
        contract: &contract,
        inputs: &inputs,
    };
    let read = check_before(&call, &known(), &ContractPolicy::default()).unwrap();
    assert_eq!(read.operation, "sum per day");
    assert_eq!(read.reason, "the tool answers per exchange");
    assert_eq!(read.input_aliases, ["get_reserves_1"]);
    assert_eq!(
        read.expected_artifacts,
        [ArtifactKind::Chart, ArtifactKind::Image]
    );
    assert_eq!(json!(read), contract, "it is written as it was given");
}

#[test]
fn a_computation_declares_no_artifact() {
    assert_eq!(wrong(&with("expectedArtifacts", json!([])), &[]), []);
}

#[test]
fn fields_that_a_contract_does_not_have_are_ignored() {
    assert_eq!(
        wrong(&with("marketplaceMethodAlreadyProvidesResult", json!(false)), &[]),
        []
    );
    assert_eq!(wrong(&with("Operation", json!(7)), &[]), []);
}

#[test]
fn all_mistakes_are_reported_in_the_order_of_the_fields() {
    let contract = json!({
        "expectedArtifacts": ["pdf", 3],
        "inputAliases": ["nowhere", "get_reserves_1", "get_reserves_1"],
        "operation": 4,
    });
    let found = wrong(&contract, &[("2x", "nowhere"), ("len", "get_reserves_1")]);
    assert_eq!(
        codes(&found),
        [
            ("wrong_type", "operation"),
            ("missing_field", "reason"),
            ("unknown_alias", "inputAliases[0]"),
            ("duplicate", "inputAliases[2]"),
            ("unknown_artifact_kind", "expectedArtifacts[0]"),
            ("wrong_type", "expectedArtifacts[1]"),
            ("invalid_name", "inputs.2x"),
            ("unknown_alias", "inputs.2x"),
            ("reserved_name", "inputs.len"),
        ]
    );
}

#[test]
fn the_nearest_alias_is_listed_first_and_twenty_at_most() {
    let known = KnownAliases::new(
        (1..=30)
            .map(|n| format!("get_thing_{n}"))
            .chain(["price_7".to_owned()]),
    );
    let found = wrong_with(&with("inputAliases", json!(["prise_7"])), &[], &known, false);
    assert_eq!(found[0].valid.len(), 20);
    assert_eq!(found[0].valid[0], "price_7");
    assert!(
        found[0].message.contains("(did you mean `price_7`?)"),
        "{}",
        found[0].message
    );
    assert!(found[0].message.ends_with(" and 11 more"), "{}", found[0].message);
}

#[test]
fn dissimilar_names_get_no_suggestion() {
    let found = wrong(&with("inputAliases", json!(["xyz"])), &[]);
    assert!(!found[0].message.contains("did you mean"), "{}", found[0].message);
}

#[test]
fn an_invalid_identifier_is_usable_under_a_local_name() {
    let odd = KnownAliases::new(["sum", "my-file"]);
    let contract = with("inputAliases", json!(["sum", "my-file"]));
    assert_eq!(
        codes(&wrong_with(&contract, &[], &odd, false)),
        [
            ("unusable_alias", "inputAliases[0]"),
            ("unusable_alias", "inputAliases[1]"),
        ]
    );
    let named = [("total", "sum"), ("rows", "my-file")];
    assert_eq!(wrong_with(&contract, &named, &odd, false), []);
}

#[test]
fn a_local_name_may_repeat_its_own_alias_and_an_alias_have_two_names() {
    let entries = [
        ("get_reserves_1", "get_reserves_1"),
        ("a", "get_reserves_1"),
        ("b", "get_reserves_1"),
    ];
    assert_eq!(wrong(&whole(), &entries), []);
}

#[test]
fn an_empty_map_is_rejected_only_if_the_policy_requires_inputs() {
    assert_eq!(wrong_with(&whole(), &[], &known(), false), []);
    let found = wrong_with(&whole(), &[], &known(), true);
    assert_eq!(codes(&found), [("inputs_required", "inputs")]);
    assert_eq!(found[0].valid, known().aliases());
    assert_eq!(
        wrong_with(&whole(), &[("r", "get_reserves_1")], &known(), true),
        []
    );
}

#[test]
fn twenty_mistakes_are_reported_and_the_others_counted() {
    let many: Vec<_> = (0..30).map(|n| format!("no_{n}")).collect();
    let found = wrong(&with("inputAliases", json!(many)), &[]);
    assert_eq!(found.len(), 20);
    assert!(
        found[19]
            .message
            .ends_with("(10 more problems of this call are not listed)"),
        "{}",
        found[19].message
    );
}

#[test]
fn a_list_beyond_the_limit_is_rejected_by_its_length() {
    let found = wrong(&with("inputAliases", json!(vec![1; 1001])), &[]);
    assert_eq!(codes(&found), [("too_long", "inputAliases")]);
    assert!(
        found[0].message.contains("1001 entries, the limit is 1000"),
        "{}",
        found[0].message
    );
}

#[test]
fn quoted_model_text_contains_no_acting_characters() {
    let alias = format!("\u{1b}[2J`{}", "x".repeat(500));
    let message = wrong(&with("inputAliases", json!([alias])), &[])
        .remove(0)
        .message;
    assert!(message.starts_with("`\\u{1b}[2J'xxx"), "{message}");
    assert!(message.chars().count() < 300, "{message}");
}

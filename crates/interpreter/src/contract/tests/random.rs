//! Any JSON as a contract or as arguments: nothing panics, and each mistake names its field.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;

const FIELDS: &str =
    "operation|reason|inputAliases|expectedArtifacts|input_aliases|code|intent|inputs|postProcessingContract";

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        FIELDS,
        "get_(reserves|price_history)_[0-3]|image|chart|class|sum",
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map(text(), inner, 0..8).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// A contract in which some fields are right.
fn nearly_right() -> impl Strategy<Value = Value> {
    vec((FIELDS, any_json()), 0..3).prop_map(|changes| {
        let mut contract = whole();
        for (field, value) in changes {
            contract[field] = value;
        }
        contract
    })
}

proptest! {
    #[test]
    fn a_contract_is_accepted_unchanged_or_rejected_by_field(
        contract in prop_oneof![any_json(), nearly_right()],
        inputs in btree_map(text(), text(), 0..4),
        require_inputs: bool,
    ) {
        let call = ContractCall { contract: &contract, inputs: &inputs };
        let policy = ContractPolicy { require_inputs, ..ContractPolicy::default() };
        match check_before(&call, &known(), &policy) {
            Ok(read) => {
                for (field, value) in json!(read).as_object().unwrap() {
                    prop_assert_eq!(value, &contract[field]);
                }
                prop_assert!(read.input_aliases.iter().all(|alias| known().contains(alias)));
                prop_assert!(inputs.values().all(|alias| known().contains(alias)));
            }
            Err(found) => {
                prop_assert!(!found.is_empty() && found.len() <= 20);
                named(&found)?;
            }
        }
    }

    #[test]
    fn arguments_are_either_read_or_rejected_by_field(arguments in any_json()) {
        match DerivationCall::read(&arguments) {
            Ok(call) => prop_assert_eq!(&json!(call.code), &arguments["code"]),
            Err(found) => {
                prop_assert!(!found.is_empty());
                named(&found)?;
            }
        }
    }

    #[test]
    fn a_cell_is_accepted_exactly_if_it_kept_its_declaration(
        declared in vec(prop_oneof![Just(ArtifactKind::Image), Just(ArtifactKind::Chart)], 0..3),
        emitted in vec(prop_oneof![Just(ArtifactKind::Image), Just(ArtifactKind::Chart)], 0..7),
        unsaved in 0..3_usize,
        most in 0..5_usize,
    ) {
        let found = check_after(&declaring(&declared), &emitted, unsaved, most);
        let equal = declared.iter().collect::<BTreeSet<_>>() == emitted.iter().collect();
        prop_assert_eq!(found.is_empty(), equal && emitted.len() <= most);
    }
}

fn named(found: &[Rejection]) -> Result<(), TestCaseError> {
    for rejection in found {
        prop_assert!(
            rejection.field.as_ref().is_some_and(|field| !field.is_empty()),
            "{:?}",
            rejection
        );
        prop_assert!(
            CODES.iter().any(|code| code.name == rejection.code),
            "{:?}",
            rejection
        );
        prop_assert!(rejection.valid.len() <= 20);
        let acts = rejection.message.chars().any(cellblock_protocol::text::acts);
        prop_assert!(!acts && rejection.message.len() < 6000, "{:?}", rejection);
    }
    Ok(())
}

//! Arguments as a model sends them.

use super::*;

#[test]
fn a_call_is_read() {
    let call = DerivationCall::read(&json!({
        "intent": "daily sums",
        "code": "set_result(1)",
        "inputs": {"r": "get_reserves_1"},
        "postProcessingContract": whole(),
    }));
    let expected = DerivationCall {
        intent: "daily sums".into(),
        code: "set_result(1)".into(),
        inputs: inputs(&[("r", "get_reserves_1")]),
        contract: whole(),
    };
    assert_eq!(call, Ok(expected));
}

#[test]
fn only_the_code_has_to_be_there() {
    for arguments in [
        json!({"code": "1"}),
        json!({"code": "1", "inputs": null, "intent": null, "postProcessingContract": null}),
        json!({"code": "1", "inputs": {}, "intent": " ", "other": 1}),
    ] {
        let expected = DerivationCall {
            code: "1".into(),
            ..DerivationCall::default()
        };
        assert_eq!(DerivationCall::read(&arguments), Ok(expected));
    }
}

#[test]
fn every_mistake_in_the_arguments_is_named() {
    let found = DerivationCall::read(&json!({
        "intent": 1,
        "code": " ",
        "inputs": {"a": ["x"], "b": "y"},
    }));
    assert_eq!(
        codes(&found.unwrap_err()),
        [
            ("wrong_type", "intent"),
            ("empty_field", "code"),
            ("wrong_type", "inputs.a"),
        ]
    );
    assert_eq!(
        codes(&DerivationCall::read(&json!(["code"])).unwrap_err()),
        [("wrong_type", "arguments")]
    );
    assert_eq!(
        codes(&DerivationCall::read(&json!({"inputs": []})).unwrap_err()),
        [("missing_field", "code"), ("wrong_type", "inputs")]
    );
}

#[test]
fn the_error_for_a_misnamed_contract_suggests_the_name() {
    let arguments = json!({"code": "1", "post_processing_contract": whole()});
    let found = DerivationCall::read(&arguments).unwrap_err();
    assert_eq!(codes(&found), [("missing_contract", "postProcessingContract")]);
    assert_eq!(
        found[0].message,
        "the call has no `postProcessingContract`; `post_processing_contract` was given: rename it"
    );
}

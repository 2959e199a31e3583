//! Tests of how network policies are read.

use serde_json::json;

use super::*;

const SECRET: &str = "hunter2";

fn with(fields: Value) -> Result<Option<NetworkAllowlist>, ApiError> {
    let mut policy = json!({"type": "allowlist", "allowed_domains": ["a.example"]});
    if let (Value::Object(policy), Value::Object(fields)) = (&mut policy, fields) {
        policy.extend(fields);
    }
    NetworkAllowlist::parse(&policy, "tools[0].environment.network_policy")
}

fn secret(field: &str, value: &str) -> Value {
    let mut secret = json!({"domain": "a.example", "name": "API_KEY", "value": SECRET});
    secret[field] = json!(value);
    json!({"domain_secrets": [secret]})
}

#[test]
fn secrets_are_read_and_neither_shown_nor_returned() {
    assert_eq!(with(json!({"type": "disabled"})), Ok(None));
    let two = json!([
        {"domain": "A.example.", "name": "API_KEY", "value": SECRET},
        {"domain": "127.0.0.1", "name": "API_KEY", "value": SECRET},
    ]);
    let hosts = json!(["a.Example", "127.0.0.1"]);
    let list = with(json!({"allowed_domains": hosts, "domain_secrets": two}));
    let list = list.unwrap().unwrap();
    assert_eq!(list.domain_secrets.len(), 2);
    assert_eq!(list.domain_secrets[0].value, EgressSecret::new(SECRET));
    let returned = serde_json::to_value(&list).unwrap();
    let expected = json!({"type": "allowlist", "allowed_domains": ["a.example", "127.0.0.1"]});
    assert_eq!(returned, expected);
    assert!(!format!("{list:?}").contains(SECRET));
    let restored: NetworkAllowlist = serde_json::from_value(returned).unwrap();
    assert_eq!(restored.domain_secrets, []);
}

#[test]
fn an_invalid_field_is_named_by_its_path_and_no_error_has_the_secret() {
    let long = SECRET.repeat(MAX_VALUE / SECRET.len() + 1);
    let twice = json!([
        {"domain": "a.example", "name": "API_KEY", "value": SECRET},
        {"domain": "a.example", "name": "API_KEY", "value": SECRET},
    ]);
    for (fields, param, code) in [
        (json!({"type": "open"}), "type", "invalid_value"),
        (json!({"type": null}), "type", "missing_required_parameter"),
        (
            json!({"allowed_domains": []}),
            "allowed_domains",
            "missing_required_parameter",
        ),
        (
            json!({"allowed_domains": "a.example"}),
            "allowed_domains",
            "invalid_type",
        ),
        (
            json!({"allowed_domains": ["a.example", 1]}),
            "allowed_domains[1]",
            "invalid_type",
        ),
        (
            json!({"allowed_domains": ["a.example", "*.b"]}),
            "allowed_domains[1]",
            "invalid_value",
        ),
        (
            json!({"allowed_domains": ["https://a.example"]}),
            "allowed_domains[0]",
            "invalid_value",
        ),
        (
            json!({"allowed_domains": ["a.example:443"]}),
            "allowed_domains[0]",
            "invalid_value",
        ),
        (
            json!({"allowed_domains": vec!["a.example"; 129]}),
            "allowed_domains",
            "array_above_max_length",
        ),
        (
            json!({"domain_secrets": vec![1; 33]}),
            "domain_secrets",
            "array_above_max_length",
        ),
        (
            json!({"domain_secrets": [SECRET]}),
            "domain_secrets[0]",
            "invalid_type",
        ),
        (
            json!({"domain_secrets": twice}),
            "domain_secrets[1]",
            "invalid_value",
        ),
        (
            secret("domain", "b.example"),
            "domain_secrets[0].domain",
            "invalid_value",
        ),
        (secret("name", "1KEY"), "domain_secrets[0].name", "invalid_value"),
        (
            secret("name", "API-KEY"),
            "domain_secrets[0].name",
            "invalid_value",
        ),
        (
            secret("name", "HTTPS_PROXY"),
            "domain_secrets[0].name",
            "invalid_value",
        ),
        (secret("value", ""), "domain_secrets[0].value", "invalid_value"),
        (
            secret("value", "hunter2\r\nx: y"),
            "domain_secrets[0].value",
            "invalid_value",
        ),
        (
            secret("value", &long),
            "domain_secrets[0].value",
            "string_above_max_length",
        ),
    ] {
        let error = with(fields.clone()).unwrap_err();
        let param = format!("tools[0].environment.network_policy.{param}");
        assert_eq!(error.param.as_deref(), Some(&*param), "{error}");
        assert_eq!(error.code.as_deref(), Some(code), "{error}");
        assert!(!error.message.contains(SECRET), "{error}");
    }
}

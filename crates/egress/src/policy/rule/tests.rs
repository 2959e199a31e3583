//! Tests of how rules are read and shown.

use super::*;

fn shown(rule: &str) -> String {
    rule.parse::<AllowRule>().unwrap().to_string()
}

#[test]
fn a_rule_is_a_host_with_or_without_a_port() {
    assert_eq!(shown("API.example.com."), "api.example.com");
    assert_eq!(shown("*.example.com:8443"), "*.example.com:8443");
    assert_eq!(shown("127.0.0.1:8000"), "127.0.0.1:8000");
    assert_eq!(shown("::1"), "[::1]");
    assert_eq!(shown("[::1]:8000"), "[::1]:8000");
    assert_eq!("a.example".parse::<AllowRule>().unwrap().ports, [80, 443]);
}

#[test]
fn an_invalid_rule_is_named_with_its_fix() {
    let error = |rule: &str| rule.parse::<AllowRule>().unwrap_err().to_string();
    assert_eq!(
        error("0x7f.1:80"),
        "invalid egress rule `0x7f.1:80`: it ends in a number but is not an IPv4 address; write all four \
         decimal numbers, as in `192.0.2.1`"
    );
    assert!(error("bücher.example").contains("punycode"));
    assert!(error("https://a.example").contains("port"));
    assert!(error("a.example:0").contains("from 1 to 65535"));
    assert!(error("*").contains("`*`"));
}

#[test]
fn a_configuration_has_both_forms() {
    let rules: Vec<AllowRule> = serde_json::from_value(serde_json::json!([
        "a.example:8443",
        { "host": "*.b.example", "ports": [80], "methods": ["GET", "HEAD"] },
        { "host": "127.0.0.1:8000" },
    ]))
    .unwrap();
    let shown: Vec<_> = rules.iter().map(AllowRule::to_string).collect();
    assert_eq!(
        shown,
        ["a.example:8443", "GET,HEAD *.b.example:80", "127.0.0.1:8000"]
    );
    let again = serde_json::to_value(&rules[1]).unwrap();
    assert_eq!(serde_json::from_value::<AllowRule>(again).unwrap(), rules[1]);
}

#[test]
fn what_is_wrong_with_a_mapping_is_reported() {
    let error = |value| {
        serde_json::from_value::<AllowRule>(value)
            .unwrap_err()
            .to_string()
    };
    for (value, expected) in [
        (
            serde_json::json!({ "host": "a.example", "port": 1 }),
            "unknown field `port`",
        ),
        (
            serde_json::json!({ "host": "a.example", "ports": [] }),
            "`ports` is empty",
        ),
        (serde_json::json!({ "host": "a.example", "ports": [0] }), "port 0"),
        (
            serde_json::json!({ "host": "a.example:1", "ports": [2] }),
            "remove one of them",
        ),
        (
            serde_json::json!({ "host": "a.example", "methods": [] }),
            "`methods` is empty",
        ),
        (
            serde_json::json!({ "host": "a.example", "methods": ["get"] }),
            "`get` is not a method",
        ),
        (
            serde_json::json!({ "host": "a.example", "methods": ["CONNECT"] }),
            "without `CONNECT`",
        ),
        (serde_json::json!(7), "a host such as"),
    ] {
        let error = error(value);
        assert!(error.contains(expected), "{error}");
    }
}

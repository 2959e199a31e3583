//! Options: which are mistakes, and what a URL permits.

use std::path::Path;

use cellblock_connector::{SqlConnector, TypeOptions};
use serde_json::{Value, json};

fn mistakes(url: &str, more: &Value) -> Vec<String> {
    let mut options = json!({"url": {"env": "URL"}, "free_sql": true});
    for (key, value) in more.as_object().unwrap() {
        options[key] = value.clone();
    }
    let options = TypeOptions::read(&options).unwrap();
    let compiled = SqlConnector::new("warehouse", &options, Some(url), Path::new("/srv"));
    let mistakes = compiled.err().unwrap_or_default();
    let texts = mistakes
        .iter()
        .map(|mistake| format!("{}: {}", mistake.path.join("."), mistake.message));
    texts.collect()
}

#[test]
fn urls_that_are_unsafe_or_wrong_are_mistakes_without_the_url() {
    for (url, more, expected) in [
        ("postgres://u:s3cr3t-pw@db.example.com/x", json!({}), ""),
        (
            "postgres://u:s3cr3t-pw@db.example.com/x?sslmode=verify-full",
            json!({}),
            "",
        ),
        (
            "mysql://u:s3cr3t-pw@db.example.com/x?ssl-mode=REQUIRED",
            json!({}),
            "",
        ),
        (
            "postgres://localhost/x?host=/run/postgresql",
            json!({}),
            "must name a user",
        ),
        ("postgres://u@localhost/x?host=/run/postgresql", json!({}), ""),
        ("mysql://u@%2Frun%2Fmysqld%2Fmysqld.sock/x", json!({}), ""),
        ("sqlite:/srv/x.db", json!({}), ""),
        (
            "postgres://u:s3cr3t-pw@db.example.com/x?sslmode=disable",
            json!({}),
            "`allow_unencrypted: true`",
        ),
        (
            "postgres://u:s3cr3t-pw@db.example.com/x?sslmode=disable",
            json!({"allow_unencrypted": true}),
            "",
        ),
        (
            "postgres://u:s3cr3t-pw@db.example.com/x?sslmode=prefer",
            json!({"allow_unencrypted": true}),
            "could send everything unencrypted",
        ),
        (
            "postgres://u:s3cr3t-pw@db.example.com/x?sslmode=no",
            json!({}),
            "unknown `sslmode`",
        ),
        ("postgres://u:s3cr3t-pw@10.0.0.1/x", json!({}), "private address"),
        ("postgres://u:s3cr3t-pw@[::1]/x", json!({}), "private address"),
        ("mysql://u:s3cr3t-pw@127.0.0.1/x", json!({}), "private address"),
        (
            "mysql://u:s3cr3t-pw@127.0.0.1/x",
            json!({"allow_private": true}),
            "",
        ),
        (
            "postgres://u:s3cr3t-pw@db.example.com/x?options=-c",
            json!({}),
            "unknown setting",
        ),
        (
            "postgres://u:short@db.example.com/x",
            json!({}),
            "shorter than 6 bytes",
        ),
        ("redis://u:s3cr3t-pw@db.example.com/x", json!({}), "must be a URL"),
        ("s3cr3t-pw", json!({}), "must be a URL"),
        ("sqlite:", json!({}), "path of a file"),
        ("sqlite::memory:", json!({}), "path of a file"),
        ("sqlite:x.db?mode=rw", json!({}), "without `?`"),
    ] {
        let found = mistakes(url, &more).join("\n");
        assert!(!found.contains("s3cr3t"), "{found}");
        if expected.is_empty() {
            assert_eq!(found, "", "{url}");
        } else {
            assert!(
                found.starts_with("url: ") && found.contains(expected),
                "{url}: {found}"
            );
        }
    }
}

#[test]
fn functions_that_do_not_fit_their_statement_are_mistakes_at_their_place() {
    let options = json!({"functions": {
        "none": {},
        "two": {"sql": "select 1; select 2"},
        "undeclared": {"sql": "select :a"},
        "unused": {"sql": "select 1", "parameters": {"a": {"type": "string"}}},
        "wrong": {"sql": "select :a", "parameters": {"a": "string"}},
        "sql": {"sql": "select 1"},
    }});
    assert_eq!(
        mistakes("sqlite:x.db", &options),
        [
            "functions.none: missing key `sql`, the statement, such as `select * from orders where \
             day >= :since`",
            "functions.two.sql: has two statements; a call runs one, without a `;` before another",
            "functions.undeclared.sql: has `:a`, which is not in `parameters`",
            "functions.unused.parameters.a: is not in `sql`; use it there, or remove it",
            "functions.wrong.parameters.a: must be a JSON Schema, such as `{type: string}`",
            "functions.sql: is the name of the function of `free_sql`; rename it",
        ]
    );
    let none = mistakes("sqlite:x.db", &json!({"url": null, "free_sql": false}));
    assert_eq!(none.len(), 2);
}

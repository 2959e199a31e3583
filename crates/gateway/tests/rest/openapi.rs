//! The description of the API, and whether it is true.

use std::collections::BTreeSet;
use std::path::PathBuf;

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::support::{Api, block_on};

#[test]
fn the_description_is_up_to_date() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
    let made = serde_json::to_string_pretty(&cellblock_gateway::description::document()).unwrap() + "\n";
    if std::env::var_os("CELLBLOCK_UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/reference/openapi.json is stale; run `cargo xtask generate`"
    );
}

#[test]
fn every_reference_leads_somewhere() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    found.insert(reference.clone());
                }
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = cellblock_gateway::description::document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 20, "{found:?}");
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        let schema = document.pointer(pointer);
        assert!(schema.is_some(), "{reference} leads nowhere");
        assert_ne!(
            schema.unwrap(),
            &serde_json::json!({"type": "object"}),
            "{reference} says nothing"
        );
    }
}

#[test]
fn every_operation_has_a_name_of_its_own() {
    let document = cellblock_gateway::description::document();
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    let names: Vec<_> = operations
        .map(|it| it["operationId"].as_str().unwrap().to_owned())
        .collect();
    let distinct: BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
}

#[test]
fn every_route_that_is_described_is_there() {
    block_on(async {
        let api = Api::of("described").await;
        let (status, document) = api.get("/openapi.json").await;
        assert_eq!(status, StatusCode::OK);
        let (_, nowhere) = api.get("/v1/nowhere").await;
        let nowhere = nowhere["error"]["message"].as_str().unwrap();
        assert!(
            nowhere.starts_with("there is nothing at this address: GET /v1/nowhere. "),
            "{nowhere}"
        );
        let roots = "/v1/artifacts, /v1/chat/completions, /v1/connectors, /v1/containers, \
                     /v1/conversations, /v1/decisions, /v1/files, /v1/key, /v1/keys, /v1/messages, \
                     /v1/models, /v1/projects, /v1/responses, /v1/runs, \
                     /v1/server, /v1/sessions, /v1/skills, /v1/volumes";
        assert!(nowhere.contains(roots), "{nowhere}");
        for (path, methods) in document["paths"].as_object().unwrap() {
            let path = path.replace(['{', '}'], "");
            for method in methods.as_object().unwrap().keys() {
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                let response = api.request(method.clone(), &path).send().await.unwrap();
                let status = response.status();
                assert_ne!(status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
                let text = response.text().await.unwrap();
                let nothing = text.contains("there is nothing at this address");
                assert!(!nothing, "{method} {path}");
            }
        }
    });
}

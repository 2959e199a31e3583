//! Connectors with an OpenAPI document, against a server on this machine that returns what it was asked.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use cellblock_connector::{HttpConnector, OpenapiOptions, RequestOptions, TypeOptions};
use cellblock_interpreter::connector::{Connector as _, FetchAnswer, FetchEffect, GrantTerms, direct};
use serde_json::{Map, Value, json};

const TOKEN: &str = "t0ken-of-the-crm";

/// Answers with the request.
async fn echo(request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let header = |name: &str| parts.headers.get(name).map(|it| it.to_str().unwrap().to_owned());
    json!({
        "request": format!("{} {}", parts.method, parts.uri),
        "trace": header("x-trace-id"),
        "authorized": header("authorization") == Some(format!("Bearer {TOKEN}")),
        "body": serde_json::from_slice::<Value>(&body).ok(),
    })
    .to_string()
    .into_response()
}

async fn server() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(echo)).await });
    url
}

const CRM: &str = r##"
openapi: 3.0.3
info: {title: CRM, version: "1"}
servers:
  - url: https://{region}.crm.example.com/v1
    variables: {region: {default: eu}}
paths:
  /contacts:
    parameters:
      - $ref: "#/components/parameters/Trace"
    get:
      operationId: listContacts
      summary: Lists contacts.
      description: Newest first.
      parameters:
        - {name: tag, in: query, schema: {type: array, items: {type: string}}}
        - {name: ids, in: query, explode: false, schema: {type: array, items: {type: integer}}}
        - {name: "filter[city]", in: query, schema: {type: string, nullable: true}}
        - {name: limit, in: query, schema: {type: integer, minimum: 0, exclusiveMinimum: true, default: 20}}
        - {name: status, in: query, schema: {$ref: "#/components/schemas/Status"}}
        - {name: session, in: cookie, schema: {type: string}}
        - {name: deep, in: query, style: deepObject, schema: {type: object}}
    post:
      operationId: createContact
      requestBody:
        $ref: "#/components/requestBodies/Contact"
  /contacts/{contact-id}:
    get:
      operationId: getContact
      parameters:
        - {name: contact-id, in: path, required: true, schema: {type: string}}
    put:
      operationId: replaceContact
      parameters:
        - {name: contact-id, in: path, required: true, schema: {type: string}}
        - {name: dry_run, in: query, schema: {type: boolean}}
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [dry_run]
              properties: {dry_run: {type: boolean}, class: {type: string}}
    delete:
      operationId: deleteContact
      parameters:
        - {name: contact-id, in: path, required: true, schema: {type: string}}
  /tags:
    get: {operationId: list-tags, responses: {}}
    post:
      operationId: setTags
      requestBody:
        required: true
        content: {application/json: {schema: {type: array, items: {type: string}}}}
  /tags/all:
    get: {operationId: list_tags}
  /health/{part}:
    get:
      parameters: [{name: part, in: path, required: true, schema: {type: string}}]
components:
  parameters:
    Trace: {name: X-Trace-Id, in: header, schema: {type: string}}
  schemas:
    Status: {type: string, enum: [active, gone]}
    Address: {type: object, properties: {city: {type: string}}}
    Contact:
      type: object
      required: [name]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, minLength: 1, example: Ada}
        status: {$ref: "#/components/schemas/Status"}
        address: {$ref: "#/components/schemas/Address"}
  requestBodies:
    Contact:
      required: true
      content: {application/json: {schema: {$ref: "#/components/schemas/Contact"}}}
"##;

fn options(base: Option<&str>, more: &Value) -> TypeOptions<OpenapiOptions, RequestOptions> {
    let mut options = json!({
        "document": "crm.yaml", "allow_private": true, "allow_writes": true,
        "headers": {"authorization": "Bearer {{ secrets.token }}"}, "base_url": base,
    });
    for (key, value) in more.as_object().unwrap() {
        options[key] = value.clone();
    }
    TypeOptions::read(&options).unwrap()
}

fn compiled(
    text: &str,
    options: &TypeOptions<OpenapiOptions, RequestOptions>,
) -> Result<HttpConnector, Vec<String>> {
    let secrets = BTreeMap::from([("token".to_owned(), TOKEN.to_owned())]);
    HttpConnector::of_document("crm", options, text, &secrets).map_err(|mistakes| {
        let texts = mistakes
            .iter()
            .map(|mistake| format!("{}: {}", mistake.path.join("."), mistake.message));
        texts.collect()
    })
}

/// Calls an operation as code does, without the checks of the arguments.
async fn call(connector: &HttpConnector, operation: &str, arguments: Value) -> Result<Value, String> {
    let Value::Object(arguments) = arguments else {
        panic!("no arguments")
    };
    let until = Instant::now() + Duration::from_mins(1);
    match connector.fetch(operation, arguments, until).await {
        Ok(FetchAnswer::Value(value)) => Ok(value),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn operations_become_requests_with_everything_in_its_place() {
    let base = server().await;
    let all = json!({"operations": [
        "listContacts", "createContact", "getContact", "replaceContact", "deleteContact", "setTags",
        "get_health_part"
    ]});
    let crm = compiled(CRM, &options(Some(&base), &all)).unwrap();
    for (operation, arguments, request, body) in [
        (
            "listContacts",
            json!({"tag": ["a", "b c"], "ids": [1, 2], "filter_city": "Graz&", "limit": 5, "status": null}),
            "GET /v1/contacts?tag=a&tag=b+c&ids=1%2C2&filter%5Bcity%5D=Graz%26&limit=5",
            json!(null),
        ),
        (
            "createContact",
            json!({"name": "Ada", "address": {"city": "Graz"}, "status": null}),
            "POST /v1/contacts",
            json!({"name": "Ada", "address": {"city": "Graz"}}),
        ),
        (
            "getContact",
            json!({"contact_id": "a b?#"}),
            "GET /v1/contacts/a%20b%3F%23",
            json!(null),
        ),
        (
            "replaceContact",
            json!({"contact_id": "1", "dry_run": true, "dry_run_2": false, "class_": "x"}),
            "PUT /v1/contacts/1?dry_run=true",
            json!({"dry_run": false, "class": "x"}),
        ),
        (
            "deleteContact",
            json!({"contact_id": "1"}),
            "DELETE /v1/contacts/1",
            json!(null),
        ),
        ("setTags", json!({"body": ["a"]}), "POST /v1/tags", json!(["a"])),
        (
            "get_health_part",
            json!({"part": "db"}),
            "GET /v1/health/db",
            json!(null),
        ),
    ] {
        let answer = call(&crm, operation, arguments).await.unwrap();
        assert_eq!(answer["request"], request, "{operation}");
        assert_eq!(answer["body"], body, "{operation}");
        assert_eq!(answer["authorized"], true, "{operation}");
    }
    let traced = call(&crm, "listContacts", json!({"X_Trace_Id": "t-1"}))
        .await
        .unwrap();
    assert_eq!(traced["trace"], "t-1");
    for hostile in ["../x", "..", "a/b", "a\\b", ""] {
        let error = call(&crm, "getContact", json!({"contact_id": hostile}))
            .await
            .unwrap_err();
        assert!(error.contains("`contact_id` is a part of the path"), "{error}");
    }
}

#[tokio::test]
async fn parameters_are_checked_as_the_document_says() {
    let base = server().await;
    let all = json!({"operations": ["listContacts", "createContact", "replaceContact"]});
    let crm = Arc::new(compiled(CRM, &options(Some(&base), &all)).unwrap());
    let cards = crm.cards().await.unwrap();
    assert_eq!(cards[0].description, "Lists contacts.\nNewest first.");
    assert_eq!(cards[0].effect, FetchEffect::Reads);
    assert_eq!(cards[1].effect, FetchEffect::Writes);
    let names = |card: usize| {
        let properties = cards[card].parameters["properties"].as_object().unwrap();
        properties.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        names(0),
        ["X_Trace_Id", "tag", "ids", "filter_city", "limit", "status"]
    );
    assert_eq!(names(1), ["X_Trace_Id", "name", "status", "address"]);
    assert_eq!(cards[1].parameters["required"], json!(["name"]));
    assert_eq!(names(2), ["contact_id", "dry_run", "dry_run_2", "class_"]);
    assert_eq!(
        cards[2].parameters["required"],
        json!(["contact_id", "dry_run_2"])
    );
    for (function, arguments, expected) in [
        ("listContacts", json!({}), ""),
        ("listContacts", json!({"filter_city": null, "status": "gone"}), ""),
        ("listContacts", json!({"status": "new"}), "status"),
        ("listContacts", json!({"limit": 0}), "limit"),
        ("listContacts", json!({"tag": "a"}), "tag"),
        ("createContact", json!({}), "name"),
        (
            "createContact",
            json!({"name": "Ada", "address": {"city": 1}}),
            "city",
        ),
        (
            "createContact",
            json!({"name": "Ada", "id": 1}),
            "unknown parameter `id`",
        ),
    ] {
        let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
        let until = Instant::now() + Duration::from_mins(1);
        let (record, value) = direct::call(
            crm.clone(),
            function,
            arguments.clone(),
            until,
            GrantTerms::default(),
        )
        .await;
        assert_eq!(
            value.is_some(),
            expected.is_empty(),
            "{function} {arguments:?}: {record:?}"
        );
        assert!(format!("{record:?}").contains(expected), "{record:?}");
    }
}

#[tokio::test]
async fn only_get_operations_are_offered_unless_others_are_listed() {
    let crm = compiled(CRM, &options(None, &json!({"allow_writes": false}))).unwrap();
    let bundles = direct::bundles(&[Arc::new(crm)]).await;
    let names: Vec<_> = bundles[0]
        .functions
        .iter()
        .map(|card| card.function.as_str())
        .collect();
    // Two names become the same in Python.
    assert_eq!(
        names,
        [
            "listContacts",
            "getContact",
            "list_tags",
            "list_tags_2",
            "get_health_part"
        ]
    );
    let listed = json!({"allow_writes": false, "operations": ["listContacts", "createContact"]});
    let mistakes = compiled(CRM, &options(None, &listed)).unwrap_err();
    assert_eq!(
        mistakes,
        [
            "operations: `createContact` is a POST request, which may change something; permit it with \
             `allow_writes: true`, or remove it"
        ]
    );
    let unknown = json!({"operations": ["list_contacts", "nothing"]});
    let mistakes = compiled(CRM, &options(None, &unknown)).unwrap_err();
    assert_eq!(
        mistakes,
        [
            "operations: `list_contacts` is not an operation of the document; did you mean `listContacts`?",
            "operations: `nothing` is not an operation of the document",
        ]
    );
}

#[test]
fn mistakes_in_a_document_name_the_operation_and_the_place() {
    let document = |version: &str, operation: Value| {
        json!({
            "openapi": version,
            "servers": [{"url": "https://crm.example.com"}],
            "paths": {"/a/{id}": {"get": operation}},
            "components": {"schemas": {
                "Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}},
                "Loop": {"$ref": "#/components/schemas/Loop"},
            }},
        })
        .to_string()
    };
    let id = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
    let with = |parameter: Value| json!({"operationId": "find", "parameters": [id, parameter]});
    for (text, expected) in [
        (
            document("3.1.0", with(json!({"$ref": "other.yaml#/x"}))),
            "`other.yaml#/x` is in another document, which is not read",
        ),
        (
            document("3.1.0", with(json!({"$ref": "#/components/nothing"}))),
            "`#/components/nothing` is not in the document",
        ),
        (
            document(
                "3.0.0",
                with(json!({"name": "q", "in": "query", "schema": {"$ref": "#/components/schemas/Node"}})),
            ),
            "the parameter `q` `#/components/schemas/Node` refers to itself",
        ),
        (
            document("3.0.0", with(json!({"$ref": "#/components/schemas/Loop"}))),
            "references that lead back to themselves",
        ),
        (
            document(
                "3.0.0",
                with(json!({"name": "c", "in": "cookie", "required": true, "schema": {}})),
            ),
            "the parameter `c` is a cookie",
        ),
        (
            document(
                "3.0.0",
                with(json!({"name": "other", "in": "path", "schema": {}})),
            ),
            "the parameter `other` is not in the path",
        ),
        (
            document("3.0.0", json!({"operationId": "find"})),
            "inserts `id`, which is not in `parameters`",
        ),
    ] {
        let mistakes = compiled(&text, &options(None, &json!({}))).unwrap_err();
        assert!(
            mistakes[0].starts_with("document: `find` (GET /a/{id}): "),
            "{mistakes:?}"
        );
        assert!(mistakes[0].contains(expected), "{expected}: {mistakes:?}");
    }
    for (text, expected) in [
        (r#"{"swagger": "2.0"}"#, "is of Swagger 2.0"),
        (r#"{"openapi": "4.0.0"}"#, "is of OpenAPI 4.0.0"),
        ("{]", "is not valid JSON"),
        ("a: [", "is not valid YAML"),
        ("a: 1", "is not an OpenAPI document"),
        ("openapi: 3.0.0\npaths: {}", "has no GET operation"),
        (
            "openapi: 3.0.0\npaths: {/a: {get: {operationId: x}}, /b: {get: {operationId: x}}}",
            "GET /a and GET /b have the same `operationId`, `x`",
        ),
    ] {
        let mistakes = compiled(text, &options(Some("https://crm.example.com"), &json!({}))).unwrap_err();
        assert!(mistakes[0].starts_with("document: "), "{mistakes:?}");
        assert!(mistakes[0].contains(expected), "{mistakes:?}");
    }
    let relative = "openapi: 3.1.0\nservers: [{url: /v1}]\npaths: {/a: {get: {operationId: x}}}";
    let mistakes = compiled(relative, &options(None, &json!({}))).unwrap_err();
    assert!(mistakes[0].starts_with("base_url: is missing"), "{mistakes:?}");
}

//! The routes under OpenAI's names, in short: what they take and answer is what its SDKs send and read.

use serde_json::{Value, json};

/// Where their forms are written down.
const REFERENCE: &str = "https://platform.openai.com/docs/api-reference";

/// A route.
struct Route {
    method: &'static str,
    path: &'static str,
    /// Its name among operations.
    name: &'static str,
    summary: &'static str,
    /// The media type of its body.
    takes: Option<&'static str>,
    /// The media types of its answers.
    answers: &'static [&'static str],
}

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// Every route. A new one is one more entry here; a test asks for each.
const ROUTES: &[Route] = &[Route {
    method: "post",
    path: "/v1/responses",
    name: "create_response",
    summary: "Asks a model, and runs the code that it writes.",
    takes: Some(JSON),
    answers: &[JSON, EVENTS],
}];

/// Adds the routes to a document's paths.
pub(super) fn add(paths: &mut Value) {
    for route in ROUTES {
        paths[route.path][route.method] = operation(route);
    }
}

fn operation(route: &Route) -> Value {
    let of = |media_types: &[&str]| {
        let content = media_types
            .iter()
            .map(|it| ((*it).to_owned(), json!({"schema": {}})));
        Value::Object(content.collect())
    };
    let error = json!({"schema": {"$ref": "#/components/schemas/Error"}});
    let mut operation = json!({
        "tags": [tag(route.path)],
        "operationId": route.name,
        "summary": route.summary,
        "externalDocs": {"url": REFERENCE},
        "responses": {
            "200": {"description": "As OpenAI's API answers", "content": of(route.answers)},
            "4XX": {"description": "The request is wrong, or there is no such thing among the caller's", "content": {JSON: error}},
        },
    });
    if let Some(takes) = route.takes {
        operation["requestBody"] = json!({"required": true, "content": of(&[takes])});
    }
    let names = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameters: Vec<_> = names
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    operation
}

/// What a route is about: the word after the version.
fn tag(path: &'static str) -> &'static str {
    path.split('/').nth(2).unwrap_or("operations")
}

//! The routes under OpenAI's and Anthropic's names, in short: what they take and answer is what
//! their SDKs send and read.

use serde_json::{Value, json};

use crate::anthropic::MESSAGES;

/// Address of the documentation of their forms.
const REFERENCE: &str = "https://platform.openai.com/docs/api-reference";

const ANTHROPIC: &str = "https://docs.anthropic.com/en/api/messages";

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

const FORM: &str = "multipart/form-data";
const BYTES: &str = "application/octet-stream";
const TEXT: &str = "text/plain";

/// Every route. A new one is one more line here; a test asks for each.
const ROUTES: &[Route] = &[
    Route::new(
        "post",
        "/v1/chat/completions",
        "create_chat_completion",
        "Completes a chat; code that the model writes runs on the server.",
        Some(JSON),
        &[JSON, EVENTS],
    ),
    Route::new(
        "post",
        "/v1/messages",
        "create_message",
        "Answers in the form of Anthropic's Messages API; its code execution runs on the server.",
        Some(JSON),
        &[JSON, EVENTS],
    ),
    Route::new(
        "post",
        "/v1/messages/count_tokens",
        "count_message_tokens",
        "Counts the tokens that a model would read for a message.",
        Some(JSON),
        &[JSON],
    ),
    Route::new(
        "post",
        "/v1/responses",
        "create_response",
        "Calls a model and runs the code that it writes.",
        Some(JSON),
        &[JSON, EVENTS],
    ),
    Route::new(
        "get",
        "/v1/responses",
        "list_responses",
        "Lists the caller's stored responses without their items, a page at a time (`after`, `limit`, \
         `order`); with `Upgrade: websocket`, opens a WebSocket for creating and streaming responses.",
        None,
        &[JSON],
    ),
    Route::new(
        "post",
        "/v1/responses/compact",
        "compact_responses",
        "Compacts a conversation.",
        Some(JSON),
        &[JSON],
    ),
    Route::new(
        "post",
        "/v1/responses/input_tokens",
        "count_input_tokens",
        "Counts the tokens that a model would read for a request.",
        Some(JSON),
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/responses/{id}",
        "get_response",
        "Returns a response; with `stream`, its events after `starting_after`.",
        None,
        &[JSON, EVENTS],
    ),
    Route::new(
        "delete",
        "/v1/responses/{id}",
        "delete_response",
        "Deletes a response.",
        None,
        &[JSON],
    ),
    Route::new(
        "post",
        "/v1/responses/{id}/cancel",
        "cancel_response",
        "Cancels a background response.",
        None,
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/responses/{id}/input_items",
        "list_input_items",
        "Lists the input items of a response.",
        None,
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/responses/{id}/model_items",
        "list_model_items",
        "Lists what the model read and said for a response, with the results of tools as the model got them.",
        None,
        &[JSON],
    ),
    Route::new(
        "post",
        "/v1/conversations",
        "create_conversation",
        "Creates a conversation, with items if any are given.",
        Some(JSON),
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/conversations/{conversation}",
        "get_conversation",
        "Returns a conversation.",
        None,
        &[JSON],
    ),
    Route::new(
        "post",
        "/v1/conversations/{conversation}",
        "update_conversation",
        "Replaces a conversation's metadata.",
        Some(JSON),
        &[JSON],
    ),
    Route::new(
        "delete",
        "/v1/conversations/{conversation}",
        "delete_conversation",
        "Deletes a conversation and its items.",
        None,
        &[JSON],
    ),
    Route::new(
        "post",
        "/v1/conversations/{conversation}/items",
        "add_conversation_items",
        "Adds up to 20 items to a conversation.",
        Some(JSON),
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/conversations/{conversation}/items",
        "list_conversation_items",
        "Lists a conversation's items.",
        None,
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/conversations/{conversation}/items/{item}",
        "get_conversation_item",
        "Returns an item of a conversation.",
        None,
        &[JSON],
    ),
    Route::new(
        "delete",
        "/v1/conversations/{conversation}/items/{item}",
        "delete_conversation_item",
        "Deletes an item of a conversation.",
        None,
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/models",
        "list_models",
        "Lists the models.",
        None,
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/models/{id}",
        "get_model",
        "Returns a model.",
        None,
        &[JSON],
    ),
    Route::new(
        "post",
        "/v1/containers",
        "create_container",
        "Creates a container, which is OpenAI's name for a session.",
        Some(JSON),
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/containers",
        "list_containers",
        "Lists the caller's containers.",
        None,
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/containers/{container}",
        "get_container",
        "Returns a container.",
        None,
        &[JSON],
    ),
    Route::new(
        "delete",
        "/v1/containers/{container}",
        "delete_container",
        "Deletes a container.",
        None,
        &[JSON],
    ),
    Route::new(
        "post",
        "/v1/containers/{container}/files",
        "add_container_file",
        "Adds a file to a container.",
        Some(FORM),
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/containers/{container}/files",
        "list_container_files",
        "Lists a container's files.",
        None,
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/containers/{container}/files/{file}",
        "get_container_file",
        "Returns a container's file.",
        None,
        &[JSON],
    ),
    Route::new(
        "delete",
        "/v1/containers/{container}/files/{file}",
        "delete_container_file",
        "Deletes a container's file.",
        None,
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/containers/{container}/files/{file}/content",
        "read_container_file",
        "Returns the content of a container's file.",
        None,
        &[BYTES],
    ),
    Route::new(
        "post",
        "/v1/files",
        "create_file",
        "Uploads a file.",
        Some(FORM),
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/files",
        "list_uploads",
        "Lists the caller's files.",
        None,
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/files/{file}",
        "get_file",
        "Returns a file.",
        None,
        &[JSON],
    ),
    Route::new(
        "delete",
        "/v1/files/{file}",
        "delete_upload",
        "Deletes a file.",
        None,
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/files/{file}/content",
        "read_upload",
        "Returns the content of a file.",
        None,
        &[BYTES],
    ),
    Route::new(
        "post",
        "/v1/skills",
        "create_skill",
        "Uploads a skill: one zip, or the files of one folder.",
        Some(FORM),
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/skills",
        "list_skills",
        "Lists the caller's skills, and after them those that the operator shares.",
        None,
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/skills/{skill}",
        "get_skill",
        "Returns a skill.",
        None,
        &[JSON],
    ),
    Route::new(
        "post",
        "/v1/skills/{skill}",
        "update_skill",
        "Sets the default version of a skill.",
        Some(JSON),
        &[JSON],
    ),
    Route::new(
        "delete",
        "/v1/skills/{skill}",
        "delete_skill",
        "Deletes a skill with all its versions.",
        None,
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/skills/{skill}/content",
        "read_skill",
        "Returns the default version of a skill as a zip.",
        None,
        &[BYTES],
    ),
    Route::new(
        "post",
        "/v1/skills/{skill}/versions",
        "add_skill_version",
        "Uploads a version of a skill.",
        Some(FORM),
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/skills/{skill}/versions",
        "list_skill_versions",
        "Lists the versions of a skill.",
        None,
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/skills/{skill}/versions/{version}",
        "get_skill_version",
        "Returns a version of a skill.",
        None,
        &[JSON],
    ),
    Route::new(
        "delete",
        "/v1/skills/{skill}/versions/{version}",
        "delete_skill_version",
        "Deletes a version of a skill.",
        None,
        &[JSON],
    ),
    Route::new(
        "get",
        "/v1/skills/{skill}/versions/{version}/content",
        "read_skill_version",
        "Returns a version of a skill as a zip.",
        None,
        &[BYTES],
    ),
    Route::new(
        "get",
        "/metrics",
        "metrics",
        "Returns the metrics in the Prometheus format.",
        None,
        &[TEXT],
    ),
];

impl Route {
    const fn new(
        method: &'static str,
        path: &'static str,
        name: &'static str,
        summary: &'static str,
        takes: Option<&'static str>,
        answers: &'static [&'static str],
    ) -> Self {
        Self {
            method,
            path,
            name,
            summary,
            takes,
            answers,
        }
    }
}

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
    // Its errors have another form.
    let of_anthropic = route.path.starts_with(MESSAGES);
    let owner = if of_anthropic { "Anthropic" } else { "OpenAI" };
    let error = if of_anthropic {
        json!({"schema": {}})
    } else {
        json!({"schema": {"$ref": "#/components/schemas/Error"}})
    };
    let mut operation = json!({
        "tags": [tag(route.path)],
        "operationId": route.name,
        "summary": route.summary,
        "externalDocs": {"url": if of_anthropic { ANTHROPIC } else { REFERENCE }},
        "responses": {
            "200": {"description": format!("The same response as {owner}'s API"),
                "content": of(route.answers)},
            "4XX": {"description": "The request is invalid, or the caller has no such object",
                "content": {JSON: error}},
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

/// Returns the subject of a route: the word after the version.
fn tag(path: &'static str) -> &'static str {
    path.split('/').nth(2).unwrap_or("operations")
}

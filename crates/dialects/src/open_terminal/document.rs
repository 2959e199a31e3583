//! `/openapi.json`: the operations that models are offered, `/api/config`, and what a model reads first.
//!
//! Open WebUI makes a tool of each operation that has an ID here, so routes of its user interface
//! are not in the document.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use utoipa::OpenApi;

use super::chat::{Caller, OpenTerminal};
use super::{commands, files, python, terminals};

#[derive(Debug, OpenApi)]
#[openapi(paths(
    python::run,
    commands::run,
    commands::list,
    commands::status,
    commands::input,
    commands::kill,
    files::list,
    files::read,
    files::display,
    files::write,
    files::replace,
    files::grep,
    files::glob,
    files::search,
    terminals::read,
    terminals::write,
))]
struct Operations;

/// `GET /openapi.json`.
pub(super) async fn openapi() -> Json<Value> {
    Json(document())
}

/// `GET /health`.
pub(super) async fn health() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// `GET /api/config`.
pub(super) async fn config() -> Json<Value> {
    Json(json!({"features": {"terminal": true, "notebooks": true, "system": true}}))
}

/// `GET /system`.
pub(super) async fn system(State(terminal): State<OpenTerminal>, _caller: Caller) -> Json<Value> {
    let version = terminal.host.interpreter.python_version();
    let mut prompt = format!(
        "You have an isolated Linux sandbox with bash and Python {version}. It belongs to this chat: its \
         files in /workspace, its Python variables and its processes stay between your calls, and end \
         when the chat is idle for long.\n\n\
         Use run_python for calculations, data and charts: variables stay, and pictures are saved in \
         /workspace/outputs. Use run_command for programs. Show files and pictures to the user with \
         display_file. Check results before you rely on them."
    );
    if !terminal.options.info.is_empty() {
        prompt.push_str("\n\n");
        prompt.push_str(&terminal.options.info);
    }
    Json(json!({ "prompt": prompt }))
}

fn document() -> Value {
    let made = serde_json::to_value(Operations::openapi());
    let mut document = made.unwrap_or_else(|error| json!({"error": error.to_string()}));
    document["info"] = json!({
        "title": "Cellblock",
        "description": "A sandbox for each chat: Python with variables that stay, commands and files.",
        "version": env!("CARGO_PKG_VERSION"),
    });
    plain(&mut document);
    document
}

/// Leaves out what only readers of OpenAPI 3.1 understand: the type `["string", "null"]` of what
/// may be missing becomes `string`.
fn plain(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::Array(kinds)) = fields.get_mut("type") {
                kinds.retain(|kind| kind != "null");
                if let [kind] = &kinds[..] {
                    let kind = kind.clone();
                    fields.insert("type".to_owned(), kind);
                }
            }
            fields.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_described_and_has_plain_types() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        let operations = paths
            .values()
            .flat_map(|methods| methods.as_object().unwrap().values());
        let mut names = Vec::new();
        for operation in operations {
            let name = operation["operationId"].as_str().unwrap();
            assert!(
                operation["summary"].as_str().is_some_and(|it| it.len() > 10),
                "{name}"
            );
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let kind = parameter["schema"]["type"].as_str();
                assert!(kind.is_some(), "{name}: {parameter}");
                assert!(parameter["description"].is_string(), "{name}: {parameter}");
            }
            names.push(name);
        }
        names.sort_unstable();
        let expected = [
            "display_file",
            "get_process_status",
            "glob_search",
            "grep_search",
            "kill_process",
            "list_files",
            "list_processes",
            "read_file",
            "read_user_terminal",
            "replace_file_content",
            "run_command",
            "run_python",
            "search_files",
            "send_process_input",
            "send_user_terminal_input",
            "write_file",
        ];
        assert_eq!(names, expected);
    }
}

//! Functions of an API from its OpenAPI document: each operation becomes what an operator could
//! have written by hand.

mod operation;
mod options;
mod reference;
mod schema;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::http::{HttpConnector, HttpOperation, RequestOptions};
use crate::options::TypeOptions;
use crate::recipe::OptionMistake;
use operation::FunctionPlan;
pub use options::OpenapiOptions;
use reference::Document;

/// Methods of operations; others have no meaning for an API of JSON.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

impl HttpConnector {
    /// Compiles a connector of the type `openapi`, with the text of its document.
    pub fn of_document(
        name: &str,
        options: &TypeOptions<OpenapiOptions, RequestOptions>,
        text: &str,
        secrets: &BTreeMap<String, String>,
    ) -> Result<Self, Vec<OptionMistake>> {
        let document = read(text).map_err(|mistake| vec![mistake])?;
        let found = functions(&document, &options.own.operations, options.shared.allow_writes)?;
        let requests = &RequestOptions {
            base_url: options.shared.base_url.clone().or_else(|| server(&document)),
            ..options.shared.clone()
        };
        let functions = found.into_iter().map(|(source, plan)| {
            let operation =
                HttpOperation::new(&source.name, &plan.options, Some(plan.sent), requests, secrets);
            let at = |mistake: OptionMistake| {
                let (path, message) = (mistake.path.join("."), mistake.message);
                wrong(format!(
                    "`{}` ({}): `{path}` {message}",
                    source.name,
                    source.place()
                ))
            };
            let operation = operation.map_err(|wrong| wrong.into_iter().map(at).collect());
            (source.name.clone(), operation)
        });
        Self::compiled(name, &options.calls, requests, secrets, functions)
    }
}

/// An operation of the document.
#[derive(Clone)]
struct OperationSource<'a> {
    name: String,
    method: &'static str,
    path: &'a str,
    item: &'a Map<String, Value>,
    operation: &'a Map<String, Value>,
}

impl OperationSource<'_> {
    fn place(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), self.path)
    }
}

fn wrong(message: impl Into<String>) -> OptionMistake {
    OptionMistake::new(&["document"], message)
}

/// Reads a document in JSON or YAML, of OpenAPI 3.0 or 3.1.
fn read(text: &str) -> Result<Value, OptionMistake> {
    let value: Value = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| wrong(format!("is not valid JSON: {error}")))?
    } else {
        serde_saphyr::from_str(text).map_err(|error| wrong(format!("is not valid YAML: {error}")))?
    };
    if let Some(version) = value.get("swagger") {
        let version = version.as_str().unwrap_or("2.0");
        return Err(wrong(format!(
            "is of Swagger {version}; OpenAPI 3.0 and 3.1 are read, so convert it"
        )));
    }
    match value.get("openapi").and_then(Value::as_str) {
        Some(version) if version.starts_with("3.0") || version.starts_with("3.1") => Ok(value),
        Some(version) => Err(wrong(format!("is of OpenAPI {version}; 3.0 and 3.1 are read"))),
        None => Err(wrong("is not an OpenAPI document: it has no key `openapi`")),
    }
}

/// Returns the URL of its first server, with the defaults of its variables.
fn server(document: &Value) -> Option<String> {
    let server = document.get("servers")?.get(0)?;
    let mut url = server.get("url")?.as_str()?.to_owned();
    for (name, variable) in server
        .get("variables")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let default = variable
            .get("default")
            .and_then(Value::as_str)
            .unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), default);
    }
    url.contains("://").then_some(url)
}

/// Returns the operations that are offered.
fn functions<'a>(
    document: &'a Value,
    operations: &[String],
    allow_writes: bool,
) -> Result<Vec<(OperationSource<'a>, FunctionPlan)>, Vec<OptionMistake>> {
    let found = found(document).map_err(|mistake| vec![mistake])?;
    let mut mistakes = Vec::new();
    let offered: Vec<&OperationSource<'_>> = if operations.is_empty() {
        found.iter().filter(|it| it.method == "get").collect()
    } else {
        let mut offered = Vec::new();
        for name in operations {
            let operation = found.iter().find(|it| it.name == *name);
            offered.extend(operation);
            if operation.is_none() {
                let text = format!(
                    "`{name}` is not an operation of the document{}",
                    similar(name, &found)
                );
                mistakes.push(OptionMistake::new(&["operations"], text));
            }
        }
        offered
    };
    if offered.is_empty() && mistakes.is_empty() {
        mistakes.push(wrong("has no GET operation; list others in `operations`"));
    }
    let mut functions = Vec::new();
    for operation in offered {
        if operation.method != "get" && !allow_writes {
            let text = format!(
                "`{}` is a {} request, which may change something; permit it with `allow_writes: true`, \
                 or remove it",
                operation.name,
                operation.method.to_uppercase()
            );
            mistakes.push(OptionMistake::new(&["operations"], text));
            continue;
        }
        match operation::compiled(operation, &Document(document)) {
            Ok(function) => functions.push((operation.clone(), function)),
            Err(problem) => {
                let text = format!("`{}` ({}): {problem}", operation.name, operation.place());
                mistakes.push(wrong(text));
            }
        }
    }
    if mistakes.is_empty() {
        Ok(functions)
    } else {
        Err(mistakes)
    }
}

/// Lists the operations of a document.
fn found(document: &Value) -> Result<Vec<OperationSource<'_>>, OptionMistake> {
    let paths = document.get("paths").and_then(Value::as_object);
    let mut found: Vec<OperationSource<'_>> = Vec::new();
    for (path, item) in paths.into_iter().flatten() {
        let Some(item) = item.as_object() else { continue };
        if item.contains_key("$ref") {
            return Err(wrong(format!(
                "`{path}`: a `$ref` of a path is not supported; write it out"
            )));
        }
        for method in METHODS {
            let Some(operation) = item.get(method).and_then(Value::as_object) else {
                continue;
            };
            let name = operation.get("operationId").and_then(Value::as_str);
            let name = name.map_or_else(|| unnamed(method, path), str::to_owned);
            let operation = OperationSource {
                name,
                method,
                path,
                item,
                operation,
            };
            if let Some(first) = found.iter().find(|it| it.name == operation.name) {
                return Err(wrong(format!(
                    "{} and {} have the same `operationId`, `{}`; change one of the two",
                    first.place(),
                    operation.place(),
                    operation.name
                )));
            }
            found.push(operation);
        }
    }
    Ok(found)
}

/// Names an operation without an `operationId`.
fn unnamed(method: &str, path: &str) -> String {
    let words = path.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    std::iter::once(method).chain(words).collect::<Vec<_>>().join("_")
}

/// Returns a hint at operations with a similar name.
fn similar(name: &str, found: &[OperationSource<'_>]) -> String {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-', '.'], "");
    let wanted = plain(name);
    let near = found.iter().find(|it| {
        let known = plain(&it.name);
        known.contains(&wanted) || wanted.contains(&known)
    });
    near.map_or_else(String::new, |near| format!("; did you mean `{}`?", near.name))
}

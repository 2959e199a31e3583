//! An operation, as a function: its parameters under names of Python, and where each is sent.

use cellblock_interpreter::connector::FetchEffect;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::OperationSource;
use super::reference::Document;
use super::schema::{is, optional, standard};
use crate::http::HttpFunction;
use crate::sent::{RequestParameter, SentAs};

/// Maximum number of characters of a description.
const ABOUT: usize = 2000;
/// Headers that describe the message, and that OpenAPI ignores as parameters.
const IGNORED: [&str; 3] = ["accept", "content-type", "authorization"];

/// An operation as a function.
pub(super) struct FunctionPlan {
    pub(super) options: HttpFunction,
    pub(super) sent: Vec<RequestParameter>,
    path: String,
}

pub(super) fn compiled(found: &OperationSource<'_>, document: &Document<'_>) -> Result<FunctionPlan, String> {
    let mut made = FunctionPlan {
        options: HttpFunction {
            description: about(found.operation),
            effect: Some(if found.method == "get" {
                FetchEffect::Reads
            } else {
                FetchEffect::Writes
            }),
            ..HttpFunction::default()
        },
        sent: Vec::new(),
        path: found.path.to_owned(),
    };
    for parameter in parameters(found, document)? {
        let name = parameter.get("name").and_then(Value::as_str).unwrap_or_default();
        made.parameter(parameter, document)
            .map_err(|problem| format!("the parameter `{name}` {problem}"))?;
    }
    if let Some(body) = found
        .operation
        .get("requestBody")
        .filter(|_| found.method != "get")
    {
        made.body(
            document
                .followed(body)
                .map_err(|problem| format!("`requestBody` {problem}"))?,
            document,
        )
        .map_err(|problem| format!("`requestBody` {problem}"))?;
    }
    let path = Some(std::mem::take(&mut made.path));
    let options = &mut made.options;
    match found.method {
        "get" => options.get = path,
        "post" => options.post = path,
        "put" => options.put = path,
        "patch" => options.patch = path,
        _ => options.delete = path,
    }
    Ok(made)
}

fn about(operation: &Map<String, Value>) -> String {
    let texts = ["summary", "description"].map(|key| operation.get(key).and_then(Value::as_str));
    let text = texts.into_iter().flatten().collect::<Vec<_>>().join("\n");
    text.trim().chars().take(ABOUT).collect()
}

/// Returns the parameters of an operation and those of its path, which it replaces.
fn parameters<'a>(
    found: &OperationSource<'a>,
    document: &Document<'a>,
) -> Result<Vec<&'a Map<String, Value>>, String> {
    let mut parameters = IndexMap::new();
    for holder in [found.item, found.operation] {
        let listed = holder.get("parameters").and_then(Value::as_array);
        for parameter in listed.into_iter().flatten() {
            let parameter = document
                .followed(parameter)
                .map_err(|problem| format!("a parameter {problem}"))?;
            let key = |key| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
            parameters.insert((key("in"), key("name")), parameter);
        }
    }
    Ok(parameters.into_values().collect())
}

impl FunctionPlan {
    /// Adds a parameter of the path, the query or a header.
    fn parameter(&mut self, parameter: &Map<String, Value>, document: &Document<'_>) -> Result<(), String> {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str);
        let (Some(name), Some(place)) = (text("name"), text("in")) else {
            return Err("has no `name` or `in`".to_owned());
        };
        let required = parameter.get("required") == Some(&Value::Bool(true)) || place == "path";
        if place == "header" && IGNORED.contains(&name.to_ascii_lowercase().as_str()) {
            return Ok(());
        }
        let schema = document.whole(parameter.get("schema").unwrap_or(&Value::Null))?;
        let mut schema = match standard(&schema) {
            schema @ Value::Object(_) => schema,
            _ => Value::Object(Map::new()),
        };
        if let Some(about) = text("description") {
            schema["description"] = about.into();
        }
        let separator = match (text("style"), parameter.get("explode")) {
            (Some("spaceDelimited"), _) => Some(' '),
            (Some("pipeDelimited"), _) => Some('|'),
            (_, Some(Value::Bool(false))) => Some(','),
            _ => None,
        };
        let problem = match place {
            _ if parameter.contains_key("content") => Some("has `content`, which is not supported"),
            _ if is(&schema, "object") => Some("is an object, which only a body can be"),
            "path" | "header" if is(&schema, "array") => {
                Some("is a list, which only the query and a body can be")
            }
            "path" | "header" | "query" => None,
            _ => Some("is a cookie, which is not sent"),
        };
        if let Some(problem) = problem {
            // What may be left out is left out.
            return if required { Err(problem.to_owned()) } else { Ok(()) };
        }
        let own = self.add(name, schema, required);
        match place {
            "path" => {
                let before = self.path.clone();
                self.path = before.replace(&format!("{{{name}}}"), &format!("{{{own}}}"));
                if self.path == before && !before.contains(&format!("{{{own}}}")) {
                    return Err("is not in the path".to_owned());
                }
            }
            "header" => {
                let template = format!("{{{{ parameters.{own} }}}}");
                self.options.headers.insert(name.to_owned(), template);
            }
            _ => self.sent.push(RequestParameter {
                parameter: own,
                name: name.to_owned(),
                form: SentAs::Query(separator),
            }),
        }
        Ok(())
    }

    /// Adds the fields of a JSON body, or the body as a whole.
    fn body(&mut self, body: &Map<String, Value>, document: &Document<'_>) -> Result<(), String> {
        let required = body.get("required") == Some(&Value::Bool(true));
        let content = body.get("content").and_then(Value::as_object);
        let mut types = content.into_iter().flatten();
        let json = types.find(|(kind, _)| {
            let kind = kind.split(';').next().unwrap_or_default().trim();
            kind == "application/json" || kind.ends_with("+json") || kind == "*/*"
        });
        let Some((_, content)) = json else {
            return if required {
                Err("has no content of the type `application/json`".to_owned())
            } else {
                Ok(())
            };
        };
        let schema = document.whole(content.get("schema").unwrap_or(&Value::Null))?;
        let fields = schema.get("properties").and_then(Value::as_object);
        let combined = ["allOf", "anyOf", "oneOf"]
            .iter()
            .any(|key| schema.get(key).is_some());
        let Some(fields) = fields.filter(|_| is(&schema, "object") && !combined) else {
            let own = self.add("body", standard(&schema), required);
            self.sent.push(RequestParameter {
                parameter: own,
                name: String::new(),
                form: SentAs::Body,
            });
            return Ok(());
        };
        let needed = schema.get("required").and_then(Value::as_array);
        for (name, field) in fields {
            if field.get("readOnly") == Some(&Value::Bool(true)) {
                continue;
            }
            let needed = needed.is_some_and(|needed| needed.iter().any(|it| it == name));
            let own = self.add(name, standard(field), needed);
            self.sent.push(RequestParameter {
                parameter: own,
                name: name.clone(),
                form: SentAs::Field,
            });
        }
        Ok(())
    }

    /// Adds a parameter under a name that Python can use, and returns it.
    fn add(&mut self, name: &str, schema: Value, required: bool) -> String {
        let word = |letter: char| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '_'
            }
        };
        let words: String = name.chars().map(word).collect();
        let mut own = words.trim_matches('_').to_owned();
        if own.is_empty() || own.starts_with(|first: char| first.is_ascii_digit()) {
            own.insert_str(0, "p_");
        }
        if KEYWORDS.contains(&own.as_str()) {
            own.push('_');
        }
        let numbered = (2..).map(|number: u32| format!("{own}_{number}"));
        let mut names = std::iter::once(own.clone()).chain(numbered);
        let taken = &self.options.parameters;
        let own = names.find(|name| !taken.contains_key(name)).unwrap_or(own);
        let schema = if required {
            without_default(schema)
        } else {
            optional(schema)
        };
        self.options.parameters.insert(own.clone(), schema);
        own
    }
}

/// A parameter with a default is not required.
fn without_default(mut schema: Value) -> Value {
    if let Value::Object(fields) = &mut schema {
        fields.shift_remove("default");
    }
    schema
}

/// Words of Python that are likely names of parameters.
const KEYWORDS: [&str; 14] = [
    "as", "async", "class", "def", "from", "global", "if", "import", "in", "is", "not", "or", "return",
    "with",
];

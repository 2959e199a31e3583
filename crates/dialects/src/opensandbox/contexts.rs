//! Contexts: names of their own for code of one sandbox.
//!
//! A sandbox has one Python process. When code of another context is to run, the names of the one
//! before are put aside in that process, and its own are brought back. Bash and JavaScript have one
//! state each.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query};
use cellblock_interpreter::cell::Language;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::{Cell, Session, mint};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::access::ExecdSandbox;
use super::error::Problem;
use super::sandbox::lock;

/// Maximum number of contexts of a sandbox.
const MAX_CONTEXTS: usize = 64;
/// Sets the environment, and remembers which names there are before any code has run.
const BEGIN: &str = include_str!("begin.py");

/// The contexts of a sandbox.
#[derive(Debug, Default)]
pub(super) struct Contexts(Mutex<ContextList>);

#[derive(Debug, Default)]
struct ContextList {
    contexts: Vec<CodeScope>,
    /// Ids of contexts that were deleted, and whose names are still put aside.
    deleted: Vec<String>,
    /// The context whose names Python has now; empty for the default one.
    active: String,
}

/// A context.
#[derive(Clone, Debug)]
pub(super) struct CodeScope {
    /// Its id; empty for the default one of a language.
    pub(super) id: String,
    pub(super) language: Language,
    /// Number of cells that it has run.
    cells: u64,
}

impl ContextList {
    /// Lets the process drop the names of contexts when the next one is brought back.
    fn forget(&mut self, contexts: impl IntoIterator<Item = CodeScope>) {
        // One that has run nothing has no names.
        let used = contexts
            .into_iter()
            .filter(|it| it.cells > 0 && it.language.is_python());
        self.deleted.extend(used.map(|it| it.id));
    }
}

/// A context to make.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ContextRequest {
    pub(super) id: Option<String>,
    pub(super) language: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct OfLanguage {
    language: Option<String>,
}

/// Makes a new process of a sandbox ready.
pub(super) async fn begin(session: &Session, env: &BTreeMap<String, String>) -> Result<(), Problem> {
    let argument = json!({ "env": env }).to_string();
    let code = format!("{BEGIN}\n\nbegin({})", literal(&argument));
    let cell = Cell {
        store: false,
        ..quiet(code)
    };
    let execution = session.execute(cell).await?;
    match execution.outcome {
        Outcome::Completed => Ok(()),
        other => Err(Problem::internal(format!(
            "the sandbox's Python could not be made ready: {}; delete the sandbox and create another one",
            other.name()
        ))),
    }
}

/// A cell of ours.
fn quiet(code: String) -> Cell {
    Cell {
        echo: false,
        collect_files: false,
        ..Cell::new(code)
    }
}

/// A string of Python. JSON's escapes are Python's, too, if there is nothing but ASCII.
fn literal(text: &str) -> String {
    let quoted = json!(text).to_string();
    let mut literal = String::new();
    for unit in quoted.encode_utf16() {
        match char::from_u32(unit.into()).filter(char::is_ascii) {
            Some(plain) => literal.push(plain),
            // Writing to a string does not fail.
            None => {
                let _ = write!(literal, "\\u{unit:04x}");
            }
        }
    }
    literal
}

impl Contexts {
    /// Returns the context of a request to run code.
    pub(super) fn find(&self, request: &ContextRequest) -> Result<CodeScope, Problem> {
        let language = request.language.as_deref().map(language).transpose()?;
        let Some(id) = request.id.as_deref().filter(|id| !id.is_empty()) else {
            return Ok(CodeScope {
                id: String::new(),
                language: language.unwrap_or_default(),
                cells: 0,
            });
        };
        let listed = lock(&self.0);
        let found = listed.contexts.iter().find(|it| it.id == id);
        let found = found.cloned().ok_or_else(|| missing(id))?;
        match language {
            Some(other) if other != found.language => Err(Problem::invalid(format!(
                "context `{id}` is for {}, not for {}",
                found.language.name(),
                other.name()
            ))),
            _ => Ok(found),
        }
    }

    /// Brings the names of a context back. It is the caller's turn.
    pub(super) async fn activate(
        &self,
        session: &Session,
        context: &CodeScope,
        env: &BTreeMap<String, String>,
    ) -> Result<(), Problem> {
        if context.language != Language::Python {
            return Ok(());
        }
        let (order, forget) = {
            let listed = lock(&self.0);
            if listed.active == context.id {
                return Ok(());
            }
            let order = json!({"from": listed.active, "to": context.id, "forget": listed.deleted});
            (order.to_string(), listed.deleted.clone())
        };
        let switch = literal(&order);
        let cell = quiet(format!(
            "__import__('sys').modules['_opensandbox'].switch({switch})"
        ));
        let execution = session.execute(cell).await?;
        if execution.outcome != Outcome::Completed {
            // The process was lost between two cells, with the names of all contexts.
            begin(session, env).await?;
        }
        let mut listed = lock(&self.0);
        listed.active.clone_from(&context.id);
        listed.deleted.retain(|id| !forget.contains(id));
        Ok(())
    }

    /// Counts a cell; returns its number in its context.
    pub(super) fn count(&self, context: &CodeScope) -> u64 {
        let mut listed = lock(&self.0);
        let same = |it: &&mut CodeScope| it.id == context.id && it.language == context.language;
        if let Some(found) = listed.contexts.iter_mut().find(same) {
            found.cells += 1;
            return found.cells;
        }
        // The default one of its language, which is listed when it is used.
        listed.contexts.push(CodeScope {
            cells: 1,
            ..context.clone()
        });
        1
    }
}

pub(super) async fn create(
    opened: ExecdSandbox,
    request: Result<Json<ContextRequest>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(request) = request?;
    let language = request
        .language
        .as_deref()
        .map(language)
        .transpose()?
        .unwrap_or_default();
    let mut listed = lock(&opened.sandbox.kept.contexts.0);
    if listed.contexts.len() >= MAX_CONTEXTS {
        return Err(Problem::invalid(format!(
            "the sandbox has {MAX_CONTEXTS} contexts, which is the limit; delete one"
        )));
    }
    let mut same = listed.contexts.iter().filter(|it| it.language == language);
    if language != Language::Python && same.next().is_some() {
        return Err(Problem::unsupported(format!(
            "a sandbox has one context for {}, and this one is in use; create another sandbox",
            language.name()
        )));
    }
    let context = CodeScope {
        id: mint(""),
        language,
        cells: 0,
    };
    listed.contexts.push(context.clone());
    Ok(Json(shown(&context)))
}

pub(super) async fn list(
    opened: ExecdSandbox,
    query: Result<Query<OfLanguage>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let Query(query) = query?;
    let of = query.language.as_deref().map(language).transpose()?;
    let listed = lock(&opened.sandbox.kept.contexts.0);
    let named = listed.contexts.iter().filter(|it| !it.id.is_empty());
    let found = named.filter(|it| of.is_none_or(|of| of == it.language));
    Ok(Json(found.map(shown).collect()))
}

pub(super) async fn get(
    opened: ExecdSandbox,
    Path((_, id)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let listed = lock(&opened.sandbox.kept.contexts.0);
    let found = listed.contexts.iter().find(|it| it.id == id);
    Ok(Json(shown(found.ok_or_else(|| missing(&id))?)))
}

pub(super) async fn delete(
    opened: ExecdSandbox,
    Path((_, id)): Path<(String, String)>,
) -> Result<(), Problem> {
    let mut listed = lock(&opened.sandbox.kept.contexts.0);
    let place = listed
        .contexts
        .iter()
        .position(|it| it.id == id && !id.is_empty());
    let context = listed.contexts.remove(place.ok_or_else(|| missing(&id))?);
    listed.forget([context]);
    Ok(())
}

pub(super) async fn delete_all(
    opened: ExecdSandbox,
    query: Result<Query<OfLanguage>, QueryRejection>,
) -> Result<(), Problem> {
    let Query(query) = query?;
    let of = query.language.as_deref().map(language).transpose()?;
    let of = of.ok_or_else(|| Problem::invalid("`language` is missing: name the contexts to delete"))?;
    let mut listed = lock(&opened.sandbox.kept.contexts.0);
    let all = std::mem::take(&mut listed.contexts);
    let (deleted, left): (Vec<_>, _) = all
        .into_iter()
        .partition(|it| it.language == of && !it.id.is_empty());
    listed.contexts = left;
    listed.forget(deleted);
    Ok(())
}

fn shown(context: &CodeScope) -> Value {
    json!({"id": context.id, "language": context.language.name()})
}

fn missing(id: &str) -> Problem {
    Problem::missing(
        "CONTEXT_NOT_FOUND",
        format!("context `{id}` does not exist; create one with `POST /code/context`"),
    )
}

/// Reads the name of a language.
fn language(name: &str) -> Result<Language, Problem> {
    match name {
        "python" => Ok(Language::Python),
        "bash" => Ok(Language::Bash),
        "javascript" | "js" | "node" => Ok(Language::Javascript),
        _ => Err(Problem::unsupported(format!(
            "language `{name}` is not supported; use `python`, `bash` or `javascript`"
        ))),
    }
}

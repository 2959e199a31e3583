//! Contexts: sets of variables of one language. They share the kernel of their sandbox, so that one
//! cell runs at a time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Json;
use axum::extract::{Path, State};
use bytes::Bytes;
use cellblock_interpreter::cell::Language;
use cellblock_interpreter::{Cell, mint};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::body::read;
use super::super::error::{Answer, Problem};
use super::super::place::PortTarget;
use super::super::sandbox::HeldSandbox;
use super::super::state::E2b;
use crate::bounded::BoundedName;
use crate::uuid::uuid;

/// Maximum number of contexts of a sandbox.
const MOST: usize = 64;

/// The contexts of a sandbox.
#[derive(Debug)]
pub(in super::super) struct Contexts {
    all: Mutex<Vec<Scope>>,
    /// Names of those that are in use in the kernel, by language; the first one has no name.
    current: Mutex<HashMap<&'static str, String>>,
    /// Directory in which contexts begin, unless a request names another.
    directory: String,
}

/// A context.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) id: String,
    /// Its language, as the client calls it.
    pub(super) spoken: String,
    pub(super) language: Language,
    pub(super) directory: String,
    /// Whether it is the one of its language that exists without having been created.
    pub(super) is_default: bool,
    /// Its name in the kernel, which is another one after a restart.
    pub(super) name: String,
    /// Whether it has been used since it was created or restarted.
    pub(super) is_used: bool,
    /// Number of its executions.
    pub(super) count: std::sync::Arc<AtomicU64>,
    /// Canceled by a restart, and by its end.
    pub(super) over: CancellationToken,
}

#[derive(Debug, Serialize)]
pub(super) struct ContextAnswer {
    id: String,
    language: String,
    cwd: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct NewScope {
    language: Option<BoundedName>,
    cwd: Option<BoundedName>,
}

impl Contexts {
    /// Those that exist from the start.
    pub(in super::super) fn new(directory: &str) -> Self {
        let python = Scope::new("python", Language::Python, directory, true);
        let javascript = Scope::new("javascript", Language::Javascript, directory, true);
        Self {
            directory: directory.to_owned(),
            all: Mutex::new(vec![python, javascript]),
            current: Mutex::default(),
        }
    }

    /// Those of a copy of the kernel.
    pub(in super::super) fn copy(&self) -> Self {
        let all = self.all().iter().map(Scope::copy).collect();
        Self {
            all: Mutex::new(all),
            current: Mutex::new(self.current().clone()),
            directory: self.directory.clone(),
        }
    }

    pub(super) fn all(&self) -> MutexGuard<'_, Vec<Scope>> {
        self.all.lock()
    }

    fn current(&self) -> MutexGuard<'_, HashMap<&'static str, String>> {
        self.current.lock()
    }

    /// Notes which context of a language is in use. Returns whether it is another one than before.
    pub(super) fn switch(&self, language: Language, name: &str) -> bool {
        let before = self.current().insert(language.name(), name.to_owned());
        before.unwrap_or_default() != name
    }

    /// Returns a context by its id.
    pub(super) fn find(&self, id: &str) -> Answer<Scope> {
        let found = self.all().iter().find(|it| it.id == id).cloned();
        found.ok_or_else(|| Problem::not_found(format!("Context {id} not found")))
    }

    /// Returns the default context of a language, which is created if it is new.
    pub(super) fn of(&self, spoken: &str) -> Answer<Scope> {
        let (spoken, language) = language(spoken)?;
        let mut all = self.all();
        if let Some(found) = all.iter().find(|it| it.is_default && it.language == language) {
            return Ok(found.clone());
        }
        let made = Scope::new(&spoken, language, &self.directory, true);
        all.push(made.clone());
        Ok(made)
    }

    /// Notes that a context is used. Returns whether it was before.
    pub(super) fn used(&self, id: &str) -> bool {
        let mut all = self.all();
        let found = all.iter_mut().find(|it| it.id == id);
        found.is_some_and(|it| std::mem::replace(&mut it.is_used, true))
    }

    /// The kernel is a new one, which knows none of them.
    pub(in super::super) fn forget_use(&self) {
        self.current().clear();
        for context in self.all().iter_mut() {
            context.is_used = false;
        }
    }
}

impl Scope {
    fn new(spoken: &str, language: Language, directory: &str, is_default: bool) -> Self {
        Self {
            id: uuid(),
            spoken: spoken.to_owned(),
            language,
            directory: directory.to_owned(),
            is_default,
            // The kernel begins in the context without a name.
            name: if is_default { String::new() } else { mint("") },
            is_used: false,
            count: std::sync::Arc::default(),
            over: CancellationToken::new(),
        }
    }

    /// The same in another kernel, which runs and counts its own cells.
    fn copy(&self) -> Self {
        Self {
            count: std::sync::Arc::new(AtomicU64::new(self.count.load(Ordering::Relaxed))),
            over: CancellationToken::new(),
            ..self.clone()
        }
    }

    fn answer(&self) -> ContextAnswer {
        ContextAnswer {
            id: self.id.clone(),
            language: self.spoken.clone(),
            cwd: self.directory.clone(),
        }
    }

    pub(super) fn next(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Reads a language by E2B's names for it.
fn language(spoken: &str) -> Answer<(String, Language)> {
    let spoken = match spoken.trim().to_ascii_lowercase().as_str() {
        "" => "python".to_owned(),
        "js" => "javascript".to_owned(),
        "ts" => "typescript".to_owned(),
        other => other.to_owned(),
    };
    let language = match spoken.as_str() {
        "python" => Language::Python,
        // E2B also runs TypeScript in its kernel of JavaScript. Here, a type annotation is a `SyntaxError`.
        "javascript" | "typescript" => Language::Javascript,
        "bash" => Language::Bash,
        "r" => Language::R,
        _ => {
            return Err(Problem::invalid(format!(
                "language `{spoken}` is not available; use python, javascript, typescript, bash, or r if \
                 the image has it"
            )));
        }
    };
    Ok((spoken, language))
}

pub(super) async fn create(open: PortTarget, body: Bytes) -> Answer<Json<ContextAnswer>> {
    let request: NewScope = read(&body)?;
    let (spoken, language) = language(request.language.as_ref().map_or("", |it| it.as_str()))?;
    let directory = request
        .cwd
        .map(BoundedName::into_inner)
        .filter(|it| !it.is_empty())
        .unwrap_or_else(|| open.held.kept.contexts.directory.clone());
    let context = Scope::new(&spoken, language, &directory, false);
    let mut all = open.held.kept.contexts.all();
    if all.len() >= MOST {
        let message = format!("the sandbox has {MOST} contexts, which is the limit; remove one of them");
        return Err(Problem::new(axum::http::StatusCode::TOO_MANY_REQUESTS, message));
    }
    all.push(context.clone());
    Ok(Json(context.answer()))
}

pub(super) async fn list(open: PortTarget) -> Json<Vec<ContextAnswer>> {
    let all = open.held.kept.contexts.all();
    Json(all.iter().map(Scope::answer).collect())
}

pub(super) async fn remove(
    State(e2b): State<E2b>,
    Path(id): Path<String>,
    open: PortTarget,
) -> Answer<Json<Value>> {
    let context = open.held.kept.contexts.find(&id)?;
    open.held.kept.contexts.all().retain(|it| it.id != id);
    context.over.cancel();
    drop_in_kernel(&e2b, &open.held, &context).await?;
    Ok(Json(Value::Null))
}

pub(super) async fn restart(
    State(e2b): State<E2b>,
    Path(id): Path<String>,
    open: PortTarget,
) -> Answer<Json<Value>> {
    let context = open.held.kept.contexts.find(&id)?;
    for it in open.held.kept.contexts.all().iter_mut().filter(|it| it.id == id) {
        it.over = CancellationToken::new();
        it.is_used = false;
        it.count = std::sync::Arc::default();
    }
    context.over.cancel();
    drop_in_kernel(&e2b, &open.held, &context).await?;
    Ok(Json(Value::Null))
}

/// Ends a context in the kernel, once what runs in it has ended.
async fn drop_in_kernel(e2b: &E2b, held: &HeldSandbox, context: &Scope) -> Answer<()> {
    if !context.is_used {
        return Ok(());
    }
    let turn = held.turn().await?;
    let _permit = e2b.host.cell(&held.kept.owner).await?;
    let arguments = json!([context.language.name(), context.name, context.directory]);
    let code = format!("__import__('cellblock_kernel.cell.contexts', fromlist=['drop']).drop(*{arguments})");
    turn.session.execute(hidden(code)).await?;
    Ok(())
}

/// A cell that shows nothing and leaves no files.
pub(super) fn hidden(code: impl Into<String>) -> Cell {
    Cell {
        echo: false,
        collect_files: false,
        ..Cell::new(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_e2bs_names() {
        for (spoken, expected) in [
            ("JS", "javascript"),
            ("ts ", "typescript"),
            ("", "python"),
            ("bash", "bash"),
        ] {
            assert_eq!(language(spoken).unwrap().0, expected);
        }
        let refused = language("java").unwrap_err().0.message;
        assert!(
            refused.starts_with("language `java` is not available"),
            "{refused}"
        );
    }
}

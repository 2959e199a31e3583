//! Templates: names that stand for the server's one image.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};

use super::super::error::{Answer, Problem};
use super::super::options::E2bOptions;
use super::super::place::Caller;
use super::super::state::E2b;

/// Names of E2B's base template, and of its code interpreter's.
pub(super) const TEMPLATES: [&str; 3] = ["base", "code-interpreter-v1", "code-interpreter-beta"];
/// Tag that a template has without any other.
const DEFAULT_TAG: &str = "default";

/// Says whether a template exists.
pub(super) async fn by_alias(
    State(e2b): State<E2b>,
    Caller(_): Caller,
    Path(alias): Path<String>,
) -> Answer<Json<Value>> {
    check(&alias, &e2b.options).map_err(|it| Problem::not_found(it.0.message))?;
    Ok(Json(json!({ "templateID": alias, "public": true })))
}

/// Rejects a template that is not served.
pub(super) fn check(template: &str, options: &E2bOptions) -> Answer<()> {
    let is_known = |name: &str| TEMPLATES.contains(&name) || options.templates.iter().any(|it| it == name);
    if template.is_empty() {
        return Err(Problem::invalid(
            "`templateID` is missing; use \"base\" or \"code-interpreter-v1\"",
        ));
    }
    match template.split_once(':') {
        _ if is_known(template) => Ok(()),
        Some((name, DEFAULT_TAG)) if is_known(name) => Ok(()),
        Some((name, tag)) if is_known(name) => Err(Problem::invalid(format!(
            "`templateID`: the tag `{tag}` of `{template}` does not exist: this server has one image, \
             without builds; use \"{name}\""
        ))),
        _ => Err(Problem::not_found(format!(
            "template '{template}' not found; this server has one image, which \"base\" and \
             \"code-interpreter-v1\" stand for, and the names that `dialects: {{e2b: {{templates: \
             […]}}}}` lists"
        ))),
    }
}

//! Names of templates: those that stand for the server's one image, and those that keys have built.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};

use super::super::error::{Answer, Problem};
use super::super::options::E2bOptions;
use super::super::place::Caller;
use super::super::snapshot::{DEFAULT_TAG, SnapshotLabel};
use super::super::state::E2b;

/// Names of E2B's base template, and of its code interpreter's.
pub(super) const TEMPLATES: [&str; 3] = ["base", "code-interpreter-v1", "code-interpreter-beta"];

/// Says whether a template or snapshot exists.
pub(super) async fn by_alias(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(alias): Path<String>,
) -> Answer<Json<Value>> {
    if let Some(snapshot) = e2b.snapshot(&owner, &alias) {
        let label = snapshot.kept.label.full();
        return Ok(Json(json!({ "templateID": label, "public": false })));
    }
    let name = SnapshotLabel::new(&alias);
    if !is_served(name.name(), &e2b.options) && e2b.has_template(&owner, &alias).await? {
        return Ok(Json(json!({ "templateID": name.name(), "public": false })));
    }
    check(&alias, &e2b.options).map_err(|it| Problem::not_found(it.0.message))?;
    Ok(Json(json!({ "templateID": alias, "public": true })))
}

/// Returns whether a name stands for the server's image.
pub(in super::super) fn is_served(name: &str, options: &E2bOptions) -> bool {
    TEMPLATES.contains(&name) || options.templates.iter().any(|it| it == name)
}

/// Rejects a template that is not served.
pub(super) fn check(template: &str, options: &E2bOptions) -> Answer<()> {
    let is_known = |name: &str| is_served(name, options);
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

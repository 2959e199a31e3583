//! Parts of E2B's API that are not served. Each says so by its name, so that a client does not guess.

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::any;

use super::super::error::{Answer, Problem};
use super::super::place::Caller;
use super::super::state::E2b;

/// Paths about a sandbox, what they are for, and what to do instead.
const OFF_SANDBOX: [(&str, &str, &str); 2] = [
    ("/sandboxes/{id}/logs", "logs of sandboxes", LOGS),
    ("/v2/sandboxes/{id}/logs", "logs of sandboxes", LOGS),
];
/// The same for all others.
const OFF: [(&str, &str, &str); 20] = [
    ("/default-templates", "E2B's own templates", DEFAULTS),
    ("/templates", "builds of templates", TEMPLATES),
    ("/v2/templates", "builds of templates", TEMPLATES),
    ("/v3/templates", "builds of templates", TEMPLATES),
    ("/templates/tags", "tags of templates", TEMPLATES),
    ("/v2/templates/{*rest}", "builds of templates", TEMPLATES),
    ("/volumes", "volumes", VOLUMES),
    ("/volumes/{*rest}", "volumes", VOLUMES),
    ("/volumecontent/{*rest}", "files of volumes", VOLUMES),
    ("/secrets", "secrets", SECRETS),
    ("/secrets/{*rest}", "secrets", SECRETS),
    ("/teams", "teams", KEYS),
    ("/teams/{*rest}", "teams", KEYS),
    ("/api-keys", "keys over this API", KEYS),
    ("/api-keys/{*rest}", "keys over this API", KEYS),
    ("/access-tokens", "access tokens", KEYS),
    ("/access-tokens/{*rest}", "access tokens", KEYS),
    ("/nodes", "nodes", KEYS),
    ("/nodes/{*rest}", "nodes", KEYS),
    ("/admin/{*rest}", "routes of administrators", KEYS),
];
const LOGS: &str = "read the output of commands";
const DEFAULTS: &str = "use \"base\" or \"code-interpreter-v1\", which stand for the server's image";
const TEMPLATES: &str = "the operator builds the image of the server with `cellblock image build`";
const VOLUMES: &str = "write files into the sandbox";
const SECRETS: &str = "pass values with `envs`";
const KEYS: &str = "the operator manages keys with `cellblock key`";

/// Answers requests about one template.
pub(super) async fn template() -> Problem {
    Problem::not_served("builds of templates", TEMPLATES)
}

pub(super) fn routes() -> Router<E2b> {
    let routes = OFF.iter().fold(Router::new(), |router, &(path, what, instead)| {
        router.route(path, any(async move || Problem::not_served(what, instead)))
    });
    OFF_SANDBOX.iter().fold(routes, |router, &(path, what, instead)| {
        let refuse = move |State(e2b): State<E2b>, Caller(owner): Caller, Path(id): Path<String>| async move {
            e2b.of(&owner, &id)?;
            Answer::<()>::Err(Problem::not_served(what, instead))
        };
        router.route(path, any(refuse))
    })
}

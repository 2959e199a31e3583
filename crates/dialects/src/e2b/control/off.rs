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
const OFF: [(&str, &str, &str); 13] = [
    ("/default-templates", "E2B's own templates", DEFAULTS),
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
const VOLUMES: &str = "mount the volume, and use the files of the sandbox";
const SECRETS: &str = "pass values with `envs`";
const KEYS: &str = "the operator manages keys with `cellblock key`";

/// Answers other requests about templates.
pub(in super::super) async fn template() -> Problem {
    let instead = "use version 2 of the SDK, which builds with `POST /v3/templates`";
    Problem::not_served("these requests about templates", instead)
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

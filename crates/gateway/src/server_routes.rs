//! `GET /v1/server`: what the server's operator wants to know of it, for administrators' keys.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use cellblock_interpreter::builder::BackendKind;
use cellblock_interpreter::walls::{self, WallOptions};
use serde::Serialize;

use crate::json::Json;
use crate::listing::ListAnswer;
use crate::problem::Problem;
use crate::state::{Administrator, Gateway};

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/server", get(read))
        .route("/v1/server/backends", get(backends))
}

/// The server.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ServerAnswer {
    /// `server`.
    object: &'static str,
    version: &'static str,
    /// Absent where code runs at a server that keeps no sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<PoolAnswer>,
    /// Images on this machine, the last that was built first.
    images: Vec<ImageAnswer>,
    /// Builds that run on this machine, the oldest first: of images, and of requirements of cells.
    builds: Vec<BuildAnswer>,
}

/// Sandboxes of the server.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct PoolAnswer {
    /// Number of sandboxes that wait for a session.
    ready: usize,
    /// Number of sandboxes that sessions have.
    in_use: usize,
    /// Number of sandboxes that sessions have taken since the server was started.
    taken: u64,
    /// Modules of the image that could not be imported, with reasons.
    failed_modules: Vec<String>,
}

/// An image.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ImageAnswer {
    id: String,
    name: String,
    /// Version of Python.
    python: String,
    /// Number of its packages.
    packages: usize,
    /// Size of its files.
    bytes: u64,
    /// Time of its build, in seconds since 1970.
    created_at: u64,
    /// Whether the server's sandboxes start from it.
    in_use: bool,
    /// Notes of its build.
    notes: Vec<String>,
}

/// A build that runs.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct BuildAnswer {
    /// Target of the build, such as `image default` or `requirements rapidfuzz`.
    what: String,
    /// Current stage, such as `installing packages`.
    stage: String,
    /// Number of bytes done in this stage, if it counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<u64>,
    /// Number of bytes known so far in this stage, which may grow.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// Time of its start, in seconds since 1970.
    began: u64,
}

/// A backend.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct BackendAnswer {
    name: BackendKind,
    /// Whether it works on the server's machine.
    works: bool,
    /// Whether the server uses it.
    in_use: bool,
    /// Version that it runs, or the part that is missing and how to get it.
    detail: String,
}

/// Returns the server's pool of sandboxes and its images. Only for an administrator's key.
#[utoipa::path(
    get, operation_id = "get_server", path = "/v1/server", tag = "operations",
    responses(
        (status = 200, description = "The server", body = crate::openapi::Server),
        (status = 403, description = "The key is not an administrator's", body = crate::openapi::Error),
    )
)]
pub(crate) async fn read(
    State(gateway): State<Gateway>,
    _: Administrator,
) -> Result<Json<ServerAnswer>, Problem> {
    let interpreter = gateway.interpreter().ok().cloned();
    let pool = interpreter.as_ref().map(|it| PoolAnswer {
        ready: it.ready_sandboxes(),
        in_use: it.sandboxes_in_use().len(),
        taken: it.sandboxes_taken(),
        failed_modules: it.failed_modules(),
    });
    let (images, builds) = match interpreter {
        Some(interpreter) => {
            let used = interpreter.image().digest;
            // It reads the disk.
            let listed =
                tokio::task::spawn_blocking(move || (interpreter.images(), interpreter.running_builds()))
                    .await;
            let (listed, builds) = listed.map_err(|error| Problem::internal("list the images", &error))?;
            let images = listed.into_iter().map(|it| ImageAnswer {
                in_use: it.id == used,
                id: it.id,
                name: it.name,
                python: it.python,
                packages: it.packages.len(),
                bytes: it.size,
                created_at: it.created,
                notes: it.notes,
            });
            let builds = builds.into_iter().map(|it| BuildAnswer {
                what: it.what,
                stage: it.stage,
                done: it.done,
                total: it.total,
                began: it.began,
            });
            (images.collect(), builds.collect())
        }
        None => (Vec::new(), Vec::new()),
    };
    Ok(Json(ServerAnswer {
        object: "server",
        version: env!("CARGO_PKG_VERSION"),
        pool,
        images,
        builds,
    }))
}

/// Tries each backend on the server's machine, as `cellblock doctor` does, which can take seconds.
/// Only for an administrator's key.
#[utoipa::path(
    get, operation_id = "list_backends", path = "/v1/server/backends", tag = "operations",
    responses(
        (status = 200, description = "The backends, from the weakest wall to the strongest",
            body = crate::openapi::BackendList),
        (status = 403, description = "The key is not an administrator's", body = crate::openapi::Error),
    )
)]
pub(crate) async fn backends(
    State(gateway): State<Gateway>,
    _: Administrator,
) -> Result<Json<ListAnswer<BackendAnswer>>, Problem> {
    let used = gateway
        .interpreter()
        .map_or("", |interpreter| interpreter.backend().name());
    let mut all = Vec::new();
    for name in BackendKind::ALL {
        let (works, detail) = match walls::probe(name, &WallOptions::default()).await {
            Ok(found) => (true, found),
            Err(error) => (false, error.to_string()),
        };
        all.push(BackendAnswer {
            name,
            works,
            in_use: name.name() == used,
            detail,
        });
    }
    Ok(Json(ListAnswer::new(all)))
}

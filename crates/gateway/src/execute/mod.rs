//! The sandbox server of one call: `POST /execute` and `GET /health`.

mod request;
mod run;

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use cellblock_agent::wire::ApiError;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

pub(crate) use request::ExecuteRequest;
pub(crate) use run::ExecuteAnswer;

use crate::problem::Problem;
use crate::state::{Caller, Gateway};
use request::Job;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/execute", post(execute))
        .route("/health", get(health))
}

/// State of the sandbox server.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Health {
    /// `healthy`.
    status: &'static str,
    /// `python`.
    mode: &'static str,
    /// Such as `Python 3.13.5`.
    runtime_version: String,
    /// Maximum number of concurrent executions.
    capacity: usize,
    /// Number of running executions.
    current_load: usize,
    /// Since the server was started.
    uptime_seconds: u64,
}

/// An error, in the format of the original API.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct ExecuteError {
    /// In words.
    error: String,
}

/// Runs a Python program in a fresh sandbox, which is destroyed afterward.
#[utoipa::path(
    post, operation_id = "execute", path = "/execute", tag = "sandbox server",
    request_body = ExecuteRequest,
    responses(
        (
            status = 200,
            description = "The result, even if the program failed, timed out or packages could \
                           not be installed",
            body = ExecuteAnswer
        ),
        (status = 400, description = "The request is invalid or larger than 10 MiB", body = ExecuteError),
        (status = 429, description = "The maximum number of programs is already running",
            body = ExecuteError),
        (status = 501, description = "Code runs on another server, which keeps nothing", body = ExecuteError),
        (status = 502, description = "The sandbox failed", body = ExecuteError),
        (status = 503, description = "No sandbox became available in time; see `Retry-After`",
            body = ExecuteError),
    )
)]
pub(crate) async fn execute(State(gateway): State<Gateway>, caller: Caller, body: Body) -> Response {
    let interpreter = match gateway.interpreter() {
        Ok(interpreter) => Arc::clone(interpreter),
        Err(error) => return refuse(StatusCode::NOT_IMPLEMENTED, &error.message),
    };
    // Before the body is looked at: who is full has no memory to spare for it.
    let Some(slot) = gateway.slots.take() else {
        let all = gateway.slots.all;
        let message = format!("at capacity ({all}/{all} concurrent executions)");
        let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, &message);
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("1"));
        return response;
    };
    let options = &gateway.options.execute;
    let bad = |message: &str| refuse(StatusCode::BAD_REQUEST, message);
    let body = match tokio::time::timeout(options.body_timeout, to_bytes(body, options.max_body)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            return bad(&format!(
                "the body cannot be read: it was cut, or has more than {} bytes, the limit; send less, or \
                 raise `execute.max_body` in the configuration",
                options.max_body
            ));
        }
        Err(_) => {
            let limit = options.body_timeout.as_secs_f64();
            return bad(&format!("the body did not come within {limit} seconds"));
        }
    };
    let job = match Job::read(&body, options) {
        Ok(job) => job,
        Err(message) => return bad(&message),
    };
    drop(body);
    let quotas = &gateway.quotas;
    let allowed = async {
        let sent = job.files.values().map(|content| content.len() as u64).sum();
        quotas.uploaded(&caller.owner, sent).await?;
        Ok::<_, ApiError>((
            quotas.sandbox(&caller.owner).await?,
            quotas.cell(&caller.owner).await?,
        ))
    };
    let permits = match allowed.await {
        Ok(permits) => permits,
        Err(error) => {
            let problem = Problem::from(error);
            return refuse(problem.status(), &problem.error().message);
        }
    };
    // In a task of its own, so that a client that leaves does not leave a sandbox behind; its place
    // is free when that is gone.
    let gone = CancellationToken::new();
    let _waits = gone.clone().drop_guard();
    let running = gateway.clone();
    let task = gateway.tasks.spawn(async move {
        let done = run::run(&running, &interpreter, (&caller.owner, job), gone).await;
        drop((permits, slot));
        done
    });
    let Ok(done) = task.await else {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, "the execution failed");
    };
    match done {
        Ok(Some(answer)) => Json(answer).into_response(),
        Ok(None) => refuse(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"),
        Err(error) => {
            let problem = Problem::from(error);
            let message = problem.error().message.clone();
            let mut response = refuse(problem.status(), &message);
            if problem.status() == StatusCode::SERVICE_UNAVAILABLE {
                response
                    .headers_mut()
                    .insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            response
        }
    }
}

/// State of the sandbox server.
#[utoipa::path(
    get, operation_id = "health", path = "/health", tag = "sandbox server",
    responses(
        (status = 200, description = "The server is available", body = Health),
        (status = 501, description = "Code runs on another server, which keeps nothing", body = ExecuteError),
    )
)]
pub(crate) async fn health(State(gateway): State<Gateway>) -> Response {
    let interpreter = match gateway.interpreter() {
        Ok(interpreter) => interpreter,
        Err(error) => return refuse(StatusCode::NOT_IMPLEMENTED, &error.message),
    };
    Json(Health {
        status: "healthy",
        mode: "python",
        runtime_version: format!("Python {}", interpreter.python_version()),
        capacity: gateway.slots.all,
        current_load: gateway.slots.taken(),
        uptime_seconds: gateway.slots.since.elapsed().as_secs(),
    })
    .into_response()
}

fn refuse(status: StatusCode, message: &str) -> Response {
    let error = message.to_owned();
    (status, Json(ExecuteError { error })).into_response()
}

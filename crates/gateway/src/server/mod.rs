//! The HTTP server: its routes, and what every one of them needs.

mod caller;
mod error;
mod json;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use cellblock_interpreter::Interpreter;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use caller::Caller;
pub use json::Json;

use crate::models::{self, Models};
use crate::options::Options;
use crate::records::Records;
use crate::{containers, execute, responses, sessions};

/// A gateway: what its routes share.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<Shared>);

/// What routes share.
#[derive(Debug)]
pub struct Shared {
    /// How it is set up.
    pub options: Options,
    /// What it remembers.
    pub records: Records,
    /// The models that it offers.
    pub models: Models,
    /// What runs code.
    pub interpreter: Interpreter,
    /// Told when it begins to stop.
    pub stopping: CancellationToken,
    /// What goes on without a client and is waited for at the end.
    pub tasks: TaskTracker,
}

impl std::ops::Deref for Gateway {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Gateway {
    /// A gateway that nobody can reach yet.
    pub fn new(options: Options, records: Records, models: Models, interpreter: Interpreter) -> Self {
        Self(Arc::new(Shared {
            options,
            records,
            models,
            interpreter,
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }))
    }

    /// Its routes.
    pub fn router(&self) -> Router {
        Router::new()
            .merge(responses::routes())
            .merge(models::routes())
            .merge(containers::routes())
            .merge(sessions::routes())
            .merge(execute::routes())
            .layer(DefaultBodyLimit::max(self.options.max_body))
            .with_state(self.clone())
    }

    /// Answers on a listener until it is told to stop; then lets what runs come to its end.
    pub async fn serve(&self, listener: TcpListener) -> std::io::Result<()> {
        let stopping = self.stopping.clone();
        axum::serve(listener, self.router())
            .with_graceful_shutdown(async move { stopping.cancelled().await })
            .await?;
        self.tasks.close();
        self.tasks.wait().await;
        Ok(())
    }

    /// Begins to stop.
    pub fn stop(&self) {
        self.stopping.cancel();
    }
}

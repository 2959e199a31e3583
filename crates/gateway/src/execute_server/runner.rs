//! A server that keeps nothing as a turn's runner.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::client::{Execute, ExecuteServer};
use super::show::show;
use crate::turn::{Code, Ran, Runner};

/// Runs each call of a turn by itself.
#[derive(Clone, Debug)]
pub struct ExecuteRunner {
    server: ExecuteServer,
    container: String,
    timeout: Duration,
    stops: watch::Sender<u64>,
}

impl ExecuteRunner {
    /// Runs code at a server, each call for at most `timeout`. The container's id names no place: nothing is kept in it.
    pub fn new(server: ExecuteServer, container: String, timeout: Duration) -> Self {
        Self {
            server,
            container,
            timeout,
            stops: watch::channel(0).0,
        }
    }

    async fn ran(&self, code: Code) -> Ran {
        let execute = Execute {
            code: code.code,
            requirements: code.requirements,
            timeout: self.timeout,
            ..Execute::default()
        };
        match self.server.run(&execute).await {
            Ok(executed) => {
                let shown = show(&executed, self.timeout.as_secs_f64());
                Ran {
                    status: shown.status,
                    outputs: shown.outputs,
                    result: shown.result,
                }
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "run code of a model");
                Ran::refused(error.told())
            }
        }
    }
}

impl Runner for ExecuteRunner {
    fn container(&self) -> &str {
        &self.container
    }

    fn run(&self, code: Code) -> BoxFuture<'_, Ran> {
        Box::pin(async move {
            let mut stops = self.stops.subscribe();
            tokio::select! {
                ran = self.ran(code) => ran,
                // The server notices that nobody listens, or that the code's time is over.
                _ = stops.changed() => Ran::refused("The code was given up: nobody waits for it."),
            }
        })
    }

    fn stop(&self) {
        self.stops.send_modify(|stops| *stops += 1);
    }
}

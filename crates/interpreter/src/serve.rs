//! Giving sandboxes to another Cellblock, whose sessions they then are.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use cellblock_image::{AuditReport, Manifest};
use cellblock_remote::serve::{Host, SuspendedRoom, serve, serve_machine};
use cellblock_remote::{MuxTransport, Pulse, RemoteRefusal};
use cellblock_sandbox::backend::BoxFuture;
use cellblock_sandbox::jail::error::chain;
use cellblock_sandbox::jail::protection::Report;
use cellblock_sandbox::pool::Lease;

use crate::error::{Error, Result};
use crate::interpreter::Interpreter;
use crate::session::spool::claim;
use crate::shared::InterpreterState;
use cellblock_sandbox::Limits;

/// Terms of a client.
#[derive(Clone, Debug, Default)]
pub struct ServeTerms {
    /// The most that a client may ask for in one sandbox; by default the interpreter's own limits.
    pub most: Option<Limits>,
    /// Pulse by which a client is known to be there.
    pub pulse: Pulse,
    /// Whether the client may send layers, whose content is then not checked: only in a machine
    /// that is for this client alone.
    pub takes_layers: bool,
}

impl Interpreter {
    /// Serves a sandbox to the client of a transport, which must have been authorized, until the
    /// connection ends. What was held for it is given back when this completes or is dropped. The
    /// error says why a connection was cut.
    pub async fn serve<T, E>(&self, transport: T, terms: ServeTerms) -> Result<()>
    where
        T: MuxTransport<E>,
        E: std::fmt::Display + Send + 'static,
    {
        let (host, pulse) = self.host(terms);
        Ok(serve(transport, host, pulse).await?)
    }

    /// Serves the only client of a machine, as [`serve`](Self::serve) does. The client can suspend
    /// its sandbox, which is then returned for its next connection.
    pub async fn serve_machine<T, E>(
        &self,
        transport: T,
        terms: ServeTerms,
        suspended: Option<SuspendedRoom>,
    ) -> Result<Option<SuspendedRoom>>
    where
        T: MuxTransport<E>,
        E: std::fmt::Display + Send + 'static,
    {
        let (host, pulse) = self.host(terms);
        Ok(serve_machine(transport, host, pulse, suspended).await?)
    }

    fn host(&self, terms: ServeTerms) -> (Arc<dyn Host>, Pulse) {
        let shared = Arc::clone(self.shared());
        let spool = shared.base.spool();
        let spool = match claim(&spool) {
            Ok(lock) => Some((spool, lock)),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "datasets of remote clients are copied, not mounted");
                None
            }
        };
        let most = terms.most.unwrap_or_else(|| shared.limits.clone());
        let takes_layers = terms.takes_layers;
        let host = Arc::new(InterpreterView {
            shared,
            most,
            spool,
            takes_layers,
        });
        (host, terms.pulse)
    }
}

/// An interpreter as others see it.
#[derive(Debug)]
struct InterpreterView {
    shared: Arc<InterpreterState>,
    most: Limits,
    /// With the lock that keeps other processes from sweeping it.
    spool: Option<(PathBuf, File)>,
    takes_layers: bool,
}

impl Host for InterpreterView {
    fn manifest(&self) -> &Manifest {
        self.shared.base.manifest()
    }

    fn report(&self) -> Report {
        self.shared.backend.report()
    }

    fn most(&self) -> &Limits {
        &self.most
    }

    fn spool(&self) -> Option<PathBuf> {
        self.spool.as_ref().map(|(folder, _)| folder.clone())
    }

    fn lease<'a>(&'a self, limits: &'a Limits) -> BoxFuture<'a, Result<Lease, RemoteRefusal>> {
        Box::pin(async { self.shared.lease(limits, true).await.map_err(refusal) })
    }

    fn returned(&self, sandbox: &str) {
        self.shared.returned(sandbox);
    }

    fn warmed(&self) -> BoxFuture<'_, Result<Vec<String>, RemoteRefusal>> {
        Box::pin(async {
            self.shared.backend.warmed().await?;
            Ok(self.shared.base.failed_modules())
        })
    }

    fn audit(&self) -> BoxFuture<'_, Result<AuditReport, RemoteRefusal>> {
        Box::pin(async { self.shared.base.audit().await.map_err(refusal) })
    }

    fn layers(&self) -> Option<PathBuf> {
        // The id names a directory in it, which need not exist.
        let found = self.takes_layers.then(|| self.shared.base.layer_directory(""));
        found.flatten()
    }

    fn layer<'a>(&'a self, requirements: &'a [String]) -> BoxFuture<'a, Result<String, RemoteRefusal>> {
        Box::pin(async { self.shared.lend_layer(requirements).await.map_err(refusal) })
    }
}

fn refusal(error: Error) -> RemoteRefusal {
    match error {
        Error::Sandbox(error) => error.into(),
        other => RemoteRefusal::new(other.blame(), other.retry(), chain(&other)),
    }
}

//! An interpreter whose sandboxes another Cellblock or another process has.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellblock_artifact::Store;
use cellblock_image::layer::RequirementOptions;
use cellblock_image::{AuditReport, Manifest, OpenImage};
pub use cellblock_remote::*;
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Backend, BoxFuture};
use cellblock_sandbox::pool::PoolConfig;
use parking_lot::{Mutex, MutexGuard};

use crate::base::{Base, HeldLayer, LocalBase, count_layer};
use crate::connector::FetchAllowance;
use crate::error::Result;
use crate::interpreter::Interpreter;
pub use crate::serve::ServeTerms;
use crate::shared::InterpreterState;

/// Parts of an interpreter whose sandboxes another Cellblock has.
#[derive(Debug)]
pub struct Remote {
    /// Backend that has the sandboxes.
    pub backend: RemoteBackend,
    /// Limits of sandboxes and cells; those of sandboxes must be within what the other side gives.
    pub limits: Limits,
    /// Number of sandboxes that are kept ready, each with a connection.
    pub pool: PoolConfig,
    /// Store of artifacts, on this side.
    pub store: Store,
    /// A directory of this side for datasets on their way to a sandbox, which other processes of
    /// the same user may share.
    pub spool: PathBuf,
}

impl Interpreter {
    /// Starts with the sandboxes of another Cellblock, whose image they start from.
    pub fn start_remote(remote: Remote) -> Self {
        let backend = Arc::new(remote.backend);
        let base = Box::new(RemoteBase {
            backend: Arc::clone(&backend),
            spool: remote.spool,
            installed: Mutex::default(),
        });
        Self::over(InterpreterState::new(
            backend,
            base,
            remote.limits,
            remote.pool,
            remote.store,
        ))
    }

    /// Starts with the sandboxes of another process of this machine that start from `image`.
    /// Packages are installed, and the image is audited, by this process; modules that failed to
    /// import are not reported. The other process keeps sandboxes ready, not this one.
    pub fn start_local(
        backend: impl Backend + 'static,
        image: OpenImage,
        limits: Limits,
        acquire_timeout: Duration,
        store: Store,
    ) -> Self {
        let base = Box::new(LocalBase { image, process: None });
        let pool = PoolConfig {
            ready: 0,
            acquire_timeout,
        };
        Self::over(InterpreterState::new(
            Arc::new(backend),
            base,
            limits,
            pool,
            store,
        ))
    }
}

/// An image at the other end of connections. What is to be shown in a sandbox there is kept in
/// `spool` on this side.
#[derive(Debug)]
struct RemoteBase {
    backend: Arc<RemoteBackend>,
    spool: PathBuf,
    /// Requirements that were installed there for this process.
    installed: Mutex<HashSet<Vec<String>>>,
}

/// Maximum number of sets of requirements that are remembered as installed.
const MAX_INSTALLED: usize = 10_000;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl Base for RemoteBase {
    fn manifest(&self) -> &Manifest {
        self.backend.manifest()
    }

    fn spool(&self) -> PathBuf {
        self.spool.clone()
    }

    fn failed_modules(&self) -> Vec<String> {
        self.backend.failed_modules()
    }

    fn audit(&self) -> BoxFuture<'_, Result<AuditReport>> {
        Box::pin(async { Ok(self.backend.audit().await?) })
    }

    fn layer<'a>(
        &'a self,
        requirements: &'a [String],
        _options: &'a RequirementOptions,
        allowance: Option<&'a dyn FetchAllowance>,
    ) -> BoxFuture<'a, Result<HeldLayer>> {
        Box::pin(async move {
            let mut wanted = requirements.to_vec();
            wanted.sort();
            // The other side does not say whether it has them already.
            if !lock(&self.installed).contains(&wanted) {
                count_layer(allowance).await?;
            }
            let id = self.backend.layer(requirements).await?;
            let mut installed = lock(&self.installed);
            if installed.len() < MAX_INSTALLED {
                installed.insert(wanted);
            }
            Ok(HeldLayer::elsewhere(id))
        })
    }
}

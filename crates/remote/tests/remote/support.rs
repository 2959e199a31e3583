//! A server of the process backend's sandboxes in this process, and clients of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellblock_image::{AuditReport, Manifest};
use cellblock_remote::serve::{Host, serve};
use cellblock_remote::{Pulse, RemoteBackend, RemoteConfig, RemoteRefusal};
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::process::ProcessBackend;
use cellblock_sandbox::backend::{Backend, BoxFuture, Kernel, Sandbox};
use cellblock_sandbox::jail::protection::{Demands, Report};
use cellblock_sandbox::pool::{Lease, create};
use cellblock_testkit::WebSockets;
use parking_lot::Mutex;

pub(crate) use local::{End, MIB, block_on, ended, execute, finish, limits, shows, start, until};

#[path = "../../../sandbox/tests/it/support.rs"]
#[expect(
    dead_code,
    reason = "shared with the other test binaries, which use all of it"
)]
mod local;

pub(crate) const KEY: &str = "sk-of-the-tests";

/// Short enough for a test that waits for a silence, long enough for a busy machine.
pub(crate) const PULSE: Pulse = Pulse {
    every: Duration::from_millis(500),
    limit: Duration::from_secs(8),
};

/// A server's resources, and the requests that it received.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) backend: ProcessBackend,
    manifest: Manifest,
    most: Limits,
    spool: tempfile::TempDir,
    pub(crate) lent: Mutex<Vec<String>>,
    /// Reasons that connections were cut.
    pub(crate) cuts: Mutex<Vec<String>>,
}

impl Host for Site {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn report(&self) -> Report {
        self.backend.report()
    }

    fn most(&self) -> &Limits {
        &self.most
    }

    fn spool(&self) -> Option<PathBuf> {
        Some(self.spool.path().to_owned())
    }

    fn lease<'a>(&'a self, limits: &'a Limits) -> BoxFuture<'a, Result<Lease, RemoteRefusal>> {
        Box::pin(async {
            let lease = create(&self.backend, limits).await?;
            self.lent.lock().push(lease.sandbox.id().to_owned());
            Ok(lease)
        })
    }

    fn returned(&self, sandbox: &str) {
        self.lent.lock().retain(|it| it != sandbox);
    }

    fn warmed(&self) -> BoxFuture<'_, Result<Vec<String>, RemoteRefusal>> {
        Box::pin(async {
            self.backend.warmed().await?;
            Ok(self.backend.failed_modules())
        })
    }

    fn audit(&self) -> BoxFuture<'_, Result<AuditReport, RemoteRefusal>> {
        Box::pin(async { Ok(self.manifest.audit.clone()) })
    }

    fn layer<'a>(&'a self, _: &'a [String]) -> BoxFuture<'a, Result<String, RemoteRefusal>> {
        Box::pin(async { Ok("f".repeat(64)) })
    }
}

/// A server, and a client of it.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) site: Arc<Site>,
    pub(crate) server: WebSockets,
    pub(crate) client: RemoteBackend,
}

impl Backend for Pair {
    fn name(&self) -> &'static str {
        self.client.name()
    }

    fn report(&self) -> Report {
        self.client.report()
    }

    fn create<'a>(
        &'a self,
        limits: &'a Limits,
    ) -> BoxFuture<'a, cellblock_sandbox::Result<Box<dyn Sandbox>>> {
        self.client.create(limits)
    }

    fn warmed(&self) -> BoxFuture<'_, cellblock_sandbox::Result<()>> {
        self.client.warmed()
    }
}

pub(crate) async fn backend() -> Pair {
    let site = Arc::new(site().await);
    let server = serving(&site).await;
    let client = RemoteBackend::start(config(&server.url()), Demands::default())
        .await
        .unwrap();
    client.warmed().await.unwrap();
    Pair { site, server, client }
}

pub(crate) async fn site() -> Site {
    let image = local::image().await;
    Site {
        backend: local::backend().await,
        manifest: image.manifest().clone(),
        most: Limits::default(),
        spool: tempfile::tempdir_in(cellblock_testkit::target_dir()).unwrap(),
        lent: Mutex::default(),
        cuts: Mutex::default(),
    }
}

pub(crate) async fn manifest() -> Manifest {
    local::image().await.manifest().clone()
}

pub(crate) async fn serving(site: &Arc<Site>) -> WebSockets {
    let site = Arc::clone(site);
    let serve = move |messages| {
        let site = Arc::clone(&site);
        async move {
            let host: Arc<dyn Host> = Arc::<Site>::clone(&site);
            if let Err(error) = serve(messages, host, PULSE).await {
                site.cuts.lock().push(error.to_string());
            }
        }
    };
    WebSockets::start(KEY, serve).await.unwrap()
}

pub(crate) fn config(url: &str) -> RemoteConfig {
    RemoteConfig::new(url)
        .unwrap()
        .with_key(KEY)
        .unwrap()
        .with_pulse(PULSE)
}

/// Creates a sandbox with a kernel that has run a cell.
pub(crate) async fn lease(pair: &Pair) -> Lease {
    let mut lease = create(pair, &Limits::default()).await.unwrap();
    assert_eq!(execute(&mut lease.kernel, "6 * 7").await, shows(42));
    lease
}

/// Reads everything from a pipe of a kernel until `enough`.
pub(crate) async fn reads(kernel: &Kernel, enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    while !enough(&all) {
        kernel.stdout.readable().await.unwrap();
        match kernel.stdout.try_read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => all.extend_from_slice(&buffer[..length]),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
    all
}

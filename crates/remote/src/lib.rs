//! The remote backend: sandboxes of another Cellblock, each over one WebSocket, or over a Unix socket
//! if it is another process of this machine.
//!
//! ```text
//! Kernel, Guest ─ sockets, pipes ─ RemoteSandbox ─ mux ══ WebSocket ══ mux ─ serve ─ a sandbox of a local backend
//! ```
//!
//! A sandbox lives as long as its connection: when that ends, or nothing is received for a while,
//! the server destroys it and the client's sandbox is gone. Connecting is retried; requests on a
//! connection are not, so nothing runs twice. Neither side trusts the other: messages, streams and
//! records are limited, and invalid ones end the connection.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cellblock_sandbox::jail::protection::{Demand, Demands, Protection, ProtectionStatus, Report};
use parking_lot::Mutex;

use cellblock_sandbox::backend::{Backend, BoxFuture, Lack, Sandbox};
use cellblock_sandbox::{Error, Result};

use cellblock_image::{AuditReport, Manifest};
use cellblock_sandbox::Limits;

mod connect;
mod error;
mod fleet;
mod interrupts;
mod kernel;
mod link;
mod local;
mod mux;
mod record;
mod refusal;
mod sandbox;
pub mod serve;
mod suspend;
mod wire;

pub use connect::RemoteConfig;
pub use error::{http_status, lost_process, unreachable};
pub use fleet::{FleetConfig, StartServer, StartedServer};
pub use local::{END, LocalConfig, LocalMachine, OpenStream, OpenedStream, SavedMachine, framed};
pub use mux::{MuxTransport, Pulse};
pub use refusal::RemoteRefusal;
pub use wire::MAX_MESSAGE;

use link::{Link, unexpected};
use sandbox::RemoteSandbox;
use wire::{Hello, RemoteAnswer, RemoteRequest};

/// Maximum time for a server to describe its image.
const DESCRIBE_LIMIT: Duration = Duration::from_secs(30);
/// Maximum time for its template to import the image's libraries.
const WARM_LIMIT: Duration = Duration::from_mins(4);
/// Maximum time for installing packages there, or auditing an image.
const LAYER_LIMIT: Duration = Duration::from_mins(10);

/// Creates sandboxes by requesting them from another Cellblock.
#[derive(Debug)]
pub struct RemoteBackend {
    place: SandboxLocation,
    /// The first connection to a local process or to a server of a fleet, for the first sandbox.
    /// One to a shared server would count against the key's quota while it is unused.
    first: Mutex<Option<Link>>,
    demands: Demands,
    manifest: Manifest,
    /// Last report of the server.
    report: Mutex<Report>,
    failed_modules: Mutex<Vec<String>>,
}

/// Number of sandboxes of all backends of this process, for their names.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Location of the sandboxes.
#[derive(Debug)]
enum SandboxLocation {
    Server(RemoteConfig),
    Local(LocalConfig),
    Fleet(FleetConfig),
}

impl RemoteBackend {
    /// Connects once and learns about the server's sandboxes. Fails if they lack a protection that
    /// `demands` requires.
    pub async fn start(config: RemoteConfig, demands: Demands) -> Result<Self> {
        let (link, hello) = config.connect().await?;
        satisfies(&demands, &hello.report)?;
        let manifest = described(&link, &hello).await?;
        Ok(Self::new(
            SandboxLocation::Server(config),
            None,
            demands,
            manifest,
            hello.report,
        ))
    }

    /// Starts one server of a fleet, learns about its sandboxes, and keeps it for the first
    /// sandbox. Fails if they lack a protection that `demands` requires.
    pub async fn start_fleet(fleet: FleetConfig, demands: Demands) -> Result<Self> {
        let (link, hello) = fleet.connect().await?;
        satisfies(&demands, &hello.report)?;
        let manifest = described(&link, &hello).await?;
        let failed = import_libraries(&link).await?;
        let backend = Self::new(
            SandboxLocation::Fleet(fleet),
            Some(link),
            demands,
            manifest,
            hello.report,
        );
        backend.learn(&failed);
        Ok(backend)
    }

    /// Connects to another process of this machine, whose sandboxes start from the image that
    /// `manifest` describes. Fails if they start from another one, or lack a protection that
    /// `demands` requires.
    pub async fn start_local(local: LocalConfig, demands: Demands, manifest: Manifest) -> Result<Self> {
        let (link, hello) = local.connect().await?;
        satisfies(&demands, &hello.report)?;
        if manifest.id != hello.image {
            return Err(Error::protocol("remote", "its sandboxes are of another image"));
        }
        Ok(Self::new(
            SandboxLocation::Local(local),
            Some(link),
            demands,
            manifest,
            hello.report,
        ))
    }

    fn new(
        place: SandboxLocation,
        first: Option<Link>,
        demands: Demands,
        manifest: Manifest,
        report: Report,
    ) -> Self {
        Self {
            place,
            first: Mutex::new(first),
            demands,
            manifest,
            report: Mutex::new(report),
            failed_modules: Mutex::default(),
        }
    }

    /// Returns the image of its sandboxes.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the server's address.
    pub fn address(&self) -> String {
        match &self.place {
            SandboxLocation::Server(config) => config.address(),
            SandboxLocation::Local(local) => local.name.clone(),
            SandboxLocation::Fleet(fleet) => fleet.name.clone(),
        }
    }

    /// Returns the image's modules that failed to import there, with reasons; empty until
    /// [`warmed`](Backend::warmed).
    pub fn failed_modules(&self) -> Vec<String> {
        let failed = self.failed_modules.lock();
        failed.clone()
    }

    /// Returns the image's network clients.
    pub async fn audit(&self) -> Result<AuditReport> {
        let link = self.connect().await?;
        match link
            .ask(RemoteRequest::Audit {}, "audit its image", LAYER_LIMIT)
            .await?
        {
            RemoteAnswer::Audit { report } => Ok(report),
            _ => Err(unexpected()),
        }
    }

    /// Returns the id of a layer with these requirements, which the server resolves and installs.
    pub async fn layer(&self, requirements: &[String]) -> Result<String> {
        let link = self.connect().await?;
        let ask = RemoteRequest::Layer {
            requirements: requirements.to_vec(),
        };
        match link.ask(ask, "install packages", LAYER_LIMIT).await? {
            RemoteAnswer::Layer { id } if cellblock_image::layer::is_layer(&id) => Ok(id),
            _ => Err(unexpected()),
        }
    }

    /// Connects to the server and checks that its image has not changed.
    async fn connect(&self) -> Result<Link> {
        let (link, Hello { image, report, .. }) = match &self.place {
            SandboxLocation::Server(config) => config.connect().await?,
            SandboxLocation::Local(local) => local.connect().await?,
            SandboxLocation::Fleet(fleet) => fleet.connect().await?,
        };
        if image != self.manifest.id {
            return Err(Error::protocol(
                "remote",
                "its image has changed since the start; restart to use the new one",
            ));
        }
        satisfies(&self.demands, &report)?;
        *self.report.lock() = report;
        Ok(link)
    }

    async fn make(&self, limits: &Limits) -> Result<Box<dyn Sandbox>> {
        let first = { self.first.lock().take() };
        let link = match first.filter(|link| link.lost().is_none()) {
            Some(link) => link,
            None => self.connect().await?,
        };
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let local = match &self.place {
            SandboxLocation::Local(local) => Some(local.clone()),
            SandboxLocation::Server(_) | SandboxLocation::Fleet(_) => None,
        };
        let sandbox = RemoteSandbox::create(link, format!("remote-{number}"), limits, local).await?;
        Ok(Box::new(sandbox))
    }

    async fn warm(&self) -> Result<()> {
        // Each server of a fleet imports them before it is ready; asking would start another one.
        if !matches!(self.place, SandboxLocation::Fleet(_)) {
            let link = self.connect().await?;
            self.learn(&import_libraries(&link).await?);
        }
        Ok(())
    }

    fn learn(&self, failed: &[String]) {
        let mut known = self.failed_modules.lock();
        *known = failed.iter().map(|it| refusal::told(it)).collect();
    }
}

impl Backend for RemoteBackend {
    fn name(&self) -> &'static str {
        match &self.place {
            SandboxLocation::Server(_) => "remote",
            SandboxLocation::Local(local) => local.backend,
            SandboxLocation::Fleet(fleet) => fleet.backend,
        }
    }

    fn wall(&self) -> Option<&str> {
        match &self.place {
            SandboxLocation::Server(_) => None,
            SandboxLocation::Local(local) => local.wall.as_deref(),
            SandboxLocation::Fleet(fleet) => fleet.wall.as_deref(),
        }
    }

    fn lacks(&self) -> &'static [Lack] {
        match &self.place {
            SandboxLocation::Server(_) | SandboxLocation::Fleet(_) => &[Lack::Checkpoints, Lack::Forks],
            SandboxLocation::Local(local) => local.lacks,
        }
    }

    fn suspends(&self) -> bool {
        matches!(&self.place, SandboxLocation::Local(local) if local.suspends)
    }

    fn report(&self) -> Report {
        let report = self.report.lock();
        report.clone()
    }

    fn create<'a>(&'a self, limits: &'a Limits) -> BoxFuture<'a, Result<Box<dyn Sandbox>>> {
        Box::pin(self.make(limits))
    }

    fn warmed(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.warm())
    }
}

/// Returns the image that a server describes.
async fn described(link: &Link, hello: &Hello) -> Result<Manifest> {
    let answer = link
        .ask(RemoteRequest::Describe {}, "describe its image", DESCRIBE_LIMIT)
        .await?;
    let RemoteAnswer::Image { manifest } = answer else {
        return Err(unexpected());
    };
    let manifest = Manifest::parse(manifest.to_string().as_bytes())
        .map_err(|reason| Error::protocol("remote", reason))?;
    if manifest.id != hello.image {
        return Err(Error::protocol("remote", "its description is of another image"));
    }
    Ok(manifest)
}

/// Waits until a server's kernels start without importing, and returns the modules that failed.
async fn import_libraries(link: &Link) -> Result<Vec<String>> {
    let asked = link.ask(RemoteRequest::Warm {}, "import the image's libraries", WARM_LIMIT);
    match asked.await? {
        RemoteAnswer::Warm { failed_modules } => Ok(failed_modules),
        _ => Err(unexpected()),
    }
}

/// Checks whether the server's report meets the policy.
fn satisfies(demands: &Demands, report: &Report) -> Result<()> {
    for protection in Protection::ALL {
        if demands.of(protection) != Demand::Strict || report.is_active(protection) {
            continue;
        }
        let why = match report.0.get(&protection) {
            Some(ProtectionStatus::Degraded { reason }) => refusal::told(reason),
            Some(ProtectionStatus::Disabled) => "its policy disables it".to_owned(),
            Some(ProtectionStatus::Active) | None => "it does not report it".to_owned(),
        };
        return Err(Error::missing_protection(format!(
            "protection `{protection}` is not active at the remote: {why}"
        )));
    }
    Ok(())
}

//! Sandboxes in pods of a Kubernetes cluster: one `SandboxClaim` of agent-sandbox for each.
//!
//! ```text
//! RemoteBackend ─ claim ─ API server ─ agent-sandbox ─ pod
//!       └───────────── WebSocket /v1/sandbox ───────────┘
//! ```
//!
//! Only the claim is here; a pod is used over the protocol of [`cellblock_remote`]. A claim belongs
//! to the connection to its pod and is deleted with it, on every path: failure, cancellation, and
//! the end of this process included. What a killed process leaves behind is deleted by the next one
//! that runs, and by the cluster itself once the claim's shutdown time has passed.

mod access;
mod api;
mod claim;
mod claims;
mod condition;
mod config;
mod doctor;
mod error;
mod holder;
mod pool;
mod resources;
mod retry;
mod wait;

pub use access::{Permission, permissions};
pub use cellblock_sandbox::backend::{KubernetesOptions, Serves};
pub use claims::{ClaimedPod, Claims, HeldClaim};
pub use doctor::{Check, doctor};
pub use error::ClaimError;
pub use resources::{SandboxClaim, SandboxClaimSpec, SandboxClaimStatus};

use std::sync::Arc;
use std::time::Duration;

use cellblock_remote::{FleetConfig, RemoteBackend, RemoteConfig, StartedServer};
use cellblock_sandbox::error::Retry;
use cellblock_sandbox::jail::protection::Demands;
use cellblock_sandbox::{Error, Result};
use tokio::time::sleep;

/// The backend's name.
pub const NAME: &str = "kubernetes";
/// Pause before another attempt to start.
const PAUSE: Duration = Duration::from_secs(2);

/// Options for connecting the gateway to a pod.
#[derive(Clone, Default)]
pub struct PodAccess {
    /// Key that pods require, sent as `Authorization: Bearer …`.
    pub key: Option<String>,
    /// Permits code, data and key to travel unencrypted between this machine and pods.
    pub allow_http: bool,
}

impl std::fmt::Debug for PodAccess {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PodAccess")
            .field("key", &self.key.as_ref().map(|_| "…"))
            .field("allow_http", &self.allow_http)
            .finish()
    }
}

/// Claims a pod, learns about its sandboxes, and returns the backend, which claims one for each
/// further sandbox.
pub async fn start(
    options: &KubernetesOptions,
    access: PodAccess,
    demands: Demands,
) -> Result<RemoteBackend> {
    let claims = Claims::start(options).await?;
    RemoteBackend::start_fleet(fleet(claims, access), demands).await
}

/// Does the same, and repeats what fails for reasons that may pass: no pod is ready, the API server
/// cannot be reached. `report` gets each such failure. A failure that does not pass, such as a
/// missing permission, is returned.
pub async fn start_patiently(
    options: &KubernetesOptions,
    access: PodAccess,
    demands: &Demands,
    report: impl Fn(&Error),
) -> Result<RemoteBackend> {
    let claims = repeat(&report, || Claims::start(options)).await?;
    let fleet = fleet(claims, access);
    repeat(&report, || {
        RemoteBackend::start_fleet(fleet.clone(), demands.clone())
    })
    .await
}

async fn repeat<T, F>(report: &impl Fn(&Error), attempt: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    loop {
        match attempt().await {
            Err(error) if error.retry() != Retry::Never => {
                report(&error);
                sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}

/// The pods that these claims start, one for each sandbox.
fn fleet(claims: Arc<Claims>, access: PodAccess) -> FleetConfig {
    FleetConfig {
        name: claims.source(),
        backend: NAME,
        wall: Some(format!("Kubernetes, {}", claims.source())),
        start: Arc::new(move || {
            let (claims, access) = (Arc::clone(&claims), access.clone());
            Box::pin(async move {
                let ClaimedPod { url, claim } = claims.claim().await?;
                Ok(StartedServer {
                    config: connection(&url, &access)?,
                    keep: Box::new(claim),
                })
            })
        }),
    }
}

fn connection(url: &str, access: &PodAccess) -> Result<RemoteConfig> {
    let mut config = RemoteConfig::new(&format!("{url}/v1/sandbox"))?;
    if let Some(key) = &access.key {
        config = config.with_key(key)?;
    }
    Ok(if access.allow_http {
        config.allow_plain()
    } else {
        config
    })
}

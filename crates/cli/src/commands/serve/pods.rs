//! Engine that runs code in pods of a cluster.

use std::sync::Arc;

use cellblock_gateway::execute_server::{ExecuteServer, ExecuteServerOptions, StartedExecuteServer};
use cellblock_gateway::server::{self, StartReason};
use cellblock_gateway::{Engine, Options, RemoteEngine};
use cellblock_image::Home;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::remote::Remote;
use cellblock_kubernetes::{ClaimError, Claims, PodAccess, Serves};
use cellblock_sandbox::Error as SandboxError;
use cellblock_sandbox::jail::error::chain;
use tokio::net::TcpListener;

use super::SERVES_NOTHING;
use crate::artifact_store;
use crate::config::{LoadedConfig, PodSite};
use crate::error::{Error, Result};

/// A server that has its port, and no pod yet.
pub(super) struct StartingServer<'a> {
    pub(super) listener: &'a TcpListener,
    pub(super) options: &'a Options,
    /// Announcement of the address, which is made once.
    pub(super) announce: &'a dyn Fn(),
}

/// Claims the first pod, and returns the engine that claims one for each sandbox, or for each call.
/// While there is no pod, the server answers that it is not ready.
pub(super) async fn engine(
    loaded: &LoadedConfig,
    pods: &PodSite,
    home: &Home,
    starting: &StartingServer<'_>,
) -> Result<Engine> {
    // The claim of the first pod is counted, too.
    cellblock_gateway::start_metrics();
    let settings = &loaded.settings;
    let store = artifact_store::open(home).await?;
    match pods.options.serves {
        Serves::Sandboxes => {
            let access = PodAccess {
                key: pods.key.as_ref().map(|key| key.reveal().to_owned()),
                allow_http: settings.sandbox_allow_http,
            };
            let demands = settings.protections.demands();
            let reason = StartReason::new("the first pod is being claimed");
            let report = |error: &SandboxError| {
                tracing::warn!(
                    error = error as &dyn std::error::Error,
                    "no pod yet; trying again"
                );
                reason.set(summary(error));
                (starting.announce)();
            };
            let start = cellblock_kubernetes::start_patiently(&pods.options, access, &demands, report);
            let started = server::answer_meanwhile(starting.options, starting.listener, &reason, start);
            let backend = started.await??;
            let interpreter = Interpreter::start_remote(Remote {
                backend,
                limits: settings.limits.enforced(),
                pool: settings.pool,
                store,
                spool: home.root().join("datasets"),
            });
            Ok(interpreter.into())
        }
        Serves::Execute if settings.remote.serve => Err(Error::Refused(SERVES_NOTHING.to_owned())),
        Serves::Execute => Ok(Engine::Execute(RemoteEngine {
            server: executing(loaded, pods).await?,
            timeout: settings.limits.enforced().cell_timeout,
            store,
        })),
    }
}

/// The reason that everybody may read.
fn summary(error: &SandboxError) -> String {
    error.backend_error().map_or_else(
        || "the server in the first pod cannot be used; the log says why".to_owned(),
        ClaimError::summary,
    )
}

/// A server in a pod of its own for each call.
async fn executing(loaded: &LoadedConfig, pods: &PodSite) -> Result<ExecuteServer> {
    let claims = Claims::start(&pods.options).await?;
    let options = ExecuteServerOptions {
        key: pods.key.clone(),
        allow_plain: loaded.settings.sandbox_allow_http,
        ..ExecuteServerOptions::default()
    };
    let start = Arc::new(move || {
        let claims = Arc::clone(&claims);
        Box::pin(async move {
            let pod = claims.claim().await.map_err(|error| chain(&error))?;
            Ok(StartedExecuteServer {
                url: pod.url,
                keep: Box::new(pod.claim),
            })
        }) as _
    });
    ExecuteServer::starting(start, options).map_err(|error| Error::Refused(format!("serve: {error}")))
}

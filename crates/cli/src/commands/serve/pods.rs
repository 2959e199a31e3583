//! What runs code if that is pods of a cluster.

use std::sync::Arc;

use cellblock_gateway::execute_server::{ExecuteServer, ExecuteServerOptions, StartedExecuteServer};
use cellblock_gateway::{Elsewhere, Engine};
use cellblock_image::Home;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::remote::Remote;
use cellblock_kubernetes::{Claims, PodAccess, Serves};
use cellblock_sandbox::jail::error::chain;

use super::SERVES_NOTHING;
use crate::artifact_store;
use crate::config::{Loaded, PodSite};
use crate::error::{Error, Result};

/// Claims the first pod, and returns the engine that claims one for each sandbox, or for each call.
pub(super) async fn engine(loaded: &Loaded, pods: &PodSite, home: &Home) -> Result<Engine> {
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
            let backend = cellblock_kubernetes::start(&pods.options, access, demands).await?;
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
        Serves::Execute => Ok(Engine::Execute(Elsewhere {
            server: executing(loaded, pods).await?,
            timeout: settings.limits.enforced().cell_timeout,
            store,
        })),
    }
}

/// A server in a pod of its own for each call.
async fn executing(loaded: &Loaded, pods: &PodSite) -> Result<ExecuteServer> {
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

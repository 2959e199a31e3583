//! The warm pool that claims name.

use kube::api::PostParams;
use kube::core::ObjectMeta;
use tokio::time::Instant;

use crate::KubernetesOptions;
use crate::access::{CREATE_POOL, GET_POOL};
use crate::api::{Cluster, START_LIMIT};
use crate::error::ClaimError;
use crate::holder::labels;
use crate::resources::{NameRef, SandboxWarmPool, SandboxWarmPoolSpec};
use crate::retry::{retry, status};

/// Returns the name of the pool of these options. In direct mode, it is one without pods.
pub(crate) fn name(options: &KubernetesOptions) -> String {
    match (&options.warm_pool, &options.template) {
        (Some(pool), _) => pool.clone(),
        (None, template) => format!("cellblock-{}", template.as_deref().unwrap_or_default()),
    }
}

/// Returns the pool, which direct mode creates if it is missing.
pub(crate) async fn find(
    cluster: &Cluster,
    options: &KubernetesOptions,
) -> Result<SandboxWarmPool, ClaimError> {
    let (name, began) = (name(options), Instant::now());
    let until = began + START_LIMIT;
    match retry(until, || cluster.pools.get(&name)).await {
        Ok(pool) => return checked(pool, options),
        Err(error) if status(&error) != Some(404) => {
            return Err(ClaimError::of_api(GET_POOL, began.elapsed(), error));
        }
        Err(_) => {}
    }
    let Some(template) = &options.template else {
        let message = format!("no SandboxWarmPool `{name}` in namespace `{}`", cluster.namespace);
        return Err(missing("WarmPoolNotFound", &message));
    };
    let pool = SandboxWarmPool {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(labels(&options.owner)),
            ..ObjectMeta::default()
        },
        spec: SandboxWarmPoolSpec {
            replicas: Some(0),
            sandbox_template_ref: NameRef {
                name: template.clone(),
            },
        },
        status: None,
    };
    let params = PostParams::default();
    let created = match retry(until, || cluster.pools.create(&params, &pool)).await {
        // Another gateway was faster, or the answer to an earlier attempt was lost.
        Err(error) if status(&error) == Some(409) => retry(until, || cluster.pools.get(&name)).await,
        other => other,
    };
    let created = created.map_err(|error| ClaimError::of_api(CREATE_POOL, began.elapsed(), error))?;
    checked(created, options)
}

/// Checks that the pool of direct mode is of the template.
fn checked(pool: SandboxWarmPool, options: &KubernetesOptions) -> Result<SandboxWarmPool, ClaimError> {
    let has = &pool.spec.sandbox_template_ref.name;
    match &options.template {
        Some(template) if template != has => Err(ClaimError::Rejected {
            action: "use the warm pool without pods",
            status: 409,
            message: format!(
                "`{}` is of the template `{has}`, not `{template}`; delete or rename it",
                name(options)
            ),
        }),
        _ => Ok(pool),
    }
}

fn missing(reason: &str, message: &str) -> ClaimError {
    ClaimError::of_reason(reason, message).unwrap_or_else(|| ClaimError::Internal(message.to_owned()))
}

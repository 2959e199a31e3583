//! Looking at a cluster step by step: what a gateway needs, and whether it is there.

use std::time::{Duration, Instant};

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use serde::Serialize;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::access::{GET_TEMPLATE, Permission, REVIEW, permissions};
use crate::api::Cluster;
use crate::claims::{ClaimedPod, Claims};
use crate::error::ClaimError;
use crate::resources::{GROUP, VERSION};
use crate::{KubernetesOptions, pool};

/// Maximum time to connect to a pod.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name of the part that was checked.
    pub name: &'static str,
    /// Whether it is as it must be.
    pub ok: bool,
    /// Description of the finding, or of the problem and how to fix it.
    pub detail: String,
}

/// Looks at API versions, permissions, pool and template, and claims a pod. Steps after the first
/// one that fails are left out if they depend on it.
pub async fn doctor(options: &KubernetesOptions) -> Vec<Check> {
    let mut checks = Vec::new();
    let cluster = match Cluster::open(options).await {
        Ok(cluster) => cluster,
        Err(error) => return vec![failed("cluster", &error)],
    };
    let place = format!("{}, namespace `{}`", cluster.server, cluster.namespace);
    checks.push(found("cluster", place));
    if let Err(error) = cluster.check_version().await {
        checks.push(failed("agent-sandbox", &error));
        return checks;
    }
    checks.push(found("agent-sandbox", format!("serves {GROUP}/{VERSION}")));
    checks.push(review(&cluster, options).await);
    let pool = pool(&cluster, options).await;
    let has_pool = pool.ok;
    checks.push(pool);
    if has_pool {
        checks.push(template(&cluster, options).await);
        checks.push(claim(options).await);
    }
    checks
}

async fn review(cluster: &Cluster, options: &KubernetesOptions) -> Check {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(cluster.client.clone());
    let (needed, mut denied) = (permissions(options), Vec::new());
    for permission in &needed {
        let Permission {
            group,
            resource,
            verb,
        } = *permission;
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(cluster.namespace.clone()),
                    group: Some(group.to_owned()),
                    resource: Some(resource.to_owned()),
                    verb: Some(verb.to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        match reviews.create(&PostParams::default(), &review).await {
            Ok(review) if review.status.as_ref().is_some_and(|it| it.allowed) => {}
            Ok(_) => denied.push(permission.to_string()),
            Err(error) => {
                let error = ClaimError::of_api(REVIEW, Duration::ZERO, error);
                return failed("permissions", &error);
            }
        }
    }
    if denied.is_empty() {
        return found("permissions", format!("all {} that are needed", needed.len()));
    }
    Check {
        name: "permissions",
        ok: false,
        detail: format!(
            "denied: {}; bind the Role of `deploy/helm/cellblock` to this account",
            denied.join(", ")
        ),
    }
}

async fn pool(cluster: &Cluster, options: &KubernetesOptions) -> Check {
    let pool = match pool::find(cluster, options).await {
        Ok(pool) => pool,
        Err(error) => return failed("pool", &error),
    };
    let name = pool::name(options);
    if options.template.is_some() {
        return found("pool", format!("`{name}` without pods: each claim starts one"));
    }
    let (wanted, ready) = (
        pool.spec.replicas.unwrap_or(1),
        pool.status.map_or(0, |it| it.ready_replicas),
    );
    Check {
        name: "pool",
        ok: ready > 0 || wanted == 0,
        detail: match (ready, wanted) {
            (_, 0) => format!("`{name}` has 0 replicas: each claim starts a pod"),
            (0, _) => format!(
                "`{name}`: none of {wanted} pods is ready; look at `kubectl -n {} get sandboxes,pods`",
                cluster.namespace
            ),
            _ => format!("`{name}`: {ready} of {wanted} pods are ready"),
        },
    }
}

/// Checks the template; what the cluster says of it is not verified, and a wall that it does not name counts
/// as none.
async fn template(cluster: &Cluster, options: &KubernetesOptions) -> Check {
    let pool = match pool::find(cluster, options).await {
        Ok(pool) => pool,
        Err(error) => return failed("template", &error),
    };
    let name = pool.spec.sandbox_template_ref.name;
    let template = match cluster.templates.get(&name).await {
        Ok(template) => template,
        Err(error) => {
            let error = ClaimError::of_api(GET_TEMPLATE, Duration::ZERO, error);
            return failed("template", &error);
        }
    };
    let all = serde_json::json!(template.spec.all);
    let pod = &all["podTemplate"]["spec"];
    let mut missing = Vec::new();
    if pod["automountServiceAccountToken"] != false {
        missing.push("`automountServiceAccountToken: false`");
    }
    if !all["networkPolicy"]["egress"]
        .as_array()
        .is_some_and(Vec::is_empty)
    {
        missing.push("`networkPolicy: {egress: []}`");
    }
    let class = pod["runtimeClassName"].as_str();
    let wall = class.map_or_else(
        || "no runtime class: the node's kernel is the only wall".to_owned(),
        |class| format!("runtime class `{}`", crate::condition::shown(class)),
    );
    if missing.is_empty() {
        found("template", format!("`{name}`, {wall}"))
    } else {
        Check {
            name: "template",
            ok: false,
            detail: format!("`{name}` lacks {}; {wall}", missing.join(" and ")),
        }
    }
}

async fn claim(options: &KubernetesOptions) -> Check {
    let began = Instant::now();
    let trial = async {
        let claims = Claims::start(options).await?;
        let ClaimedPod { url, claim } = claims.claim().await?;
        let ready = began.elapsed();
        let address = url.trim_start_matches("http://").to_owned();
        let connected = timeout(CONNECT_LIMIT, TcpStream::connect(&address)).await;
        drop(claim);
        Ok::<_, cellblock_sandbox::Error>((address, ready, connected))
    };
    match trial.await {
        Ok((address, ready, Ok(Ok(_)))) => found(
            "claim",
            format!("pod at {address} ready after {} ms", ready.as_millis()),
        ),
        Ok((address, ..)) => Check {
            name: "claim",
            ok: false,
            detail: format!(
                "the pod at {address} does not accept connections; its NetworkPolicy must allow this \
                 gateway, and its server must listen on port {}",
                options.port
            ),
        },
        Err(error) => Check {
            name: "claim",
            ok: false,
            detail: cellblock_sandbox::jail::error::chain(&error),
        },
    }
}

fn found(name: &'static str, detail: String) -> Check {
    Check {
        name,
        ok: true,
        detail,
    }
}

fn failed(name: &'static str, error: &ClaimError) -> Check {
    Check {
        name,
        ok: false,
        detail: cellblock_sandbox::jail::error::chain(error),
    }
}

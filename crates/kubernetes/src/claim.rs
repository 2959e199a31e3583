//! The life of one claim: it is created, waited for, renewed, and deleted, whatever happens.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::ObjectMeta;
use metrics::{counter, gauge, histogram};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use crate::KubernetesOptions;
use crate::access::CREATE_CLAIM;
use crate::api::{Cluster, in_future, random_name};
use crate::error::ClaimError;
use crate::holder::{HOLDER, OWNED_BY, labels};
use crate::resources::{ClaimLifecycle, NameRef, SandboxClaim, SandboxClaimSpec};
use crate::retry::{Backoff, Denial, passes, retry_granted, status};
use crate::{pool, wait};

/// Label with the attempt that created a claim: what is left of an attempt whose answer was lost
/// can be found by it.
const ATTEMPT: &str = "cellblock.dev/attempt";
/// Maximum time of one request.
const REQUEST_LIMIT: Duration = Duration::from_secs(15);

/// Common terms of all claims of a gateway.
pub(crate) struct Terms {
    pub(crate) cluster: Cluster,
    pub(crate) options: KubernetesOptions,
    pub(crate) holder: String,
}

/// Receiver of a claim: gets the address of its pod, and the end that keeps the claim.
pub(crate) type ClaimWaiter = oneshot::Sender<Result<(SocketAddr, oneshot::Sender<()>), ClaimError>>;

/// Lives a whole life. Nothing else ends it: callers that give up close `waiting`, and users drop
/// what they got.
pub(crate) async fn live(terms: Arc<Terms>, mut waiting: ClaimWaiter) {
    let began = Instant::now();
    let until = began + terms.options.claim_timeout;
    let mut attempt = Attempt::new(&terms);
    let claim = match attempt.create(&terms, began, until).await {
        Ok(claim) => claim,
        Err(error) => {
            counted(error.name());
            let _ = waiting.send(Err(error));
            return attempt.undo(&terms).await;
        }
    };
    gauge!("cellblock_claims").increment(1.0);
    let pool = format!("the warm pool `{}`", pool::name(&terms.options));
    let ready = tokio::select! {
        ready = wait::until_ready(&terms.cluster, &claim, &pool, began, until) => Some(ready),
        () = waiting.closed() => None,
    };
    match ready {
        Some(Ok(address)) => {
            histogram!("cellblock_claim_seconds").record(began.elapsed());
            counted("ready");
            use_pod(&terms, &claim, address, waiting).await;
        }
        Some(Err(error)) => {
            tracing::warn!(
                claim = claim.name_any(),
                error = &error as &dyn std::error::Error,
                "no pod"
            );
            counted(error.name());
            let _ = waiting.send(Err(error));
        }
        None => counted("canceled"),
    }
    delete(&terms.cluster, &claim, terms.options.shutdown_after).await;
    gauge!("cellblock_claims").decrement(1.0);
}

/// Renews the claim until its user is gone.
async fn use_pod(terms: &Terms, claim: &SandboxClaim, address: IpAddr, waiting: ClaimWaiter) {
    let (keep, released) = oneshot::channel();
    let address = SocketAddr::new(address, terms.options.port);
    tracing::debug!(claim = claim.name_any(), %address, "claimed a pod");
    if waiting.send(Ok((address, keep))).is_err() {
        return;
    }
    tokio::select! {
        _ = released => {}
        () = renew(terms, claim) => {
            tracing::warn!(claim = claim.name_any(), "the claim was deleted while its pod was used");
        }
    }
}

/// Renews the claim's shutdown time until the claim is gone.
async fn renew(terms: &Terms, claim: &SandboxClaim) {
    let (name, after) = (claim.name_any(), terms.options.shutdown_after);
    loop {
        sleep(after / 3).await;
        let patch = json!({
            "metadata": {"uid": claim.uid()},
            "spec": {"lifecycle": {"shutdownTime": in_future(after)}},
        });
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let renewed = retry_granted(Instant::now() + after / 3, || {
            terms.cluster.claims.patch(&name, &params, &patch)
        });
        match renewed.await {
            Ok(_) => {}
            Err(error) if matches!(status(&error), Some(404 | 409)) => return,
            Err(error) => {
                tracing::warn!(
                    claim = name,
                    error = &error as &dyn std::error::Error,
                    "renew a claim"
                );
            }
        }
    }
}

/// Deletes a claim, with all that belongs to it, unless another one has its name by now.
pub(crate) async fn delete(cluster: &Cluster, claim: &SandboxClaim, limit: Duration) {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: claim.uid(),
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    let name = claim.name_any();
    let deleted = retry_granted(Instant::now() + limit, || async {
        let deleting = cluster.claims.delete(&name, &params);
        timeout(REQUEST_LIMIT, deleting)
            .await
            .unwrap_or_else(|late| Err(kube::Error::Service(late.into())))
    });
    match deleted.await {
        Ok(_) => {}
        Err(error) if matches!(status(&error), Some(404 | 409)) => {}
        Err(error) => tracing::error!(
            claim = name,
            error = &error as &dyn std::error::Error,
            "cannot delete a claim; the cluster deletes it at its shutdown time"
        ),
    }
}

/// The creation of one claim, which may take several requests.
struct Attempt {
    claim: SandboxClaim,
    selector: ListParams,
    /// Whether a request may have created it, although no answer says so.
    uncertain: bool,
}

impl Attempt {
    fn new(terms: &Terms) -> Self {
        let id = random_name();
        let mut labels = labels(&terms.options.owner);
        labels.insert(HOLDER.to_owned(), terms.holder.clone());
        labels.insert(ATTEMPT.to_owned(), id.clone());
        let claim = SandboxClaim {
            metadata: ObjectMeta {
                generate_name: Some(format!("{OWNED_BY}-")),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            spec: SandboxClaimSpec {
                warm_pool_ref: NameRef {
                    name: pool::name(&terms.options),
                },
                lifecycle: Some(ClaimLifecycle {
                    shutdown_time: in_future(terms.options.shutdown_after),
                    shutdown_policy: "Delete".to_owned(),
                }),
            },
            status: None,
        };
        Self {
            claim,
            selector: ListParams::default().labels(&format!("{ATTEMPT}={id}")),
            uncertain: false,
        }
    }

    /// Creates the claim once, even if answers are lost.
    async fn create(
        &mut self,
        terms: &Terms,
        began: Instant,
        until: Instant,
    ) -> Result<SandboxClaim, ClaimError> {
        let (mut backoff, mut denial) = (Backoff::until(until), Denial::default());
        loop {
            let error = match self.request(&terms.cluster).await {
                Ok(claim) => return Ok(claim),
                Err(error) => error,
            };
            let failed = |error| ClaimError::of_api(CREATE_CLAIM, began.elapsed(), error);
            let Some(asked) = denial.passes(&error) else {
                return Err(failed(error));
            };
            if !backoff.pause(asked).await {
                return Err(failed(error));
            }
        }
    }

    async fn request(&mut self, cluster: &Cluster) -> kube::Result<SandboxClaim> {
        let late = |late: tokio::time::error::Elapsed| Err(kube::Error::Service(late.into()));
        if self.uncertain {
            let finding = cluster.claims.list(&self.selector);
            let found = timeout(REQUEST_LIMIT, finding).await.unwrap_or_else(late)?;
            self.uncertain = false;
            if let Some(claim) = found.items.into_iter().next() {
                return Ok(claim);
            }
        }
        let params = PostParams::default();
        let creating = cluster.claims.create(&params, &self.claim);
        let created = timeout(REQUEST_LIMIT, creating)
            .await
            .unwrap_or_else(|late| Err(kube::Error::Service(late.into())));
        // A server that answers 429 has done nothing; any other failure may come after the claim was stored.
        self.uncertain = created
            .as_ref()
            .is_err_and(|error| passes(error).is_some() && status(error) != Some(429));
        created
    }

    /// Deletes what an attempt without an answer may have created.
    async fn undo(&self, terms: &Terms) {
        if !self.uncertain {
            return;
        }
        let until = Instant::now() + terms.options.shutdown_after;
        let found = retry_granted(until, || terms.cluster.claims.list(&self.selector)).await;
        for claim in found.into_iter().flatten() {
            delete(&terms.cluster, &claim, terms.options.shutdown_after).await;
        }
    }
}

fn counted(result: &'static str) {
    counter!("cellblock_claims_total", "result" => result).increment(1);
}

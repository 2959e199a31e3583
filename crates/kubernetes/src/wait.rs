//! Following one claim from its own version until its pod is ready.

use std::net::IpAddr;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use kube::ResourceExt;
use kube::api::{WatchEvent, WatchParams};
use tokio::time::{Instant, timeout_at};

use crate::api::Cluster;
use crate::condition::{Judgement, Reason, judge};
use crate::error::ClaimError;
use crate::resources::SandboxClaim;
use crate::retry::{Backoff, Denial, retry_granted, status};

type Events = BoxStream<'static, kube::Result<WatchEvent<SandboxClaim>>>;

/// Returns the address of the claim's pod.
pub(crate) async fn until_ready(
    cluster: &Cluster,
    claim: &SandboxClaim,
    pool: &str,
    began: Instant,
    until: Instant,
) -> Result<IpAddr, ClaimError> {
    let mut following = Following {
        cluster,
        name: claim.name_any(),
        uid: claim.uid(),
        version: claim.resource_version().unwrap_or_default(),
        last: None,
        denial: Denial::default(),
        until,
    };
    // A claim that was found instead of created may be ready already, without another event.
    if let Some(address) = following.judge(claim)? {
        return Ok(address);
    }
    match timeout_at(until, following.follow()).await {
        Ok(Err(ClaimError::Overloaded { .. })) | Err(_) if following.last.is_some() => {
            Err(following.exhausted(pool, began))
        }
        Err(_) => Err(following.exhausted(pool, began)),
        Ok(followed) => followed,
    }
}

struct Following<'a> {
    cluster: &'a Cluster,
    name: String,
    uid: Option<String>,
    version: String,
    /// What the controller said last.
    last: Option<Reason>,
    denial: Denial,
    until: Instant,
}

impl Following<'_> {
    async fn follow(&mut self) -> Result<IpAddr, ClaimError> {
        let mut backoff = Backoff::until(self.until);
        loop {
            if let Some(address) = self.watch().await? {
                return Ok(address);
            }
            // The watch ended: its version is too old (410), it ran too long, or the server stopped. The claim as it is now has
            // a version from which another one starts.
            backoff.pause(None).await;
            let began = Instant::now();
            let claim = match retry_granted(self.until, || self.cluster.claims.get(&self.name)).await {
                Ok(claim) => claim,
                Err(error) if status(&error) == Some(404) => return Err(self.deleted()),
                Err(error) => return Err(ClaimError::of_api("look at a claim", began.elapsed(), error)),
            };
            if claim.uid() != self.uid {
                return Err(self.deleted());
            }
            if let Some(address) = self.judge(&claim)? {
                return Ok(address);
            }
        }
    }

    /// Watches until something is decided; `None` if the watch ended before.
    async fn watch(&mut self) -> Result<Option<IpAddr>, ClaimError> {
        let params = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        let began = Instant::now();
        let mut events: Events = match self.cluster.claims.watch(&params, &self.version).await {
            Ok(events) => events.boxed(),
            Err(error) if status(&error) == Some(410) || self.denial.passes(&error).is_some() => {
                return Ok(None);
            }
            Err(error) => return Err(ClaimError::of_api("watch a claim", began.elapsed(), error)),
        };
        self.denial = Denial::default();
        while let Some(event) = events.next().await {
            match event {
                Ok(WatchEvent::Added(claim) | WatchEvent::Modified(claim)) => {
                    if let Some(address) = self.judge(&claim)? {
                        return Ok(Some(address));
                    }
                }
                Ok(WatchEvent::Deleted(_)) => return Err(self.deleted()),
                Ok(WatchEvent::Bookmark(mark)) => self.version = mark.metadata.resource_version,
                Ok(WatchEvent::Error(_)) | Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    fn judge(&mut self, claim: &SandboxClaim) -> Result<Option<IpAddr>, ClaimError> {
        if let Some(version) = claim.resource_version() {
            self.version = version;
        }
        match judge(claim, self.cluster.loopback) {
            Judgement::Ready(address) => Ok(Some(address)),
            Judgement::Failed(error) => Err(error),
            Judgement::Wait(said) => {
                self.last = said.or(self.last.take());
                Ok(None)
            }
        }
    }

    fn deleted(&self) -> ClaimError {
        ClaimError::Deleted {
            claim: self.name.clone(),
        }
    }

    fn exhausted(&self, pool: &str, began: Instant) -> ClaimError {
        let last = self.last.clone();
        let (reason, message) = last.map_or_else(Default::default, |it| (it.reason, it.message));
        ClaimError::PoolExhausted {
            pool: pool.to_owned(),
            waited: began.elapsed(),
            reason,
            message,
        }
    }
}

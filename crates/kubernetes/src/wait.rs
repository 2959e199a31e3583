//! Following one claim from its own version until its pod is ready.

use std::net::IpAddr;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use kube::ResourceExt;
use kube::api::{WatchEvent, WatchParams};
use tokio::time::{Instant, timeout_at};

use crate::access::{GET_CLAIM, WATCH_CLAIM};
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
    let mut following = ClaimWatch {
        cluster,
        name: claim.name_any(),
        uid: claim.uid(),
        version: claim.resource_version().unwrap_or_default(),
        last: None,
        denial: Denial::default(),
        denied: None,
        until,
    };
    // A claim that was found instead of created may be ready already, without another event.
    if let Some(address) = following.judge(claim)? {
        return Ok(address);
    }
    match timeout_at(until, following.follow()).await {
        Ok(followed) => followed,
        // A claim that cannot be watched says nothing about its pool.
        Err(_) => Err(match following.denied.take() {
            Some(denied) => denied,
            None => following.exhausted(pool, began),
        }),
    }
}

struct ClaimWatch<'a> {
    cluster: &'a Cluster,
    name: String,
    uid: Option<String>,
    version: String,
    /// Last reason that the controller gave.
    last: Option<Reason>,
    denial: Denial,
    /// The last answer to a watch, if that was a denial.
    denied: Option<ClaimError>,
    until: Instant,
}

impl ClaimWatch<'_> {
    async fn follow(&mut self) -> Result<IpAddr, ClaimError> {
        let mut backoff = Backoff::until(self.until);
        loop {
            if let Some(address) = self.watch().await? {
                return Ok(address);
            }
            // The watch ended: its version is too old (410), it ran too long, or the server
            // stopped. The claim as it is now has a version from which another one starts.
            backoff.pause(None).await;
            let began = Instant::now();
            let claim = match retry_granted(self.until, || self.cluster.claims.get(&self.name)).await {
                Ok(claim) => claim,
                Err(error) if status(&error) == Some(404) => return Err(self.deleted()),
                Err(error) => return Err(ClaimError::of_api(GET_CLAIM, began.elapsed(), error)),
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
            Err(error) if status(&error) == Some(410) => return Ok(None),
            Err(error) => {
                let passes = self.denial.passes(&error).is_some();
                let denied = status(&error) == Some(403);
                let failed = ClaimError::of_api(WATCH_CLAIM, began.elapsed(), error);
                if !passes {
                    return Err(failed);
                }
                self.denied = denied.then_some(failed);
                return Ok(None);
            }
        };
        (self.denial, self.denied) = (Denial::default(), None);
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

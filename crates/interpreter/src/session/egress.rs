//! Hosts that the code of a session reaches, which can be replaced while it runs.

use cellblock_egress::{EgressPolicy, EgressProxy, EgressRestriction, EgressSink, HeaderRule};
use parking_lot::Mutex;

use crate::error::{Error, Result};

/// The policy of a session and the proxy that enforces it. The session's task and its handles share them,
/// so that a replacement waits for no cell.
#[derive(Debug)]
pub(in crate::session) struct EgressTerms(Mutex<EgressState>);

#[derive(Debug)]
struct EgressState {
    policy: Option<EgressPolicy>,
    /// Made on first use; it counts what the session has used.
    proxy: Option<EgressProxy>,
}

impl EgressTerms {
    pub(in crate::session) const fn new(policy: Option<EgressPolicy>) -> Self {
        Self(Mutex::new(EgressState { policy, proxy: None }))
    }

    /// Returns the policy that holds now.
    pub(in crate::session) fn policy(&self) -> Option<EgressPolicy> {
        self.0.lock().policy.clone()
    }

    /// Returns the proxy; `None` without a policy.
    pub(in crate::session) fn proxy(&self, session: &str, sink: EgressSink) -> Result<Option<EgressProxy>> {
        let mut state = self.0.lock();
        if state.proxy.is_none()
            && let Some(policy) = state.policy.clone()
        {
            state.proxy = Some(EgressProxy::new(policy, session, Some(sink))?);
        }
        Ok(state.proxy.clone())
    }

    /// Takes over the rules of a session whose memory was copied, and the placeholders and certificates
    /// that it knows.
    pub(in crate::session) fn inherit(&self, other: &Self, session: &str, sink: EgressSink) {
        let (policy, proxy) = {
            let other = other.0.lock();
            (other.policy.clone(), other.proxy.clone())
        };
        let proxy = proxy.map(|proxy| proxy.branch(session, Some(sink)));
        *self.0.lock() = EgressState { policy, proxy };
    }

    /// Replaces the destinations that the session gives up and the headers of its requests.
    pub(in crate::session) fn replace(
        &self,
        restriction: EgressRestriction,
        headers: Vec<HeaderRule>,
    ) -> Result<()> {
        let mut state = self.0.lock();
        let Some(policy) = state.policy.as_ref().filter(|policy| policy.replaceable) else {
            return Err(Error::Argument {
                name: "network",
                missing: false,
                reason: "the session has no rules that can be replaced".to_owned(),
            });
        };
        let policy = EgressPolicy {
            restriction,
            headers,
            ..policy.clone()
        };
        let refused = |error| Error::Egress(cellblock_egress::EgressError::Policy(error));
        policy.check().map_err(refused)?;
        if let Some(proxy) = &state.proxy {
            let replaced = proxy.replace(policy.restriction.clone(), policy.headers.clone());
            replaced.map_err(refused)?;
        }
        state.policy = Some(policy);
        Ok(())
    }
}

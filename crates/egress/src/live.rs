//! The rules of a session that runs, which can be replaced, and its open connections to servers.

use std::net::IpAddr;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;

use crate::policy::{EgressRestriction, HeaderRule, PolicyError};
use crate::refusal::EgressRefusal;
use crate::rules::Rules;
use crate::target::EgressTarget;

/// The rules that hold now.
#[derive(Debug)]
pub(crate) struct LiveRules {
    current: RwLock<Arc<Rules>>,
    open: Mutex<Vec<Weak<OpenTarget>>>,
}

/// A connection to a server that is open.
#[derive(Debug)]
pub(crate) struct OpenTarget {
    target: EgressTarget,
    address: IpAddr,
    /// Whether bytes are copied unread.
    is_tunnel: bool,
    /// Canceled when rules no longer allow it.
    pub(crate) cut: CancellationToken,
}

/// Error of a connection that the rules of its session no longer allow.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the network rules of the sandbox no longer allow the connection")]
pub(crate) struct CutConnection;

impl LiveRules {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        Self {
            current: RwLock::new(rules),
            open: Mutex::default(),
        }
    }

    /// Returns the rules that hold now.
    pub(crate) fn current(&self) -> Arc<Rules> {
        Arc::clone(&self.current.read())
    }

    /// Replaces what the session gives up and its headers, and ends the connections that the new rules
    /// do not allow.
    pub(crate) fn replace(
        &self,
        restriction: EgressRestriction,
        headers: Vec<HeaderRule>,
    ) -> Result<(), PolicyError> {
        let rules = {
            let mut current = self.current.write();
            let rules = Arc::new(current.replaced(restriction, headers)?);
            *current = Arc::clone(&rules);
            rules
        };
        // One that is opened meanwhile finds the new rules.
        for open in self.open.lock().iter().filter_map(Weak::upgrade) {
            if !open.is_kept_by(&rules) {
                open.cut.cancel();
            }
        }
        Ok(())
    }

    /// Enters a connection that was just opened, unless rules have been replaced by others that do not
    /// allow it.
    pub(crate) fn enter(
        &self,
        target: &EgressTarget,
        address: IpAddr,
        is_tunnel: bool,
    ) -> Result<Arc<OpenTarget>, EgressRefusal> {
        let open = Arc::new(OpenTarget {
            target: target.clone(),
            address,
            is_tunnel,
            cut: CancellationToken::new(),
        });
        let mut all = self.open.lock();
        all.retain(|it| it.strong_count() > 0);
        all.push(Arc::downgrade(&open));
        drop(all);
        if open.is_kept_by(&self.current()) {
            Ok(open)
        } else {
            Err(EgressRefusal::restricted(target))
        }
    }
}

impl OpenTarget {
    fn is_kept_by(&self, rules: &Rules) -> bool {
        rules.keeps(&self.target, self.address, self.is_tunnel)
    }
}

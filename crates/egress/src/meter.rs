//! Usage of a session, and its quotas.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::policy::EgressQuotas;
use crate::record::EgressDecision;
use crate::refusal::EgressRefusal;

/// Usage of a session so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EgressUsage {
    /// Requests and tunnels that rules and quotas allowed.
    pub requests: u64,
    /// Requests that were denied.
    pub denied: u64,
    /// Requests that were allowed and failed.
    pub failed: u64,
    /// Bytes sent to servers.
    pub bytes_up: u64,
    /// Bytes received from servers.
    pub bytes_down: u64,
}

/// Counters of a session.
#[derive(Debug)]
pub(crate) struct SessionMeter {
    quotas: EgressQuotas,
    requests: AtomicU64,
    denied: AtomicU64,
    failed: AtomicU64,
    total: Flow,
}

/// Bytes in both directions.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    up: AtomicU64,
    down: AtomicU64,
}

/// A direction, seen from the sandbox.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    Up,
    Down,
}

impl Flow {
    fn add(&self, direction: Direction, bytes: u64) {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
        .fetch_add(bytes, Relaxed);
    }

    /// Returns the bytes sent and received.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.up.load(Relaxed), self.down.load(Relaxed))
    }
}

impl SessionMeter {
    pub(crate) fn new(quotas: EgressQuotas) -> Self {
        Self {
            quotas,
            requests: AtomicU64::new(0),
            denied: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            total: Flow::default(),
        }
    }

    pub(crate) const fn quotas(&self) -> EgressQuotas {
        self.quotas
    }

    /// Counts a request that rules allow, if the quotas do.
    pub(crate) fn begin(&self) -> Result<(), EgressRefusal> {
        self.check_bytes().map_err(EgressRefusal::quota_bytes)?;
        let max = self.quotas.max_requests.unwrap_or(u64::MAX);
        let counted = self
            .requests
            .fetch_update(Relaxed, Relaxed, |sent| (sent < max).then(|| sent + 1));
        match counted {
            Ok(_) => Ok(()),
            Err(_) => Err(EgressRefusal::quota_requests(max)),
        }
    }

    /// Counts the end of a request.
    pub(crate) fn end(&self, decision: EgressDecision) {
        match decision {
            EgressDecision::Allowed => return,
            EgressDecision::Denied => &self.denied,
            EgressDecision::Failed => &self.failed,
        }
        .fetch_add(1, Relaxed);
    }

    /// Returns the quota as an error if all of its bytes are used.
    fn check_bytes(&self) -> Result<(), u64> {
        let (up, down) = self.total.bytes();
        match self.quotas.max_bytes {
            Some(max) if up.saturating_add(down) >= max => Err(max),
            _ => Ok(()),
        }
    }

    /// Counts bytes of a connection; an error of the kind `QuotaExceeded` if they are too many.
    pub(crate) fn transfer(&self, flow: &Arc<Flow>, direction: Direction, bytes: usize) -> io::Result<()> {
        let bytes = bytes as u64;
        flow.add(direction, bytes);
        self.total.add(direction, bytes);
        let (up, down) = self.total.bytes();
        match self.quotas.max_bytes {
            Some(max) if up.saturating_add(down) > max => Err(io::ErrorKind::QuotaExceeded.into()),
            _ => Ok(()),
        }
    }

    /// Returns an error of the kind `QuotaExceeded` if no more bytes may be transferred.
    pub(crate) fn may_transfer(&self) -> io::Result<()> {
        self.check_bytes()
            .map_err(|_| io::ErrorKind::QuotaExceeded.into())
    }

    pub(crate) fn max_bytes(&self) -> u64 {
        self.quotas.max_bytes.unwrap_or(u64::MAX)
    }

    pub(crate) fn usage(&self) -> EgressUsage {
        let (bytes_up, bytes_down) = self.total.bytes();
        EgressUsage {
            requests: self.requests.load(Relaxed),
            denied: self.denied.load(Relaxed),
            failed: self.failed.load(Relaxed),
            bytes_up,
            bytes_down,
        }
    }
}

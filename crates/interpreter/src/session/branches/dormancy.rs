//! State of a hibernated session.

use std::sync::atomic::{AtomicBool, Ordering};

use cellblock_sandbox::backend::DormantSandbox;
use metrics::gauge;

/// Whether a session is hibernated, for its handles.
#[derive(Debug, Default)]
pub(in crate::session) struct HibernationFlag(AtomicBool);

impl HibernationFlag {
    pub(in crate::session) fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it; returns what it was.
    pub(in crate::session) fn set(&self, rests: bool) -> bool {
        let before = self.0.swap(rests, Ordering::Relaxed);
        if before != rests {
            let hibernated = gauge!("cellblock_sessions_hibernated");
            hibernated.increment(if rests { 1.0 } else { -1.0 });
        }
        before
    }
}

/// A machine on disk, with what is said if it cannot be restored.
#[derive(Debug)]
pub(in crate::session) struct StoredMachine {
    pub(super) dormant: Box<dyn DormantSandbox>,
    /// Some of its files.
    pub(super) files: Vec<String>,
    /// Number of all its files.
    pub(super) total: u64,
}

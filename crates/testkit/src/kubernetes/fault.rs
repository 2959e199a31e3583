//! Faults of requests.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// Breaks some requests.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Method of the requests, such as `POST`; watches have the method `WATCH`, and lists `LIST`.
    pub method: &'static str,
    /// Resource of the requests, in the plural.
    pub plural: &'static str,
    /// Number of requests that are broken.
    pub times: usize,
    /// Kind of the fault.
    pub kind: FaultKind,
}

/// Kind of a request's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It is answered with this HTTP status, and has no effect.
    Status(u16),
    /// It has its effect, and the connection is cut before the answer.
    Cut,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    injected: Mutex<Vec<Fault>>,
    requests: Mutex<HashMap<(String, String), usize>>,
    old_version: AtomicBool,
    /// Verbs by resource that gateways may use, once they are limited.
    granted: Mutex<Option<HashSet<(String, String)>>>,
}

impl Faults {
    pub(super) fn add(&self, fault: Fault) {
        lock(&self.injected).push(fault);
    }

    /// Counts a request, and returns what happens to it.
    pub(super) fn next(&self, method: &str, plural: &str) -> Option<FaultKind> {
        let key = (method.to_owned(), plural.to_owned());
        *lock(&self.requests).entry(key).or_default() += 1;
        let mut faults = lock(&self.injected);
        let fault = faults
            .iter_mut()
            .find(|it| it.method == method && it.plural == plural && it.times > 0)?;
        fault.times -= 1;
        Some(fault.kind)
    }

    pub(super) fn requests(&self, method: &str, plural: &str) -> usize {
        let key = (method.to_owned(), plural.to_owned());
        lock(&self.requests).get(&key).copied().unwrap_or_default()
    }

    pub(super) fn grant(&self, rules: &[(&str, &str, &str)]) {
        let rules = rules
            .iter()
            .map(|(_, resource, verb)| ((*resource).to_owned(), (*verb).to_owned()));
        *lock(&self.granted) = Some(rules.collect());
    }

    pub(super) fn permits(&self, resource: &str, verb: &str) -> bool {
        let granted = lock(&self.granted);
        granted
            .as_ref()
            .is_none_or(|granted| granted.contains(&(resource.to_owned(), verb.to_owned())))
    }

    pub(super) fn serve_old_version(&self) {
        self.old_version.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_old_version(&self) -> bool {
        self.old_version.load(Ordering::Relaxed)
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock()
}

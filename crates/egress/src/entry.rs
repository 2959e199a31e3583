//! A request in progress, whose record is written when it ends in any way.

use std::sync::Arc;

use crate::meter::Flow;
use crate::proxy::ProxyState;
use crate::record::{EgressDecision, EgressRecord};
use crate::refusal::EgressRefusal;
use crate::target::EgressTarget;

/// Maximum length of a method in a record: code can invent methods.
const MAX_METHOD: usize = 32;

/// Writes its record when it is dropped.
#[derive(Debug)]
pub(crate) struct RequestEntry {
    shared: Arc<ProxyState>,
    method: String,
    target: Option<EgressTarget>,
    /// The connection, and its counters when the request began.
    flow: Option<(Arc<Flow>, (u64, u64))>,
    decision: EgressDecision,
    reason: &'static str,
    discarded: bool,
}

impl RequestEntry {
    pub(crate) fn new(shared: &Arc<ProxyState>, method: &str) -> Self {
        Self {
            shared: Arc::clone(shared),
            method: method.chars().take(MAX_METHOD).collect(),
            target: None,
            flow: None,
            decision: EgressDecision::Allowed,
            reason: "ok",
            discarded: false,
        }
    }

    /// Sets the target, once it is known to be valid.
    pub(crate) fn target(&mut self, target: &EgressTarget) {
        self.target = Some(target.clone());
    }

    /// Returns the target, if it is valid.
    pub(crate) const fn named(&self) -> Option<&EgressTarget> {
        self.target.as_ref()
    }

    /// Counts the bytes of a connection from now on.
    pub(crate) fn flow(&mut self, flow: &Arc<Flow>) {
        self.flow = Some((Arc::clone(flow), flow.bytes()));
    }

    /// Counts all bytes of a connection, which was opened for this request.
    pub(crate) fn whole_flow(&mut self, flow: &Arc<Flow>) {
        self.flow = Some((Arc::clone(flow), (0, 0)));
    }

    pub(crate) fn refuse(&mut self, refusal: &EgressRefusal) {
        self.decision = refusal.decision;
        self.reason = refusal.reason;
    }

    /// Records a failure of the client's side.
    pub(crate) fn fail(&mut self, reason: &'static str) {
        self.decision = EgressDecision::Failed;
        self.reason = reason;
    }

    /// Writes no record: each request inside an intercepted connection has its own.
    pub(crate) fn discard(mut self) {
        self.discarded = true;
    }
}

impl Drop for RequestEntry {
    fn drop(&mut self) {
        if self.discarded {
            return;
        }
        let (up, down) = self.flow.as_ref().map_or((0, 0), |(flow, before)| {
            let (up, down) = flow.bytes();
            (up - before.0, down - before.1)
        });
        let target = self.target.take();
        let record = EgressRecord {
            session: Arc::clone(&self.shared.session),
            method: std::mem::take(&mut self.method),
            port: target.as_ref().map_or(0, |target| target.port),
            host: target.map(|target| target.host.to_string()).unwrap_or_default(),
            bytes_up: up,
            bytes_down: down,
            decision: self.decision,
            reason: self.reason,
        };
        self.shared.meter.end(record.decision);
        record.log();
        if let Some(sink) = &self.shared.sink {
            sink(&record);
        }
    }
}

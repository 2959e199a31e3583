//! The last decisions about what an owner's code and requests wanted.
//!
//! ```text
//! proxy of a session ──allowed, denied, failed──> Decisions (in memory, per owner) ──> list
//! quotas ──used up────────────────────────────────────┘
//! ```
//!
//! They are for people who want to know why something did not work. The log has all of them, and
//! metrics count them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use cellblock_interpreter::egress::EgressRecord;
use cellblock_interpreter::session::EgressLog;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;

use crate::records::Quota;

/// Decisions that are kept of an owner, and owners of whom any are kept. Of more, the latest are.
pub(crate) const MOST: usize = 500;
const MOST_OWNERS: usize = 1000;
/// Decisions among which an equal one is looked for, to count it there.
const RECENT: usize = 32;
/// Longest method that is kept; longer ones are cut.
const MAX_METHOD: usize = 32;

/// Subject of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum DecisionSubject {
    /// A request to a host, with the network `egress`.
    Egress {
        /// Method; `CONNECT` for a tunnel that is not decrypted.
        method: String,
        /// Host that the request named; empty if it was not a valid one.
        host: String,
        /// Port that the request named; 0 if it was not a valid one.
        port: u16,
        /// `allowed`, `denied` or `failed`.
        decision: &'static str,
        /// Reason, such as `ok`, `host` for one that is not on the allow-list, or `connect`.
        reason: &'static str,
    },
    /// A quota that was used up.
    Quota {
        /// Name of the quota.
        #[schemars(with = "String")]
        quota: Quota,
        /// Its limit.
        limit: u64,
    },
}

/// A decision, and how often it was made.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Decision {
    /// Time of the last one, in seconds since 1970.
    at: u64,
    /// ID of the session; absent if the request was for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// Number of equal decisions that this one stands for.
    count: u64,
    /// Bytes that all of them sent to the host and received from it.
    bytes_up: u64,
    bytes_down: u64,
    #[serde(flatten)]
    decided: DecisionSubject,
}

/// The last decisions of each owner. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions(Arc<Mutex<HashMap<String, VecDeque<Decision>>>>);

/// Notes requests of an owner's code to hosts.
#[derive(Debug)]
struct OwnerEgress {
    decisions: Decisions,
    owner: String,
}

impl Decisions {
    /// Notes a decision.
    pub(crate) fn note(&self, owner: &str, session: Option<&str>, decided: DecisionSubject) {
        self.add(
            owner,
            Decision {
                at: crate::now(),
                session: session.map(str::to_owned),
                count: 1,
                bytes_up: 0,
                bytes_down: 0,
                decided,
            },
        );
    }

    /// Returns what notes requests of an owner's code to hosts.
    pub(crate) fn egress_of(&self, owner: &str) -> Arc<dyn EgressLog> {
        Arc::new(OwnerEgress {
            decisions: self.clone(),
            owner: owner.to_owned(),
        })
    }

    /// Returns an owner's decisions, the latest first.
    pub(crate) fn of(&self, owner: &str, session: Option<&str>, most: usize) -> Vec<Decision> {
        let all = self.all();
        let own = all.get(owner).into_iter().flatten().rev();
        let wanted = own.filter(|it| session.is_none() || it.session.as_deref() == session);
        wanted.take(most).cloned().collect()
    }

    fn add(&self, owner: &str, mut new: Decision) {
        let mut all = self.all();
        if !all.contains_key(owner) && all.len() >= MOST_OWNERS {
            let last = |(_, own): &(&String, &VecDeque<Decision>)| own.back().map_or(0, |it| it.at);
            let oldest = all.iter().min_by_key(last).map(|(owner, _)| owner.clone());
            if let Some(oldest) = oldest {
                all.remove(&oldest);
            }
        }
        let own = all.entry(owner.to_owned()).or_default();
        let from = own.len().saturating_sub(RECENT);
        let equal = |old: &Decision| old.decided == new.decided && old.session == new.session;
        if let Some(place) = own.range(from..).position(equal)
            && let Some(old) = own.remove(from + place)
        {
            new.count += old.count;
            new.bytes_up = new.bytes_up.saturating_add(old.bytes_up);
            new.bytes_down = new.bytes_down.saturating_add(old.bytes_down);
        }
        own.push_back(new);
        if own.len() > MOST {
            own.pop_front();
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, VecDeque<Decision>>> {
        self.0.lock()
    }
}

impl EgressLog for OwnerEgress {
    fn record(&self, record: &EgressRecord) {
        let decision = Decision {
            at: crate::now(),
            session: Some(record.session.to_string()),
            count: 1,
            bytes_up: record.bytes_up,
            bytes_down: record.bytes_down,
            decided: DecisionSubject::Egress {
                method: record.method.chars().take(MAX_METHOD).collect(),
                host: record.host.clone(),
                port: record.port,
                decision: record.decision.as_str(),
                reason: record.reason,
            },
        };
        self.decisions.add(&self.owner, decision);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used_up(limit: u64) -> DecisionSubject {
        let quota = Quota::Sandboxes;
        DecisionSubject::Quota { quota, limit }
    }

    fn limits(decisions: &Decisions, owner: &str, session: Option<&str>) -> Vec<(u64, u64)> {
        let all = decisions.of(owner, session, MOST);
        let limit = |it: Decision| match it.decided {
            DecisionSubject::Quota { limit, .. } => (limit, it.count),
            DecisionSubject::Egress { .. } => unreachable!(),
        };
        all.into_iter().map(limit).collect()
    }

    #[test]
    fn equal_decisions_are_counted_and_each_owner_sees_its_own() {
        let decisions = Decisions::default();
        for limit in [1, 2, 1] {
            decisions.note("ann", Some("s1"), used_up(limit));
        }
        decisions.note("ann", None, used_up(1));
        decisions.note("bob", Some("s2"), used_up(9));
        assert_eq!(limits(&decisions, "ann", None), [(1, 1), (1, 2), (2, 1)]);
        assert_eq!(limits(&decisions, "ann", Some("s1")), [(1, 2), (2, 1)]);
        assert_eq!(limits(&decisions, "ann", Some("s2")), []);
        assert_eq!(limits(&decisions, "bob", None), [(9, 1)]);
    }

    #[test]
    fn only_the_latest_decisions_are_kept() {
        let decisions = Decisions::default();
        for limit in 0..=MOST as u64 {
            decisions.note("ann", None, used_up(limit));
        }
        let kept = limits(&decisions, "ann", None);
        assert_eq!((kept.len(), kept[0].0, kept[MOST - 1].0), (MOST, MOST as u64, 1));
        for owner in 0..MOST_OWNERS {
            decisions.note(&owner.to_string(), None, used_up(1));
        }
        assert_eq!(decisions.all().len(), MOST_OWNERS);
    }
}

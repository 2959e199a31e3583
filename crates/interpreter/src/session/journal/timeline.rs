//! Events of a session outside of its cells: checkpoints, rollbacks, tries, forks, hibernation, and deaths of
//! its kernel.

use std::collections::VecDeque;
use std::sync::Arc;

use cellblock_settings::clock;
use parking_lot::{Mutex, MutexGuard};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of events that a session keeps; the oldest make room.
pub const MAX_EVENTS: usize = 256;

/// Something that happened to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEvent {
    /// Time at which it happened, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Number of the last cell that had begun; 0 if none had.
    pub cell: u64,
    /// Kind of the event.
    #[serde(flatten)]
    pub what: TimelineEvent,
}

/// Event of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TimelineEvent {
    /// A checkpoint was made.
    Checkpoint {
        /// ID of the checkpoint.
        checkpoint: String,
        /// Name, if it was given one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// A checkpoint was dropped: on request, or because a later one needed its place.
    CheckpointDropped {
        /// ID of the checkpoint.
        checkpoint: String,
    },
    /// Variables and files became those of a checkpoint.
    RolledBack {
        /// ID of the checkpoint.
        checkpoint: String,
    },
    /// A cell was tried.
    Tried,
    /// The try was kept.
    TryKept,
    /// The try was discarded.
    TryDiscarded,
    /// The session was forked.
    Forked {
        /// IDs of the new sessions.
        sessions: Vec<String>,
    },
    /// The session began as a fork.
    ForkedFrom {
        /// ID of the other session.
        session: String,
    },
    /// The session was hibernated.
    Hibernated,
    /// A hibernated session got a kernel again.
    Resumed,
    /// The kernel ended, and variables are those from before the cell.
    Rescued,
    /// The kernel ended with all variables.
    KernelLost,
    /// All variables were deleted on request.
    Reset,
}

/// The last events of a session, shared by its task and its handles.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct Timeline(Arc<Mutex<VecDeque<SessionEvent>>>);

impl Timeline {
    pub(in crate::session) fn events(&self) -> MutexGuard<'_, VecDeque<SessionEvent>> {
        self.0.lock()
    }

    pub(super) fn note(&self, cell: u64, what: TimelineEvent) {
        let at_unix_ms = clock::unix_millis();
        let mut events = self.events();
        if events.len() == MAX_EVENTS {
            events.pop_front();
        }
        events.push_back(SessionEvent {
            at_unix_ms,
            cell,
            what,
        });
    }

    /// Whether the session was hibernated and not used since.
    pub(super) fn sleeps(&self) -> bool {
        let events = self.events();
        let mut turns = events.iter().rev().map(|event| &event.what);
        turns.find(|what| matches!(what, TimelineEvent::Hibernated | TimelineEvent::Resumed))
            == Some(&TimelineEvent::Hibernated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_events_are_kept_in_order() {
        let timeline = Timeline::default();
        for cell in 0..=MAX_EVENTS as u64 {
            timeline.note(cell, TimelineEvent::Tried);
        }
        let cells: Vec<_> = timeline.events().iter().map(|event| event.cell).collect();
        assert_eq!(cells, (1..=MAX_EVENTS as u64).collect::<Vec<_>>());
    }

    #[test]
    fn a_hibernated_session_is_resumed_once() {
        let timeline = Timeline::default();
        assert!(!timeline.sleeps());
        timeline.note(1, TimelineEvent::Hibernated);
        timeline.note(1, TimelineEvent::Reset);
        assert!(timeline.sleeps());
        timeline.note(1, TimelineEvent::Resumed);
        assert!(!timeline.sleeps());
    }

    #[test]
    fn an_event_is_one_object() {
        let event = SessionEvent {
            at_unix_ms: 5,
            cell: 2,
            what: TimelineEvent::RolledBack {
                checkpoint: "c1".into(),
            },
        };
        let json =
            serde_json::json!({"at_unix_ms": 5, "cell": 2, "event": "rolled_back", "checkpoint": "c1"});
        assert_eq!(serde_json::to_value(event).unwrap(), json);
    }
}

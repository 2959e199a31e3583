//! Effects of requests on the state of their session.

use crate::run_record::RunDependency;

/// Relation of a request to the state of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effects {
    /// Whether it ends a hibernation.
    pub(super) wakes: bool,
    /// Whether it is served while a try is undecided.
    pub(super) beside_try: bool,
    /// Whether the volume is saved after it.
    pub(super) saves_volume: bool,
    /// Change beside cells, for the records of runs.
    pub(super) change: Option<StateChange>,
}

/// Something that a request changes beside cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateChange {
    /// A dependency of later runs.
    Dependency(RunDependency),
    /// Variables are dropped.
    Reset,
}

impl Effects {
    /// Those of most requests: they wait for the decision about a try, and end a hibernation.
    pub(super) const USE: Self = Self {
        wakes: true,
        beside_try: false,
        saves_volume: false,
        change: None,
    };
    /// None: the request looks at what is known without the sandbox.
    pub(super) const NONE: Self = Self {
        wakes: false,
        beside_try: true,
        ..Self::USE
    };
    /// Those of a request that writes or removes files.
    pub(super) const FILES: Self = Self {
        change: Some(StateChange::Dependency(RunDependency::Files)),
        ..Self::SAVED
    };
    /// Those of a request after which the volume is saved.
    pub(super) const SAVED: Self = Self {
        saves_volume: true,
        ..Self::USE
    };

    /// Those of a request that drops variables.
    pub(super) const RESET: Self = Self {
        change: Some(StateChange::Reset),
        ..Self::USE
    };
    /// Those of a decision about a try.
    pub(super) const DECISION: Self = Self {
        beside_try: true,
        ..Self::SAVED
    };
    /// Those of a request that begins a hibernation.
    pub(super) const REST: Self = Self {
        wakes: false,
        ..Self::SAVED
    };

    /// Those of a request that changes what later runs depend on.
    pub(super) const fn changing(dependency: RunDependency) -> Self {
        Self {
            change: Some(StateChange::Dependency(dependency)),
            ..Self::USE
        }
    }
}

//! Answers of earlier calls. Two equal calls at the same time are one.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_protocol::Blob;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest as _, Sha256};

use super::ConnectorError;
use super::answer::StoredAnswer;

/// Limits of what is kept: 1000 answers, 32 MiB of memory, or 32 files with 256 MiB. The oldest
/// answers go first.
const ANSWERS: usize = 1000;
const WEIGHT: u64 = 32 << 20;
/// Minimum weight of a file, and its bytes per unit of weight.
const FILE_WEIGHT: u64 = 1 << 20;
const FILE_BYTES: u64 = 8;

/// Policy for later calls that get the answer of an equal earlier one. A call that writes always makes a
/// request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoPolicy {
    /// None: each call makes a request.
    Off,
    /// Those of the same session, until it forgets.
    #[default]
    Session,
    /// Those within this time in all sessions of the same owner in an
    /// [`Interpreter`](crate::Interpreter). Its sessions have no other connector of this name with
    /// this policy. Sessions without a known owner share nothing.
    Shared(Duration),
}

impl MemoPolicy {
    /// Returns how long answers count; without it, forever.
    pub(super) const fn lifetime(self) -> Option<Duration> {
        match self {
            Self::Off | Self::Session => None,
            Self::Shared(lifetime) => Some(lifetime),
        }
    }
}

/// Identity of a call: its owner if answers are shared, its connector, its function, and its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallKey([u8; 32]);

impl CallKey {
    pub(super) fn new(owner: &str, connector: &str, function: &str, canonical: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [owner, connector, function, canonical] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

type AnswerFuture = BoxFuture<'static, Result<Arc<StoredAnswer>, ConnectorError>>;

/// The answers.
#[derive(Default)]
pub(crate) struct Memo(Mutex<Slots>);

#[derive(Default)]
struct Slots {
    of: HashMap<CallKey, MemoState>,
    /// Keys of the kept answers, oldest first.
    kept: VecDeque<CallKey>,
    weight: u64,
}

enum MemoState {
    /// Only those who wait hold the call, so that it is canceled with the last of them.
    Fetching(WeakShared<AnswerFuture>),
    Kept(Arc<StoredAnswer>, Instant),
}

impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").finish_non_exhaustive()
    }
}

impl Memo {
    /// Returns the answer of an earlier equal call, or makes the call. Failures are not kept, and
    /// answers that are older than `lifetime` do not count. The flag says whether the answer is
    /// that of another call.
    pub(super) async fn get(
        &self,
        key: CallKey,
        lifetime: Option<Duration>,
        fetch: impl FnOnce() -> AnswerFuture,
    ) -> Result<(Arc<StoredAnswer>, bool), ConnectorError> {
        let (fetching, cached) = match self.find(key, lifetime) {
            MemoSlot::Kept(answer) => return Ok((answer, true)),
            MemoSlot::Fetching(fetching) => (fetching, true),
            MemoSlot::Nothing(mut slots) => {
                let fetching = fetch().shared();
                if let Some(weak) = fetching.downgrade() {
                    slots.of.insert(key, MemoState::Fetching(weak));
                }
                (fetching, false)
            }
        };
        let result = fetching.await;
        self.settle(key, result.as_ref().ok());
        Ok((result?, cached))
    }

    /// Forgets all answers.
    pub(super) fn clear(&self) {
        *self.lock() = Slots::default();
    }

    fn find(&self, key: CallKey, lifetime: Option<Duration>) -> MemoSlot<'_> {
        let mut slots = self.lock();
        match slots.of.get(&key) {
            Some(MemoState::Kept(_, since))
                if lifetime.is_some_and(|lifetime| since.elapsed() >= lifetime) =>
            {
                slots.kept.retain(|kept| *kept != key);
                slots.remove(key);
                MemoSlot::Nothing(slots)
            }
            Some(MemoState::Kept(answer, _)) => MemoSlot::Kept(Arc::clone(answer)),
            Some(MemoState::Fetching(fetching)) => match fetching.upgrade() {
                Some(fetching) => MemoSlot::Fetching(fetching),
                None => MemoSlot::Nothing(slots),
            },
            None => MemoSlot::Nothing(slots),
        }
    }

    fn settle(&self, key: CallKey, answer: Option<&Arc<StoredAnswer>>) {
        let mut slots = self.lock();
        if !matches!(slots.of.get(&key), Some(MemoState::Fetching(_))) {
            return;
        }
        slots.of.remove(&key);
        let Some(answer) = answer else { return };
        let weight = weight(answer);
        if weight > WEIGHT {
            return;
        }
        slots
            .of
            .insert(key, MemoState::Kept(Arc::clone(answer), Instant::now()));
        slots.kept.push_back(key);
        slots.weight += weight;
        while slots.kept.len() > ANSWERS || slots.weight > WEIGHT {
            let Some(oldest) = slots.kept.pop_front() else {
                return;
            };
            slots.remove(oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.0.lock()
    }
}

impl Slots {
    /// Removes an answer, whose key is not among the kept ones any more.
    fn remove(&mut self, key: CallKey) {
        if let Some(MemoState::Kept(answer, _)) = self.of.remove(&key) {
            self.weight -= weight(&answer);
        }
    }
}

fn weight(answer: &StoredAnswer) -> u64 {
    match &answer.bytes {
        Blob::Memory(bytes) => bytes.len() as u64,
        Blob::File(_, bytes) => FILE_WEIGHT.max(bytes / FILE_BYTES),
    }
}

enum MemoSlot<'a> {
    Kept(Arc<StoredAnswer>),
    Fetching(Shared<AnswerFuture>),
    Nothing(MutexGuard<'a, Slots>),
}

//! The recorded results of one session or turn.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use cellblock_artifact::{Reader, Store};
use parking_lot::{Mutex, MutexGuard};

use super::bounds::Bounds;
use super::entry::Entry;
use super::error::{AliasError, NameFault, shown};
use super::{name, reserved};

/// Records the results of tools, and keeps them until it is closed. Cheap to clone; all clones
/// share the same store.
#[derive(Clone, Debug)]
pub struct AliasStore {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) store: Store,
    pub(super) owner: String,
    pub(super) bounds: Bounds,
    state: Mutex<StoreState>,
}

/// The locked state; never held across an `await`.
#[derive(Debug, Default)]
pub(super) struct StoreState {
    /// Entries in the order of the calls that recorded them.
    pub(super) entries: BTreeMap<u64, Arc<Entry>>,
    /// Every alias that was ever assigned, and the index of its entry.
    pub(super) places: HashMap<String, u64>,
    /// Last number of each stem.
    pub(super) numbers: BTreeMap<String, u64>,
    next_place: u64,
    /// Number of recorded results, including those being recorded.
    count: usize,
    bytes: u64,
    closed: bool,
    pub(super) saved: bool,
}

impl AliasStore {
    /// Records to an artifact store, which keeps the results for the owner with this name until
    /// this is closed.
    ///
    /// The owner's name has at most 128 ASCII letters, digits, `-`, `_` and `.`; no other store may
    /// use the same.
    pub fn new(store: Store, owner: impl Into<String>, bounds: Bounds) -> Self {
        Self::with_state(store, owner.into(), bounds, StoreState::default())
    }

    pub(super) fn with_state(store: Store, owner: String, bounds: Bounds, state: StoreState) -> Self {
        let state = Mutex::new(state);
        Self {
            inner: Arc::new(Inner {
                store,
                owner,
                bounds,
                state,
            }),
        }
    }

    /// Returns the artifact store with the results.
    pub fn artifacts(&self) -> &Store {
        &self.inner.store
    }

    /// Returns all results, in the order of the calls that recorded them.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.inner.state().entries.values().cloned().collect()
    }

    /// Returns all aliases, in the same order.
    pub fn aliases(&self) -> Vec<String> {
        self.inner.state().aliases()
    }

    /// Returns a result.
    pub fn entry(&self, alias: &str) -> Result<Arc<Entry>, AliasError> {
        let state = self.inner.state();
        let place = state.places.get(alias);
        match place.and_then(|place| state.entries.get(place)) {
            Some(entry) => Ok(Arc::clone(entry)),
            None => Err(AliasError::Unknown {
                alias: shown(alias),
                known: state.aliases(),
            }),
        }
    }

    /// Reads a result's bytes in pieces; the check for damage follows the last one.
    pub async fn reader(&self, alias: &str) -> Result<Reader, AliasError> {
        let entry = self.entry(alias)?;
        Ok(self.inner.store.reader(entry.sha256).await?)
    }

    /// Ends the recording and releases the results, which may then be collected.
    pub async fn close(&self) -> Result<(), AliasError> {
        {
            let mut state = self.inner.state();
            state.closed = true;
            state.saved = false;
        }
        self.inner.store.unpin(&self.inner.owner).await?;
        self.inner.state().entries.clear();
        Ok(())
    }
}

impl Inner {
    pub(super) fn state(&self) -> MutexGuard<'_, StoreState> {
        // No code under the lock leaves it in an inconsistent state.
        self.state.lock()
    }

    /// Reserves the next alias of a tool and space for a number of bytes.
    pub(super) fn begin(self: &Arc<Self>, tool: &str, bytes: u64) -> Result<Ticket, AliasError> {
        let mut state = self.state();
        state.reserve(tool, bytes, &self.bounds)?;
        let stem = name::stem(tool);
        let mut number = state.numbers.get(&stem).copied().unwrap_or_default();
        let alias = loop {
            number += 1;
            let alias = name::alias(&stem, number);
            if !state.places.contains_key(&alias) {
                break alias;
            }
        };
        state.numbers.insert(stem, number);
        Ok(state.ticket(Arc::clone(self), alias, bytes))
    }

    /// Reserves a given alias and space for a number of bytes.
    pub(super) fn begin_named(self: &Arc<Self>, alias: &str, bytes: u64) -> Result<Ticket, AliasError> {
        reserved::check(alias)?;
        let mut state = self.state();
        if state.places.contains_key(alias) {
            return Err(AliasError::name(alias, NameFault::Taken));
        }
        state.reserve(alias, bytes, &self.bounds)?;
        Ok(state.ticket(Arc::clone(self), alias.to_owned(), bytes))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if state.saved || state.closed || state.places.is_empty() {
            return;
        }
        // Without a runtime the references stay until `Retention::pins` treats them as those of a
        // dead owner.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (store, owner) = (self.store.clone(), std::mem::take(&mut self.owner));
            runtime.spawn(async move {
                if let Err(error) = store.unpin(&owner).await {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        owner,
                        "could not give up recorded results"
                    );
                }
            });
        }
    }
}

impl StoreState {
    /// Continues after entries that were recorded before.
    pub(super) fn restored(
        entries: Vec<Entry>,
        given: BTreeSet<String>,
        numbers: BTreeMap<String, u64>,
    ) -> Self {
        let mut state = Self {
            numbers,
            saved: true,
            ..Self::default()
        };
        for entry in entries {
            let place = state.next_place;
            state.next_place += 1;
            state.count += 1;
            state.bytes += entry.bytes;
            state.places.insert(entry.alias.clone(), place);
            state.entries.insert(place, Arc::new(entry));
        }
        for alias in given {
            let next = state.next_place;
            if let std::collections::hash_map::Entry::Vacant(free) = state.places.entry(alias) {
                free.insert(next);
                state.next_place += 1;
            }
        }
        state
    }

    pub(super) fn aliases(&self) -> Vec<String> {
        self.entries.values().map(|entry| entry.alias.clone()).collect()
    }

    fn reserve(&mut self, tool: &str, bytes: u64, bounds: &Bounds) -> Result<(), AliasError> {
        let all = self.bytes.saturating_add(bytes);
        if self.closed {
            return Err(AliasError::Closed);
        }
        if bytes > bounds.bytes_each {
            return Err(AliasError::TooLarge {
                tool: shown(tool),
                limit: bounds.bytes_each,
                actual: bytes,
            });
        }
        if all > bounds.bytes_all {
            return Err(AliasError::Full {
                tool: shown(tool),
                limit: bounds.bytes_all,
                actual: all,
            });
        }
        if self.count >= bounds.count {
            return Err(AliasError::TooMany { limit: bounds.count });
        }
        self.count += 1;
        self.bytes = all;
        Ok(())
    }

    fn ticket(&mut self, inner: Arc<Inner>, alias: String, bytes: u64) -> Ticket {
        let place = self.next_place;
        self.next_place += 1;
        self.places.insert(alias.clone(), place);
        Ticket {
            inner,
            alias,
            place,
            bytes,
            done: false,
        }
    }
}

/// A reserved alias and reserved space. Dropping it unused releases the space; the alias stays
/// used.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) inner: Arc<Inner>,
    pub(super) alias: String,
    place: u64,
    bytes: u64,
    done: bool,
}

impl Ticket {
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn redeem(mut self, entry: Entry) -> Result<Arc<Entry>, AliasError> {
        let entry = Arc::new(entry);
        let mut state = self.inner.state();
        if state.closed {
            return Err(AliasError::Closed);
        }
        state.entries.insert(self.place, Arc::clone(&entry));
        drop(state);
        self.done = true;
        Ok(entry)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.done {
            let mut state = self.inner.state();
            state.count -= 1;
            state.bytes -= self.bytes;
        }
    }
}

//! Results of tools: kept whole under aliases, and shown to the model within a budget.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use cellblock_artifact::{ArtifactId, Store};
use cellblock_interpreter::alias::{AliasError, AliasStore, Bounds, Entry};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::wire::{FunctionCallOutput, FunctionOutput, Item};

/// Maximum number of tokens of a result in a conversation until there is a common budget.
const TOKENS: usize = 2000;

/// Results of tools. Clones share them.
#[derive(Clone, Debug)]
pub struct Evidence {
    aliases: AliasStore,
    /// Ids of the conversation's items that show a result, with its alias.
    shown: Arc<Mutex<BTreeMap<String, String>>>,
    /// The limit on the results of all turns, if any.
    room: Option<Arc<dyn EvidenceRoom>>,
}

/// A result of a tool. Its bytes are in the artifact store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptResult {
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// A limit on the stored results of tools.
pub trait EvidenceRoom: Debug + Send + Sync {
    /// Checks whether a new result fits in addition to those of a turn; returns the reason if not,
    /// in words for a model.
    fn ask(&self, held: Vec<KeptResult>, new: KeptResult) -> BoxFuture<'_, Result<(), String>>;
}

/// The reason why a result is not kept.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// It cannot be recorded.
    #[error(transparent)]
    Alias(#[from] AliasError),
    /// It exceeds the limit.
    #[error("{0}")]
    NoRoom(String),
}

impl NotKept {
    /// Returns whether the result itself is invalid, rather than this host having failed.
    pub fn is_repairable(&self) -> bool {
        match self {
            Self::Alias(error) => error.code().is_some(),
            Self::NoRoom(_) => true,
        }
    }
}

/// The stored state of results between turns.
#[derive(Serialize, Deserialize)]
struct EvidenceState {
    /// List of aliases in the store.
    aliases: ArtifactId,
    shown: BTreeMap<String, String>,
}

impl Evidence {
    /// Keeps results for `owner` in the store.
    pub fn new(store: Store, owner: &str) -> Self {
        Self {
            aliases: AliasStore::new(store, owner, Bounds::default()),
            shown: Arc::default(),
            room: None,
        }
    }

    /// Sets the limit.
    #[must_use]
    pub fn within(mut self, room: Arc<dyn EvidenceRoom>) -> Self {
        self.room = Some(room);
        self
    }

    /// Loads stored results for another owner. They are released when this is dropped, unless it is
    /// saved.
    pub async fn load(store: Store, owner: &str, kept: &str) -> Result<Self, AliasError> {
        let kept: EvidenceState = serde_json::from_str(kept).map_err(AliasError::Manifest)?;
        let aliases = AliasStore::load(store, owner, Bounds::default(), kept.aliases).await?;
        aliases.lend();
        Ok(Self {
            aliases,
            shown: Arc::new(Mutex::new(kept.shown)),
            room: None,
        })
    }

    /// Returns whether `kept` shows everything that `earlier` shows, under the same aliases: it is
    /// a later state of the same conversation.
    pub fn goes_on(kept: &str, earlier: &str) -> bool {
        let read = |kept| serde_json::from_str::<EvidenceState>(kept);
        let (Ok(kept), Ok(earlier)) = (read(kept), read(earlier)) else {
            return false;
        };
        let mut shown = earlier.shown.iter();
        shown.all(|(item, alias)| kept.shown.get(item) == Some(alias))
    }

    /// Saves all results permanently; returns the state for [`load`](Self::load). Nothing if there
    /// are no results.
    pub async fn save(&self) -> Result<Option<String>, AliasError> {
        if self.aliases.aliases().is_empty() {
            return Ok(None);
        }
        let aliases = self.aliases.save().await?;
        let shown = self.shown().clone();
        let kept = serde_json::to_string(&EvidenceState { aliases, shown });
        kept.map(Some).map_err(AliasError::Manifest)
    }

    /// Returns the aliases.
    pub const fn aliases(&self) -> &AliasStore {
        &self.aliases
    }

    /// Keeps a whole result. `item` is the conversation's item that shows it: returns its text.
    pub async fn record(
        &self,
        tool: &str,
        value: &Value,
        item: &str,
    ) -> Result<(Arc<Entry>, String), NotKept> {
        let unreadable = |source| AliasError::Json {
            tool: tool.to_owned(),
            source,
        };
        let bytes = Bytes::from(serde_json::to_vec(value).map_err(unreadable)?);
        if let Some(room) = &self.room {
            let new = KeptResult {
                sha256: ArtifactId::of(&bytes).to_string(),
                bytes: bytes.len() as u64,
            };
            room.ask(self.results(), new).await.map_err(NotKept::NoRoom)?;
        }
        let entry = self.aliases.record_json(tool, bytes).await?;
        let text = self.aliases.model_view(&entry.alias, TOKENS)?;
        self.shown().insert(item.to_owned(), entry.alias.clone());
        Ok((entry, text))
    }

    /// Returns all results.
    pub fn results(&self) -> Vec<KeptResult> {
        let entries = self.aliases.entries();
        let results = entries.iter().map(|entry| KeptResult {
            sha256: entry.sha256.to_string(),
            bytes: entry.bytes,
        });
        results.collect()
    }

    /// Cuts the results in a conversation to a common number of tokens. No alias is ever omitted.
    pub(super) fn fit(&self, items: &mut [Item], tokens: usize) {
        let shown = self.shown();
        if shown.is_empty() {
            return;
        }
        let views: BTreeMap<_, _> = self
            .aliases
            .model_views(tokens)
            .into_iter()
            .map(|view| (view.alias, view.text))
            .collect();
        for item in items {
            if let Item::FunctionCallOutput(FunctionCallOutput { id, output, .. }) = item
                && let Some(view) = shown.get(id).and_then(|alias| views.get(alias))
            {
                *output = FunctionOutput::Text(view.clone());
            }
        }
    }

    fn shown(&self) -> parking_lot::MutexGuard<'_, BTreeMap<String, String>> {
        // An insert leaves no inconsistent state.
        self.shown.lock()
    }
}

//! The list of results, saved so that a restarted host has them.

use std::collections::{BTreeMap, BTreeSet};

use cellblock_artifact::{ArtifactDescription, ArtifactId, Kind, Store};
use serde::{Deserialize, Serialize};

use super::bounds::Bounds;
use super::entry::Entry;
use super::error::AliasError;
use super::store::{AliasStore, StoreState};

/// Version of the list's format.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct AliasManifest {
    version: u32,
    entries: Vec<Entry>,
    /// Aliases in use, including those of results that failed.
    given: BTreeSet<String>,
    numbers: BTreeMap<String, u64>,
}

impl AliasStore {
    /// Saves the list of current results; returns the id with which [`load`](Self::load) finds it.
    ///
    /// Afterward, dropping the store keeps the results; only [`close`](Self::close) releases them.
    pub async fn save(&self) -> Result<ArtifactId, AliasError> {
        let json = {
            let state = self.inner.state();
            let manifest = AliasManifest {
                version: VERSION,
                entries: state.entries.values().map(|entry| Entry::clone(entry)).collect(),
                given: state.places.keys().cloned().collect(),
                numbers: state.numbers.clone(),
            };
            serde_json::to_vec(&manifest).map_err(AliasError::Manifest)?
        };
        let about = ArtifactDescription {
            kind: Kind::Dataset,
            media_type: "application/vnd.cellblock.aliases+json".to_owned(),
            origin: None,
        };
        let id = self.inner.store.put(json, &about).await?;
        self.inner.store.pin(&self.inner.owner, [id]).await?;
        self.inner.state().saved = true;
        Ok(id)
    }

    /// Reverts a save: the results are released when the store is dropped, unless it is saved
    /// again.
    pub fn lend(&self) {
        self.inner.state().saved = false;
    }

    /// Loads saved results, for the same owner or another. Missing results are an error.
    pub async fn load(
        store: Store,
        owner: impl Into<String>,
        bounds: Bounds,
        id: ArtifactId,
    ) -> Result<Self, AliasError> {
        let json = store.get(id).await?;
        let manifest: AliasManifest = serde_json::from_slice(&json).map_err(AliasError::Manifest)?;
        if manifest.version != VERSION {
            let other = format!("its version is {}, not {VERSION}", manifest.version);
            return Err(AliasError::Manifest(serde::de::Error::custom(other)));
        }
        let owner = owner.into();
        let kept = manifest.entries.iter().map(|entry| entry.sha256);
        store.pin(&owner, kept.chain([id])).await?;
        let state = StoreState::restored(manifest.entries, manifest.given, manifest.numbers);
        Ok(Self::with_state(store, owner, bounds, state))
    }
}
